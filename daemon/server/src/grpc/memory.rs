//! `MemoryService`: reads memories. The methods that change them are in `change` and `relation`.

use std::collections::BTreeSet;

use prost::Message as _;
use satchel_core::lineage;
use satchel_pam::{lifecycle, time::Timestamp};
use satchel_proto::{
    signed::signed,
    v1::{self, memory_service_server::MemoryService},
};
use satchel_store::{MemoryQuery, MemoryRecord};
use tonic::{Request, Response, Status};

use super::{
    Core,
    call::{PAGE_BYTES, bounded, fill, required, slice_page},
    change, relation,
    status::{Fault, Kind},
    wire::{
        memory::{View, filter_from_wire, order_from_wire, record_to_wire, view_from_wire},
        scalar::time_to_wire,
    },
};

/// Largest number of ids in one batch.
const MAX_BATCH: usize = 500;

#[derive(Clone)]
pub(super) struct Memories(pub(super) Core);

#[tonic::async_trait]
impl MemoryService for Memories {
    async fn get_memory(
        &self,
        request: Request<v1::GetMemoryRequest>,
    ) -> Result<Response<v1::GetMemoryResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| get(core, request)).await
    }

    async fn batch_get_memories(
        &self,
        request: Request<v1::BatchGetMemoriesRequest>,
    ) -> Result<Response<v1::BatchGetMemoriesResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| batch_get(core, request)).await
    }

    async fn list_memories(
        &self,
        request: Request<v1::ListMemoriesRequest>,
    ) -> Result<Response<v1::ListMemoriesResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| list(core, request)).await
    }

    async fn list_memory_ids(
        &self,
        request: Request<v1::ListMemoryIdsRequest>,
    ) -> Result<Response<v1::ListMemoryIdsResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| list_ids(core, request)).await
    }

    async fn list_memory_versions(
        &self,
        request: Request<v1::ListMemoryVersionsRequest>,
    ) -> Result<Response<v1::ListMemoryVersionsResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| list_versions(core, request)).await
    }

    async fn create_memory(
        &self,
        request: Request<v1::CreateMemoryRequest>,
    ) -> Result<Response<v1::CreateMemoryResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| change::create(core, request)).await
    }

    async fn update_memory(
        &self,
        request: Request<v1::UpdateMemoryRequest>,
    ) -> Result<Response<v1::UpdateMemoryResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| change::update(core, request)).await
    }

    async fn set_memory_status(
        &self,
        request: Request<v1::SetMemoryStatusRequest>,
    ) -> Result<Response<v1::SetMemoryStatusResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| change::set_status(core, request)).await
    }

    async fn supersede_memory(
        &self,
        request: Request<v1::SupersedeMemoryRequest>,
    ) -> Result<Response<v1::SupersedeMemoryResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| change::supersede(core, request)).await
    }

    async fn bulk_set_status(
        &self,
        request: Request<v1::BulkSetStatusRequest>,
    ) -> Result<Response<v1::BulkSetStatusResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| change::bulk(core, request)).await
    }

    async fn restore_memory_version(
        &self,
        request: Request<v1::RestoreMemoryVersionRequest>,
    ) -> Result<Response<v1::RestoreMemoryVersionResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| change::restore(core, request)).await
    }

    async fn create_relation(
        &self,
        request: Request<v1::CreateRelationRequest>,
    ) -> Result<Response<v1::CreateRelationResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| relation::create(core, request)).await
    }

    async fn withdraw_relation(
        &self,
        request: Request<v1::WithdrawRelationRequest>,
    ) -> Result<Response<v1::WithdrawRelationResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| relation::withdraw(core, request)).await
    }

    async fn list_relations(
        &self,
        request: Request<v1::ListRelationsRequest>,
    ) -> Result<Response<v1::ListRelationsResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| relation::list(core, request)).await
    }
}

impl Core {
    /// Returns a memory with its confidence as of now, after decay.
    pub(super) fn shown(&self, record: MemoryRecord, view: View) -> Result<v1::Memory, Fault> {
        let now = Timestamp::saturating(self.clock.now_micros());
        let half_lives = self.fading.of(record.memory.memory_type);
        let faded = lifecycle::decayed(&record.memory, now, &half_lives);
        let mut wire = record_to_wire(record, view)?;
        if let Some(confidence) = &mut wire.confidence {
            confidence.faded = faded;
        }
        Ok(wire)
    }
}

fn get(core: &Core, request: v1::GetMemoryRequest) -> Result<v1::GetMemoryResponse, Fault> {
    let v1::GetMemoryRequest { id, view } = request;
    required("id", &id)?;
    let view = view_from_wire(view, View::Full)?;
    let revision = core.store.revision();
    let record = core.store.memory(&id, Some(revision))?.ok_or_else(|| Fault::missing(Kind::Memory, &id))?;
    let stranger = lineage::stranger_of(&core.store, &id)?.unwrap_or_default();
    Ok(v1::GetMemoryResponse {
        memory: Some(core.shown(record, view)?),
        header: Some(core.header_at(revision)),
        stranger,
    })
}

