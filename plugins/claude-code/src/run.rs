//! Reads sessions, each in two passes: first its outline, then its messages, one by one.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use satchel_importer::{
    Bundle, Conversation, Element, ImportError, Importer as _, RecordKind, Sink, Summary,
    address::unsigned_json, natural_key,
};

use crate::{
    ClaudeCode, layout,
    map::{self, SessionContext},
    memory::{self, WorkingFolder},
    outline::{Outline, Place, lines},
    raw::{Line, REPEATED},
};

mod session;

use session::{AgentDescription, metadata};

/// The tag of the session of a subagent.
const SUBAGENT: &str = "subagent";
/// The warning if no line names its parent.
const CHAINED: &str = "no line names the one that it answers; each is read as the answer to the one before";
/// Indices of the working folder and of the session's id in [`REPEATED`].
const WORKING_FOLDER: usize = 0;
const SESSION_ID: usize = 5;

/// Reads all that detection claimed for `format`.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    let version = ClaudeCode::describe().version_of(format)?;
    let paths = || bundle.entries().iter().map(|entry| entry.path.as_str());
    if !paths().any(layout::is_lines) {
        return Err(ImportError::not_this_format("none of the files is a session"));
    }
    let mut used = BTreeSet::new();
    let mut folders: BTreeMap<&str, WorkingFolder> = BTreeMap::new();
    for path in paths().filter(|path| layout::is_lines(path)) {
        let mut outline = Outline::read(bundle, path)?;
        if is_uuid(layout::stem(path)) {
            // Lines that were copied from another session have the id of that one.
            outline.shared[SESSION_ID] = Some(layout::stem(path).to_owned());
        }
        if let Some(folder) = &outline.shared[WORKING_FOLDER] {
            folders.entry(layout::project(path)).or_default().add(folder, layout::project(path));
        }
        Session { bundle, path, version, outline: &outline }.read(&mut used, sink)?;
    }
    memory::read(bundle, &folders, sink)?;
    for path in paths().filter(|path| layout::is_agent_description(path) || layout::is_tool_result(path)) {
        if !used.contains(path) {
            sink.skip(RecordKind::File, path, "no session names this file")?;
        }
    }
    Ok(bundle.summary())
}

/// Reads the file of a session.
struct Session<'r> {
    bundle: &'r Bundle,
    path: &'r str,
    version: &'static str,
    outline: &'r Outline,
}

impl Session<'_> {
    fn read(&self, used: &mut BTreeSet<String>, sink: &mut Sink) -> Result<(), ImportError> {
        let description = AgentDescription::of(self.bundle, self.path)?;
        used.extend(description.as_ref().map(|description| description.path.clone()));
        if self.outline.is_empty() {
            return self.report_empty(sink);
        }
        self.begin(description.as_ref(), sink)?;
        if self.outline.chained {
            sink.warn(self.path, CHAINED);
        }
        for kind in &self.outline.unknown {
            let message =
                format!("lines of the unknown type {kind:?} hold text; the last one is kept in raw_metadata");
            sink.warn(self.path, &message);
        }
        for id in &self.outline.cycles {
            let place = format!("{}#{id}", self.path);
            sink.warn(&place, "its parents lead back to it; it is read as a root");
        }
        let context = SessionContext { bundle: self.bundle, path: self.path, outline: self.outline };
        lines(self.path).kind(RecordKind::Message).each(self.bundle, sink, |element, sink| {
            match self.outline.place(element.index()) {
                Place::Message(at) => message(&element, at, &context, used, sink),
                Place::LeftOut | Place::Aside => Ok(()),
                Place::Repeated => Err(ImportError::malformed("an earlier line has the same id")),
                Place::BeyondLimit => Err(ImportError::malformed("the session has more lines than fit")),
                Place::Foreign => Err(not_a_line(&element)),
            }
        })?;
        Ok(())
    }

    /// Emits the session; its messages follow line by line.
    fn begin(&self, description: Option<&AgentDescription>, sink: &mut Sink) -> Result<(), ImportError> {
        let outline = self.outline;
        let id = self.id();
        let natural = || natural_key(&[Some(layout::stem(self.path))]).into();
        let agent = layout::agent_description(self.path).is_some();
        let described = description.and_then(|description| description.title.as_deref());
        let titled_by_prompt = outline.titled_by_prompt && described.is_none();
        sink.conversation(
            &Conversation {
                id: id.clone().unwrap_or_else(natural),
                provider_conversation_id: id,
                export_format_version: Some(self.version.into()),
                title: described.or(outline.title.as_deref()).map(Into::into),
                created_at: outline.created,
                updated_at: outline.updated,
                model: outline.model.as_deref().map(Into::into),
                tags: agent.then(|| SUBAGENT.into()).into_iter().collect(),
                current: outline.current().map(Into::into),
                raw_metadata: metadata(outline, titled_by_prompt, description).map(unsigned_json),
                locator: self.path.into(),
                ..Conversation::default()
            },
            &[],
        )
    }

    /// The session's id: the name of its file. Lines that were copied from another session may still have the id of that one. The name of a
    /// subagent is unique only within its session.
    fn id(&self) -> Option<Cow<'_, str>> {
        let stem = layout::stem(self.path);
        let stated = self.outline.shared[SESSION_ID].as_deref();
        if layout::agent_description(self.path).is_some() {
            return stated.map(|session| format!("{session}/{stem}").into());
        }
        if is_uuid(stem) { Some(stem.into()) } else { stated.map(Into::into) }
    }

    fn report_empty(&self, sink: &mut Sink) -> Result<(), ImportError> {
        let outcome = lines(self.path).kind(RecordKind::Message).each(self.bundle, sink, |element, _| {
            match self.outline.place(element.index()) {
                Place::Foreign => Err(not_a_line(&element)),
                _ => Ok(()),
            }
        })?;
        if outcome.cut.is_none() {
            sink.skip(RecordKind::Conversation, self.path, "the session has no messages")?;
        }
        Ok(())
    }
}

fn message(
    element: &Element<'_>,
    at: usize,
    context: &SessionContext<'_>,
    used: &mut BTreeSet<String>,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let (Some(node), Some(line)) = (context.outline.node(at), Line::read(&mut element.parser())?) else {
        return Err(ImportError::malformed("it is not an object"));
    };
    let mapped = map::messages(line, node, context.outline.parent(at), context, element.arena());
    if let Some(warning) = mapped.warning {
        sink.warn(&element.locator(), warning);
    }
    used.extend(mapped.files.iter().map(ToString::to_string));
    sink.more_messages(&mapped.messages)
}

/// Why an element is not a line of a session.
fn not_a_line(element: &Element<'_>) -> ImportError {
    match Line::read(&mut element.parser()) {
        Err(error) => error.into(),
        Ok(_) if element.text().trim() == "null" => ImportError::malformed("it is null"),
        Ok(_) => ImportError::malformed("it is not an object"),
    }
}

fn is_uuid(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// The fields that lines repeat, with the values that the session has.
fn shared(outline: &Outline) -> impl Iterator<Item = (&'static str, &str)> {
    let values = REPEATED.into_iter().zip(&outline.shared);
    values.filter_map(|(key, value)| Some((key, value.as_deref()?)))
}
