//! Reads each session in two passes: first what must be known about all of it, then its messages.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Arena, Bundle, Conversation, Element, ErrorKind, Fields, ImportError, Importer as _, JsonLists, Leftover,
    RecordKind, Sink, Summary,
    address::unsigned_json,
    json::Value,
    warnings::{Warnings, shortened},
};

use crate::{
    GeminiCli, detect,
    digest::digest,
    fields::KEPT,
    layout,
    line::{Line, is_message},
    memory,
    record::{Piece, Record},
    survey::Survey,
    tree::{MAX_MESSAGES, MessageTree, Outcome, Place},
};

/// PAM tag of sessions that another session started.
const SUBAGENT: &str = "subagent";
/// Bytes of the file that names the folder of a project.
const MAX_ROOT: u64 = 4096;
/// What is said in place of further warnings about unknown types.
const MORE_TYPES: &str = "there are more unknown types in this chat, which are not listed";
/// The fields of a file with one object. All but the messages were read in the first pass.
const LISTS: [(&str, RecordKind); 9] = [
    ("messages", RecordKind::Message),
    ("sessionId", RecordKind::Conversation),
    ("projectHash", RecordKind::Conversation),
    ("startTime", RecordKind::Conversation),
    ("lastUpdated", RecordKind::Conversation),
    ("summary", RecordKind::Conversation),
    ("directories", RecordKind::Conversation),
    ("kind", RecordKind::Conversation),
    ("memoryScratchpad", RecordKind::Conversation),
];

/// Reads all that detection claimed.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    GeminiCli::describe().version_of(format)?;
    let mut found = false;
    for path in detect::candidates(bundle) {
        if let Some(layout) = detect::format_of(bundle, path)? {
            found = true;
            let survey = Survey::read(bundle, path, layout)?;
            SessionFile { bundle, path, layout, survey: &survey }.read(sink)?;
        }
    }
    found |= memory::read(bundle, sink)?;
    if !found {
        return Err(ImportError::not_this_format("none of the files is a session or a memory of Gemini CLI"));
    }
    Ok(bundle.summary())
}

/// Reads the file of a session.
struct SessionFile<'r> {
    bundle: &'r Bundle,
    path: &'r str,
    layout: &'r str,
    survey: &'r Survey,
}

/// The second pass.
struct ReadState {
    tree: MessageTree,
    unknown_types: Warnings,
    /// Digests of the fields that belong to no piece of a message.
    seen: BTreeSet<u64>,
}

