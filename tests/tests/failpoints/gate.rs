//! Blocks threads that reach a named failpoint in this process until a test releases them.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc},
    time::Duration,
};

use anyhow::{Context as _, Result};

/// Upper limit for any wait, even on a machine that does other work.
const WAIT_TIMEOUT: Duration = Duration::from_mins(2);

/// The closed gate, if there is one.
static ACTIVE_GATE: Mutex<Option<Arc<GateState>>> = Mutex::new(None);
/// Ensures that only one test at a time closes a gate.
static EXCLUSIVE: Mutex<()> = Mutex::new(());

type GateCondition = Box<dyn Fn() -> bool + Send + Sync>;

struct GateState {
    failpoint: &'static str,
    /// Whether the gate is closed yet.
    condition: GateCondition,
    /// The threads that existed when the gate was created; a thread left behind by an earlier test passes.
    earlier_threads: BTreeSet<OsString>,
    /// How many more threads the gate blocks; after that it is open.
    remaining: Mutex<usize>,
    arrivals: Mutex<mpsc::Sender<()>>,
    open: Mutex<bool>,
    opened: Condvar,
}

/// A closed gate; it opens when it is dropped.
pub(crate) struct Gate {
    state: Arc<GateState>,
    arrivals: mpsc::Receiver<()>,
    _exclusive: MutexGuard<'static, ()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prevents any gate from being closed while the guard is held. A gate blocks the first thread that reaches its failpoint,
/// whichever test started it. So every test of this process must hold this guard or a [`Gate`] while it imports, even
/// if that gate is open.
pub(crate) fn exclusive() -> MutexGuard<'static, ()> {
    lock(&EXCLUSIVE)
}

impl Gate {
    /// Blocks the next `count` threads that reach `failpoint`.
    pub(crate) fn at(failpoint: &'static str, count: usize) -> Self {
        Self::when(failpoint, count, Box::new(|| true))
    }

    /// Blocks the next `count` threads that reach `failpoint` while `condition` returns true.
    pub(crate) fn when(failpoint: &'static str, count: usize, condition: GateCondition) -> Self {
        let alone = exclusive();
        // The first listener of this process stays installed and serves all its tests.
        satchel_failpoints::listen(block_at_gate);
        let (sender, arrivals) = mpsc::channel();
        let (left, arrival_sender) = (Mutex::new(count), Mutex::new(sender));
        let (open, opened) = (Mutex::new(false), Condvar::new());
        let state = Arc::new(GateState {
            failpoint,
            condition,
            earlier_threads: threads(),
            remaining: left,
            arrivals: arrival_sender,
            open,
            opened,
        });
        *lock(&ACTIVE_GATE) = Some(Arc::clone(&state));
        Self { state, arrivals, _exclusive: alone }
    }

    /// Waits until a thread is blocked at the gate.
    pub(crate) fn wait_for_thread(&self) -> Result<()> {
        self.arrivals.recv_timeout(WAIT_TIMEOUT).context("no thread reached the gate")
    }

    /// Releases all threads.
    pub(crate) fn open(&self) {
        *lock(&self.state.open) = true;
        self.state.opened.notify_all();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        *lock(&ACTIVE_GATE) = None;
        self.open();
    }
}

/// Returns the threads of this process.
fn threads() -> BTreeSet<OsString> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
    threads.filter_map(|thread| Some(thread.ok()?.file_name())).collect()
}

fn this_thread() -> Option<OsString> {
    fs::read_link("/proc/thread-self").ok()?.file_name().map(ToOwned::to_owned)
}

fn block_at_gate(failpoint: &'static str) {
    let Some(gate) = lock(&ACTIVE_GATE).clone().filter(|gate| gate.failpoint == failpoint) else { return };
    if this_thread().is_some_and(|thread| gate.earlier_threads.contains(&thread)) || !(gate.condition)() {
        return;
    }
    {
        let mut left = lock(&gate.remaining);
        if *left == 0 {
            return;
        }
        *left -= 1;
    }
    // The receiver is gone if the test has ended.
    lock(&gate.arrivals).send(()).unwrap_or_default();
    drop(gate.opened.wait_while(lock(&gate.open), |open| !*open));
}
