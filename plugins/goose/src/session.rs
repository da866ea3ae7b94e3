//! What a file says about its session, apart from the messages.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{
    Arena, Conversation, Fields, ImportError, Importer as _, JsonError, Leftover,
    address::unsigned_json,
    json::{Value, time_of_text},
    natural_key, title, unless_malformed,
    warnings::shortened,
};

use crate::{
    Goose,
    message::{Record, is_message},
    private::without_secrets,
};

/// PAM tag of sessions that another session started for a part of its work.
const SUBAGENT: &str = "subagent";
/// The types of such sessions, in newer and older versions.
const SUBAGENT_TYPES: [&str; 3] = ["sub_agent", "specialist", "subagent"];
/// Names of sessions that have none yet. That of the desktop application may be followed by a number.
const PLACEHOLDERS: [&str; 4] = ["CLI Session", "New Chat", "New chat", "New session"];
/// Characters of a title that is made of the first prompt.
const MAX_TITLE: usize = 120;
/// Bytes of one field that is kept with the session.
pub(crate) const MAX_FIELD: usize = 1024 * 1024;
/// Bytes of all of them.
const MAX_FIELDS: usize = 4 * MAX_FIELD;
/// Fields that are named when they are left out.
const MAX_NAMED: usize = 16;
/// Bytes of an id.
pub(crate) const MAX_ID: usize = 256;
/// Fields of a session that are known.
pub(crate) const KNOWN: [&str; 38] = [
    "id",
    "working_dir",
    "name",
    "description",
    "user_set_name",
    "session_type",
    "created_at",
    "updated_at",
    "extension_data",
    "usage",
    "accumulated_usage",
    "total_tokens",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "accumulated_total_tokens",
    "accumulated_input_tokens",
    "accumulated_output_tokens",
    "accumulated_cache_read_tokens",
    "accumulated_cache_write_tokens",
    "accumulated_cost",
    "schedule_id",
    "recipe",
    "user_recipe_values",
    "message_count",
    "last_message_at",
    "provider_name",
    "model_config",
    "goose_mode",
    "archived_at",
    "project_id",
    "parent_session_id",
    "last_message_snippet",
    "tenant_id",
    "user_id",
    "parent_delegation",
    "thread_id",
];
/// Members of an export that are read on their own.
pub(crate) const LISTS: [&str; 3] = ["conversation", "child_sessions", "artifacts"];

/// Fields of which the first line of a file has at least one.
const HEADER: [&str; 3] = ["description", "working_dir", "message_count"];
/// Digits of the day in an id, and of the time in those of sessions that were files.
const DAY_DIGITS: usize = 8;
const TIME_DIGITS: usize = 6;

/// Whether the first line of a file describes the session.
pub(crate) fn is_header(fields: &Fields<'_>) -> bool {
    !is_message(fields) && HEADER.iter().any(|name| fields.has(name))
}

/// What a session is called.
pub(crate) struct SessionNames<'s> {
    /// Its id in the database of the program.
    pub(crate) id: &'s str,
    /// The key of its conversation.
    pub(crate) key: String,
}

impl<'s> SessionNames<'s> {
    /// The names of a session of a database. Each database counts the sessions of a day, so another computer has an id such as
    /// `20251014_1`, too: the time at which the session began tells them apart.
    pub(crate) fn of(session: &Session, id: &'s str) -> Self {
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let counted = id.split_once('_').is_some_and(|(day, number)| {
            day.len() == DAY_DIGITS && number.len() < TIME_DIGITS && digits(day) && digits(number)
        });
        let key = match session.created.filter(|_| counted) {
            Some(created) => natural_key(&[Some(id), Some(&created.to_string())]),
            None => id.to_owned(),
        };
        Self { id, key }
    }
}

/// A session.
#[derive(Debug, Default)]
pub(crate) struct Session {
    pub(crate) id: Option<String>,
    name: Option<String>,
    /// Whether the person gave it its name.
    named: bool,
    /// Microseconds.
    created: Option<i64>,
    updated: Option<i64>,
    archived: bool,
    subagent: bool,
    model: Option<String>,
    /// The other fields, as JSON texts.
    rest: BTreeMap<String, String>,
    bytes: usize,
    /// A field that is not known and holds natural language.
    pub(crate) unread: Option<String>,
    /// Fields that are too long to be kept, or cannot be read.
    pub(crate) left_out: Vec<String>,
    /// How many there were.
    pub(crate) left_out_count: usize,
}

/// What the messages say about their session.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) has_messages: bool,
    /// Whether a message is older than one before it.
    pub(crate) unsorted: bool,
    model: Option<String>,
    /// The first line of the first prompt.
    title: Option<String>,
    oldest: Option<i64>,
    newest: Option<i64>,
}

impl Session {
    /// Reads the fields of a session.
    pub(crate) fn read(fields: &Fields<'_>) -> Result<Self, ImportError> {
        let mut session = Self::default();
        for (key, value) in fields.iter() {
            // A field that cannot be read costs only itself.
            if unless_malformed(session.add(key, value, fields.arena()).map_err(Into::into))?.is_none() {
                session.leave_out(key);
            }
        }
        Ok(session)
    }

