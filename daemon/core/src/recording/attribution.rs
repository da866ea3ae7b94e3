//! The agent, the user and the session of a conversation, as MemU names them, and MemU's summary of it.

use satchel_merge::{body::Body, conversation::ConversationReport, notes};
use satchel_pam::{
    conversation::{Content, ConversationHeader, Participant, Role},
    raw::RawObject,
};
use satchel_store::{ConversationRecord, Store};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{NewConversation, RecordingError, unencodable};

/// Satchel's own note on a conversation that was recorded.
const RECORDED: &str = "recorded";
/// The platform of MemU's exports. Its importer keeps the same fields in the same places.
const MEMU: &str = "memu";
/// The key of the session in `raw_metadata`, as in MemU's exports.
const SESSION: &str = "session_id";
/// The key of the memory in `raw_metadata`, as in MemU's exports.
const MEMORY: &str = "memory_id";
/// Characters of the first message of the user in a summary.
const SUMMARY_CHARS: usize = 100;

/// Who took part in a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribution {
    /// The agent.
    pub agent_id: Option<String>,
    /// The user.
    pub user_id: Option<String>,
    /// The session.
    pub session_id: Option<String>,
}

/// Returns whether a conversation was recorded, here or where the document that contains it was written.
pub(super) fn is_recorded(header: &ConversationHeader) -> bool {
    notes::get(header.raw_metadata.as_ref(), RECORDED) == Some(Value::Bool(true))
}

/// Returns who took part; `None` if the conversation was neither recorded nor comes from MemU.
#[must_use]
pub fn attribution(header: &ConversationHeader) -> Option<Attribution> {
    if header.provider.name != MEMU && !is_recorded(header) {
        return None;
    }
    let participant = |role| {
        let mut ids = header.participants.iter().filter(move |one| one.role == role);
        ids.find_map(|one| one.provider_id.clone())
    };
    let session = header.raw_metadata.as_ref().and_then(|raw| raw.to_map().remove(SESSION));
    Some(Attribution {
        agent_id: participant(Role::Assistant),
        user_id: header.provider.account_id.clone(),
        session_id: session.and_then(|session| match session {
            Value::String(text) => Some(text),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }),
    })
}

/// Returns the fields of a new conversation.
pub(super) fn report_of(conversation: &NewConversation) -> ConversationReport {
    let NewConversation { platform: _, agent_id, user_id, session_id, memory_id, title, messages: _ } =
        conversation;
    let participant = |role, id: &str| Participant { role, name: None, provider_id: Some(id.to_owned()) };
    let session = if session_id.is_empty() { Uuid::new_v4().to_string() } else { session_id.clone() };
    let mut raw = Map::from_iter([(SESSION.to_owned(), Value::String(session))]);
    if !memory_id.is_empty() {
        raw.insert(MEMORY.to_owned(), memory_id.as_str().into());
    }
    let raw = RawObject::from_map(&raw).unwrap_or_default();
    let recorded = Map::from_iter([(RECORDED.to_owned(), Value::Bool(true))]);
    ConversationReport {
        account: Some(user_id.clone()),
        title: Some(title.clone()).filter(|title| !title.is_empty()),
        participants: vec![participant(Role::User, user_id), participant(Role::Assistant, agent_id)],
        raw_metadata: notes::with(Some(raw), recorded),
        ..ConversationReport::default()
    }
}

/// Returns MemU's summary of a conversation; `None` if it has no [`Attribution`].
///
/// # Errors
/// The first message of the user cannot be read.
pub fn summary(store: &Store, record: &ConversationRecord) -> Result<Option<String>, RecordingError> {
    if attribution(&record.header).is_none() {
        return Ok(None);
    }
    let first = record.heads.iter().position(|head| head.role == Role::User);
    let bodies = store.bodies_at(record, first.as_slice())?;
    let body = bodies.first().map(|bytes| Body::decode(bytes)).transpose().map_err(|_| unencodable())?;
    let text = body.and_then(|body| body.content).map(|content| text_of(&content));
    Ok(Some(summary_of(record.heads.len(), text.as_deref())))
}

fn text_of(content: &Content) -> String {
    let parts = content.parts.iter().filter_map(|part| part.text.as_deref());
    content.text.as_deref().into_iter().chain(parts).collect::<Vec<_>>().join("\n")
}

fn summary_of(messages: usize, first_of_user: Option<&str>) -> String {
    if messages == 0 {
        return "Empty conversation".to_owned();
    }
    let first: String = first_of_user.unwrap_or("No user message").chars().take(SUMMARY_CHARS).collect();
    format!("Conversation with {messages} turns: {first}...")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_follow_memus_rule() {
        assert_eq!(summary_of(0, None), "Empty conversation");
        assert_eq!(summary_of(2, None), "Conversation with 2 turns: No user message...");
        let text = "你好,我想了解一下这个项目的功能特点";
        assert_eq!(summary_of(4, Some(text)), format!("Conversation with 4 turns: {text}..."));
        let long = "é".repeat(101);
        assert_eq!(summary_of(1, Some(&long)), format!("Conversation with 1 turns: {}...", "é".repeat(100)));
    }
}
