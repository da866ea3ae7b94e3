//! Watching of an operation: its current state, its changes, and its end.

use std::time::Duration;

use satchel_core::ingest::{JobView, Phase, receipt::ImportRecord};
use satchel_proto::v1;
use tokio::sync::{mpsc, watch};
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::Status;
use uuid::Uuid;

use crate::grpc::{
    Core,
    call::required,
    status::{Fault, Kind},
    wire::import::job_to_wire,
};

/// The interval if the client does not specify one.
const DEFAULT_INTERVAL: Duration = Duration::from_millis(250);
/// The intervals that a client may specify.
const INTERVALS: std::ops::RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_mins(1);
/// Imports that are read from the ledger at once, to find those of a job.
const PAGE: usize = 100;
/// Largest number of such pages: the newest five thousand imports.
const MAX_PAGES: usize = 50;

/// An operation that can be watched, or the final state of one that is no longer remembered.
pub(super) enum Followed {
    Import(watch::Receiver<JobView>),
    Other(watch::Receiver<v1::Operation>),
    Over(Box<v1::Operation>),
}

impl Followed {
    /// Finds the operation with this id, or the operation of the import with this id.
    pub(super) fn find(core: &Core, id: &str) -> Result<Self, Fault> {
        required("id", id)?;
        if let Some(view) = core.operations.subscribe(id) {
            return Ok(Self::Other(view));
        }
        import_operation(core, id)
    }

    pub(super) fn now(&self) -> v1::Operation {
        match self {
            Self::Import(view) => job_to_wire(view.borrow().clone()),
            Self::Other(view) => view.borrow().clone(),
            Self::Over(operation) => (**operation).clone(),
        }
    }

    /// Returns the current state; [`Followed::changed`] then waits for another one.
    fn now_seen(&mut self) -> v1::Operation {
        match self {
            Self::Import(view) => job_to_wire(view.borrow_and_update().clone()),
            Self::Other(view) => view.borrow_and_update().clone(),
            Self::Over(operation) => (**operation).clone(),
        }
    }

    /// Waits for the end. Returns false if the end can no longer be observed.
    async fn ended(&mut self) -> bool {
        match self {
            Self::Import(view) => view.wait_for(|view| view.phase == Phase::Ended).await.is_ok(),
            Self::Other(view) => view.wait_for(v1::Operation::ended).await.is_ok(),
            Self::Over(_) => true,
        }
    }

    /// Waits for a change. Returns false if there will be none.
    async fn changed(&mut self) -> bool {
        match self {
            Self::Import(view) => view.changed().await.is_ok(),
            Self::Other(view) => view.changed().await.is_ok(),
            Self::Over(_) => false,
        }
    }
}

fn import_operation(core: &Core, id: &str) -> Result<Followed, Fault> {
    let missing = || Fault::missing(Kind::Operation, id);
    let live = |id: &str| core.imports.subscribe(Uuid::parse_str(id).ok()?).map(Followed::Import);
    if let Some(followed) = live(id) {
        return Ok(followed);
    }
    let holds = |view: &JobView| view.imports.iter().any(|import| import.id == id);
    if let Some(view) = core.imports.active().into_iter().find(holds) {
        return live(&view.id.to_string()).ok_or_else(missing);
    }
    let (record, imports) = if let Some(record) = core.imports.get(id)? {
        if let Some(followed) = live(&record.job) {
            return Ok(followed);
        }
        let mut imports = imports_of(core, &record.job)?;
        if imports.iter().all(|import| import.id != record.id) {
            // The import is so old that it was not found among the others of its job.
            imports.insert(0, record.clone());
        }
        (record, imports)
    } else {
        // The job is no longer remembered: too many jobs followed, or the program was restarted.
        let imports = imports_of(core, id)?;
        (imports.first().cloned().ok_or_else(missing)?, imports)
    };
    Ok(Followed::Over(Box::new(job_to_wire(JobView {
        id: Uuid::parse_str(&record.job).map_err(Fault::internal)?,
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
fn imports_of(core: &Core, job: &str) -> Result<Vec<ImportRecord>, Fault> {
    let (mut found, mut after) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let page = core.imports.list(after.as_ref(), PAGE)?;
        found.extend(page.items.into_iter().filter(|record| record.job == job));
        after = page.next;
        // Continue through all pages: other imports may be between them, because an import can take hours and the next
        // one of the job begins after it.
        if after.is_none() {
            break;
        }
    }
    found.reverse();
    Ok(found)
}

pub(super) fn interval(wire: Option<prost_types::Duration>) -> Result<Duration, Fault> {
    let Some(wire) = wire else { return Ok(DEFAULT_INTERVAL) };
    let interval = Duration::try_from(wire).ok().filter(|interval| INTERVALS.contains(interval));
    interval.ok_or_else(|| Fault::field("min_interval", "must lie between 100 ms and 60 s"))
}

/// Returns the stream of an operation's current state, its changes, and its end.
pub(super) fn states(
    core: Core,
    mut stopping: watch::Receiver<bool>,
    mut operation: Followed,
    interval: Duration,
) -> impl Stream<Item = Result<v1::WatchOperationResponse, Status>> + Send {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            let state = operation.now_seen();
            let ended = state.ended();
            let answer = v1::WatchOperationResponse { operation: Some(state), header: Some(core.header()) };
            // The receiver was dropped; the operation continues.
            if sender.send(Ok(answer)).await.is_err() || ended {
                return;
            }
            match next(&mut operation, &mut stopping, &sender, interval).await {
                Next::Send => {}
                Next::Nothing => return,
                Next::Stop => {
                    // A dropped receiver is not an error.
                    drop(sender.send(Err(Fault::ShuttingDown.into())).await);
                    return;
                }
            }
        }
    });
    ReceiverStream::new(receiver)
}

/// The next step for a watcher.
enum Next {
    /// Send the state, because the operation changed.
    Send,
    /// End the stream: there will be no change, or the receiver was dropped.
    Nothing,
    /// Report that the daemon stops before the operation has ended.
    Stop,
}

/// Waits until there is something to send: the end at once, other changes only after the interval.
async fn next<T>(
    operation: &mut Followed,
    stopping: &mut watch::Receiver<bool>,
    sender: &mpsc::Sender<T>,
    interval: Duration,
) -> Next {
    let seen = |outcome: bool| if outcome { Next::Send } else { Next::Nothing };
    let changed = async {
        tokio::select! {
            outcome = operation.ended() => return seen(outcome),
            () = tokio::time::sleep(interval) => {}
        }
        seen(operation.changed().await)
    };
    tokio::select! {
        next = changed => next,
        _ = stopping.wait_for(|stopping| *stopping) => Next::Stop,
        () = sender.closed() => Next::Nothing,
    }
}
