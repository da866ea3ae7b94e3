//! The thread that keeps embeddings complete.

mod run;

use std::{
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
    thread::{self, JoinHandle},
    time::{Duration, SystemTime},
};

use tokio::sync::watch;

use self::run::Run;
use crate::{backoff::Backoff, client::StopSignal, endpoint::Endpoint, source::EmbeddingSource};

/// Keeps the embeddings of a source complete, until it is stopped or dropped.
///
/// The worker asks the source for texts without a vector, in batches, and stores the vectors of each batch before it sends the
/// next one. It has no state of its own on disk: whatever the source has is not sent again. When nothing is missing, it waits
/// until it is woken.
///
/// After an error that may pass, and after one that concerns all texts, such as a wrong key, it waits and tries again. When a
/// batch is refused although the server embeds a word that always works, its texts are sent one at a time, and those that are
/// refused again are left out until they change or a new worker is started.
pub struct Worker {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// How far a worker is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbedderProgress {
    /// Vectors that were stored since the worker was started.
    pub embedded: u64,
    /// Texts that are left out because the server cannot embed them.
    pub failed: u64,
    /// Memories that are still to be embedded, without those that are left out; `None` if the source does not count them.
    pub remaining: Option<u64>,
    /// What the worker does now.
    pub state: WorkerState,
    /// The last error, with its causes; `None` if there was none, or it passed.
    pub last_error: Option<String>,
}

/// What a worker does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkerState {
    /// Nothing is missing, except what is left out.
    Idle,
    /// It embeds.
    Working,
    /// It waits after an error.
    Waiting {
        /// When it tries again.
        until: SystemTime,
        /// The error, with its causes.
        reason: String,
    },
    /// It was stopped.
    Stopped,
}

struct Shared {
    /// Held only for a moment, as commits of the store take it to wake the thread.
    state: Mutex<State>,
    /// Notified when the source may have a new revision, and at a stop.
    changed: Condvar,
    /// Ends the wait for an answer.
    stop_request: watch::Sender<bool>,
}

struct State {
    progress: EmbedderProgress,
    /// Whether the source may have a new revision.
    woken: bool,
    stopping: bool,
}

impl Worker {
    /// Starts a worker. From now on texts are sent to the endpoint.
    ///
    /// # Errors
    /// If the system has no resources for a thread.
    pub fn start(endpoint: Endpoint, source: impl EmbeddingSource) -> io::Result<Self> {
        Self::start_with(endpoint, source, Backoff::default())
    }

    /// Starts a worker with other waits after errors.
    ///
    /// # Errors
    /// As [`Worker::start`].
    pub fn start_with(
        endpoint: Endpoint,
        source: impl EmbeddingSource,
        backoff: Backoff,
    ) -> io::Result<Self> {
        let (stop_request, stopping) = watch::channel(false);
        let shared =
            Arc::new(Shared { state: Mutex::new(State::new()), changed: Condvar::new(), stop_request });
        let run = Run::new(Arc::clone(&shared), endpoint, source, backoff, StopSignal::new(stopping));
        let thread = thread::Builder::new().name("embeddings".to_owned()).spawn(|| run.run())?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Says that the source has a new revision. Returns at once.
    pub fn wake(&self) {
        self.shared.wake();
    }

    /// Returns what wakes this worker.
    #[must_use]
    pub fn waker(&self) -> WorkerWaker {
        WorkerWaker(Arc::downgrade(&self.shared))
    }

    /// Returns how far the worker is.
    #[must_use]
    pub fn progress(&self) -> EmbedderProgress {
        self.shared.lock().progress.clone()
    }

    /// Stops the worker, and returns when its thread has ended: at once if it waits, also for an answer, whose connection is
    /// closed; otherwise when the call of the source that it is in returns. The source can be closed afterwards.
    pub fn stop(&self) {
        self.shared.lock().stopping = true;
        self.shared.changed.notify_all();
        self.shared.stop_request.send_replace(true);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that embeds memories panicked");
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Wakes a worker. It does not keep it.
#[derive(Clone)]
pub struct WorkerWaker(Weak<Shared>);

impl WorkerWaker {
    /// Says that the source has a new revision. Returns at once.
    pub fn wake(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.wake();
        }
    }
}

impl State {
    fn new() -> Self {
        let progress = EmbedderProgress {
            embedded: 0,
            failed: 0,
            remaining: None,
            state: WorkerState::Working,
            last_error: None,
        };
        Self { progress, woken: true, stopping: false }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        self.lock().woken = true;
        self.changed.notify_all();
    }

    fn is_stopping(&self) -> bool {
        self.lock().stopping
    }

    fn update(&self, change: impl FnOnce(&mut EmbedderProgress)) {
        change(&mut self.lock().progress);
    }

    /// Waits until it is woken, and returns whether there was a stop.
    fn stops_before_wake(&self) -> bool {
        let quiet = |state: &mut State| !state.woken && !state.stopping;
        let waited = self.changed.wait_while(self.lock(), quiet);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.woken = false;
        state.stopping
    }

    /// Waits this long, and returns whether there was a stop.
    fn stops_within(&self, time: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), time, |state| !state.stopping);
        waited.unwrap_or_else(PoisonError::into_inner).0.stopping
    }
}

/// Returns the time of the clock after a wait that begins now.
fn time_after(delay: Duration) -> SystemTime {
    SystemTime::now().checked_add(delay).unwrap_or_else(SystemTime::now)
}
