//! From PAM documents of any producer to what the store keeps; pure.
//!
//! Ids stay as they are. What our own exports add for readers (`active_path`, `current_message`, the sources of times that no
//! export had) is taken off again, so that a bundle that comes home unites with what it was made of, to the byte.

mod links;
pub mod mend;

use satchel_pam::{
    conversation::{Conversation, ConversationHeader, ImportMetadata, Message},
    parse::UNKNOWN_KEY,
    raw::RawObject,
    time::Timestamp,
};
use serde_json::Value;

use super::{body::Body, conversation::Report};

/// A conversation document in the terms of a union.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapped {
    /// As in the document.
    pub id: String,
    /// `provider.name`.
    pub platform: String,
    /// How it was read in the first place, if the document says.
    pub import: Option<ImportMetadata>,
    /// The header.
    pub report: Report,
    /// The messages, in the order of the document.
    pub nodes: Vec<MappedNode>,
}

/// A message of it.
#[derive(Clone, Debug, PartialEq)]
pub struct MappedNode {
    /// As in the document.
    pub id: String,
    /// Of another message; it need not be there.
    pub parent: Option<String>,
    /// The rest.
    pub body: Body,
}

/// Maps a document; no two of its messages have the same id.
pub fn conversation(document: Conversation) -> Mapped {
    let Conversation { schema_version: _, header, messages, unknown } = document;
    let parents = links::parents(&messages);
    let mut active = None;
    let mut nodes = Vec::with_capacity(messages.len());
    for (message, parent) in messages.into_iter().zip(parents) {
        let (node, on_path) = node(message, parent);
        if on_path {
            active = Some(node.id.clone());
        }
        nodes.push(node);
    }
    let ConversationHeader {
        id,
        provider,
        title,
        temporal,
        participants,
        model,
        system_instruction,
        is_archived,
        tags,
        raw_metadata,
        import_metadata,
    } = header;
    let mut notes = HeaderNotes::take(raw_metadata);
    if !unknown.is_empty() {
        let raw = notes.rest.take().unwrap_or_default();
        notes.rest = Some(raw.with(UNKNOWN_KEY, &Value::Object(unknown.into_iter().collect())));
    }
    let report = Report {
        provider_conversation_id: provider.conversation_id,
        account: provider.account_id,
        format: provider.export_format_version,
        title,
        created_at: (!notes.created_by_us).then_some(temporal.created_at.micros()),
        updated_at: notes.updated.or(temporal.updated_at.map(Timestamp::micros)),
        participants,
        model,
        system_instruction,
        is_archived,
        tags,
        current: links::current(&nodes, if notes.unnamed { None } else { notes.current.or(active) }),
        raw_metadata: notes.rest,
    };
    Mapped { id, platform: provider.name, import: import_metadata, report, nodes }
}

/// The node, and whether its document says that the person last saw its branch.
fn node(message: Message, parent: Option<String>) -> (MappedNode, bool) {
    let Message {
        id,
        provider_message_id,
        role,
        content,
        created_at,
        parent_id: _,
        children_ids: _,
        model,
        is_thought,
        token_count,
        attachments,
        citations,
        tool_calls,
        raw_metadata,
    } = message;
    let mut raw = raw_metadata;
    let active = take(&mut raw, "active_path", |value| value.as_bool().is_some());
    let borrowed = take(&mut raw, "created_at_source", |value| {
        matches!(value.as_str(), Some("parent" | "child" | "conversation"))
    });
    let body = Body {
        provider_message_id,
        role,
        content,
        created_at: borrowed.is_none().then_some(created_at.micros()),
        model,
        is_thought,
        token_count,
        attachments,
        citations,
        tool_calls,
        raw_metadata: filled(raw),
    };
    (MappedNode { id, parent, body }, active == Some(Value::Bool(true)))
}

/// What an export of ours adds to the header.
struct HeaderNotes {
    /// The creation time was taken from the messages.
    created_by_us: bool,
    /// A time of the provider that PAM's readers refuse, in microseconds.
    updated: Option<i64>,
    /// The leaf.
    current: Option<String>,
    /// No export had named one.
    unnamed: bool,
    /// All else.
    rest: Option<RawObject>,
}

impl HeaderNotes {
    fn take(mut raw: Option<RawObject>) -> Self {
        let created = take(&mut raw, "created_at_source", |value| value.as_str() == Some("messages"));
        let time = |value: &Value| value.as_str().and_then(|text| Timestamp::parse(text).ok());
        let updated = take(&mut raw, "updated_at_source", |value| time(value).is_some());
        let newest = take(&mut raw, "current_message_source", |value| value.as_str() == Some("newest"));
        let current = take(&mut raw, "current_message", Value::is_string);
        Self {
            created_by_us: created.is_some(),
            updated: updated.as_ref().and_then(time).map(Timestamp::micros),
            current: current.as_ref().and_then(Value::as_str).map(str::to_owned),
            unnamed: newest.is_some(),
            rest: filled(raw),
        }
    }
}

/// Takes a key off, if its value is one of ours.
fn take(raw: &mut Option<RawObject>, key: &str, ours: impl Fn(&Value) -> bool) -> Option<Value> {
    let object = raw.as_ref()?;
    // Looking for the text first spares the parse of most.
    if !object.as_str().contains(key) {
        return None;
    }
    let value = object.to_map().remove(key).filter(ours)?;
    *raw = Some(object.without(key));
    Some(value)
}

fn filled(raw: Option<RawObject>) -> Option<RawObject> {
    raw.filter(|raw| raw.as_str() != "{}")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
