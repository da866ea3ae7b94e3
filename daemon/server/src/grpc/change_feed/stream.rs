//! The stream of changes: first those of the past, then each new one.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use satchel_proto::v1;
use satchel_store::{ChangePosition, Revision};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};
use tokio_stream::{StreamExt as _, wrappers::ReceiverStream};
use tonic::Status;
use tracing::Instrument as _;

use super::{
    ChangeStream,
    changes::{Batch, ChangeQuery, Span},
    shared_batches::SharedBatches,
};
use crate::grpc::{call_state::CallState, status::CallError};

/// Messages that wait for a slow reader.
const BUFFERED_MESSAGES: usize = 1;
/// How long a reader may take for a message. After that it counts as gone.
const STALL_TIMEOUT: Duration = Duration::from_mins(5);
/// The interval between two messages without changes varies by one part in this many, so that watches that began together do not
/// stay together.
const JITTER: u32 = 10;

/// The changes that a watcher wants.
pub(super) struct Watch {
    pub(super) query: Arc<ChangeQuery>,
    /// The query as it was sent; `None` if its changes are not shared with other watchers.
    pub(super) shared: Option<Arc<[u8]>>,
    pub(super) batches: SharedBatches,
}

/// Streams the changes after `start` until the receiver is dropped or the daemon stops.
pub(super) fn stream_changes(
    state: CallState,
    stopping: watch::Receiver<bool>,
    watch: Watch,
    start: Revision,
    interval: Duration,
) -> ChangeStream {
    stream_with_timeout(state, stopping, watch, start, (jittered(interval), STALL_TIMEOUT)).0
}

/// Does so with a time limit for each message, and returns the task that sends them as well.
fn stream_with_timeout(
    state: CallState,
    mut stopping: watch::Receiver<bool>,
    watch: Watch,
    start: Revision,
    (interval, timeout): (Duration, Duration),
) -> (ChangeStream, JoinHandle<()>) {
    let (sender, receiver) = mpsc::channel(BUFFERED_MESSAGES);
    let end = Arc::new(Mutex::new(None));
    let error = Arc::clone(&end);
    let mut watcher = Watcher {
        revisions: state.revisions.clone(),
        state,
        watch,
        sender,
        timeout,
        sent: start,
        unfinished: false,
    };
    let watching = async move {
        let ended = tokio::select! {
            ended = watcher.run(interval) => ended,
            _ = stopping.wait_for(|stopping| *stopping) => Some(CallError::ShuttingDown.into()),
        };
        *error.lock().unwrap_or_else(PoisonError::into_inner) = ended;
        drop(watcher);
    };
    let watching = tokio::spawn(watching.instrument(tracing::Span::current()));
    // The channel may be full of messages that were not read, so the error follows after them.
    let error =
        std::iter::from_fn(move || end.lock().unwrap_or_else(PoisonError::into_inner).take().map(Err));
    (Box::pin(ReceiverStream::new(receiver).chain(tokio_stream::iter(error))), watching)
}

/// Lengthens a duration by up to 10 %.
fn jittered(interval: Duration) -> Duration {
    let part = u32::try_from(RandomState::new().hash_one(0) % 1_000).unwrap_or_default();
    interval + interval / JITTER * part / 1_000
}

/// One stream of changes.
struct Watcher {
    state: CallState,
    revisions: watch::Receiver<Revision>,
    watch: Watch,
    sender: mpsc::Sender<Result<v1::WatchChangesResponse, Status>>,
    /// How long the reader may take for a message.
    timeout: Duration,
    /// The last revision whose changes were all sent.
    sent: Revision,
    /// Whether the last message ended within a revision.
    unfinished: bool,
}

/// The end of a stream: the error to report, or nothing if the reader is gone.
type Ended = Option<Status>;

impl Watcher {
    /// Sends changes until the stream ends.
    async fn run(&mut self, interval: Duration) -> Ended {
        // Says that there is nothing old to send.
        let mut tell = true;
        loop {
            let until = *self.revisions.borrow_and_update();
            if let Err(ended) = self.send_span(until, tell).await {
                return ended;
            }
            tell = false;
            tokio::select! {
                changed = self.revisions.changed() => if changed.is_err() {
                    return Some(CallError::ShuttingDown.into());
                },
                () = tokio::time::sleep(interval) => tell = true,
                () = self.sender.closed() => return None,
            }
        }
    }

    /// Sends the changes up to a revision; if there are none, a message without changes if `tell` is set.
    async fn send_span(&mut self, until: Revision, mut tell: bool) -> Result<(), Ended> {
        let span = Span { start: self.sent, until };
        let mut position = ChangePosition::after(span.start);
        loop {
            let batch = self.batch(span, position).await.map_err(Some)?;
            let Batch { changes, position: last, next } = Arc::unwrap_or_clone(batch);
            position = last;
            let fragment = next.is_some_and(|next| next.revision == last.revision);
            let complete = match next {
                None => until,
                // The revisions before the next change, or before the one that is being sent.
                Some(next) => Revision::new(next.revision.get().saturating_sub(1)),
            };
            let (caught_up, finishes) = (next.is_none(), self.unfinished && !fragment);
            if !changes.is_empty() || finishes || (caught_up && tell) {
                let revision = if fragment { last.revision } else { complete };
                let header = Some(self.state.header_at(revision));
                self.send(v1::WatchChangesResponse { header, changes, caught_up, fragment }).await?;
                self.unfinished = fragment;
                tell = false;
            }
            self.sent = complete;
            if caught_up {
                return Ok(());
            }
        }
    }

    /// Reads the changes of a span after a position.
    async fn batch(&self, span: Span, position: ChangePosition) -> Result<Arc<Batch>, Status> {
        let Watch { query, shared, batches } = &self.watch;
        let query = Arc::clone(query);
        let read = self.state.run_blocking(move |state| query.batch(state, span, position));
        let shared = shared.as_ref().filter(|_| position == ChangePosition::after(span.start));
        batches.get_or_read(shared, span, read).await
    }

    async fn send(&self, message: v1::WatchChangesResponse) -> Result<(), Ended> {
        match tokio::time::timeout(self.timeout, self.sender.send(Ok(message))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(None),
            Err(_) => Err(Some(CallError::WatchTooSlow { revision: self.sent.get() }.into())),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
