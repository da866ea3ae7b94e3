//! `WatchService`: the changes of the store, as the caller sees them.

mod changes;
mod shared_batches;
mod stream;

use std::{pin::Pin, sync::Arc, time::Duration};

use prost::Message as _;
use satchel_proto::v1::{self, watch_service_server::WatchService};
use satchel_store::{ChangePosition, Cursor, Page, Revision};
use tokio::sync::watch;
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

pub(super) use self::shared_batches::SharedBatches;
use self::{
    changes::{ChangeQuery, Span},
    stream::Watch,
};
use super::{
    ServerState,
    call_state::CallState,
    request::{check_length, page_request, service},
    status::CallError,
    wire::scalar::duration_from_wire,
};

/// Longest time without a message if the client does not specify one.
const DEFAULT_PROGRESS: Duration = Duration::from_secs(30);
/// The times that a client may specify.
const PROGRESS: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_mins(10);
/// Bytes of a position in a page token.
const POSITION_BYTES: usize = 12;

/// The service, with a value that becomes true when the daemon is about to stop, and what the watchers share.
#[derive(Clone)]
pub(super) struct WatchHandler(
    pub(super) ServerState,
    pub(super) watch::Receiver<bool>,
    pub(super) SharedBatches,
);

type ChangeStream = Pin<Box<dyn Stream<Item = Result<v1::WatchChangesResponse, Status>> + Send>>;

service!(WatchService for WatchHandler {
    list_changes: ListChangesRequest => ListChangesResponse = list;
    ..
    type WatchChangesStream = ChangeStream;

    async fn watch_changes(
        &self,
        request: Request<v1::WatchChangesRequest>,
    ) -> Result<Response<ChangeStream>, Status> {
        let state = CallState::of(&self.0, &request)?;
        let v1::WatchChangesRequest { store_id, after_revision, filter, view, progress_interval } =
            request.into_inner();
        let interval = progress_from_wire(progress_interval)?;
        // Others see less of what the same query finds.
        let unrestricted =
            state.sees_everything() && !state.is_agent() && state.may_read_conversations();
        let shared = unrestricted.then(|| {
            let same = v1::WatchChangesRequest { filter: filter.clone(), view, ..Default::default() };
            Arc::from(same.encode_to_vec())
        });
        let query = Arc::new(ChangeQuery::from_wire(&state, filter, view)?);
        let start = start_from_wire(&state, &store_id, after_revision)?;
        let watch = Watch { query, shared, batches: self.2.clone() };
        Ok(Response::new(stream::stream_changes(state, self.1.clone(), watch, start, interval)))
    }
});

fn list(
    state: &CallState,
    mut request: v1::ListChangesRequest,
) -> Result<v1::ListChangesResponse, CallError> {
    let page = page_request!(state, "ListChanges", request)?;
    let v1::ListChangesRequest { store_id, after_revision, filter, view, page_size: _, page_token: _ } =
        request;
    let start = start_from_wire(state, &store_id, Some(after_revision))?;
    let span = Span { start, until: page.revision };
    let query = ChangeQuery::from_wire(state, filter, view)?;
    let fetch = |after: Option<&Cursor>, limit: usize| {
        let after = after.map_or(Ok(ChangePosition::after(start)), position)?;
        let (items, more) = changes::entries(state, span, after, limit)?;
        let next = items.last().filter(|_| more).map(|last| cursor(last.position));
        Ok(Page { items, next })
    };
    let (changes, next_page_token) =
        state.fill_visible(&page, fetch, |entry| query.change(state, span, &entry))?;
    Ok(v1::ListChangesResponse { changes, next_page_token, header: Some(state.header_at(page.revision)) })
}

/// Returns the revision after which the caller wants changes; without one, the current revision.
fn start_from_wire(state: &CallState, store_id: &str, after: Option<i64>) -> Result<Revision, CallError> {
    check_length("store_id", store_id)?;
    let own = state.store.store_id().to_string();
    if !store_id.is_empty() && store_id != own {
        return Err(CallError::StoreChanged { asked: store_id.to_owned(), current: own });
    }
    let current = state.store.revision();
    let Some(after) = after else { return Ok(current) };
    let after = u64::try_from(after)
        .map_err(|_| CallError::invalid_field("after_revision", "must not be negative"))?;
    if after > current.get() {
        return Err(CallError::RevisionInFuture { asked: after, current: current.get() });
    }
    Ok(Revision::new(after))
}

fn progress_from_wire(wire: Option<prost_types::Duration>) -> Result<Duration, CallError> {
    let Some(wire) = wire else { return Ok(DEFAULT_PROGRESS) };
    let interval = duration_from_wire(wire).filter(|interval| PROGRESS.contains(interval));
    interval.ok_or_else(|| CallError::invalid_field("progress_interval", "must lie between 1 s and 10 min"))
}

fn cursor(position: ChangePosition) -> Cursor {
    let ChangePosition { revision, n } = position;
    Cursor::from_bytes(&[&revision.get().to_be_bytes()[..], &n.to_be_bytes()].concat())
}

fn position(cursor: &Cursor) -> Result<ChangePosition, CallError> {
    let bytes: [u8; POSITION_BYTES] = cursor
        .as_bytes()
        .try_into()
        .map_err(|_| CallError::internal("a page token holds no position of a change"))?;
    let number = u128::from_be_bytes(
        [[0; 16 - POSITION_BYTES].as_slice(), &bytes].concat().try_into().unwrap_or_default(),
    );
    let n = u32::try_from(number & u128::from(u32::MAX)).unwrap_or(u32::MAX);
    let revision = u64::try_from(number >> u32::BITS).unwrap_or(u64::MAX);
    Ok(ChangePosition { revision: Revision::new(revision), n })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_survives_a_page_token() {
        for (revision, n) in [(0, 0), (1, 2), (u64::MAX, u32::MAX), (1 << 40, 7)] {
            let at = ChangePosition { revision: Revision::new(revision), n };
            assert!(position(&cursor(at)).is_ok_and(|back| back == at));
        }
        assert!(position(&Cursor::from_bytes(b"short")).is_err());
    }
}
