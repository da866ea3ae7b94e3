//! The methods of `MemoryService` that change memories.

use prost::Message;
use satchel_core::edits::{BulkStatusChange, EditContext, EditOutcome, RequestKey};
use satchel_devices::Device;
use satchel_pam::{hash::Sha256Digest, ids, relation::RelationType};
use satchel_proto::{
    integers::signed,
    v1::{self, restore_memory_version_request::Target, supersede_memory_request::Replacement},
};
use satchel_store::Revision;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{
    call_state::CallState,
    quarantine,
    request::{PAGE_BYTES, check_required},
    status::{CallError, ResourceKind},
    wire::{
        draft::{change_from_wire, draft_from_wire},
        memory::{View, filter_from_wire, status_from_wire},
        relation::relation_to_wire,
        scalar::count_from_wire,
    },
};

/// The actor of calls over the socket of the data directory.
const OWNER_ACTOR: &str = "owner";
/// Longest reason, in bytes. It is stored in the history of every memory that the change affects.
const MAX_REASON_BYTES: usize = 1_024;

/// Returns the actor, reason and request key of a call. The request id must be cleared in `request`, and so must the
/// etag: an etag is a precondition, and a call that is repeated because its response was lost may conflict with its own change.
pub(super) fn edit_context(
    device: Option<&Device>,
    method: &str,
    request_id: &str,
    reason: String,
    request: &impl Message,
) -> Result<EditContext, CallError> {
    if reason.len() > MAX_REASON_BYTES {
        return Err(CallError::invalid_field("reason", format!("is longer than {MAX_REASON_BYTES} bytes")));
    }
    let request = if request_id.is_empty() {
        None
    } else {
        let id = Uuid::parse_str(request_id)
            .map_err(|_| CallError::invalid_field("request_id", "is not a UUID"))?;
        let mut hasher = Sha256::new();
        hasher.update(method);
        hasher.update([0]);
        hasher.update(request.encode_to_vec());
        let digest: [u8; 32] = hasher.finalize().into();
        let body = Sha256Digest::from_bytes(digest).to_hex();
        // Each caller has request ids of its own, so that it cannot ask for the answer to somebody else's request.
        let id = device.map_or_else(|| id.to_string(), |device| format!("{}/{id}", device.id));
        Some(RequestKey { id, body })
    };
    Ok(EditContext { actor: actor(device), reason, request })
}

/// Returns the name under which the history lists a caller.
fn actor(device: Option<&Device>) -> String {
    device.map_or_else(|| OWNER_ACTOR.to_owned(), |device| format!("device:{}", device.name))
}

/// Returns the actor, reason and request key of a call, and clears its request id.
macro_rules! edit_call {
    ($state:ident, $method:literal, $request:ident) => {{
        let request_id = std::mem::take(&mut $request.request_id);
        let reason = $request.reason.clone();
        $crate::grpc::edit::edit_context($state.device(), $method, &request_id, reason, &$request)
    }};
}
pub(super) use edit_call;

impl CallState {
    /// Returns a memory as it was after a change.
    fn memory_after(&self, outcome: &EditOutcome, id: &str) -> Result<v1::Memory, CallError> {
        let record = self.store.memory(id, Some(Revision::new(outcome.revision)))?;
        self.memory_row(record.ok_or_else(|| CallError::not_found(ResourceKind::Memory, id))?, View::Full)
    }

    /// Returns the only memory that a change affects.
    pub(super) fn changed_memory(&self, outcome: &EditOutcome) -> Result<v1::Memory, CallError> {
        let id = outcome.memories.last().ok_or_else(|| CallError::internal("a change of no memory"))?;
        self.memory_after(outcome, id)
    }

    /// Returns the first relation that a change affects.
    pub(super) fn first_relation(&self, outcome: &EditOutcome) -> Result<Option<v1::Relation>, CallError> {
        let Some(id) = outcome.relations.first() else { return Ok(None) };
        let record = self.store.relation(id, Some(Revision::new(outcome.revision)))?;
        Ok(record.map(relation_to_wire))
    }

