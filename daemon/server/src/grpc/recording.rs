//! The methods of `ConversationService` that record conversations.

use prost::Message;
use satchel_core::{
    conversation_record::shown_header,
    edits::EditContext,
    recording::{
        self, Attribution, LOCAL_PLATFORM, NewConversation, Recorded, RecordingContext, attribution,
    },
};
use satchel_devices::{Device, Role};
use satchel_pam::conversation::ConversationHeader;
use satchel_proto::{integers::signed, v1};
use satchel_store::{ConversationRecord, Revision};

use super::{
    call_state::CallState,
    edit::edit_context,
    request::{check_length, check_required},
    status::{CallError, ResourceKind},
    wire::{memory::known_timestamp_to_wire, recording::messages_from_wire},
};

/// Length of a platform's name, in bytes.
const PLATFORM_BYTES: std::ops::RangeInclusive<usize> = 2..=32;
/// The platform of an agent whose entity cannot be written as one.
const AGENT_PLATFORM: &str = "agent";

pub(super) fn record(
    state: &CallState,
    mut request: v1::RecordConversationRequest,
) -> Result<v1::RecordConversationResponse, CallError> {
    let request_id = std::mem::take(&mut request.request_id);
    let call = recording_context(state, "RecordConversation", &request_id, &request)?;
    let v1::RecordConversationRequest {
        request_id: _,
        agent_id,
        user_id,
        messages,
        session_id,
        memory_id,
        platform,
        title,
    } = request;
    let platform = recording_platform(state.device(), platform)?;
    let messages = messages_from_wire(messages)?;
    let conversation =
        NewConversation { platform, agent_id, user_id, session_id, memory_id, title, messages };
    let recorded = state.imports.recordings().record(&call, &conversation)?;
    let AfterCall { header, attribution, messages, summary } = after_call(state, &recorded)?;
    Ok(v1::RecordConversationResponse {
        conversation_id: recorded.conversation,
        session_id: attribution.session_id.unwrap_or_default(),
        created_at: known_timestamp_to_wire(header.temporal.created_at),
        message_count: signed(messages as u64),
        summary,
        message_ids: recorded.messages,
        header: Some(state.header_at(Revision::new(recorded.revision))),
    })
}

pub(super) fn append(
    state: &CallState,
    mut request: v1::AppendMessagesRequest,
) -> Result<v1::AppendMessagesResponse, CallError> {
    let request_id = std::mem::take(&mut request.request_id);
    let call = recording_context(state, "AppendMessages", &request_id, &request)?;
    let v1::AppendMessagesRequest { request_id: _, conversation_id, parent_id, messages } = request;
    check_required("conversation_id", &conversation_id)?;
    check_length("parent_id", &parent_id)?;
    let messages = messages_from_wire(messages)?;
    state.check_may_append(&conversation_id)?;
    let recorded = state.imports.recordings().append(&call, &conversation_id, &parent_id, &messages)?;
    let AfterCall { header, attribution, messages, summary } = after_call(state, &recorded)?;
    Ok(v1::AppendMessagesResponse {
        conversation_id: recorded.conversation,
        session_id: attribution.session_id.unwrap_or_default(),
        created_at: known_timestamp_to_wire(header.temporal.created_at),
        message_count: signed(messages as u64),
        summary,
        message_ids: recorded.messages,
        header: Some(state.header_at(Revision::new(recorded.revision))),
    })
}

/// Returns the caller and the request key of a call. The request id must be cleared in `request`.
fn recording_context(
    state: &CallState,
    method: &str,
    request_id: &str,
    request: &impl Message,
) -> Result<RecordingContext, CallError> {
    let EditContext { actor, reason: _, request } =
        edit_context(state.device(), method, request_id, String::new(), request)?;
    let device = state.device().map(|device| device.id.to_string());
    Ok(RecordingContext { actor, device, request })
}

/// Returns the platform of a new conversation. An agent cannot choose it, so that its conversations are told from those
/// of others.
fn recording_platform(device: Option<&Device>, requested: String) -> Result<String, CallError> {
    let Some(agent) = device.filter(|device| device.policy.role == Role::Agent) else {
        return Ok(if requested.is_empty() { LOCAL_PLATFORM.to_owned() } else { requested });
    };
    let own = platform_of_entity(&agent.policy.entity);
    if requested.is_empty() || requested == own {
        return Ok(own);
    }
    Err(CallError::invalid_field("platform", format!("must be empty or {own:?} for this agent")))
}

/// Returns the entity of an agent as the name of a platform: in lower case, with `-` for everything that is neither a
/// letter nor a digit.
fn platform_of_entity(entity: &str) -> String {
    let valid =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_-".contains(letter);
    let letters = entity.chars().map(|letter| letter.to_ascii_lowercase());
    let name: String =
        letters.map(|letter| if valid(letter) { letter } else { '-' }).take(*PLATFORM_BYTES.end()).collect();
    if PLATFORM_BYTES.contains(&name.len()) { name } else { AGENT_PLATFORM.to_owned() }
}

/// The conversation after a call.
struct AfterCall {
    header: ConversationHeader,
    attribution: Attribution,
    messages: usize,
    summary: String,
}

/// Returns the conversation as it was after the call, also if the request is repeated later.
fn after_call(state: &CallState, recorded: &Recorded) -> Result<AfterCall, CallError> {
    let missing = || CallError::not_found(ResourceKind::Conversation, &recorded.conversation);
    // A repeated request does not show what was withdrawn or erased since.
    let now = state.store.conversation(&recorded.conversation, None)?;
    now.filter(|now| !now.withdrawn).ok_or_else(missing)?;
    let revision = Revision::new(recorded.revision);
    let record = state.store.conversation(&recorded.conversation, Some(revision))?.ok_or_else(missing)?;
    Ok(AfterCall {
        attribution: attribution(&record.header).unwrap_or_default(),
        messages: record.heads.len(),
        summary: recording::summary(&state.store, &record)?.unwrap_or_default(),
        header: shown_header(&record),
    })
}

/// Sets the fields of a conversation that was recorded or comes from MemU.
pub(super) fn add_attribution(
    state: &CallState,
    record: &ConversationRecord,
    wire: &mut v1::Conversation,
) -> Result<(), CallError> {
    let Some(Attribution { agent_id, user_id, session_id }) = attribution(&record.header) else {
        return Ok(());
    };
    (wire.agent_id, wire.user_id, wire.session_id) = (agent_id, user_id, session_id);
    wire.summary = recording::summary(&state.store, record)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entity_becomes_a_platform() {
        for (entity, platform) in [
            ("agent-a", "agent-a"),
            ("My Agent 2", "my-agent-2"),
            ("Übersetzer", "-bersetzer"),
            ("x", "agent"),
            ("", "agent"),
        ] {
            assert_eq!(platform_of_entity(entity), platform);
        }
        assert_eq!(platform_of_entity(&"x".repeat(40)), "x".repeat(32));
    }
}
