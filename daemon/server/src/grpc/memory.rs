//! `MemoryService`: reads memories. The methods that change them are in `change` and `relation`.

use std::collections::BTreeSet;

use prost::Message as _;
use satchel_core::provenance;
use satchel_pam::{lifecycle, time::Timestamp};
use satchel_proto::{
    integers::signed,
    v1::{self, memory_service_server::MemoryService},
};
use satchel_store::{MemoryQuery, MemoryRecord};
use tonic::{Request, Response, Status};

use super::{
    ServerState, edit, relation,
    request::{PAGE_BYTES, check_length, check_required, fill_page, slice_page},
    status::{CallError, ResourceKind},
    wire::{
        memory::{View, filter_from_wire, order_from_wire, record_to_wire, view_from_wire},
        scalar::time_to_wire,
    },
};

/// Largest number of ids in one batch.
const MAX_BATCH: usize = 500;

#[derive(Clone)]
pub(super) struct MemoryHandler(pub(super) ServerState);

#[tonic::async_trait]
impl MemoryService for MemoryHandler {
    async fn get_memory(
        &self,
        request: Request<v1::GetMemoryRequest>,
    ) -> Result<Response<v1::GetMemoryResponse>, Status> {
        let request = request.into_inner();
        self.0.respond(|state| get(state, request)).await
    }

    async fn batch_get_memories(
        &self,
        request: Request<v1::BatchGetMemoriesRequest>,
    ) -> Result<Response<v1::BatchGetMemoriesResponse>, Status> {
        let request = request.into_inner();
        self.0.respond(|state| batch_get(state, request)).await
    }

    async fn list_memories(
        &self,
        request: Request<v1::ListMemoriesRequest>,
    ) -> Result<Response<v1::ListMemoriesResponse>, Status> {
        let request = request.into_inner();
        self.0.respond(|state| list(state, request)).await
    }

    async fn list_memory_ids(
        &self,
        request: Request<v1::ListMemoryIdsRequest>,
    ) -> Result<Response<v1::ListMemoryIdsResponse>, Status> {
        let request = request.into_inner();
        self.0.respond(|state| list_ids(state, request)).await
    }

    async fn list_memory_versions(
        &self,
        request: Request<v1::ListMemoryVersionsRequest>,
    ) -> Result<Response<v1::ListMemoryVersionsResponse>, Status> {
        let request = request.into_inner();
        self.0.respond(|state| list_versions(state, request)).await
    }

    async fn create_memory(
        &self,
        request: Request<v1::CreateMemoryRequest>,
    ) -> Result<Response<v1::CreateMemoryResponse>, Status> {
        let request = request.into_inner();
        self.0.respond(|state| edit::create(state, request)).await
    }

    async fn update_memory(
        &self,
        request: Request<v1::UpdateMemoryRequest>,
    ) -> Result<Response<v1::UpdateMemoryResponse>, Status> {
        let request = request.into_inner();
        self.0.respond(|state| edit::update(state, request)).await
    }

    async fn set_memory_status(
        &self,
        request: Request<v1::SetMemoryStatusRequest>,
    ) -> Result<Response<v1::SetMemoryStatusResponse>, Status> {
        let request = request.into_inner();
        self.0.respond(|state| edit::set_status(state, request)).await
    }

    async fn supersede_memory(
        &self,
        request: Request<v1::SupersedeMemoryRequest>,
    ) -> Result<Response<v1::SupersedeMemoryResponse>, Status> {
        let request = request.into_inner();
        self.0.respond(|state| edit::supersede(state, request)).await
    }

    async fn bulk_set_status(
        &self,
        request: Request<v1::BulkSetStatusRequest>,
    ) -> Result<Response<v1::BulkSetStatusResponse>, Status> {
        let request = request.into_inner();
        self.0.respond(|state| edit::bulk_set_status(state, request)).await
    }