    pub(super) fn header_after(&self, outcome: &EditOutcome) -> v1::StoreHeader {
        self.header_at(Revision::new(outcome.revision))
    }
}

pub(super) fn create(
    state: &CallState,
    mut request: v1::CreateMemoryRequest,
) -> Result<v1::CreateMemoryResponse, CallError> {
    let call = edit_call!(state, "CreateMemory", request)?;
    if state.is_agent() {
        return quarantine::create(state, &call, request);
    }
    state.check_may_add()?;
    let memory = request.memory.ok_or_else(|| CallError::invalid_field("memory", "is missing"))?;
    let outcome = state.imports.edits().add_memory(&call, &draft_from_wire(memory)?)?;
    Ok(v1::CreateMemoryResponse {
        memory: Some(state.changed_memory(&outcome)?),
        existed: outcome.existed,
        header: Some(state.header_after(&outcome)),
        undo_token: outcome.act,
    })
}

pub(super) fn update(
    state: &CallState,
    mut request: v1::UpdateMemoryRequest,
) -> Result<v1::UpdateMemoryResponse, CallError> {
    let etag = std::mem::take(&mut request.etag);
    let call = edit_call!(state, "UpdateMemory", request)?;
    let v1::UpdateMemoryRequest { request_id: _, memory, update_mask, etag: _, reason: _ } = request;
    let memory = memory.ok_or_else(|| CallError::invalid_field("memory", "is missing"))?;
    let id = memory.id.clone();
    check_required("memory.id", &id)?;
    state.check_trusted()?;
    state.check_writable(&id)?;
    let paths = update_mask.unwrap_or_default().paths;
    if paths.iter().any(|path| path == "access") {
        state.check_no_agent("change who sees a memory")?;
    }
    let outcome = state.imports.edits().edit_memory(&call, &id, &etag, &change_from_wire(memory, &paths)?)?;
    Ok(v1::UpdateMemoryResponse {
        memory: Some(state.changed_memory(&outcome)?),
        header: Some(state.header_after(&outcome)),
        undo_token: outcome.act,
    })
}

pub(super) fn set_status(
    state: &CallState,
    mut request: v1::SetMemoryStatusRequest,
) -> Result<v1::SetMemoryStatusResponse, CallError> {
    let etag = std::mem::take(&mut request.etag);
    let call = edit_call!(state, "SetMemoryStatus", request)?;
    let v1::SetMemoryStatusRequest { request_id: _, id, status, etag: _, reason: _ } = request;
    check_required("id", &id)?;
    state.check_trusted()?;
    state.check_deletable(&id)?;
    let status = status_from_wire("status", status)?;
    let outcome = state.imports.edits().set_memory_status(&call, &id, &etag, status)?;
    Ok(v1::SetMemoryStatusResponse {
        memory: Some(state.changed_memory(&outcome)?),
        header: Some(state.header_after(&outcome)),
        undo_token: outcome.act,
    })
}

pub(super) fn supersede(
    state: &CallState,
    mut request: v1::SupersedeMemoryRequest,
) -> Result<v1::SupersedeMemoryResponse, CallError> {
    let etag = std::mem::take(&mut request.etag);
    let call = edit_call!(state, "SupersedeMemory", request)?;
    let v1::SupersedeMemoryRequest { request_id: _, old_id, replacement, etag: _, reason: _ } = request;
    check_required("old_id", &old_id)?;
    state.check_trusted()?;
    state.check_writable(&old_id)?;
    let outcome = match replacement {
        None => return Err(CallError::invalid_field("replacement", "is missing")),
        Some(Replacement::NewMemory(memory)) => {
            state.check_may_add()?;
            let draft = draft_from_wire(memory)?;
            state.imports.edits().supersede_memory(&call, &old_id, &etag, Ok(&draft))?
        }
        Some(Replacement::ExistingId(by)) => {
            check_required("existing_id", &by)?;
            state.check_writable(&by)?;
            state.imports.edits().supersede_memory(&call, &old_id, &etag, Err(&by))?
        }
    };
    let old = state.memory_after(&outcome, &old_id)?;
    let by = old.temporal.as_ref().and_then(|times| times.superseded_by.clone()).unwrap_or_default();
    let relation = ids::relation_id(&by, &old_id, RelationType::Supersedes).to_string();
    let relation = state.store.relation(&relation, Some(Revision::new(outcome.revision)))?;
    Ok(v1::SupersedeMemoryResponse {
        old_memory: Some(old),
        new_memory: Some(state.memory_after(&outcome, &by)?),
        relation: relation.map(relation_to_wire),
        header: Some(state.header_after(&outcome)),
        undo_token: outcome.act,
    })
}

