//! `ListRelatedMemories`.

use satchel_core::related::{
    DEFAULT_DEPTH, Link, LinkKind, MAX_DEPTH, RelatedMemory, RelatedQuery, Step, related_memories,
};
use satchel_proto::{integers::signed, v1};
use satchel_store::MemoryRecord;

use super::{
    call_state::CallState,
    request::{check_required, page_request},
    status::{CallError, ResourceKind},
    wire::{
        WireError,
        memory::{View, view_from_wire},
        relation::{relation_type_from_wire, relation_type_to_wire},
        scalar::check_count,
    },
};

pub(super) fn list(
    state: &CallState,
    mut request: v1::ListRelatedMemoriesRequest,
) -> Result<v1::ListRelatedMemoriesResponse, CallError> {
    let mut page = page_request!(state, "ListRelatedMemories", request)?;
    let v1::ListRelatedMemoriesRequest {
        id,
        depth,
        kinds,
        types,
        page_size: _,
        page_token: _,
        view,
        as_of_revision,
    } = request;
    check_required("id", &id)?;
    let view = view_from_wire(view, View::Basic)?;
    if as_of_revision.is_some() {
        page.revision = state.as_of(as_of_revision)?;
    }
    check_count("kinds", kinds.len())?;
    check_count("types", types.len())?;
    let query = RelatedQuery {
        depth: depth_from_wire(depth)?,
        kinds: kinds.into_iter().map(kind_from_wire).collect::<Result<_, _>>()?,
        types: types
            .into_iter()
            .map(|number| relation_type_from_wire("types", number))
            .collect::<Result<_, WireError>>()?,
        at: page.revision,
    };
    let missing = || CallError::not_found(ResourceKind::Memory, id.as_str());
    let start = as_shown(state, state.visible_memory(&id, page.revision)?)?.ok_or_else(missing)?;
    let found = related_memories(&state.store, &start, &query, |record| as_shown(state, record))?;
    let (memories, next_page_token) = state.fill_from(&page, &found.memories, |related| {
        let record = state.visible_memory(&related.id, page.revision)?;
        Ok(related_to_wire(related, state.memory_row(record, view)?))
    })?;
    let (header, truncated) = (Some(state.header_at(page.revision)), found.truncated);
    Ok(v1::ListRelatedMemoriesResponse { memories, next_page_token, header, truncated })
}

/// Returns a memory without what the caller does not see of it, so that no hidden field leads to another memory.
fn as_shown(state: &CallState, record: MemoryRecord) -> Result<Option<MemoryRecord>, CallError> {
    let Some(mut record) = state.only_visible(Some(record))? else { return Ok(None) };
    state.redact(&mut record)?;
    Ok(Some(record))
}

fn depth_from_wire(wire: i32) -> Result<usize, CallError> {
    match usize::try_from(wire) {
        Ok(0) => Ok(DEFAULT_DEPTH),
        Ok(depth) if depth <= MAX_DEPTH => Ok(depth),
        _ => Err(CallError::invalid_field("depth", format!("must lie between 1 and {MAX_DEPTH}"))),
    }
}

fn kind_from_wire(wire: i32) -> Result<LinkKind, CallError> {
    match v1::MemoryLinkKind::try_from(wire) {
        Ok(v1::MemoryLinkKind::Relation) => Ok(LinkKind::Relation),
        Ok(v1::MemoryLinkKind::SupersededBy) => Ok(LinkKind::SupersededBy),
        Ok(v1::MemoryLinkKind::Conversation) => Ok(LinkKind::Conversation),
        Ok(v1::MemoryLinkKind::Unspecified) | Err(_) => {
            Err(CallError::invalid_field("kinds", format!("holds {wire}, which is not a known value")))
        }
    }
}

fn related_to_wire(related: RelatedMemory, memory: v1::Memory) -> v1::RelatedMemory {
    v1::RelatedMemory {
        memory: Some(memory),
        distance: signed(u32::try_from(related.path.len()).unwrap_or(u32::MAX)),
        path: related.path.into_iter().map(step_to_wire).collect(),
    }
}

fn step_to_wire(step: Step) -> v1::MemoryLink {
    let row = v1::MemoryLink { memory_id: step.memory, ..v1::MemoryLink::default() };
    match step.link {
        Link::Relation { id, relation_type, outgoing } => v1::MemoryLink {
            kind: v1::MemoryLinkKind::Relation.into(),
            relation_id: id,
            relation_type: relation_type_to_wire(relation_type),
            direction: if outgoing { v1::Direction::Out } else { v1::Direction::In }.into(),
            ..row
        },
        Link::SupersededBy => v1::MemoryLink { kind: v1::MemoryLinkKind::SupersededBy.into(), ..row },
        Link::Conversation(conversation_id) => {
            v1::MemoryLink { kind: v1::MemoryLinkKind::Conversation.into(), conversation_id, ..row }
        }
    }
}
