//! `ListDuplicateMemories`.

use prost::Message as _;
use satchel_pam::memory::Status;
use satchel_proto::{integers::signed, v1};
use satchel_search::duplicates::{
    DEFAULT_THRESHOLD, DuplicateFinder, DuplicateLimits, Duplicates, MIN_THRESHOLD,
};
use satchel_store::{MemoryOrder, MemoryQuery, Revision};

use super::{
    call_state::CallState,
    request::page_request,
    status::CallError,
    wire::memory::{View, view_from_wire},
};

/// Memories that are read at once.
const READ_ROWS: usize = 200;
/// Memories of a group that are returned.
const MAX_MEMBERS: usize = 100;
/// Bytes at which the list of a group ends. The first two memories are always in it; a row has at most 1 MiB.
const GROUP_BYTES: usize = 1 << 20;

pub(super) fn list(
    state: &CallState,
    mut request: v1::ListDuplicateMemoriesRequest,
) -> Result<v1::ListDuplicateMemoriesResponse, CallError> {
    let page = page_request!(state, "ListDuplicateMemories", request)?;
    let v1::ListDuplicateMemoriesRequest { threshold, page_size: _, page_token: _, view } = request;
    let threshold = threshold.unwrap_or(DEFAULT_THRESHOLD);
    if !(MIN_THRESHOLD..=1.0).contains(&threshold) {
        return Err(CallError::invalid_field("threshold", format!("must lie between {MIN_THRESHOLD} and 1")));
    }
    let view = view_from_wire(view, View::Basic)?;
    let (ids, found) = find(state, page.revision, threshold)?;
    let (groups, next_page_token) = state.fill_from(&page, &found.groups, |group| {
        let reason =
            if group.same_text { v1::DuplicateReason::SameText } else { v1::DuplicateReason::SimilarText };
        let members = group.members.iter().filter_map(|member| ids.get(*member));
        Ok(v1::DuplicateGroup {
            memories: memories(state, members, page.revision, view)?,
            total: signed(group.members.len() as u64),
            reason: reason.into(),
            similarity: group.similarity,
        })
    })?;
    let (header, truncated) = (Some(state.header_at(page.revision)), found.truncated);
    Ok(v1::ListDuplicateMemoriesResponse { groups, next_page_token, header, truncated })
}

/// Compares the memories that the caller sees, and returns their ids and the groups of them.
fn find(
    state: &CallState,
    revision: Revision,
    threshold: f64,
) -> Result<(Vec<String>, Duplicates), CallError> {
    let query = MemoryQuery {
        statuses: vec![Status::Active],
        unexpired_at: Some(state.clock.now_micros()),
        order: MemoryOrder::IdAscending,
        ..MemoryQuery::default()
    };
    let mut finder = DuplicateFinder::new(threshold, DuplicateLimits::default());
    let (mut ids, mut after) = (Vec::new(), None);
    'read: loop {
        let page = state.store.memories(&query, after.as_ref(), READ_ROWS, revision)?;
        for record in page.items {
            let Some(record) = state.only_visible(Some(record))? else { continue };
            if !finder.add(&record.memory.content) {
                break 'read;
            }
            ids.push(record.memory.id);
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    Ok((ids, finder.finish()))
}

fn memories<'a>(
    state: &CallState,
    ids: impl Iterator<Item = &'a String>,
    revision: Revision,
    view: View,
) -> Result<Vec<v1::Memory>, CallError> {
    let (mut shown, mut bytes) = (Vec::new(), 0);
    for id in ids.take(MAX_MEMBERS) {
        let memory = state.memory_row(state.visible_memory(id, revision)?, view)?;
        bytes += memory.encoded_len();
        if bytes > GROUP_BYTES && shown.len() >= 2 {
            break;
        }
        shown.push(memory);
    }
    Ok(shown)
}
