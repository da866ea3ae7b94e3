//! The methods of `MemoryService` that change memories.

use prost::Message;
use satchel_core::ingest::hand::{Bulk, Call, Done, RequestKey};
use satchel_pam::{hash::Sha256Digest, ids, relation::RelationType};
use satchel_proto::{
    signed::signed,
    v1::{self, restore_memory_version_request::Target, supersede_memory_request::Replacement},
};
use satchel_store::Revision;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{
    Core,
    call::{PAGE_BYTES, required},
    status::{Fault, Kind},
    wire::{
        draft::{change_from_wire, draft_from_wire},
        memory::{View, filter_from_wire, record_to_wire, status_from_wire},
        relation::relation_to_wire,
        scalar::count_from_wire,
    },
};

/// The actor of calls over the socket of the data directory.
const OWNER: &str = "owner";
/// Longest reason, in bytes. It is stored in the history of every memory that the change affects.
const MAX_REASON: usize = 1_024;

/// Returns the actor, reason and request key of a call. The request id must be cleared in `request`, and so must the
/// etag: an etag is a precondition, and a call that is repeated because its response was lost may meet its own change.
pub(super) fn call(
    method: &str,
    request_id: &str,
    reason: String,
    request: &impl Message,
) -> Result<Call, Fault> {
    if reason.len() > MAX_REASON {
        return Err(Fault::field("reason", format!("is longer than {MAX_REASON} bytes")));
    }
    let request = if request_id.is_empty() {
        None
    } else {
        let id = Uuid::parse_str(request_id).map_err(|_| Fault::field("request_id", "is not a UUID"))?;
        let mut hasher = Sha256::new();
        hasher.update(method);
        hasher.update([0]);
        hasher.update(request.encode_to_vec());
        let digest: [u8; 32] = hasher.finalize().into();
        let body = Sha256Digest::from_bytes(digest).to_hex();
        Some(RequestKey { id: id.to_string(), body })
    };
    Ok(Call { actor: OWNER.to_owned(), reason, request })
}

impl Core {
    /// Returns a memory as it was after a change.
    fn changed(&self, done: &Done, id: &str) -> Result<v1::Memory, Fault> {
        let record = self.store.memory(id, Some(Revision::new(done.revision)))?;
        self.shown(record.ok_or_else(|| Fault::missing(Kind::Memory, id))?, View::Full)
    }

    /// Returns the only memory that a change affects.
    fn only(&self, done: &Done) -> Result<v1::Memory, Fault> {
        let id = done.memories.last().ok_or_else(|| Fault::internal("a change of no memory"))?;
        self.changed(done, id)
    }

    /// Returns the first relation that a change affects.
    pub(super) fn related(&self, done: &Done) -> Result<Option<v1::Relation>, Fault> {
        let Some(id) = done.relations.first() else { return Ok(None) };
        let record = self.store.relation(id, Some(Revision::new(done.revision)))?;
        Ok(record.map(relation_to_wire))
    }

    pub(super) fn header_of(&self, done: &Done) -> v1::StoreHeader {
        self.header_at(Revision::new(done.revision))
    }
}

pub(super) fn create(
    core: &Core,
    mut request: v1::CreateMemoryRequest,
) -> Result<v1::CreateMemoryResponse, Fault> {
    let request_id = std::mem::take(&mut request.request_id);
    let call = call("CreateMemory", &request_id, request.reason.clone(), &request)?;
    let memory = request.memory.ok_or_else(|| Fault::field("memory", "is missing"))?;
    let done = core.imports.add_memory(&call, &draft_from_wire(memory)?)?;
    Ok(v1::CreateMemoryResponse {
        memory: Some(core.only(&done)?),
        existed: done.existed,
        header: Some(core.header_of(&done)),
        undo_token: done.act,
    })
}

pub(super) fn update(
    core: &Core,
    mut request: v1::UpdateMemoryRequest,
) -> Result<v1::UpdateMemoryResponse, Fault> {
    let request_id = std::mem::take(&mut request.request_id);
    let etag = std::mem::take(&mut request.etag);
    let call = call("UpdateMemory", &request_id, request.reason.clone(), &request)?;
    let v1::UpdateMemoryRequest { request_id: _, memory, update_mask, etag: _, reason: _ } = request;
    let memory = memory.ok_or_else(|| Fault::field("memory", "is missing"))?;
    let id = memory.id.clone();
    required("memory.id", &id)?;
    let paths = update_mask.unwrap_or_default().paths;
    let done = core.imports.edit_memory(&call, &id, &etag, &change_from_wire(memory, &paths)?)?;
    Ok(v1::UpdateMemoryResponse {
        memory: Some(core.only(&done)?),
        header: Some(core.header_of(&done)),
        undo_token: done.act,
    })
}

