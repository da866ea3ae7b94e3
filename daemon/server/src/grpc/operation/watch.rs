//! Watching of an operation: its current state, its changes, and its end.

use std::time::Duration;

use satchel_core::ingest::{JobView, Phase, receipt::ImportRecord};
use satchel_proto::v1;
use tokio::sync::{mpsc, watch};
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::Status;
use uuid::Uuid;

use crate::grpc::{
    call_state::CallState,
    request::check_required,
    status::{CallError, ResourceKind},
    wire::{import::job_to_wire, scalar::duration_from_wire},
};

/// The interval if the client does not specify one.
const DEFAULT_INTERVAL: Duration = Duration::from_millis(250);
/// The intervals that a client may specify.
const INTERVALS: std::ops::RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_mins(1);
/// Imports that are read from the ledger at once, to find those of a job.
const LEDGER_PAGE: usize = 100;
/// Largest number of such pages: the newest five thousand imports.
const MAX_LEDGER_PAGES: usize = 50;

/// An operation that can be watched, or the final state of one that is no longer remembered.
pub(super) enum WatchedOperation {
    Import(watch::Receiver<JobView>),
    Other(watch::Receiver<v1::Operation>),
    Ended(Box<v1::Operation>),
}

impl WatchedOperation {
    /// Finds the operation with this id, or the operation of the import with this id.
    pub(super) fn find(state: &CallState, id: &str) -> Result<Self, CallError> {
        check_required("id", id)?;
        let found = match state.operations.subscribe(id) {
            Some(view) => Self::Other(view),
            None => import_operation(state, id)?,
        };
        if state.sees_operation(found.kind()) {
            Ok(found)
        } else {
            Err(CallError::not_found(ResourceKind::Operation, id))
        }
    }

    fn kind(&self) -> v1::OperationKind {
        match self {
            Self::Import(_) => v1::OperationKind::Import,
            Self::Other(view) => view.borrow().kind(),
            Self::Ended(operation) => operation.kind(),
        }
    }

    pub(super) fn snapshot(&self) -> v1::Operation {
        match self {
            Self::Import(view) => job_to_wire(view.borrow().clone()),
            Self::Other(view) => view.borrow().clone(),
            Self::Ended(operation) => (**operation).clone(),
        }
    }

    /// Returns the current state; [`Followed::changed`] then waits for another one.
    fn latest(&mut self) -> v1::Operation {
        match self {
            Self::Import(view) => job_to_wire(view.borrow_and_update().clone()),
            Self::Other(view) => view.borrow_and_update().clone(),
            Self::Ended(operation) => (**operation).clone(),
        }
    }

    /// Waits for the end. Returns false if the end can no longer be observed.
    async fn ended(&mut self) -> bool {
        match self {
            Self::Import(view) => view.wait_for(|view| view.phase == Phase::Ended).await.is_ok(),
            Self::Other(view) => view.wait_for(v1::Operation::ended).await.is_ok(),
            Self::Ended(_) => true,
        }
    }

    /// Waits for a change. Returns false if there will be none.
    async fn changed(&mut self) -> bool {
        match self {
            Self::Import(view) => view.changed().await.is_ok(),
            Self::Other(view) => view.changed().await.is_ok(),
            Self::Ended(_) => false,
        }
    }
}