impl SessionFile<'_> {
    fn read(&self, sink: &mut Sink) -> Result<(), ImportError> {
        let session = &self.survey.session;
        if self.survey.has_messages {
            sink.conversation(&self.conversation()?, &[])?;
        } else {
            sink.skip(RecordKind::Conversation, self.path, "the session holds no messages")?;
        }
        if session.truncated {
            sink.warn(self.path, "the session's own fields are longer than 1 MiB; the rest is left out");
        }
        for field in &session.unread {
            sink.warn(
                self.path,
                &format!("the session's field {:?} is unknown; it is kept", shortened(field)),
            );
        }
        self.warn_of_changes(sink);
        let mut state = ReadState {
            tree: MessageTree::default(),
            unknown_types: Warnings::new(MORE_TYPES),
            seen: BTreeSet::new(),
        };
        if self.layout != detect::SAVED {
            let lines = layout::elements(self.path).kind(RecordKind::Message);
            lines.each(self.bundle, sink, |element, sink| self.line(&element, &mut state, sink))?;
            return Ok(());
        }
        let outcome = JsonLists::new(self.path, &LISTS).each(self.bundle, sink, |list, element, sink| {
            if list == 0 { self.saved_message(&element, &mut state, sink) } else { Ok(()) }
        })?;
        for name in &outcome.others {
            sink.warn(self.path, &format!("its field {:?} is unknown and was not read", shortened(name)));
        }
        outcome.warn_of_more_others(self.path, sink);
        if let Some(offset) = layout::behind_object(self.bundle, self.path)? {
            let place = format!("{}@{offset}", self.path);
            sink.skip(RecordKind::Conversation, &place, "it stands behind the session and is not read")?;
        }
        Ok(())
    }

    /// Warns of what the first pass had to leave out.
    fn warn_of_changes(&self, sink: &mut Sink) {
        let survey = self.survey;
        if survey.changed > 0 {
            sink.warn(
                self.path,
                &format!(
                    "{} pieces of messages were written again with other words, files or fields, of which the first are kept: {}",
                    survey.changed,
                    survey.changed_at.join(", ")
                ),
            );
        }
        if survey.tokens_left_out > 0 {
            sink.warn(
                self.path,
                &format!(
                    "the tokens of {} messages are too long; only the output is kept",
                    survey.tokens_left_out
                ),
            );
        }
    }

    fn conversation(&self) -> Result<Conversation<'_>, ImportError> {
        let (survey, session) = (self.survey, &self.survey.session);
        let version = GeminiCli::describe().version_of(self.layout)?;
        let title = session.summary.as_deref().or(survey.title.as_deref());
        Ok(Conversation {
            id: session.key(layout::stem(self.path)).into(),
            provider_conversation_id: session.id.as_deref().map(Cow::Borrowed),
            export_format_version: Some(version.into()),
            title: title.map(Cow::Borrowed),
            created_at: session.created.or(survey.oldest),
            updated_at: session.updated.max(survey.newest).or(session.created),
            model: survey.model.as_deref().map(Cow::Borrowed),
            tags: session.subagent.then_some(SUBAGENT.into()).into_iter().collect(),
            current: survey.current.as_deref().map(Cow::Borrowed),
            raw_metadata: self.metadata()?,
            locator: self.path.into(),
            ..Conversation::default()
        })
    }

    fn metadata(&self) -> Result<Option<Cow<'_, str>>, ImportError> {
        let mut rest = Leftover::default();
        self.survey.session.add_to(&mut rest);
        if let Some(folder) = self.working_folder()? {
            rest.add_text("cwd", &folder);
        }
        if let Some(parent) = layout::parent_session(self.path).filter(|_| self.survey.session.subagent) {
            rest.add_text("parent_session", parent);
        }
        if self.survey.session.summary.is_none() && self.survey.title.is_some() {
            rest.add_text("title_source", "first user message");
        }
        if !self.survey.left_out.is_empty() {
            let mut counts = Leftover::default();
            for (kind, count) in &self.survey.left_out {
                counts.add_json(kind, &count.to_string());
            }
            rest.add_json("messages_left_out", &counts.into_json().unwrap_or_default());
        }
        Ok(rest.into_json().map(unsigned_json))
    }

    /// The folder of the project. Sessions themselves have only a hash of it.
    fn working_folder(&self) -> Result<Option<String>, ImportError> {
        let Some(path) = layout::project_root(self.path).filter(|path| self.bundle.entry(path).is_some())
        else {
            return Ok(None);
        };
        let bytes = match self.bundle.read(&path, MAX_ROOT) {
            Ok(bytes) => bytes,
            Err(error) if error.kind == ErrorKind::Limit => return Ok(None),
            Err(error) => return Err(error),
        };
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        Ok(Some(text).filter(|text| !text.is_empty() && !text.contains('\n')))
    }

    fn line(&self, element: &Element<'_>, state: &mut ReadState, sink: &mut Sink) -> Result<(), ImportError> {
        let place = element.locator();
        match Line::read(element)? {
            Line::Message(fields) => self.message(fields, element.text(), &place, state, sink),
            Line::Rewind(id) => {
                if !state.tree.rewind(id) {
                    sink.warn(
                        &place,
                        "the message to which it goes back is not in the file; what follows begins anew",
                    );
                }
                Ok(())
            }
            Line::Session { fields, messages } => {
                let arena = fields.arena();
                let Some(messages) = messages else { return Ok(()) };
                state.tree.begin_checkpoint();
                for (at, value) in messages.into_iter().enumerate() {
                    let place = format!("{place}.messages[{at}]");
                    match self.listed(value, arena, &place, state, sink) {
                        Err(error) if error.kind == ErrorKind::Malformed => {
                            sink.skip(RecordKind::Message, &place, &error.message)?;
                        }
                        result => result?,
                    }
                }
                state.tree.end_checkpoint();
                Ok(())
            }
        }
    }

    fn saved_message(
        &self,
        element: &Element<'_>,
        state: &mut ReadState,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        layout::check_length(element)?;
        let fields = Fields::read(&mut element.parser())?;
        self.checked(fields, element.text(), &element.locator(), state, sink)
    }

    /// Reads a message in a checkpoint.
    fn listed<'a>(
        &self,
        value: Value<'a>,
        arena: &'a Arena,
        place: &str,
        state: &mut ReadState,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        match value.raw().filter(|raw| raw.starts_with('{')) {
            Some(raw) => self.checked(Fields::parse(raw, arena)?, raw, place, state, sink),
            None => Err(ImportError::malformed("it is not a message")),
        }
    }

    /// Reads the fields of a message in a list.
    fn checked(
        &self,
        fields: Fields<'_>,
        raw: &str,
        place: &str,
        state: &mut ReadState,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        if is_message(&fields) {
            return self.message(fields, raw, place, state, sink);
        }
        Err(ImportError::malformed("it is not a message"))
    }

    fn message(
        &self,
        fields: Fields<'_>,
        raw: &str,
        place: &str,
        state: &mut ReadState,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        if state.tree.is_full() {
            return Err(ImportError::malformed(format!(
                "the file has more than {MAX_MESSAGES} messages, or too much in them to compare"
            )));
        }
        let mut record = Record::read(fields, raw, true)?;
        let outcomes = state.tree.add(&mut record);
        let pieces = std::mem::take(&mut record.pieces);
        let mut new: Vec<(Piece<'_>, &Place)> = pieces
            .into_iter()
            .zip(&outcomes)
            .filter_map(|(piece, outcome)| match outcome {
                Outcome::New(place) => Some((piece, place)),
                Outcome::Repeated(_) => None,
            })
            .collect();
        if !new.is_empty() && !self.survey.has_messages {
            return Err(ImportError::malformed("the first pass found no messages in the file"));
        }
        warn(&record, place, state, sink, new.is_empty());
        for (piece, place) in &mut new {
            let Some(tokens) = self.survey.tokens(place.number) else { continue };
            piece.message.token_count = tokens.output;
            if let Some(json) = &tokens.json {
                piece.rest.add_json("tokens", json);
            }
        }
        if let Some((first, _)) = new.first_mut() {
            first.keep(&record.rest);
        }
        let messages: Vec<_> = new.into_iter().map(|(piece, place)| piece.finish(place)).collect();
        if messages.is_empty() { Ok(()) } else { sink.more_messages(&messages) }
    }
}

/// Warns of what cannot be read, or is in a line that repeats earlier ones.
fn warn(record: &Record<'_>, place: &str, state: &mut ReadState, sink: &mut Sink, repeated: bool) {
    if record.unknown_type {
        let warning = format!("its type {:?} is unknown; it is read as a message", shortened(record.kind));
        state.unknown_types.warn(place, warning, sink);
    }
    if record.unreadable && !repeated {
        sink.warn(place, "a file in it cannot be decoded or is larger than 16 MiB; it is left out");
    }
    let mut rest = Leftover::default();
    record.rest.add_to(&mut rest, &KEPT);
    let Some(field) = rest.unread().map(shortened).filter(|_| state.seen.len() < MAX_MESSAGES) else {
        return;
    };
    let json = rest.into_json().unwrap_or_default();
    if state.seen.insert(digest(&format!("{} {json}", record.id))) && repeated {
        sink.warn(
            place,
            &format!("the message repeats an earlier one; its field {field:?} is unknown and new"),
        );
    }
}
