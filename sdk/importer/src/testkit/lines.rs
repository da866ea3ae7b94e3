//! Selects records of one kind from the output of a run.

use satchel_pam::{
    conversation::Content,
    record::{ConversationRecord, Evidence, Line, MessageRecord, RecordKind, Skip, Warning},
};

/// The conversations, in order.
pub fn conversations(lines: &[Line]) -> Vec<&ConversationRecord> {
    lines
        .iter()
        .filter_map(|line| if let Line::Conversation(record) = line { Some(&**record) } else { None })
        .collect()
}

/// The ids of the conversations.
pub fn conversation_ids(lines: &[Line]) -> Vec<&str> {
    conversations(lines).into_iter().map(|record| record.id.as_str()).collect()
}

/// The messages of all conversations.
pub fn messages(lines: &[Line]) -> Vec<&MessageRecord> {
    conversations(lines).into_iter().flat_map(|record| &record.messages).collect()
}

/// The evidence about memories.
pub fn evidence(lines: &[Line]) -> Vec<&Evidence> {
    lines
        .iter()
        .filter_map(|line| if let Line::Evidence(record) = line { Some(record) } else { None })
        .collect()
}

/// The records that were reported as skipped.
pub fn skips(lines: &[Line]) -> Vec<&Skip> {
    lines.iter().filter_map(|line| if let Line::Skip(skip) = line { Some(skip) } else { None }).collect()
}

/// The number of records of `kind` that were reported as skipped.
pub fn skips_of(lines: &[Line], kind: RecordKind) -> usize {
    skips(lines).into_iter().filter(|skip| skip.kind == kind).count()
}

/// The warnings.
pub fn warnings(lines: &[Line]) -> Vec<&Warning> {
    lines
        .iter()
        .filter_map(|line| if let Line::Warning(warning) = line { Some(warning) } else { None })
        .collect()
}

/// The text of a message: the texts of its parts, joined by line breaks.
pub fn text(message: &MessageRecord) -> String {
    match &message.content {
        Some(Content { text: Some(text), .. }) => text.clone(),
        Some(Content { parts, .. }) => {
            parts.iter().filter_map(|part| part.text.as_deref()).collect::<Vec<_>>().join("\n")
        }
        None => String::new(),
    }
}

/// Whether the parent of every message is in the same conversation.
pub fn parents_are_messages(record: &ConversationRecord) -> bool {
    let ids: std::collections::BTreeSet<&str> =
        record.messages.iter().map(|message| message.id.as_str()).collect();
    record.messages.iter().filter_map(|message| message.parent.as_deref()).all(|parent| ids.contains(parent))
}
