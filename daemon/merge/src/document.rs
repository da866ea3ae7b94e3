//! Converts PAM documents of any producer to the form that the store keeps; pure.
//!
//! Ids stay as they are. Our own exports add notes for readers: `active_path`, `current_message` and the sources of
//! times that no export had, all of them under [`super::notes::NOTES_KEY`]. These notes are removed again here, so that a
//! bundle that is imported back unites byte for byte with the data it was made from.

mod links;
pub mod repair;

use satchel_pam::{
    conversation::{Conversation, ConversationHeader, ImportMetadata, Message},
    parse::UNKNOWN_KEY,
    raw::RawObject,
    time::Timestamp,
};
use serde_json::Value;

use self::links::ParentLinks;
use super::{
    body::Body,
    conversation::{ConversationReport, ReportedNode},
    notes::{self, NoteCheck},
};

/// Satchel's own note on a conversation whose messages named no parents.
pub const LINEAR: &str = "linear";

/// The notes that our exports add to a message.
const MESSAGE_NOTES: &[NoteCheck] = &[
    ("active_path", Value::is_boolean),
    ("created_at_source", |value| matches!(value.as_str(), Some("parent" | "child" | "conversation"))),
];
/// The notes that our exports add to a conversation.
const HEADER_NOTES: &[NoteCheck] = &[
    ("created_at_source", |value| value.as_str() == Some("messages")),
    ("updated_at_source", |value| time(value).is_some()),
    ("current_message_source", |value| value.as_str() == Some("newest")),
    ("current_message", Value::is_string),
];

/// A conversation document, converted to the input of a union.
#[derive(Clone, Debug, PartialEq)]
pub struct MappedConversation {
    /// As in the document.
    pub id: String,
    /// `provider.name`.
    pub platform: String,
    /// How it was originally imported, if the document says so.
    pub import: Option<ImportMetadata>,
    /// The header.
    pub report: ConversationReport,
    /// The messages, in the order of the document. A parent may be missing.
    pub nodes: Vec<ReportedNode>,
    /// Notes for the user about everything that was not read literally.
    pub notes: Vec<String>,
}

/// Converts a document. No two of its messages may have the same id.
///
/// # Errors
/// If a message cannot be written as JSON.
pub fn conversation(document: Conversation) -> serde_json::Result<MappedConversation> {
    let Conversation { schema_version: _, header, messages, unknown } = document;
    let linear = notes::get(header.raw_metadata.as_ref(), LINEAR) == Some(Value::Bool(true));
    let ParentLinks { parents, linear, notes: link_notes } = links::of(&messages, linear);
    let mut active = None;
    let nodes = messages.into_iter().zip(parents).map(|(message, parent)| {
        let (node, on_path) = node(message, parent)?;
        if on_path {
            active = Some(node.id.clone());
        }
        Ok(node)
    });
    // `collect` reuses the allocation of the messages for the nodes: the two lists are never in memory at the same
    // time.
    let nodes: Vec<ReportedNode> = nodes.collect::<serde_json::Result<_>>()?;
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
    let mut notes = HeaderNotes::extract(raw_metadata);
    if linear && nodes.len() > 1 {
        notes.rest = notes::with_one(notes.rest, LINEAR, Value::Bool(true));
    }
    if !unknown.is_empty() {
        let raw = notes.rest.take().unwrap_or_default();
        notes.rest = Some(raw.with(UNKNOWN_KEY, &Value::Object(unknown.into_iter().collect())));
    }
    let report = ConversationReport {
        provider_conversation_id: provider.conversation_id,
        account: provider.account_id,
        format: provider.export_format_version,
        title,
        created_at: (!notes.created_at_derived).then_some(temporal.created_at.micros()),
        updated_at: notes.updated_at.or(temporal.updated_at.map(Timestamp::micros)),
        participants,
        model,
        system_instruction,
        is_archived,
        tags,
        current: links::current(&nodes, if notes.without_current { None } else { notes.current.or(active) }),
        raw_metadata: notes.rest,
    };
    Ok(MappedConversation {
        id,
        platform: provider.name,
        import: import_metadata,
        report,
        nodes,
        notes: link_notes,
    })
}

/// Returns the node, and whether its document says that it is on the branch that the user last saw.
fn node(message: Message, parent: Option<String>) -> serde_json::Result<(ReportedNode, bool)> {
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
    let notes = notes::extract(&mut raw, MESSAGE_NOTES);
    let time_derived = notes.contains_key("created_at_source");
    let body = Body {
        provider_message_id,
        role,
        content,
        created_at: (!time_derived).then_some(created_at.micros()),
        model,
        is_thought,
        token_count,
        attachments,
        citations,
        tool_calls,
        raw_metadata: non_empty(raw),
    };
    Ok((ReportedNode::new(id, parent, &body)?, notes.get("active_path") == Some(&Value::Bool(true))))
}

/// The notes that our exports add to the header.
struct HeaderNotes {
    /// Whether the creation time was taken from the messages.
    created_at_derived: bool,
    /// A time of the provider that PAM readers reject, in microseconds.
    updated_at: Option<i64>,
    /// The current leaf.
    current: Option<String>,
    /// Whether no export had named a current leaf.
    without_current: bool,
    /// The rest of the metadata.
    rest: Option<RawObject>,
}

impl HeaderNotes {
    fn extract(mut raw: Option<RawObject>) -> Self {
        let notes = notes::extract(&mut raw, HEADER_NOTES);
        Self {
            created_at_derived: notes.contains_key("created_at_source"),
            updated_at: notes.get("updated_at_source").and_then(time).map(Timestamp::micros),
            current: notes.get("current_message").and_then(Value::as_str).map(str::to_owned),
            without_current: notes.contains_key("current_message_source"),
            rest: non_empty(raw),
        }
    }
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str().and_then(|text| Timestamp::parse(text).ok())
}

fn non_empty(raw: Option<RawObject>) -> Option<RawObject> {
    raw.filter(|raw| raw.as_str() != "{}")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