pub(super) fn set_status(
    core: &Core,
    mut request: v1::SetMemoryStatusRequest,
) -> Result<v1::SetMemoryStatusResponse, Fault> {
    let request_id = std::mem::take(&mut request.request_id);
    let etag = std::mem::take(&mut request.etag);
    let call = call("SetMemoryStatus", &request_id, request.reason.clone(), &request)?;
    let v1::SetMemoryStatusRequest { request_id: _, id, status, etag: _, reason: _ } = request;
    required("id", &id)?;
    let status = status_from_wire("status", status)?;
    let done = core.imports.set_memory_status(&call, &id, &etag, status)?;
    Ok(v1::SetMemoryStatusResponse {
        memory: Some(core.only(&done)?),
        header: Some(core.header_of(&done)),
        undo_token: done.act,
    })
}

pub(super) fn supersede(
    core: &Core,
    mut request: v1::SupersedeMemoryRequest,
) -> Result<v1::SupersedeMemoryResponse, Fault> {
    let request_id = std::mem::take(&mut request.request_id);
    let etag = std::mem::take(&mut request.etag);
    let call = call("SupersedeMemory", &request_id, request.reason.clone(), &request)?;
    let v1::SupersedeMemoryRequest { request_id: _, old_id, replacement, etag: _, reason: _ } = request;
    required("old_id", &old_id)?;
    let done = match replacement {
        None => return Err(Fault::field("replacement", "is missing")),
        Some(Replacement::NewMemory(memory)) => {
            let draft = draft_from_wire(memory)?;
            core.imports.supersede_memory(&call, &old_id, &etag, Ok(&draft))?
        }
        Some(Replacement::ExistingId(by)) => {
            required("existing_id", &by)?;
            core.imports.supersede_memory(&call, &old_id, &etag, Err(&by))?
        }
    };
    let old = core.changed(&done, &old_id)?;
    let by = old.temporal.as_ref().and_then(|times| times.superseded_by.clone()).unwrap_or_default();
    let edge = ids::relation_id(&by, &old_id, RelationType::Supersedes).to_string();
    let edge = core.store.relation(&edge, Some(Revision::new(done.revision)))?;
    Ok(v1::SupersedeMemoryResponse {
        old_memory: Some(old),
        new_memory: Some(core.changed(&done, &by)?),
        relation: edge.map(relation_to_wire),
        header: Some(core.header_of(&done)),
        undo_token: done.act,
    })
}

pub(super) fn bulk(
    core: &Core,
    mut request: v1::BulkSetStatusRequest,
) -> Result<v1::BulkSetStatusResponse, Fault> {
    let request_id = std::mem::take(&mut request.request_id);
    let call = call("BulkSetStatus", &request_id, request.reason.clone(), &request)?;
    let v1::BulkSetStatusRequest { request_id: _, filter, status, reason: _, dry_run, expected_count } =
        request;
    let expected = expected_count.map(|count| count_from_wire("expected_count", count)).transpose()?;
    let filter = filter.unwrap_or_default();
    if filter == v1::MemoryFilter::default() {
        return Err(Fault::field("filter", "must not be empty; `statuses` alone says which state"));
    }
    let status = status_from_wire("status", status)?;
    let query = filter_from_wire(Some(filter))?;
    let done = core.imports.set_status_of_all(&call, &Bulk { query, status, dry_run, expected })?;
    Ok(v1::BulkSetStatusResponse {
        matched: signed(done.matched),
        header: Some(core.header_of(&done)),
        sample_ids: done.memories,
        undo_token: done.act,
    })
}

pub(super) fn restore(
    core: &Core,
    mut request: v1::RestoreMemoryVersionRequest,
) -> Result<v1::RestoreMemoryVersionResponse, Fault> {
    let request_id = std::mem::take(&mut request.request_id);
    let call = call("RestoreMemoryVersion", &request_id, request.reason.clone(), &request)?;
    let done = match request.target {
        None => return Err(Fault::field("target", "is missing")),
        Some(Target::MemoryVersion(v1::MemoryVersionRef { id, version })) => {
            required("memory_version.id", &id)?;
            core.imports.restore_memory_version(
                &call,
                &id,
                count_from_wire("memory_version.version", version)?,
            )?
        }
        Some(Target::UndoToken(token)) => {
            required("undo_token", &token)?;
            core.imports.undo_change(&call, &token)?
        }
        Some(Target::LastChangeOf(id)) => {
            required("last_change_of", &id)?;
            core.imports.undo_last_change(&call, &id)?
        }
    };
    let (mut memories, mut bytes) = (Vec::new(), 0);
    for id in &done.memories {
        let record = core.store.memory(id, Some(Revision::new(done.revision)))?;
        let Some(record) = record else { continue };
        let memory = record_to_wire(record, View::Basic)?;
        bytes += memory.encoded_len();
        if bytes > PAGE_BYTES {
            break;
        }
        memories.push(memory);
    }
    Ok(v1::RestoreMemoryVersionResponse {
        memories,
        header: Some(core.header_of(&done)),
        matched: signed(done.matched),
        undo_token: done.act,
    })
}
