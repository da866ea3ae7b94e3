//! `SearchService`: finds memories, messages and titles in the search index.

mod context;
mod hits;
mod meaning;
mod request;

use std::{mem, time::Duration};

use prost::Message as _;
use satchel_indexer::PinnedSnapshot;
use satchel_proto::{
    integers::signed,
    v1::{self, search_service_server::SearchService},
};
use satchel_search::index::{DocumentKind, Snapshot};
use satchel_store::Revision;

use self::{
    hits::HitReader,
    request::{HitList, ParsedSearch},
};
use super::{
    ServerState,
    call_state::CallState,
    page_token::TokenError,
    request::{PAGE_BYTES, PageRequest, index_cursor, index_of, page_request, service},
    status::CallError,
};

/// Longest wait for a revision.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Hits after which a list ends: nobody reads so many, and each page has to rank all before it.
const MAX_HITS: usize = 10_000;
/// Hits that are ranked for each group of a page, at first.
const HITS_PER_GROUP: usize = 4;

#[derive(Clone)]
pub(super) struct SearchHandler(pub(super) ServerState);

service!(SearchService for SearchHandler {
    search: SearchRequest => SearchResponse = search;
    build_context: BuildContextRequest => BuildContextResponse = build_context;
});

fn search(state: &CallState, request: v1::SearchRequest) -> Result<v1::SearchResponse, CallError> {
    rebuild_if_damaged(state, find(state, request))
}

fn build_context(
    state: &CallState,
    request: v1::BuildContextRequest,
) -> Result<v1::BuildContextResponse, CallError> {
    rebuild_if_damaged(state, context::build(state, request))
}

/// Starts to build the index anew if it turned out to be damaged.
fn rebuild_if_damaged<T>(state: &CallState, outcome: Result<T, CallError>) -> Result<T, CallError> {
    if let Err(CallError::IndexUnusable { damaged: true, .. }) = &outcome {
        let indexer = state.indexer.clone();
        // The response does not wait for it.
        std::thread::spawn(move || {
            if let Err(error) = indexer.rebuild() {
                tracing::error!(
                    error = satchel_source::chain(&error),
                    "the search index cannot be built anew"
                );
            }
        });
    }
    outcome
}

fn find(state: &CallState, mut request: v1::SearchRequest) -> Result<v1::SearchResponse, CallError> {
    // They are only for the first page.
    let waiting = (mem::take(&mut request.min_revision), mem::take(&mut request.wait_until_current));
    if request.meaning.is_some() && !request.page_token.is_empty() {
        let problem = "must be empty with meaning: there is only one page";
        return Err(CallError::invalid_field("page_token", problem));
    }
    let page = page_request!(state, "Search", request)?;
    let as_of = as_of_from_wire(state, &request)?;
    let pinned = match as_of {
        Some(revision) => earlier(state, &page, revision)?,
        None => snapshot(state, &page, waiting)?,
    };
    let mut parsed = ParsedSearch::from_wire(state, &request, pinned.now)?;
    if request.meaning.is_some() {
        // All of the only page fits one response.
        parsed.snippet_bytes = parsed.snippet_bytes.min(PAGE_BYTES / 2 / page.rows.max(1));
    }
    let first = index_of(page.cursor.as_ref())?;
    let snapshot = &pinned.snapshot;
    let list = match &request.meaning {
        Some(meaning) => parsed.hits_with_meaning(state, snapshot, meaning, page.rows)?,
        None => parsed.hits(snapshot, first, page.rows)?,
    };
    let (mut hits, taken) = show(state, snapshot, &parsed, &list)?;
    if !state.sees_everything() && request.meaning.is_none() {
        show_ranks(&mut hits, first);
    }
    let end = first.saturating_add(taken);
    let paged = request.meaning.is_none() && (list.more || taken < list.hits.len());
    let next = paged.then(|| index_cursor(end));
    let revision = Revision::new(snapshot.revision());
    let page = PageRequest { revision, ..page };
    if next.is_some() && as_of.is_none() {
        state.indexer.pin(snapshot, pinned.now);
    }
    let mut response = v1::SearchResponse {
        hits,
        next_page_token: state.next_token(&page, next.as_ref()),
        header: Some(state.header_at(revision)),
        total: signed(list.total as u64),
        strict_total: signed(list.strict_total as u64),
        ..v1::SearchResponse::default()
    };
    if page.cursor.is_none() {
        response.facets = parsed.facets(snapshot)?;
        response.suggestions = parsed.suggestions(snapshot)?;
    }
    Ok(response)
}