fn batch_get(
    core: &Core,
    request: v1::BatchGetMemoriesRequest,
) -> Result<v1::BatchGetMemoriesResponse, Fault> {
    let v1::BatchGetMemoriesRequest { ids, view } = request;
    if ids.is_empty() || ids.len() > MAX_BATCH {
        return Err(Fault::field("ids", format!("must hold 1 to {MAX_BATCH} ids")));
    }
    ids.iter().try_for_each(|id| required("ids", id))?;
    let view = view_from_wire(view, View::Full)?;
    let revision = core.store.revision();
    let mut answer =
        v1::BatchGetMemoriesResponse { header: Some(core.header_at(revision)), ..Default::default() };
    let mut seen = BTreeSet::new();
    let mut bytes = 0;
    for id in ids.into_iter().filter(|id| seen.insert(id.clone())) {
        if bytes > PAGE_BYTES {
            answer.omitted.push(id);
            continue;
        }
        let Some(record) = core.store.memory(&id, Some(revision))? else {
            answer.not_found.push(id);
            continue;
        };
        let memory = core.shown(record, view)?;
        bytes += memory.encoded_len();
        if bytes > PAGE_BYTES && !answer.memories.is_empty() {
            answer.omitted.push(id);
        } else {
            answer.memories.push(memory);
        }
    }
    Ok(answer)
}

fn list(core: &Core, mut request: v1::ListMemoriesRequest) -> Result<v1::ListMemoriesResponse, Fault> {
    let size = std::mem::take(&mut request.page_size);
    let token = std::mem::take(&mut request.page_token);
    let paging = core.paging("ListMemories", &request, size, &token)?;
    let v1::ListMemoriesRequest { page_size: _, page_token: _, filter, order, view } = request;
    let query = MemoryQuery { order: order_from_wire(order)?, ..filter_from_wire(filter)? };
    let view = view_from_wire(view, View::Basic)?;
    let revision = paging.revision.unwrap_or_else(|| core.store.revision());
    let (memories, next) = fill(
        paging.rows,
        paging.store_cursor(),
        |after, limit| Ok(core.store.memories(&query, after, limit, revision)?),
        |record| core.shown(record, view),
    )?;
    let next = next.map(|cursor| cursor.as_bytes().to_vec());
    Ok(v1::ListMemoriesResponse {
        memories,
        next_page_token: core.next_token(&paging, revision, next),
        header: Some(core.header_at(revision)),
    })
}

fn list_ids(core: &Core, mut request: v1::ListMemoryIdsRequest) -> Result<v1::ListMemoryIdsResponse, Fault> {
    let size = std::mem::take(&mut request.page_size);
    let token = std::mem::take(&mut request.page_token);
    let paging = core.paging("ListMemoryIds", &request, size, &token)?;
    bounded("prefix", &request.prefix)?;
    let revision = paging.revision.unwrap_or_else(|| core.store.revision());
    let all = core.store.memory_ids(&request.prefix, revision)?;
    let (ids, next) = fill(
        paging.rows,
        paging.store_cursor(),
        |after, limit| slice_page(&all, after, limit),
        |id| Ok(v1::MemoryId { id }),
    )?;
    let next = next.map(|cursor| cursor.as_bytes().to_vec());
    Ok(v1::ListMemoryIdsResponse {
        ids,
        next_page_token: core.next_token(&paging, revision, next),
        header: Some(core.header_at(revision)),
    })
}

fn list_versions(
    core: &Core,
    mut request: v1::ListMemoryVersionsRequest,
) -> Result<v1::ListMemoryVersionsResponse, Fault> {
    let size = std::mem::take(&mut request.page_size);
    let token = std::mem::take(&mut request.page_token);
    let paging = core.paging("ListMemoryVersions", &request, size, &token)?;
    let v1::ListMemoryVersionsRequest { id, page_size: _, page_token: _, view } = request;
    required("id", &id)?;
    let view = view_from_wire(view, View::Basic)?;
    let revision = paging.revision.unwrap_or_else(|| core.store.revision());
    let mut all = core.store.memory_versions(&id)?;
    all.retain(|record| record.revision <= revision);
    if all.is_empty() {
        return Err(Fault::missing(Kind::Memory, id));
    }
    all.reverse();
    let (versions, next) = fill(
        paging.rows,
        paging.store_cursor(),
        |after, limit| slice_page(&all, after, limit),
        |record| version_to_wire(record, view),
    )?;
    let next = next.map(|cursor| cursor.as_bytes().to_vec());
    Ok(v1::ListMemoryVersionsResponse {
        versions,
        next_page_token: core.next_token(&paging, revision, next),
        header: Some(core.header_at(revision)),
    })
}

fn version_to_wire(record: MemoryRecord, view: View) -> Result<v1::MemoryVersion, Fault> {
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
