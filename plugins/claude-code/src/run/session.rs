//! What a session keeps beside its messages.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Bundle, ErrorKind, ImportError, Leftover,
    json::{Object, Value},
};

use crate::{layout, outline::Outline};

/// The longest description of a subagent, in bytes.
const MAX_DESCRIPTION: u64 = 1024 * 1024;

/// The file about a subagent.
pub(super) struct AgentDescription {
    pub(super) path: String,
    /// What it was to do.
    pub(super) title: Option<String>,
    json: String,
}

impl AgentDescription {
    /// Reads the file beside the session at `path`, if it is that of a subagent and there is one.
    pub(super) fn of(bundle: &Bundle, path: &str) -> Result<Option<Self>, ImportError> {
        let Some(path) = layout::agent_description(path).filter(|path| bundle.entry(path).is_some()) else {
            return Ok(None);
        };
        let bytes = match bundle.read(&path, MAX_DESCRIPTION) {
            Ok(bytes) => bytes,
            Err(error) if error.kind == ErrorKind::Limit => return Ok(None),
            Err(error) => return Err(error),
        };
        let json = String::from_utf8_lossy(&bytes).trim().to_owned();
        let arena = Arena::new();
        let title = Object::parse(&json, &arena).text("description").map(ToOwned::to_owned);
        Ok(Some(Self { path, title, json }))
    }
}

/// The fields that have no place in PAM.
pub(super) fn metadata<'a>(
    outline: &Outline,
    titled_by_prompt: bool,
    description: Option<&AgentDescription>,
) -> Option<Cow<'a, str>> {
    let arena = Arena::new();
    let mut rest = Leftover::default();
    for (key, value) in super::shared(outline) {
        rest.add_text(key, value);
    }
    if titled_by_prompt {
        rest.add_text("title_source", "first user message");
    }
    if let Some(description) = description {
        rest.add_json("subagent", &without(&description.json, &[], &arena));
    }
    if !outline.summaries.is_empty() {
        let items = outline.summaries.iter().map(|line| without(line, &["type"], &arena)).collect::<Vec<_>>();
        rest.add_json("summaries", &format!("[{}]", items.join(",")));
    }
    if let Some(lines) = object(outline.asides.iter().map(|(kind, line)| {
        // Most lines repeat the session's id.
        (kind.as_str(), without(line, &["type", "sessionId"], &arena))
    })) {
        rest.add_json("last_lines", &lines);
    }
    let counts = outline.left_out.iter().map(|(kind, count)| (kind.as_str(), count.to_string()));
    if let Some(counts) = object(counts) {
        rest.add_json("lines_left_out", &counts);
    }
    rest.into_json().map(|json| Cow::Owned(json.into_owned()))
}

/// An object of members whose values are JSON text; none if there are none.
fn object<'k>(members: impl Iterator<Item = (&'k str, String)>) -> Option<String> {
    let mut all = Leftover::default();
    for (key, value) in members {
        all.add_json(key, &value);
    }
    all.into_json().map(Cow::into_owned)
}

/// An object without these members, as JSON text.
fn without<'a>(json: &'a str, taken: &[&str], arena: &'a Arena) -> String {
    let mut rest = Leftover::default();
    for (key, value) in Object::parse(json, arena).fields() {
        if !taken.contains(&key) && value != Value::Null {
            rest.add_json(key, &value.json());
        }
    }
    rest.into_json().map_or_else(|| "{}".to_owned(), Cow::into_owned)
}
