//! Holds whoever comes to a named place in this process, until a test lets it go.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc},
    time::Duration,
};

use anyhow::{Context as _, Result};

/// Longer than anything takes on a machine that does other things too.
const PATIENCE: Duration = Duration::from_mins(2);

/// The gate that is closed, if one is.
static CLOSED: Mutex<Option<Arc<Inner>>> = Mutex::new(None);
/// Guards that one test closes a gate at a time.
static ALONE: Mutex<()> = Mutex::new(());

type When = Box<dyn Fn() -> bool + Send + Sync>;

struct Inner {
    place: &'static str,
    /// Whether it is closed yet.
    when: When,
    /// The threads that were there when it was closed: one that an earlier test left behind passes.
    before: BTreeSet<OsString>,
    /// How many it holds; after that it is open.
    left: Mutex<usize>,
    came: Mutex<mpsc::Sender<()>>,
    open: Mutex<bool>,
    opened: Condvar,
}

/// A closed gate; it opens when this is dropped.
pub(crate) struct Gate {
    inner: Arc<Inner>,
    came: mpsc::Receiver<()>,
    _alone: MutexGuard<'static, ()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets no gate be closed while this is held: whoever comes to a place first would be held, whichever test sent it. Whatever
/// a test of this process imports, it imports while it holds this or a [`Gate`], be it open.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    lock(&ALONE)
}

impl Gate {
    /// Holds the next `many` that come to `place`.
    pub(crate) fn at(place: &'static str, many: usize) -> Self {
        Self::when(place, many, Box::new(|| true))
    }

    /// Holds the next `many` that come to `place` when `when` says so.
    pub(crate) fn when(place: &'static str, many: usize, when: When) -> Self {
        let alone = alone();
        // The first listener of this process stays, and serves all tests of it.
        satchel_failpoints::listen(pass);
        let (tell, came) = mpsc::channel();
        let (left, came_by) = (Mutex::new(many), Mutex::new(tell));
        let (open, opened) = (Mutex::new(false), Condvar::new());
        let inner = Arc::new(Inner { place, when, before: threads(), left, came: came_by, open, opened });
        *lock(&CLOSED) = Some(Arc::clone(&inner));
        Self { inner, came, _alone: alone }
    }

    /// Waits until somebody stands before it.
    pub(crate) fn somebody(&self) -> Result<()> {
        self.came.recv_timeout(PATIENCE).context("nobody comes to the gate")
    }

    /// Lets all pass.
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

/// The threads of this process.
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
    // The test may be over.
    lock(&gate.came).send(()).unwrap_or_default();
    drop(gate.opened.wait_while(lock(&gate.open), |open| !*open));
}