/// Returns what to search: for the first page what the index has now, for others the same as for the first.
fn snapshot(
    state: &CallState,
    page: &PageRequest,
    waiting: (Option<i64>, bool),
) -> Result<PinnedSnapshot, CallError> {
    if page.cursor.is_some() {
        return state.indexer.pinned(page.revision.get()).ok_or(CallError::PageToken(TokenError));
    }
    latest(state, waiting)
}

/// Returns the earlier revision that a request is about.
fn as_of_from_wire(state: &CallState, request: &v1::SearchRequest) -> Result<Option<Revision>, CallError> {
    if request.as_of_revision.is_none() {
        return Ok(None);
    }
    let revision = state.as_of(request.as_of_revision)?;
    state.check_sees_everything("search an earlier revision")?;
    let memory = i32::from(v1::SearchHitKind::Memory);
    if request.kinds.iter().any(|kind| *kind != memory) {
        let problem = "must be empty or memories with as_of_revision: only memories are found then";
        return Err(CallError::invalid_field("kinds", problem));
    }
    if request.meaning.is_some() {
        return Err(CallError::invalid_field("meaning", "must be unset with as_of_revision"));
    }
    Ok(Some(revision))
}

/// Returns the memories as they were at a revision: for later pages the same as for the first.
fn earlier(state: &CallState, page: &PageRequest, revision: Revision) -> Result<PinnedSnapshot, CallError> {
    if page.cursor.is_some() {
        return state.indexer.pinned_as_of(revision).ok_or(CallError::PageToken(TokenError));
    }
    Ok(state.indexer.snapshot_as_of(revision, state.clock.now_micros())?)
}

/// Returns what the index has now, once it has what the request asks for.
fn latest(
    state: &CallState,
    (min_revision, wait_until_current): (Option<i64>, bool),
) -> Result<PinnedSnapshot, CallError> {
    let least = min_revision_from_wire(state, min_revision)?;
    let wanted = if wait_until_current { state.store.revision() } else { least };
    let snapshot = state.indexer.snapshot_at(wanted, MAX_WAIT)?;
    if snapshot.revision() < wanted.get() {
        return Err(CallError::IndexBehind { revision: snapshot.revision(), wanted: wanted.get() });
    }
    Ok(PinnedSnapshot { snapshot, now: state.clock.now_micros() })
}

fn min_revision_from_wire(state: &CallState, wire: Option<i64>) -> Result<Revision, CallError> {
    let current = state.store.revision();
    let Some(wire) = wire else { return Ok(Revision::ZERO) };
    let revision = u64::try_from(wire).ok().map(Revision::new).filter(|revision| *revision <= current);
    revision.ok_or_else(|| {
        let problem = format!("must lie between 0 and {}, the current revision", current.get());
        CallError::invalid_field("min_revision", problem)
    })
}

/// Replaces scores by ranks: a score tells how frequent the words are in all texts, also in those that the caller may not see.
fn show_ranks(hits: &mut [v1::SearchHit], first: usize) {
    for (rank, hit) in (first + 1..).zip(hits) {
        #[expect(clippy::cast_precision_loss, reason = "a rank")]
        let score = 1.0 / rank as f32;
        hit.score = score;
    }
}

/// Returns the rows for hits, and how many of the hits they stand for: a response is limited, and what the caller does not see
/// any more is left out.
fn show(
    state: &CallState,
    snapshot: &Snapshot,
    parsed: &ParsedSearch,
    list: &HitList,
) -> Result<(Vec<v1::SearchHit>, usize), CallError> {
    let mut reader = HitReader::new(state, parsed);
    let (mut rows, mut bytes, mut taken) = (Vec::new(), 0, 0);
    for (hit, strict) in &list.hits {
        let near = list.near.get(&hit.id).filter(|_| hit.kind == DocumentKind::Memory);
        let query = if *strict { &parsed.query } else { list.relaxed.as_ref().unwrap_or(&parsed.query) };
        if let Some(mut row) = reader.read(hit, query)? {
            row.relaxed = !strict;
            parsed.complete(snapshot, hit, query, &mut row)?;
            if let Some(near) = near {
                near.complete(&mut row);
            }
            bytes += row.encoded_len();
            if bytes > PAGE_BYTES && !rows.is_empty() {
                break;
            }
            rows.push(row);
        }
        taken += 1;
    }
    Ok((rows, taken))
}
