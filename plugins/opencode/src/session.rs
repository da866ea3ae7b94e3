//! What a file says about its session, apart from the messages.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Conversation, Fields, ImportError, Importer as _, Leftover, Parser, Sink, address::unsigned_json,
    json::time_of_text, title, warnings::shortened,
};

use crate::{
    OpenCode,
    changes::{changed_files, without_contents},
    fields::time_at,
    message::Info,
};

/// PAM tag of sessions that another session started for a part of its work.
const SUBAGENT: &str = "subagent";
/// How the titles of sessions begin that have none yet.
const PLACEHOLDERS: [&str; 2] = ["New session - ", "Child session - "];
/// Characters of a title that is made of the first prompt.
const MAX_TITLE: usize = 120;
/// Bytes of a list that is kept with the session.
pub(crate) const MAX_LIST: usize = 1024 * 1024;
/// Fields of a session that are known and kept as they are.
const KEPT: [&str; 18] = [
    "agent",
    "cost",
    "directory",
    "metadata",
    "model",
    "parentID",
    "path",
    "permission",
    "projectID",
    "revert",
    "share",
    "slug",
    "summary",
    "time",
    "title",
    "tokens",
    "version",
    "workspaceID",
];

/// A session.
#[derive(Debug, Default)]
pub(crate) struct Session {
    pub(crate) id: Option<String>,
    pub(crate) title: Option<String>,
    /// Microseconds.
    created: Option<i64>,
    pub(crate) updated: Option<i64>,
    archived: bool,
    subagent: bool,
    /// The other fields, as JSON text.
    rest: Vec<(String, String)>,
    /// A field that is not known and holds natural language.
    pub(crate) unread: Option<String>,
    /// Lists that were too long to be kept.
    pub(crate) left_out: Vec<&'static str>,
}

/// What the messages say about their session.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) model: Option<String>,
    pub(crate) system: Option<String>,
    /// The first line of the first prompt.
    pub(crate) title: Option<String>,
    oldest: Option<i64>,
    newest: Option<i64>,
    /// The moments of the messages with the title and the model.
    titled_at: Option<Moment>,
    model_at: Option<Moment>,
}

/// The place of a message in its session: its time and its id.
pub(crate) type Moment = (Option<i64>, String);

impl Session {
    /// Reads the fields of a session.
    pub(crate) fn read(mut fields: Fields<'_>) -> Result<Self, ImportError> {
        let time = fields.object("time")?;
        let mut session = Self {
            id: fields.take_id("id").map(ToOwned::to_owned),
            title: take_title(&mut fields).map(ToOwned::to_owned),
            created: time_at(&time, "created"),
            updated: time_at(&time, "updated"),
            archived: time.has("archived"),
            subagent: fields.id("parentID").is_some(),
            ..Self::default()
        };
        if let Some(mut share) = fields.take_object("share")? {
            // Whoever has it can change what is shared.
            share.take("secret");
            fields.push_json("share", &share.into_json());
        }
        if let Some(mut summary) = fields.take_object("summary")? {
            without_contents(&mut summary, "diffs")?;
            fields.push_json("summary", &summary.into_json());
        }
        session.unread = fields.unread(&KEPT).map(ToOwned::to_owned);
        session.rest =
            fields.iter().map(|(key, value)| (key.to_owned(), value.json().into_owned())).collect();
        Ok(session)
    }

    /// Keeps the list of tasks, as JSON text.
    pub(crate) fn add_tasks(&mut self, json: &str) {
        self.add_list("todos", json.to_owned());
    }

    /// Keeps the list of changed files, without their contents.
    pub(crate) fn add_changes(&mut self, json: &str) -> Result<(), ImportError> {
        let arena = Arena::new();
        self.add_list("session_diff", changed_files(json, &arena)?);
        Ok(())
    }

    /// Keeps what is known about the project of the session, but for its icon, which may be a picture.
    pub(crate) fn add_project(&mut self, json: &str) -> Result<(), ImportError> {
        let arena = Arena::new();
        let mut fields = Fields::read(&mut Parser::new(json, &arena))?;
        for key in ["id", "icon", "time"] {
            fields.take(key);
        }
        self.add_list("project", fields.into_json());
        Ok(())
    }

    fn add_list(&mut self, key: &'static str, json: String) {
        if json.len() > MAX_LIST {
            self.left_out.push(key);
        } else if json != "[]" && json != "{}" {
            self.rest.push((key.to_owned(), json));
        }
    }

    /// Warns of what is left out or not understood.
    pub(crate) fn report(&self, locator: &str, sink: &mut Sink) {
        for list in &self.left_out {
            sink.warn(locator, &format!("the session's list {list:?} is longer than 1 MiB; it is left out"));
        }
        if let Some(field) = &self.unread {
            let field = shortened(field);
            sink.warn(locator, &format!("the session's field {field:?} is unknown; it is kept"));
        }
    }

    /// The conversation with this id.
    pub(crate) fn conversation<'s>(
        &'s self,
        id: &'s str,
        facts: &'s Facts,
        format: &str,
        locator: &'s str,
    ) -> Result<Conversation<'s>, ImportError> {
        let version = OpenCode::describe().version_of(format)?;
        let mut rest = Leftover::default();
        let arena = Arena::new();
        for (key, json) in &self.rest {
            rest.add_json(arena.alloc_str(key), json);
        }
        if self.title.is_none() && facts.title.is_some() {
            rest.add_text("title_source", "first user message");
        }
        let metadata = rest.into_json().map(|json| Cow::Owned(json.into_owned()));
        Ok(Conversation {
            id: id.into(),
            provider_conversation_id: Some(id.into()),
            export_format_version: Some(version.into()),
            title: self.title.as_deref().or(facts.title.as_deref()).map(Cow::Borrowed),
            created_at: self.created.or(facts.oldest),
            updated_at: self.updated.or(facts.newest),
            model: facts.model.as_deref().map(Cow::Borrowed),
            system_instruction: facts.system.as_deref().map(Cow::Borrowed),
            is_archived: self.archived,
            tags: self.subagent.then_some(SUBAGENT.into()).into_iter().collect(),
            raw_metadata: metadata.map(unsigned_json),
            locator: locator.into(),
            ..Conversation::default()
        })
    }
}

/// Takes the title, unless the program has not found one yet: the name of a new session has its time.
fn take_title<'a>(fields: &mut Fields<'a>) -> Option<&'a str> {
    let is_time = |text: &str| time_of_text(text).is_some();
    let title = fields.get("title").text()?;
    if PLACEHOLDERS.iter().filter_map(|begin| title.strip_prefix(begin)).any(is_time) {
        return None;
    }
    fields.take_text("title")
}

impl Facts {
    /// Adds what the message `id` says. Messages may come in any order.
    pub(crate) fn add(&mut self, info: &Info<'_>, id: &str) {
        let moment = (info.created, id.to_owned());
        if let Some(model) = info.model.filter(|_| Some(&moment) >= self.model_at.as_ref()) {
            (self.model, self.model_at) = (Some(model.to_owned()), Some(moment));
        }
        if self.system.is_none() {
            self.system.clone_from(&info.system);
        }
        self.oldest = [self.oldest, info.created].into_iter().flatten().min();
        self.newest = self.newest.max(info.created);
    }

    /// Adds a text of the person.
    pub(crate) fn add_prompt(&mut self, text: &str, moment: Moment) {
        let earlier = self.titled_at.as_ref().is_none_or(|known| moment < *known);
        if let Some(line) = title::first_line(text, MAX_TITLE).filter(|_| earlier) {
            (self.title, self.titled_at) = (Some(line), Some(moment));
        }
    }
}
