//! The methods of `MemoryService` about relations.

use satchel_pam::relation::{Relation, RelationType};
use satchel_proto::v1;

use super::{
    Core,
    call::{bounded, fill, required, slice_page},
    change::call,
    status::{Fault, Kind},
    wire::{
        WireError,
        relation::{relation_from_wire, relation_to_wire, relation_type_from_wire},
        scalar::bounded_count,
    },
};

pub(super) fn create(
    core: &Core,
    mut request: v1::CreateRelationRequest,
) -> Result<v1::CreateRelationResponse, Fault> {
    let request_id = std::mem::take(&mut request.request_id);
    let call = call("CreateRelation", &request_id, request.reason.clone(), &request)?;
    let relation = request.relation.ok_or_else(|| Fault::field("relation", "is missing"))?;
    let done = core.imports.draw_relation(&call, &relation_from_wire(relation)?)?;
    Ok(v1::CreateRelationResponse {
        relation: core.related(&done)?,
        header: Some(core.header_of(&done)),
        existed: done.existed,
        undo_token: done.act,
    })
}

pub(super) fn withdraw(
    core: &Core,
    mut request: v1::WithdrawRelationRequest,
) -> Result<v1::WithdrawRelationResponse, Fault> {
    let request_id = std::mem::take(&mut request.request_id);
    let call = call("WithdrawRelation", &request_id, request.reason.clone(), &request)?;
    required("id", &request.id)?;
    let done = core.imports.withdraw_relation(&call, &request.id)?;
    Ok(v1::WithdrawRelationResponse {
        relation: core.related(&done)?,
        header: Some(core.header_of(&done)),
        undo_token: done.act,
    })
}

pub(super) fn list(
    core: &Core,
    mut request: v1::ListRelationsRequest,
) -> Result<v1::ListRelationsResponse, Fault> {
    let size = std::mem::take(&mut request.page_size);
    let token = std::mem::take(&mut request.page_token);
    let paging = core.paging("ListRelations", &request, size, &token)?;
    let v1::ListRelationsRequest { memory_id, direction, types, page_size: _, page_token: _ } = request;
    bounded("memory_id", &memory_id)?;
    let direction =
        v1::Direction::try_from(direction).map_err(|_| Fault::field("direction", "is no known value"))?;
    if memory_id.is_empty() && direction != v1::Direction::Unspecified {
        return Err(Fault::field("direction", "needs memory_id"));
    }
    bounded_count("types", types.len())?;
    let types: Vec<RelationType> = types
        .into_iter()
        .map(|number| relation_type_from_wire("types", number))
        .collect::<Result<_, WireError>>()?;
    let wanted = |relation: &Relation| {
        let end = match direction {
            v1::Direction::Unspecified => true,
            v1::Direction::Out => relation.from == memory_id,
            v1::Direction::In => relation.to == memory_id,
        };
        end && (types.is_empty() || types.contains(&relation.relation_type))
    };
    let revision = paging.revision.unwrap_or_else(|| core.store.revision());
    let (relations, next) = if memory_id.is_empty() {
        let fetch = |after: Option<&satchel_store::Cursor>, limit| {
            let mut page = core.store.relations(after, limit, revision)?;
            page.items.retain(|record| wanted(&record.relation));
            Ok(page)
        };
        fill(paging.rows, paging.store_cursor(), fetch, |record| Ok(relation_to_wire(record)))?
    } else {
        if core.store.memory(&memory_id, Some(revision))?.is_none() {
            return Err(Fault::missing(Kind::Memory, memory_id));
        }
        let mut all = core.store.relations_of(&memory_id, Some(revision))?;
        all.retain(|record| wanted(&record.relation));
        let fetch = |after: Option<&satchel_store::Cursor>, limit| slice_page(&all, after, limit);
        fill(paging.rows, paging.store_cursor(), fetch, |record| Ok(relation_to_wire(record)))?
    };
    let next = next.map(|cursor| cursor.as_bytes().to_vec());
    Ok(v1::ListRelationsResponse {
        relations,
        next_page_token: core.next_token(&paging, revision, next),
        header: Some(core.header_at(revision)),
    })
}
