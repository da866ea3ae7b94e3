//! `ListContradictions`.

use satchel_core::contradictions::{self, Candidate, Contradiction, ContradictionReason};
use satchel_proto::v1;

use super::{
    call_state::CallState,
    request::page_request,
    status::CallError,
    wire::{
        memory::{View, view_from_wire},
        relation::relation_to_wire,
    },
};

pub(super) fn list(
    state: &CallState,
    mut request: v1::ListContradictionsRequest,
) -> Result<v1::ListContradictionsResponse, CallError> {
    let page = page_request!(state, "ListContradictions", request)?;
    let v1::ListContradictionsRequest { include_settled, page_size: _, page_token: _, view } = request;
    let view = view_from_wire(view, View::Basic)?;
    let (contradictions, next_page_token) = state.fill_visible(
        &page,
        |after, limit| {
            Ok(contradictions::candidates(&state.store, include_settled, after, limit, page.revision)?)
        },
        |candidate: Candidate| match contradictions::contradiction(&state.store, candidate, page.revision)? {
            Some(found) => to_wire(state, found, view),
            None => Ok(None),
        },
    )?;
    let header = Some(state.header_at(page.revision));
    Ok(v1::ListContradictionsResponse { contradictions, next_page_token, header })
}

/// Returns a contradiction; `None` if the caller does not see both memories.
fn to_wire(
    state: &CallState,
    contradiction: Contradiction,
    view: View,
) -> Result<Option<v1::Contradiction>, CallError> {
    let Contradiction { reason, relation, first, second, settled } = contradiction;
    if !state.sees_memory(&first)? || !state.sees_memory(&second)? {
        return Ok(None);
    }
    let reason = match reason {
        ContradictionReason::Contradicts => v1::ContradictionReason::Contradicts,
        ContradictionReason::Superseded => v1::ContradictionReason::Superseded,
    };
    Ok(Some(v1::Contradiction {
        reason: reason.into(),
        relation: relation.map(relation_to_wire),
        first: Some(state.memory_row(first, view)?),
        second: Some(state.memory_row(second, view)?),
        settled,
    }))
}