    async fn restore_memory_version(
        &self,
        request: Request<v1::RestoreMemoryVersionRequest>,
    ) -> Result<Response<v1::RestoreMemoryVersionResponse>, Status> {
        let request = request.into_inner();
        self.0.respond(|state| edit::restore(state, request)).await
    }

    async fn create_relation(
        &self,
        request: Request<v1::CreateRelationRequest>,
    ) -> Result<Response<v1::CreateRelationResponse>, Status> {
        let request = request.into_inner();
        self.0.respond(|state| relation::create(state, request)).await
    }

    async fn withdraw_relation(
        &self,
        request: Request<v1::WithdrawRelationRequest>,
    ) -> Result<Response<v1::WithdrawRelationResponse>, Status> {
        let request = request.into_inner();
        self.0.respond(|state| relation::withdraw(state, request)).await
    }

    async fn list_relations(
        &self,
        request: Request<v1::ListRelationsRequest>,
    ) -> Result<Response<v1::ListRelationsResponse>, Status> {
        let request = request.into_inner();
        self.0.respond(|state| relation::list(state, request)).await
    }
}

impl ServerState {
    /// Returns a memory with its confidence as of now, after decay.
    pub(super) fn memory_with_decay(
        &self,
        record: MemoryRecord,
        view: View,
    ) -> Result<v1::Memory, CallError> {
        let now = Timestamp::saturating(self.clock.now_micros());
        let half_lives = self.confidence_decay.half_lives(record.memory.memory_type);
        let decayed = lifecycle::decayed(&record.memory, now, &half_lives);
        let mut wire = record_to_wire(record, view)?;
        if let Some(confidence) = &mut wire.confidence {
            confidence.faded = decayed;
        }
        Ok(wire)
    }
}

fn get(state: &ServerState, request: v1::GetMemoryRequest) -> Result<v1::GetMemoryResponse, CallError> {
    let v1::GetMemoryRequest { id, view } = request;
    check_required("id", &id)?;
    let view = view_from_wire(view, View::Full)?;
    let revision = state.store.revision();
    let record = state
        .store
        .memory(&id, Some(revision))?
        .ok_or_else(|| CallError::not_found(ResourceKind::Memory, &id))?;
    let stranger = provenance::untrusted_signer(&state.store, &id)?.unwrap_or_default();
    Ok(v1::GetMemoryResponse {
        memory: Some(state.memory_with_decay(record, view)?),
        header: Some(state.header_at(revision)),
        stranger,
    })
}

fn batch_get(
    state: &ServerState,
    request: v1::BatchGetMemoriesRequest,
) -> Result<v1::BatchGetMemoriesResponse, CallError> {
    let v1::BatchGetMemoriesRequest { ids, view } = request;
    if ids.is_empty() || ids.len() > MAX_BATCH {
        return Err(CallError::invalid_field("ids", format!("must hold 1 to {MAX_BATCH} ids")));
    }
    ids.iter().try_for_each(|id| check_required("ids", id))?;
    let view = view_from_wire(view, View::Full)?;
    let revision = state.store.revision();
    let mut response =
        v1::BatchGetMemoriesResponse { header: Some(state.header_at(revision)), ..Default::default() };
    let mut seen = BTreeSet::new();
    let mut bytes = 0;
    for id in ids.into_iter().filter(|id| seen.insert(id.clone())) {
        if bytes > PAGE_BYTES {
            response.omitted.push(id);
            continue;
        }
        let Some(record) = state.store.memory(&id, Some(revision))? else {
            response.not_found.push(id);
            continue;
        };
        let memory = state.memory_with_decay(record, view)?;
        bytes += memory.encoded_len();
        if bytes > PAGE_BYTES && !response.memories.is_empty() {
            response.omitted.push(id);
        } else {
            response.memories.push(memory);
        }
    }
    Ok(response)
}

