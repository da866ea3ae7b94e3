//! The methods of `MemoryService` about memories that agents write and the owner reviews.

use satchel_core::edits::{
    Agent, EditContext, EditOutcome, QuarantineState, QuarantinedMemory, ReviewDecision,
};
use satchel_devices::Device;
use satchel_proto::v1;

use super::{
    call_state::CallState,
    device,
    edit::edit_call,
    request::{check_length, check_required, page_request},
    status::{CallError, ResourceKind},
    wire::{
        draft::agent_draft_from_wire,
        memory::{View, quarantined_to_wire, view_from_wire},
        quarantine::{QuarantineFilter, decision_from_wire, entry_to_wire, state_from_wire},
    },
};

/// The metadata key under which the daemon stores its own data.
const OWN_METADATA: &str = "satchel";

/// Creates a memory for an agent: at once if its writes are trusted, and otherwise in quarantine.
pub(super) fn create(
    state: &CallState,
    call: &EditContext,
    request: v1::CreateMemoryRequest,
) -> Result<v1::CreateMemoryResponse, CallError> {
    let device = state.device().ok_or_else(|| CallError::internal("an agent that is no device"))?;
    let memory = request.memory.ok_or_else(|| CallError::invalid_field("memory", "is missing"))?;
    let draft = agent_draft_from_wire(memory)?;
    let edits = state.imports.edits();
    let outcome = if device.policy.trusted_writes {
        edits.add_agent_memory(call, &agent(device), &draft)?
    } else {
        edits.quarantine_memory(call, &agent(device), &draft)?
    };
    let memory = if outcome.quarantined {
        quarantined_memory(state, &outcome)?
    } else {
        added_memory(state, &outcome)?
    };
    Ok(v1::CreateMemoryResponse {
        memory: Some(memory),
        existed: outcome.existed,
        header: Some(state.header_after(&outcome)),
        undo_token: outcome.act,
    })
}

fn agent(device: &Device) -> Agent {
    Agent {
        device: device.id.to_string(),
        device_name: device.name.clone(),
        entity: device.policy.entity.clone(),
        platform: device.policy.platform(),
    }
}

fn quarantined_memory(state: &CallState, outcome: &EditOutcome) -> Result<v1::Memory, CallError> {
    let id = outcome.memories.first().ok_or_else(|| CallError::internal("a change of no memory"))?;
    let entry = state.imports.edits().quarantined_memory(id)?;
    let entry = entry.ok_or_else(|| CallError::not_found(ResourceKind::Memory, id))?;
    for_agent(&entry, View::Full)
}

/// Returns a memory that an agent added, if it still sees it.
fn added_memory(state: &CallState, outcome: &EditOutcome) -> Result<v1::Memory, CallError> {
    let id = outcome.memories.first().ok_or_else(|| CallError::internal("a change of no memory"))?;
    let record = state.store.memory(id, None)?;
    if state.only_visible(record)?.is_some() {
        return state.changed_memory(outcome);
    }
    let problem = "this memory was written before, and is not visible to this device any more".to_owned();
    Err(CallError::MemoryState { id: id.clone(), problem })
}

/// Returns a memory that waits for review, for the agent that wrote it.
///
/// # Errors
/// `NOT_FOUND` for every other memory.
pub(super) fn own(state: &CallState, id: &str, view: View) -> Result<v1::Memory, CallError> {
    let entry = state.imports.edits().quarantined_memory(id)?;
    let entity = state.device().map(|device| device.policy.entity.as_str());
    let own = entry
        .filter(|entry| entry.state == QuarantineState::Waiting && Some(entry.entity.as_str()) == entity);
    for_agent(&own.ok_or_else(|| CallError::not_found(ResourceKind::Memory, id))?, view)
}

/// Returns what an agent sees of a memory that it wrote.
fn for_agent(entry: &QuarantinedMemory, view: View) -> Result<v1::Memory, CallError> {
    let mut memory = entry.memory()?;
    memory.metadata.remove(OWN_METADATA);
    Ok(v1::Memory { quarantined: true, ..quarantined_to_wire(memory, view)? })
}

pub(super) fn list(
    state: &CallState,
    mut request: v1::ListQuarantinedMemoriesRequest,
) -> Result<v1::ListQuarantinedMemoriesResponse, CallError> {
    state.check_owner("review memories")?;
    let page = page_request!(state, "ListQuarantinedMemories", request)?;
    let v1::ListQuarantinedMemoriesRequest { page_size: _, page_token: _, device, state: wanted, view } =
        request;
    check_length("device", &device)?;
    let device = if device.is_empty() { None } else { Some(device::find(state, &device)?.id.to_string()) };
    let filter = state_from_wire(wanted)?;
    let view = view_from_wire(view, View::Full)?;
    let edits = state.imports.edits();
    let (memories, next_page_token) = state.fill_visible(
        &page,
        |after, limit| Ok(edits.quarantined_memories(filter == QuarantineFilter::Waiting, after, limit)?),
        |entry| {
            let shown = filter.matches(&entry.state) && device.as_ref().is_none_or(|id| *id == entry.device);
            shown.then(|| entry_to_wire(entry, view)).transpose()
        },
    )?;
    Ok(v1::ListQuarantinedMemoriesResponse { memories, next_page_token, header: Some(state.header()) })
}

pub(super) fn review(
    state: &CallState,
    mut request: v1::ReviewMemoriesRequest,
) -> Result<v1::ReviewMemoriesResponse, CallError> {
    state.check_owner("review memories")?;
    let call = edit_call!(state, "ReviewMemories", request)?;
    let v1::ReviewMemoriesRequest { request_id: _, ids, decision, reason: _ } = request;
    ids.iter().try_for_each(|id| check_required("ids", id))?;
    let decision: ReviewDecision = decision_from_wire("decision", decision)?;
    let edits = state.imports.edits();
    let outcome = edits.review_memories(&call, &ids, decision)?;
    let mut memories = Vec::with_capacity(outcome.memories.len());
    for id in &outcome.memories {
        let entry = edits.quarantined_memory(id)?;
        let entry = entry.ok_or_else(|| CallError::not_found(ResourceKind::Memory, id))?;
        memories.push(entry_to_wire(entry, View::Basic)?);
    }
    let (header, undo_token) = (Some(state.header_after(&outcome)), outcome.act);
    Ok(v1::ReviewMemoriesResponse { memories, header, undo_token })
}
