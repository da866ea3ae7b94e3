//! The epoch ticker of running plugins: increments the engine's epoch every 10 ms while a plugin runs.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use wasmtime::Engine;

/// The interval of the ticks; each costs one atomic add.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// The owner of the ticker thread. The thread sleeps while nothing runs, so that an idle daemon does not wake the
/// machine.
pub(crate) struct Ticker(Arc<Shared>);

/// A guard that keeps the epoch advancing until it is dropped.
pub(crate) struct Running(Arc<Shared>);

struct Shared {
    /// Guards the number of current runs, and whether the host was dropped.
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    runs: usize,
    closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticker {
    pub(crate) fn start(engine: Engine) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        let of_thread = Arc::clone(&shared);
        thread::Builder::new().name("plugin-ticker".to_owned()).spawn(move || tick(&of_thread, &engine))?;
        Ok(Self(shared))
    }

    pub(crate) fn running(&self) -> Running {
        self.0.lock().runs += 1;
        self.0.changed.notify_all();
        Running(Arc::clone(&self.0))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_all();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.lock().runs -= 1;
    }
}

fn tick(shared: &Shared, engine: &Engine) {
    loop {
        let state = shared
            .changed
            .wait_while(shared.lock(), |state| state.runs == 0 && !state.closed)
            .unwrap_or_else(PoisonError::into_inner);
        // A run may outlive the host that started it, so the thread ticks until the last run ends.
        if state.closed && state.runs == 0 {
            return;
        }
        drop(state);
        thread::sleep(TICK);
        engine.increment_epoch();
    }
}
