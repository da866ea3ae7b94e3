//! The operations of this daemon that are not imports: running, queued and recently ended ones.
//!
//! **Invariant:** every operation that was started ends in one of the three final states, whatever its work does.

use std::{
    cell::Cell,
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use prost::Message as _;
use satchel_core::clock::Clock;
use satchel_proto::{
    integers::signed,
    v1::{self, OperationKind, OperationState, operation},
};
use satchel_source::CancelToken;
use tokio::sync::{Semaphore, watch};
use tonic::Status;
use uuid::Uuid;

use crate::grpc::{status::CallError, wire::scalar::time_to_wire};

/// Operations that run at once.
const MAX_RUNNING: usize = 16;
/// Operations that have not ended; beyond this number, new ones are refused.
const MAX_OPEN: usize = 256;
/// Ended operations that are remembered.
const MAX_REMEMBERED: usize = 200;
/// Time between two progress reports.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);

/// All operations of a daemon. Clones share them.
#[derive(Clone)]
pub struct Operations(Arc<OperationTable>);

struct OperationTable {
    entries: Mutex<VecDeque<OperationEntry>>,
    /// Notified when an operation ends.
    ended: Condvar,
    permits: Semaphore,
}

struct OperationEntry {
    id: Uuid,
    view: watch::Receiver<v1::Operation>,
    cancel: CancelToken,
}

impl OperationEntry {
    fn open(&self) -> bool {
        !self.view.borrow().ended()
    }
}

/// The result of the work of an operation; `None` if it was cancelled.
pub(in crate::grpc) type WorkOutcome = Result<Option<operation::Result>, CallError>;

/// The handle for the work of an operation, to report progress and to check whether to stop.
pub(in crate::grpc) struct OperationReporter {
    view: watch::Sender<v1::Operation>,
    cancel: CancelToken,
    last: Cell<Option<Instant>>,
}

impl OperationReporter {
    /// Sets the progress, and wakes the watchers unless it did so a moment ago. Returns false if the work should stop.
    pub(in crate::grpc) fn report(&self, progress: v1::OperationProgress) -> bool {
        let due = self.last.get().is_none_or(|last| last.elapsed() >= REPORT_INTERVAL);
        if due {
            self.last.set(Some(Instant::now()));
        }
        self.view.send_if_modified(|operation| {
            operation.progress = Some(progress);
            due
        });
        !self.cancel.cancelled()
    }

    /// Returns the cancel token, for work that checks it directly.
    pub(in crate::grpc) fn cancel(&self) -> &CancelToken {
        &self.cancel
    }
}

impl Default for Operations {
    fn default() -> Self {
        let permits = Semaphore::new(MAX_RUNNING);
        Self(Arc::new(OperationTable { entries: Mutex::default(), ended: Condvar::new(), permits }))
    }
}

impl Operations {
    /// Starts an operation. `work` runs on a thread that may block on the disk.
    ///
    /// # Errors
    /// If too many operations have not ended.
    pub(in crate::grpc) fn start(
        &self,
        clock: &Arc<dyn Clock>,
        kind: OperationKind,
        work: impl FnOnce(&OperationReporter) -> WorkOutcome + Send + 'static,
    ) -> Result<v1::Operation, CallError> {
        let id = Uuid::new_v4();
        let operation = v1::Operation {
            id: id.to_string(),
            kind: kind.into(),
            state: OperationState::Queued.into(),
            created_at: Some(time_to_wire(clock.now_micros())),
            ..v1::Operation::default()
        };
        let (view, receiver) = watch::channel(operation.clone());
        let cancel = CancelToken::new();
        self.add(OperationEntry { id, view: receiver, cancel: cancel.clone() })?;
        let (clock, operations) = (Arc::clone(clock), self.clone());
        let span = tracing::info_span!("operation", id = operation.id, kind = kind.as_str_name());
        tokio::spawn(async move {
            // The semaphore is never closed.
            let _permit = operations.0.permits.acquire().await;
            let reporter = OperationReporter { view: view.clone(), cancel, last: Cell::new(None) };
            let outcome = tokio::task::spawn_blocking(move || span.in_scope(|| run(&reporter, work))).await;
            let outcome = outcome.unwrap_or_else(|error| Err(CallError::internal(error)));
            view.send_modify(|operation| finish(operation, outcome, clock.now_micros()));
            drop(operations.entries());
            operations.0.ended.notify_all();
        });
        Ok(operation)
    }

    fn add(&self, entry: OperationEntry) -> Result<(), CallError> {
        let mut entries = self.entries();
        if entries.iter().filter(|entry| entry.open()).count() >= MAX_OPEN {
            return Err(CallError::Busy(format!(
                "{MAX_OPEN} operations are running or queued; try again when one of them has ended"
            )));
        }
        entries.push_back(entry);
        let mut ended = entries.iter().filter(|entry| !entry.open()).count();
        entries.retain(|entry| {
            let evicted = ended > MAX_REMEMBERED && !entry.open();
            ended -= usize::from(evicted);
            !evicted
        });
        Ok(())
    }

    /// Watches an operation; `None` if no such operation is known.
    pub(in crate::grpc) fn subscribe(&self, id: &str) -> Option<watch::Receiver<v1::Operation>> {
        let id = Uuid::parse_str(id).ok()?;
        self.entries().iter().find(|entry| entry.id == id).map(|entry| entry.view.clone())
    }

    /// Returns all operations that are remembered.
    pub(in crate::grpc) fn list(&self) -> Vec<v1::Operation> {
        self.entries().iter().map(|entry| entry.view.borrow().clone()).collect()
    }

    /// Returns the number of operations that are running or queued.
    pub(crate) fn open(&self) -> usize {
        self.entries().iter().filter(|entry| entry.open()).count()
    }

    /// Asks an operation to stop. Returns false if no such operation is known.
    pub(in crate::grpc) fn cancel(&self, id: &str) -> bool {
        let Ok(id) = Uuid::parse_str(id) else { return false };
        let entries = self.entries();
        let matching = entries.iter().find(|entry| entry.id == id);
        matching.is_some_and(|entry| {
            entry.cancel.cancel();
            true
        })
    }

    /// Asks all operations to stop.
    pub fn cancel_all(&self) {
        self.entries().iter().for_each(|entry| entry.cancel.cancel());
    }

    /// Asks all operations to stop and waits until they have ended, at most for `timeout`. Returns false if one still
    /// runs.
    pub fn stop(&self, timeout: Duration) -> bool {
        self.cancel_all();
        let open = |entries: &mut VecDeque<OperationEntry>| entries.iter().any(OperationEntry::open);
        let waited = self.0.ended.wait_timeout_while(self.entries(), timeout, open);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<OperationEntry>> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn run(reporter: &OperationReporter, work: impl FnOnce(&OperationReporter) -> WorkOutcome) -> WorkOutcome {
    if reporter.cancel.cancelled() {
        return Ok(None);
    }
    reporter.view.send_modify(|operation| operation.set_state(OperationState::Running));
    work(reporter)
}

fn finish(operation: &mut v1::Operation, outcome: WorkOutcome, now: i64) {
    operation.finished_at = Some(time_to_wire(now));
    if let Some(progress) = &mut operation.progress {
        progress.set_phase(v1::OperationPhase::Unspecified);
    }
    match outcome {
        Ok(Some(result)) => {
            operation.result = Some(result);
            operation.set_state(OperationState::Succeeded);
        }
        Ok(None) => operation.set_state(OperationState::Cancelled),
        Err(error) => {
            operation.error = Some(status_to_wire(&error.into()));
            operation.set_state(OperationState::Failed);
        }
    }
}

/// Converts the status of a call to a message.
fn status_to_wire(status: &Status) -> tonic_types::pb::Status {
    let without_details = || tonic_types::pb::Status {
        code: status.code().into(),
        message: status.message().to_owned(),
        details: Vec::new(),
    };
    tonic_types::pb::Status::decode(status.details())
        .ok()
        .filter(|error| error.code != 0)
        .unwrap_or_else(without_details)
}

/// Returns progress counted in bytes.
pub(in crate::grpc) fn bytes_progress(done: u64, total: u64) -> v1::OperationProgress {
    v1::OperationProgress {
        bytes_done: signed(done),
        bytes_total: Some(signed(total)),
        ..v1::OperationProgress::default()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::sync::mpsc;

    use satchel_core::clock::SystemClock;
    use tonic::Code;

    use super::*;

    const KIND: OperationKind = OperationKind::Backup;

    fn clock() -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    fn backup() -> operation::Result {
        operation::Result::Backup(v1::Backup::default())
    }

    fn bug() -> operation::Result {
        Vec::new().remove(0)
    }

    async fn ended(operations: &Operations, started: &v1::Operation) -> v1::Operation {
        let mut view = operations.subscribe(&started.id).unwrap();
        view.wait_for(v1::Operation::ended).await.unwrap().clone()
    }

    #[tokio::test]
    async fn an_operation_runs_until_its_work_ends() {
        let operations = Operations::default();
        let (finish, finished) = mpsc::channel::<()>();
        let work = move |reporter: &OperationReporter| {
            assert!(reporter.report(bytes_progress(3, 10)) && reporter.report(bytes_progress(10, 10)));
            finished.recv().unwrap();
            Ok(Some(backup()))
        };
        let started = operations.start(&clock(), KIND, work).unwrap();
        assert_eq!((started.state(), started.kind()), (OperationState::Queued, KIND));
        let mut view = operations.subscribe(&started.id).unwrap();
        view.wait_for(|operation| operation.progress.is_some()).await.unwrap();
        assert_eq!((view.borrow().state(), operations.open()), (OperationState::Running, 1));
        finish.send(()).unwrap();
        let ended = ended(&operations, &started).await;
        assert_eq!((ended.state(), operations.open()), (OperationState::Succeeded, 0));
        let progress = ended.progress.unwrap();
        assert_eq!((progress.bytes_done, progress.bytes_total), (10, Some(10)));
        assert!(ended.finished_at.unwrap().seconds >= ended.created_at.unwrap().seconds);
        assert!(ended.into_result().is_ok());
    }

    #[tokio::test]
    async fn cancelled_work_ends_as_cancelled() {
        let operations = Operations::default();
        let (begun, began) = mpsc::channel();
        let work = move |reporter: &OperationReporter| {
            begun.send(()).unwrap();
            while reporter.report(bytes_progress(0, 1)) {
                std::thread::yield_now();
            }
            Ok(None)
        };
        let started = operations.start(&clock(), KIND, work).unwrap();
        tokio::task::spawn_blocking(move || began.recv()).await.unwrap().unwrap();
        assert!(operations.cancel(&started.id) && !operations.cancel("nobody"));
        assert_eq!(ended(&operations, &started).await.state(), OperationState::Cancelled);
    }

    #[tokio::test]
    async fn an_operation_cancelled_in_the_queue_never_starts() {
        let operations = Operations::default();
        let (finish, finished) = mpsc::channel::<()>();
        let finished = Arc::new(Mutex::new(finished));
        for _ in 0..MAX_RUNNING {
            let finished = Arc::clone(&finished);
            let wait = move |_: &OperationReporter| {
                finished.lock().unwrap().recv().unwrap();
                Ok(Some(backup()))
            };
            operations.start(&clock(), KIND, wait).unwrap();
        }
        while operations.list().iter().any(|one| one.state() == OperationState::Queued) {
            tokio::task::yield_now().await;
        }
        let started = operations.start(&clock(), KIND, |_| Ok(Some(backup()))).unwrap();
        operations.cancel(&started.id);
        (0..MAX_RUNNING).for_each(|_| finish.send(()).unwrap());
        assert_eq!(ended(&operations, &started).await.state(), OperationState::Cancelled);
    }

    #[tokio::test]
    async fn a_failed_operation_has_the_status_of_a_failed_call_and_a_panic_is_internal() {
        let operations = Operations::default();
        let full = operations.start(&clock(), KIND, |_| Err(CallError::DiskFull)).unwrap();
        let failed = ended(&operations, &full).await;
        assert_eq!(failed.state(), OperationState::Failed);
        let status = failed.into_result().unwrap_err();
        let expected: Status = CallError::DiskFull.into();
        assert_eq!((status.code(), status.details()), (expected.code(), expected.details()));
        let panicking = operations.start(&clock(), KIND, |_| Ok(Some(bug()))).unwrap();
        assert_eq!(ended(&operations, &panicking).await.into_result().unwrap_err().code(), Code::Internal);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_stop_cancels_running_operations_and_waits_for_them() {
        let operations = Operations::default();
        let work = |reporter: &OperationReporter| {
            while !reporter.cancel().cancelled() {
                std::thread::yield_now();
            }
            Ok(None)
        };
        let started = operations.start(&clock(), KIND, work).unwrap();
        let stopping = operations.clone();
        assert!(tokio::task::spawn_blocking(move || stopping.stop(Duration::from_mins(1))).await.unwrap());
        assert_eq!(ended(&operations, &started).await.state(), OperationState::Cancelled);
    }

    #[tokio::test]
    async fn queued_and_remembered_operations_are_limited() {
        let operations = Operations::default();
        for _ in 0..MAX_REMEMBERED + 20 {
            let started = operations.start(&clock(), KIND, |_| Ok(Some(backup()))).unwrap();
            ended(&operations, &started).await;
        }
        // The operation that was added last has not ended yet.
        assert!(operations.list().len() <= MAX_REMEMBERED + 1, "{}", operations.list().len());
        let (finish, finished) = mpsc::channel::<()>();
        let finished = Arc::new(Mutex::new(finished));
        let start = || {
            let finished = Arc::clone(&finished);
            let wait = move |_: &OperationReporter| {
                // An error means that the test is over.
                let _over = finished.lock().unwrap().recv();
                Ok(Some(backup()))
            };
            operations.start(&clock(), KIND, wait)
        };
        assert!((0..MAX_OPEN).all(|_| start().is_ok()));
        assert!(matches!(start(), Err(CallError::Busy(_))));
        drop(finish);
    }
}
