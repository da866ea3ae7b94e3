//! Checks new messages, and puts them into a chain. Pure, except that it generates ids.

use std::collections::HashMap;

use satchel_merge::{body::Body, conversation::ReportedNode};
use satchel_pam::{
    conversation::{Content, Part},
    ids,
    raw::RawObject,
};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    MAX_CLIENT_ID_BYTES, MAX_MESSAGE_BYTES, MAX_MESSAGES_PER_CALL, MAX_NAME_BYTES, MAX_PARTS, NewMessage,
    RecordingError, check_length, unencodable,
};

/// The key of the author's name in `raw_metadata`.
const NAME: &str = "name";
/// How far the time of a message may be ahead of the clock: the clocks of two devices may differ.
const MAX_AHEAD: i64 = 24 * 3_600 * 1_000_000;

/// The messages of a call.
#[derive(Debug, PartialEq)]
pub(super) struct Chain {
    /// The ids of all messages of the call.
    pub(super) ids: Vec<String>,
    /// The messages that the conversation does not have yet.
    pub(super) new: Vec<ReportedNode>,
}

/// Reads a message that the conversation already has, by its id.
pub(super) type FindMessage<'a> = dyn Fn(&str) -> Result<Option<Body>, RecordingError> + 'a;

/// Checks everything that does not depend on the conversation or the time.
pub(super) fn check(messages: &[NewMessage]) -> Result<(), RecordingError> {
    if messages.len() > MAX_MESSAGES_PER_CALL {
        return Err(RecordingError::invalid(
            "messages",
            format!(
                "has {} messages, at most {MAX_MESSAGES_PER_CALL} are allowed in one call; append the others with further calls",
                messages.len()
            ),
        ));
    }
    let mut client_ids: HashMap<&str, usize> = HashMap::new();
    for (at, message) in messages.iter().enumerate() {
        let field = |name: &str| format!("messages[{at}].{name}");
        check_length(&field("name"), &message.name, MAX_NAME_BYTES)?;
        check_length(&field("model"), &message.model, MAX_NAME_BYTES)?;
        check_length(&field("client_id"), &message.client_id, MAX_CLIENT_ID_BYTES)?;
        check_content(&format!("messages[{at}]"), &message.content)?;
        if message.client_id.is_empty() {
            continue;
        }
        if let Some(first) = client_ids.insert(&message.client_id, at) {
            return Err(RecordingError::invalid(
                field("client_id"),
                format!("is the same as that of messages[{first}]"),
            ));
        }
    }
    Ok(())
}

fn check_content(field: &str, content: &Content) -> Result<(), RecordingError> {
    let Content { kind: _, text, parts } = content;
    if text.as_deref().is_none_or(str::is_empty) && parts.is_empty() {
        return Err(RecordingError::invalid(field, "has neither text nor parts"));
    }
    if parts.len() > MAX_PARTS {
        let problem = format!("has {} parts, at most {MAX_PARTS} are allowed", parts.len());
        return Err(RecordingError::invalid(format!("{field}.parts"), problem));
    }
    for (at, part) in parts.iter().enumerate() {
        let empty = |text: &Option<String>| text.as_deref().is_none_or(str::is_empty);
        if empty(&part.text) && empty(&part.reference) {
            let problem = "has neither a text nor a reference";
            return Err(RecordingError::invalid(format!("{field}.parts[{at}]"), problem));
        }
    }
    let bytes = text.as_ref().map_or(0, String::len) + parts.iter().map(part_bytes).sum::<usize>();
    if bytes > MAX_MESSAGE_BYTES {
        let problem = format!("has {bytes} bytes of content, at most {MAX_MESSAGE_BYTES} are allowed");
        return Err(RecordingError::invalid(field, problem));
    }
    Ok(())
}

fn part_bytes(part: &Part) -> usize {
    let Part { kind: _, text, language, mime_type, reference } = part;
    [text, language, mime_type, reference].into_iter().flatten().map(String::len).sum()
}

/// Makes each message the answer to the one before it, the first one to `parent`. A message that the conversation
/// already has is not added again.
pub(super) fn chain(
    conversation: &str,
    mut parent: Option<String>,
    messages: &[NewMessage],
    now: i64,
    find: &FindMessage<'_>,
) -> Result<Chain, RecordingError> {
    let mut chain = Chain { ids: Vec::with_capacity(messages.len()), new: Vec::new() };
    for (at, message) in messages.iter().enumerate() {
        check_time(at, message.created_at, now)?;
        let id = message_id(conversation, &message.client_id);
        let known = if message.client_id.is_empty() { None } else { find(&id)? };
        if let Some(known) = known {
            check_same(at, message, &known)?;
        } else {
            let node = ReportedNode::new(id.clone(), parent.take(), &body_of(message, now));
            chain.new.push(node.map_err(|_| unencodable())?);
        }
        parent = Some(id.clone());
        chain.ids.push(id);
    }
    Ok(chain)
}

fn check_time(at: usize, time: Option<i64>, now: i64) -> Result<(), RecordingError> {
    let Some(time) = time else { return Ok(()) };
    let problem = if time < 0 {
        "is before the year 1970"
    } else if time > now.saturating_add(MAX_AHEAD) {
        "is more than a day after the time of the daemon; check the clock"
    } else {
        return Ok(());
    };
    Err(RecordingError::invalid(format!("messages[{at}].created_at"), problem))
}

/// Returns the id of a message. The caller's own ids always give the same one, so that a message is found again.
fn message_id(conversation: &str, client_id: &str) -> String {
    if client_id.is_empty() {
        return Uuid::new_v4().to_string();
    }
    let namespace = Uuid::parse_str(conversation)
        .unwrap_or_else(|_| ids::conversation_id(super::LOCAL_PLATFORM, None, conversation));
    ids::message_id(namespace, &format!("client {client_id}")).to_string()
}

fn body_of(message: &NewMessage, now: i64) -> Body {
    let NewMessage { role, content, created_at, name, model, client_id } = message;
    let filled = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let raw = filled(name).map(|name| Map::from_iter([(NAME.to_owned(), Value::String(name))]));
    Body {
        provider_message_id: filled(client_id),
        role: *role,
        content: Some(content.clone()),
        created_at: Some(created_at.unwrap_or(now)),
        model: filled(model),
        is_thought: false,
        token_count: None,
        attachments: Vec::new(),
        citations: Vec::new(),
        tool_calls: Vec::new(),
        raw_metadata: raw.and_then(|raw| RawObject::from_map(&raw).ok()),
    }
}

/// Checks that a message is the one that the conversation already has under its id.
fn check_same(at: usize, message: &NewMessage, known: &Body) -> Result<(), RecordingError> {
    let name = known.raw_metadata.as_ref().and_then(|raw| raw.to_map().remove(NAME));
    let name = name.as_ref().and_then(Value::as_str).unwrap_or_default();
    let same = known.role == message.role
        && known.content.as_ref() == Some(&message.content)
        && known.model.as_deref().unwrap_or_default() == message.model
        && name == message.name
        && message.created_at.is_none_or(|time| known.created_at == Some(time));
    if same {
        return Ok(());
    }
    let problem =
        "names a message that the conversation has already, with other contents; give this one another id";
    Err(RecordingError::invalid(format!("messages[{at}].client_id"), problem))
}