pub(super) fn bulk_set_status(
    state: &CallState,
    mut request: v1::BulkSetStatusRequest,
) -> Result<v1::BulkSetStatusResponse, CallError> {
    state.check_owner("change many memories at once")?;
    let call = edit_call!(state, "BulkSetStatus", request)?;
    let v1::BulkSetStatusRequest { request_id: _, filter, status, reason: _, dry_run, expected_count } =
        request;
    let expected = expected_count.map(|count| count_from_wire("expected_count", count)).transpose()?;
    let filter = filter.unwrap_or_default();
    if filter == v1::MemoryFilter::default() {
        return Err(CallError::invalid_field(
            "filter",
            "must not be empty; to select by status alone, set `statuses`",
        ));
    }
    let status = status_from_wire("status", status)?;
    let query = filter_from_wire(Some(filter))?;
    let outcome = state
        .imports
        .edits()
        .set_status_of_all(&call, &BulkStatusChange { query, status, dry_run, expected })?;
    Ok(v1::BulkSetStatusResponse {
        matched: signed(outcome.matched),
        header: Some(state.header_after(&outcome)),
        sample_ids: outcome.memories,
        undo_token: outcome.act,
    })
}

pub(super) fn restore(
    state: &CallState,
    mut request: v1::RestoreMemoryVersionRequest,
) -> Result<v1::RestoreMemoryVersionResponse, CallError> {
    // An earlier version may be visible to more agents than the current one.
    state.check_no_agent("undo changes or restore versions; ask the owner")?;
    let call = edit_call!(state, "RestoreMemoryVersion", request)?;
    let outcome = match request.target {
        None => return Err(CallError::invalid_field("target", "is missing")),
        Some(Target::MemoryVersion(v1::MemoryVersionRef { id, version })) => {
            check_required("memory_version.id", &id)?;
            state.check_writable(&id)?;
            state.imports.edits().restore_memory_version(
                &call,
                &id,
                count_from_wire("memory_version.version", version)?,
            )?
        }
        Some(Target::UndoToken(token)) => {
            check_required("undo_token", &token)?;
            state.check_owner("undo a change by its token; name the memory instead")?;
            state.imports.edits().undo_change(&call, &token)?
        }
        Some(Target::LastChangeOf(id)) => {
            check_required("last_change_of", &id)?;
            state.check_writable(&id)?;
            state.imports.edits().undo_last_change(&call, &id)?
        }
    };
    let (mut memories, mut bytes) = (Vec::new(), 0);
    for id in &outcome.memories {
        let record = state.store.memory(id, Some(Revision::new(outcome.revision)))?;
        let Some(record) = record else { continue };
        let Some(record) = state.only_visible(Some(record))? else { continue };
        let memory = state.memory_row(record, View::Basic)?;
        bytes += memory.encoded_len();
        if bytes > PAGE_BYTES {
            break;
        }
        memories.push(memory);
    }
    Ok(v1::RestoreMemoryVersionResponse {
        memories,
        header: Some(state.header_after(&outcome)),
        matched: signed(outcome.matched),
        undo_token: outcome.act,
    })
}
