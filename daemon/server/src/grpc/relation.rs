//! The methods of `MemoryService` about relations.

use satchel_pam::relation::{Relation, RelationType};
use satchel_proto::v1;
use satchel_store::RelationRecord;

use super::{
    call_state::CallState,
    edit::edit_call,
    request::{check_length, check_required, page_request, slice_page},
    status::{CallError, ResourceKind},
    wire::{
        WireError,
        relation::{relation_from_wire, relation_to_wire, relation_type_from_wire},
        scalar::check_count,
    },
};

pub(super) fn create(
    state: &CallState,
    mut request: v1::CreateRelationRequest,
) -> Result<v1::CreateRelationResponse, CallError> {
    let call = edit_call!(state, "CreateRelation", request)?;
    let relation = request.relation.ok_or_else(|| CallError::invalid_field("relation", "is missing"))?;
    let relation = relation_from_wire(relation)?;
    state.check_trusted()?;
    state.check_writable(&relation.from)?;
    state.check_writable(&relation.to)?;
    let outcome = state.imports.edits().draw_relation(&call, &relation)?;
    Ok(v1::CreateRelationResponse {
        relation: state.first_relation(&outcome)?,
        header: Some(state.header_after(&outcome)),
        existed: outcome.existed,
        undo_token: outcome.act,
    })
}

pub(super) fn withdraw(
    state: &CallState,
    mut request: v1::WithdrawRelationRequest,
) -> Result<v1::WithdrawRelationResponse, CallError> {
    let call = edit_call!(state, "WithdrawRelation", request)?;
    check_required("id", &request.id)?;
    state.check_trusted()?;
    check_withdrawable(state, &request.id)?;
    let outcome = state.imports.edits().withdraw_relation(&call, &request.id)?;
    Ok(v1::WithdrawRelationResponse {
        relation: state.first_relation(&outcome)?,
        header: Some(state.header_after(&outcome)),
        undo_token: outcome.act,
    })
}

/// Checks that the caller may withdraw a relation: it must be allowed to retract both memories.
fn check_withdrawable(state: &CallState, id: &str) -> Result<(), CallError> {
    if state.device().is_none() {
        return Ok(());
    }
    let relation = match state.store.relation(id, None)? {
        Some(record) if state.sees_relation(&record)? => record.relation,
        _ => return Err(CallError::not_found(ResourceKind::Relation, id)),
    };
    state.check_deletable(&relation.from)?;
    state.check_deletable(&relation.to)
}

pub(super) fn list(
    state: &CallState,
    mut request: v1::ListRelationsRequest,
) -> Result<v1::ListRelationsResponse, CallError> {
    let page = page_request!(state, "ListRelations", request)?;
    let v1::ListRelationsRequest { memory_id, direction, types, page_size: _, page_token: _ } = request;
    check_length("memory_id", &memory_id)?;
    let direction = v1::Direction::try_from(direction)
        .map_err(|_| CallError::invalid_field("direction", "is not a known value"))?;
    if memory_id.is_empty() && direction != v1::Direction::Unspecified {
        return Err(CallError::invalid_field("direction", "needs memory_id"));
    }
    check_count("types", types.len())?;
    let types: Vec<RelationType> = types
        .into_iter()
        .map(|number| relation_type_from_wire("types", number))
        .collect::<Result<_, WireError>>()?;
    let matches = |relation: &Relation| {
        let at_end = match direction {
            v1::Direction::Unspecified => true,
            v1::Direction::Out => relation.from == memory_id,
            v1::Direction::In => relation.to == memory_id,
        };
        at_end && (types.is_empty() || types.contains(&relation.relation_type))
    };
    let (relations, next_page_token) = if memory_id.is_empty() {
        let fetch = |after: Option<&satchel_store::Cursor>, limit| {
            Ok(state.store.relations(after, limit, page.revision)?)
        };
        let show = |record: RelationRecord| {
            let shown = matches(&record.relation) && state.sees_relation(&record)?;
            Ok(shown.then(|| relation_to_wire(record)))
        };
        state.fill_visible(&page, fetch, show)?
    } else {
        state.visible_memory(&memory_id, page.revision)?;
        let mut all = state.store.relations_of(&memory_id, Some(page.revision))?;
        all.retain(|record| matches(&record.relation));
        let show =
            |record: RelationRecord| Ok(state.sees_relation(&record)?.then(|| relation_to_wire(record)));
        state.fill_visible(&page, |after, limit| slice_page(&all, after, limit), show)?
    };
    Ok(v1::ListRelationsResponse { relations, next_page_token, header: Some(state.header_at(page.revision)) })
}