fn list(
    state: &ServerState,
    mut request: v1::ListMemoriesRequest,
) -> Result<v1::ListMemoriesResponse, CallError> {
    let size = std::mem::take(&mut request.page_size);
    let token = std::mem::take(&mut request.page_token);
    let page = state.page_request("ListMemories", &request, size, &token)?;
    let v1::ListMemoriesRequest { page_size: _, page_token: _, filter, order, view } = request;
    let query = MemoryQuery { order: order_from_wire(order)?, ..filter_from_wire(filter)? };
    let view = view_from_wire(view, View::Basic)?;
    let revision = page.revision.unwrap_or_else(|| state.store.revision());
    let (memories, next) = fill_page(
        page.rows,
        page.store_cursor(),
        |after, limit| Ok(state.store.memories(&query, after, limit, revision)?),
        |record| state.memory_with_decay(record, view),
    )?;
    let next = next.map(|cursor| cursor.as_bytes().to_vec());
    Ok(v1::ListMemoriesResponse {
        memories,
        next_page_token: state.next_token(&page, revision, next),
        header: Some(state.header_at(revision)),
    })
}

fn list_ids(
    state: &ServerState,
    mut request: v1::ListMemoryIdsRequest,
) -> Result<v1::ListMemoryIdsResponse, CallError> {
    let size = std::mem::take(&mut request.page_size);
    let token = std::mem::take(&mut request.page_token);
    let page = state.page_request("ListMemoryIds", &request, size, &token)?;
    check_length("prefix", &request.prefix)?;
    let revision = page.revision.unwrap_or_else(|| state.store.revision());
    let all = state.store.memory_ids(&request.prefix, revision)?;
    let (ids, next) = fill_page(
        page.rows,
        page.store_cursor(),
        |after, limit| slice_page(&all, after, limit),
        |id| Ok(v1::MemoryId { id }),
    )?;
    let next = next.map(|cursor| cursor.as_bytes().to_vec());
    Ok(v1::ListMemoryIdsResponse {
        ids,
        next_page_token: state.next_token(&page, revision, next),
        header: Some(state.header_at(revision)),
    })
}

fn list_versions(
    state: &ServerState,
    mut request: v1::ListMemoryVersionsRequest,
) -> Result<v1::ListMemoryVersionsResponse, CallError> {
    let size = std::mem::take(&mut request.page_size);
    let token = std::mem::take(&mut request.page_token);
    let page = state.page_request("ListMemoryVersions", &request, size, &token)?;
    let v1::ListMemoryVersionsRequest { id, page_size: _, page_token: _, view } = request;
    check_required("id", &id)?;
    let view = view_from_wire(view, View::Basic)?;
    let revision = page.revision.unwrap_or_else(|| state.store.revision());
    let mut all = state.store.memory_versions(&id)?;
    all.retain(|record| record.revision <= revision);
    if all.is_empty() {
        return Err(CallError::not_found(ResourceKind::Memory, id));
    }
    all.reverse();
    let (versions, next) = fill_page(
        page.rows,
        page.store_cursor(),
        |after, limit| slice_page(&all, after, limit),
        |record| version_to_wire(record, view),
    )?;
    let next = next.map(|cursor| cursor.as_bytes().to_vec());
    Ok(v1::ListMemoryVersionsResponse {
        versions,
        next_page_token: state.next_token(&page, revision, next),
        header: Some(state.header_at(revision)),
    })
}

fn version_to_wire(record: MemoryRecord, view: View) -> Result<v1::MemoryVersion, CallError> {
    let origin = record.origin.clone();
    Ok(v1::MemoryVersion {
        version: signed(record.version),
        revision: signed(record.revision.get()),
        changed_at: Some(time_to_wire(origin.at_micros)),
        actor: origin.actor,
        reason: origin.reason,
        import_id: origin.import.map(|import| import.to_string()).unwrap_or_default(),
        memory: Some(record_to_wire(record, view)?),
    })
}