fn import_operation(state: &CallState, id: &str) -> Result<WatchedOperation, CallError> {
    let missing = || CallError::not_found(ResourceKind::Operation, id);
    let subscribe =
        |id: &str| state.imports.subscribe(Uuid::parse_str(id).ok()?).map(WatchedOperation::Import);
    if let Some(operation) = subscribe(id) {
        return Ok(operation);
    }
    let contains_import = |view: &JobView| view.imports.iter().any(|import| import.id == id);
    if let Some(view) = state.imports.active().into_iter().find(contains_import) {
        return subscribe(&view.id.to_string()).ok_or_else(missing);
    }
    let (record, imports) = if let Some(record) = state.imports.get(id)? {
        if let Some(operation) = subscribe(&record.job) {
            return Ok(operation);
        }
        let mut imports = imports_of_job(state, &record.job)?;
        if imports.iter().all(|import| import.id != record.id) {
            // The import is so old that it was not found among the others of its job.
            imports.insert(0, record.clone());
        }
        (record, imports)
    } else {
        // The job is no longer remembered: too many jobs followed, or the program was restarted.
        let imports = imports_of_job(state, id)?;
        (imports.first().cloned().ok_or_else(missing)?, imports)
    };
    Ok(WatchedOperation::Ended(Box::new(job_to_wire(JobView {
        id: Uuid::parse_str(&record.job).map_err(CallError::internal)?,
        path: record.path.clone().into(),
        phase: Phase::Ended,
        created_at: imports.first().map_or(record.started_at, |import| import.started_at),
        finished_at: imports.last().and_then(|import| import.finished_at),
        done: record.bytes,
        total: record.bytes,
        imports,
    }))))
}

/// Returns the imports of a job from the ledger, in the order in which they began.
fn imports_of_job(state: &CallState, job: &str) -> Result<Vec<ImportRecord>, CallError> {
    let (mut matching, mut after) = (Vec::new(), None);
    for _ in 0..MAX_LEDGER_PAGES {
        let page = state.imports.list(after.as_ref(), LEDGER_PAGE)?;
        matching.extend(page.items.into_iter().filter(|record| record.job == job));
        after = page.next;
        // Continue through all pages: other imports may be between them, because an import can take hours and the next
        // one of the job begins after it.
        if after.is_none() {
            break;
        }
    }
    matching.reverse();
    Ok(matching)
}

pub(super) fn interval(wire: Option<prost_types::Duration>) -> Result<Duration, CallError> {
    let Some(wire) = wire else { return Ok(DEFAULT_INTERVAL) };
    let interval = duration_from_wire(wire).filter(|interval| INTERVALS.contains(interval));
    interval.ok_or_else(|| CallError::invalid_field("min_interval", "must lie between 100 ms and 60 s"))
}

/// Returns the stream of an operation's current state, its changes, and its end.
pub(super) fn stream_states(
    state: CallState,
    mut stopping: watch::Receiver<bool>,
    mut operation: WatchedOperation,
    interval: Duration,
) -> impl Stream<Item = Result<v1::WatchOperationResponse, Status>> + Send {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            let current = operation.latest();
            let ended = current.ended();
            let response =
                v1::WatchOperationResponse { operation: Some(current), header: Some(state.header()) };
            // The receiver was dropped; the operation continues.
            if sender.send(Ok(response)).await.is_err() || ended {
                return;
            }
            match next_step(&mut operation, &mut stopping, &sender, interval).await {
                WatchStep::Send => {}
                WatchStep::End => return,
                WatchStep::Stop => {
                    // A dropped receiver is not an error.
                    drop(sender.send(Err(CallError::ShuttingDown.into())).await);
                    return;
                }
            }
        }
    });
    ReceiverStream::new(receiver)
}

/// The next step for a watcher.
enum WatchStep {
    /// Send the state, because the operation changed.
    Send,
    /// End the stream: there will be no change, or the receiver was dropped.
    End,
    /// Report that the daemon stops before the operation has ended.
    Stop,
}

/// Waits until there is something to send: the end at once, other changes only after the interval.
async fn next_step<T>(
    operation: &mut WatchedOperation,
    stopping: &mut watch::Receiver<bool>,
    sender: &mpsc::Sender<T>,
    interval: Duration,
) -> WatchStep {
    let step = |outcome: bool| if outcome { WatchStep::Send } else { WatchStep::End };
    let changed = async {
        tokio::select! {
            outcome = operation.ended() => return step(outcome),
            () = tokio::time::sleep(interval) => {}
        }
        step(operation.changed().await)
    };
    tokio::select! {
        next = changed => next,
        _ = stopping.wait_for(|stopping| *stopping) => WatchStep::Stop,
        () = sender.closed() => WatchStep::End,
    }
}