    /// Adds one field.
    pub(crate) fn add(&mut self, key: &str, value: Value<'_>, arena: &Arena) -> Result<(), JsonError> {
        let text = value.nonempty_text();
        match (key, text) {
            ("id", Some(text)) if text.len() <= MAX_ID => {
                self.id = Some(text.to_owned());
                return Ok(());
            }
            // The name was a description in older versions.
            ("name", Some(text)) => self.name = Some(text.to_owned()),
            ("description", Some(text)) => {
                self.name.get_or_insert_with(|| text.to_owned());
            }
            ("created_at", Some(text)) => {
                self.created = time_of_text(text).map(|(micros, _)| micros);
            }
            ("updated_at", Some(text)) => {
                self.updated = time_of_text(text).map(|(micros, _)| micros);
            }
            ("archived_at", _) => self.archived = value != Value::Null,
            ("user_set_name", _) => self.named = value.is_true(),
            ("session_type", Some(text)) => self.subagent |= SUBAGENT_TYPES.contains(&text),
            ("parent_session_id", Some(_)) => self.subagent = true,
            ("model_config", None) => self.read_model(value, arena)?,
            _ => {}
        }
        self.keep(key, value, arena)
    }

    fn read_model(&mut self, config: Value<'_>, arena: &Arena) -> Result<(), JsonError> {
        let raw: &str = arena.alloc_str(config.raw().unwrap_or("null"));
        let config = Fields::parse(raw, arena)?;
        self.model = config.get("model_name").nonempty_text().map(ToOwned::to_owned);
        Ok(())
    }

    fn keep(&mut self, key: &str, value: Value<'_>, arena: &Arena) -> Result<(), JsonError> {
        let json = without_secrets(value, arena)?;
        if matches!(json.as_str(), "null" | "{}" | "[]" | "\"\"") {
            return Ok(());
        }
        let fits = json.len() <= MAX_FIELD && self.bytes + key.len() + json.len() <= MAX_FIELDS;
        if !fits {
            self.leave_out(key);
            return Ok(());
        }
        if !KNOWN.contains(&key) && self.unread.is_none() {
            let mut rest = Leftover::default();
            rest.note_unknown("", value);
            self.unread = rest.unread().map(|_| key.to_owned());
        }
        self.bytes += key.len() + json.len();
        self.rest.insert(key.to_owned(), json);
        Ok(())
    }

    /// Keeps the id that a file of lines gives, which is no name of the session.
    pub(crate) fn keep_id(&mut self) {
        if let Some(id) = self.id.take() {
            self.rest.insert("id".to_owned(), Value::Text(&id).json().into_owned());
        }
    }

    /// Notes that a field is not kept.
    pub(crate) fn leave_out(&mut self, key: &str) {
        self.left_out_count += 1;
        if self.left_out.len() < MAX_NAMED {
            self.left_out.push(shortened(key));
        }
    }

    /// The name, unless the program has not found one yet.
    fn title(&self) -> Option<&str> {
        let name = self.name.as_deref()?;
        let number = |rest: &str| rest.trim().chars().all(|digit| digit.is_ascii_digit());
        let placeholder = PLACEHOLDERS.iter().filter_map(|begin| name.strip_prefix(begin)).any(number);
        Some(name).filter(|_| self.named || !placeholder)
    }

    /// The conversation with this id.
    pub(crate) fn conversation<'s>(
        &'s self,
        names: &'s SessionNames<'_>,
        facts: &'s Facts,
        format: &str,
        locator: &'s str,
    ) -> Result<Conversation<'s>, ImportError> {
        let version = Goose::describe().version_of(format)?;
        let mut rest = Leftover::default();
        let title = self.title();
        // The name is the title, and is kept once.
        let is_title = |key: &str| matches!(key, "name" | "description") && title.is_some();
        for (key, json) in
            self.rest.iter().filter(|(key, json)| !(is_title(key.as_str()) && self.is_name(json)))
        {
            rest.add_json(key, json);
        }
        if title.is_none() && facts.title.is_some() {
            rest.add_text("title_source", "first user message");
        }
        let metadata = rest.into_json().map(|json| Cow::Owned(json.into_owned()));
        let model = self.model.as_deref().or(facts.model.as_deref());
        Ok(Conversation {
            id: names.key.as_str().into(),
            provider_conversation_id: Some(names.id.into()),
            export_format_version: Some(version.into()),
            title: title.or(facts.title.as_deref()).map(Cow::Borrowed),
            created_at: self.created.or(facts.oldest),
            updated_at: self.updated.or(facts.newest),
            model: model.map(Cow::Borrowed),
            is_archived: self.archived,
            tags: self.subagent.then_some(SUBAGENT.into()).into_iter().collect(),
            raw_metadata: metadata.map(unsigned_json),
            locator: locator.into(),
            ..Conversation::default()
        })
    }

    fn is_name(&self, json: &str) -> bool {
        self.name.as_deref().is_some_and(|name| Value::Text(name).json() == json)
    }
}

impl Facts {
    /// Adds what a message says.
    pub(crate) fn add(&mut self, record: &Record<'_>) {
        self.has_messages = true;
        if let Some(model) = record.model {
            self.model = Some(model.to_owned());
        }
        self.unsorted |= record.created.is_some_and(|time| Some(time) < self.newest);
        self.oldest = [self.oldest, record.created].into_iter().flatten().min();
        self.newest = self.newest.max(record.created);
        if self.title.is_none() {
            self.title = record.prompt().and_then(|text| title::first_line(text, MAX_TITLE));
        }
    }
}
