//! `MemoryService`: reads memories. The methods that change them are in `edit` and `relation`; those that
//! compare them are in `related`, `duplicates` and `contradictions`.

use std::collections::BTreeSet;

use prost::Message as _;
use satchel_core::provenance;
use satchel_pam::{lifecycle, time::Timestamp};
use satchel_proto::{
    integers::signed,
    v1::{self, memory_service_server::MemoryService},
};
use satchel_store::{MemoryOrder, MemoryQuery, MemoryRecord};

use super::{
    ServerState,
    call_state::CallState,
    contradictions, duplicates, edit, quarantine, related, relation,
    request::{PAGE_BYTES, check_length, check_required, page_request, service},
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

service!(MemoryService for MemoryHandler {
    [short] get_memory: GetMemoryRequest => GetMemoryResponse = get;
    batch_get_memories: BatchGetMemoriesRequest => BatchGetMemoriesResponse = batch_get;
    list_memories: ListMemoriesRequest => ListMemoriesResponse = list;
    list_memory_ids: ListMemoryIdsRequest => ListMemoryIdsResponse = list_ids;
    list_memory_versions: ListMemoryVersionsRequest => ListMemoryVersionsResponse = list_versions;
    create_memory: CreateMemoryRequest => CreateMemoryResponse = edit::create;
    update_memory: UpdateMemoryRequest => UpdateMemoryResponse = edit::update;
    set_memory_status: SetMemoryStatusRequest => SetMemoryStatusResponse = edit::set_status;
    supersede_memory: SupersedeMemoryRequest => SupersedeMemoryResponse = edit::supersede;
    bulk_set_status: BulkSetStatusRequest => BulkSetStatusResponse = edit::bulk_set_status;
    restore_memory_version: RestoreMemoryVersionRequest => RestoreMemoryVersionResponse = edit::restore;
    list_quarantined_memories: ListQuarantinedMemoriesRequest => ListQuarantinedMemoriesResponse = quarantine::list;
    review_memories: ReviewMemoriesRequest => ReviewMemoriesResponse = quarantine::review;
    create_relation: CreateRelationRequest => CreateRelationResponse = relation::create;
    withdraw_relation: WithdrawRelationRequest => WithdrawRelationResponse = relation::withdraw;
    list_relations: ListRelationsRequest => ListRelationsResponse = relation::list;
    list_related_memories: ListRelatedMemoriesRequest => ListRelatedMemoriesResponse = related::list;
    list_duplicate_memories: ListDuplicateMemoriesRequest => ListDuplicateMemoriesResponse = duplicates::list;
    list_contradictions: ListContradictionsRequest => ListContradictionsResponse = contradictions::list;
});

impl CallState {
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

fn get(state: &CallState, request: v1::GetMemoryRequest) -> Result<v1::GetMemoryResponse, CallError> {
    let v1::GetMemoryRequest { id, view, as_of_revision } = request;
    check_required("id", &id)?;
    let view = view_from_wire(view, View::Full)?;
    let revision = state.as_of(as_of_revision)?;
    let record = match state.visible_memory(&id, revision) {
        Err(CallError::NotFound { .. }) if as_of_revision.is_none() && state.is_agent() => {
            let memory = Some(quarantine::own(state, &id, view)?);
            let header = Some(state.header_at(revision));
            return Ok(v1::GetMemoryResponse { memory, header, ..Default::default() });
        }
        record => record?,
    };
    let untrusted = provenance::untrusted_signer(&state.store, &id)?.unwrap_or_default();
    Ok(v1::GetMemoryResponse {
        memory: Some(state.memory_row(record, view)?),
        header: Some(state.header_at(revision)),
        stranger: untrusted,
    })
}

fn batch_get(
    state: &CallState,
    request: v1::BatchGetMemoriesRequest,
) -> Result<v1::BatchGetMemoriesResponse, CallError> {
    let v1::BatchGetMemoriesRequest { ids, view, as_of_revision } = request;
    if ids.is_empty() || ids.len() > MAX_BATCH {
        return Err(CallError::invalid_field("ids", format!("must hold 1 to {MAX_BATCH} ids")));
    }
    ids.iter().try_for_each(|id| check_required("ids", id))?;
    let view = view_from_wire(view, View::Full)?;
    let revision = state.as_of(as_of_revision)?;
    let mut response =
        v1::BatchGetMemoriesResponse { header: Some(state.header_at(revision)), ..Default::default() };
    let mut seen = BTreeSet::new();
    let mut bytes = 0;
    for id in ids.into_iter().filter(|id| seen.insert(id.clone())) {
        if bytes > PAGE_BYTES {
            response.omitted.push(id);
            continue;
        }
        let record = state.store.memory(&id, Some(revision))?;
        let Some(record) = state.only_visible(record)? else {
            response.not_found.push(id);
            continue;
        };
        let memory = state.memory_row(record, view)?;
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
    state: &CallState,
    mut request: v1::ListMemoriesRequest,
) -> Result<v1::ListMemoriesResponse, CallError> {
    let mut page = page_request!(state, "ListMemories", request)?;
    let v1::ListMemoriesRequest { page_size: _, page_token: _, filter, order, view, as_of_revision } =
        request;
    state.check_filter(filter.as_ref())?;
    let mut query = MemoryQuery { order: order_from_wire(order)?, ..valid_filter(state, filter)? };
    if as_of_revision.is_some() {
        if !matches!(
            v1::MemoryOrder::try_from(order),
            Ok(v1::MemoryOrder::Unspecified | v1::MemoryOrder::IdAsc)
        ) {
            return Err(CallError::invalid_field("order", "must be by id, or unset, with as_of_revision"));
        }
        // Only this list has what has changed since, however long ago the revision was.
        query.order = MemoryOrder::IdAscending;
        page.revision = state.as_of(as_of_revision)?;
    }
    let view = view_from_wire(view, View::Basic)?;
    let (memories, next_page_token) = state.fill_visible(
        &page,
        |after, limit| Ok(state.store.memories(&query, after, limit, page.revision)?),
        |record| state.only_visible(Some(record))?.map(|record| state.memory_row(record, view)).transpose(),
    )?;
    Ok(v1::ListMemoriesResponse { memories, next_page_token, header: Some(state.header_at(page.revision)) })
}

/// Reads the filter of a list, which leaves out what has expired unless the filter says otherwise.
fn valid_filter(state: &CallState, filter: Option<v1::MemoryFilter>) -> Result<MemoryQuery, CallError> {
    let include_expired = filter.as_ref().is_some_and(|filter| filter.include_expired);
    let query = filter_from_wire(filter)?;
    let by_time = query.valid_at.is_some() || query.expired_at.is_some();
    if by_time && include_expired {
        return Err(CallError::invalid_field(
            "filter.include_expired",
            "must not be set together with valid_at or expired_at",
        ));
    }
    let unexpired_at = (!by_time && !include_expired).then(|| state.clock.now_micros());
    Ok(MemoryQuery { unexpired_at, ..query })
}

fn list_ids(
    state: &CallState,
    mut request: v1::ListMemoryIdsRequest,
) -> Result<v1::ListMemoryIdsResponse, CallError> {
    let page = page_request!(state, "ListMemoryIds", request)?;
    check_length("prefix", &request.prefix)?;
    let mut all = state.store.memory_ids(&request.prefix, page.revision)?;
    if !state.sees_everything() {
        all = state.visible_memory_ids(all)?;
    }
    let (ids, next_page_token) = state.fill_from(&page, &all, |id| Ok(v1::MemoryId { id }))?;
    Ok(v1::ListMemoryIdsResponse { ids, next_page_token, header: Some(state.header_at(page.revision)) })
}

fn list_versions(
    state: &CallState,
    mut request: v1::ListMemoryVersionsRequest,
) -> Result<v1::ListMemoryVersionsResponse, CallError> {
    let page = page_request!(state, "ListMemoryVersions", request)?;
    let v1::ListMemoryVersionsRequest { id, page_size: _, page_token: _, view } = request;
    check_required("id", &id)?;
    let view = view_from_wire(view, View::Basic)?;
    // Judged by the newest version, whatever earlier ones say.
    state.visible_memory(&id, page.revision)?;
    let mut all = state.store.memory_versions(&id)?;
    all.retain(|record| record.revision <= page.revision);
    if all.is_empty() {
        return Err(CallError::not_found(ResourceKind::Memory, id));
    }
    all.reverse();
    let (versions, next_page_token) =
        state.fill_from(&page, &all, |record| version_to_wire(state, record, view))?;
    Ok(v1::ListMemoryVersionsResponse {
        versions,
        next_page_token,
        header: Some(state.header_at(page.revision)),
    })
}

fn version_to_wire(
    state: &CallState,
    mut record: MemoryRecord,
    view: View,
) -> Result<v1::MemoryVersion, CallError> {
    let mut origin = record.origin.clone();
    if state.is_agent() {
        // The reason of a change was written for the person, and an import is hers.
        origin.reason.clear();
        origin.import = None;
    }
    state.redact(&mut record)?;
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
