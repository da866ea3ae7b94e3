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
const PATIENCE: Duration = Duration::from_mins(2);

/// The closed gate, if there is one.
static CLOSED: Mutex<Option<Arc<Inner>>> = Mutex::new(None);
/// Ensures that only one test at a time closes a gate.
static ALONE: Mutex<()> = Mutex::new(());

type When = Box<dyn Fn() -> bool + Send + Sync>;

struct Inner {
    place: &'static str,
    /// Whether the gate is closed yet.
    when: When,
    /// The threads that existed when the gate was created; a thread left behind by an earlier test passes.
    before: BTreeSet<OsString>,
    /// How many more threads the gate blocks; after that it is open.
    left: Mutex<usize>,
    came: Mutex<mpsc::Sender<()>>,
    open: Mutex<bool>,
    opened: Condvar,
}

/// A closed gate; it opens when it is dropped.
pub(crate) struct Gate {
    inner: Arc<Inner>,
    came: mpsc::Receiver<()>,
    _alone: MutexGuard<'static, ()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prevents any gate from being closed while the guard is held. A gate blocks the first thread that reaches its place,
/// whichever test started it. So every test of this process must hold this guard or a [`Gate`] while it imports, even
/// if that gate is open.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    lock(&ALONE)
}

impl Gate {
    /// Blocks the next `many` threads that reach `place`.
    pub(crate) fn at(place: &'static str, many: usize) -> Self {
        Self::when(place, many, Box::new(|| true))
    }

    /// Blocks the next `many` threads that reach `place` while `when` returns true.
    pub(crate) fn when(place: &'static str, many: usize, when: When) -> Self {
        let alone = alone();
        // The first listener of this process stays installed and serves all its tests.
        satchel_failpoints::listen(pass);
        let (tell, came) = mpsc::channel();
        let (left, came_by) = (Mutex::new(many), Mutex::new(tell));
        let (open, opened) = (Mutex::new(false), Condvar::new());
        let inner = Arc::new(Inner { place, when, before: threads(), left, came: came_by, open, opened });
        *lock(&CLOSED) = Some(Arc::clone(&inner));
        Self { inner, came, _alone: alone }
    }

    /// Waits until a thread is blocked at the gate.
    pub(crate) fn somebody(&self) -> Result<()> {
        self.came.recv_timeout(PATIENCE).context("nobody comes to the gate")
    }

    /// Releases all threads.
    pub(crate) fn open(&self) {
        *lock(&self.inner.open) = true;
        self.inner.opened.notify_all();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        *lock(&CLOSED) = None;
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

fn pass(place: &'static str) {
    let Some(gate) = lock(&CLOSED).clone().filter(|gate| gate.place == place) else { return };
    if this_thread().is_some_and(|thread| gate.before.contains(&thread)) || !(gate.when)() {
        return;
    }
    {
        let mut left = lock(&gate.left);
        if *left == 0 {
            return;
        }
        *left -= 1;
    }
    // The receiver is gone if the test has ended.
    lock(&gate.came).send(()).unwrap_or_default();
    drop(gate.opened.wait_while(lock(&gate.open), |open| !*open));
}
