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
pub(crate) struct Ticker(Arc<TickerShared>);

/// A guard that keeps the epoch advancing until it is dropped.
pub(crate) struct TickGuard(Arc<TickerShared>);

struct TickerShared {
    /// Guards the number of current runs, and whether the host was dropped.
    state: Mutex<TickerState>,
    changed: Condvar,
}

#[derive(Default)]
struct TickerState {
    runs: usize,
    closed: bool,
}

impl TickerShared {
    fn lock(&self) -> MutexGuard<'_, TickerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticker {
    pub(crate) fn start(engine: Engine) -> std::io::Result<Self> {
        let shared = Arc::new(TickerShared { state: Mutex::default(), changed: Condvar::new() });
        let thread_shared = Arc::clone(&shared);
        thread::Builder::new()
            .name("plugin-ticker".to_owned())
            .spawn(move || tick(&thread_shared, &engine))?;
        Ok(Self(shared))
    }

    pub(crate) fn tick_while_held(&self) -> TickGuard {
        self.0.lock().runs += 1;
        self.0.changed.notify_all();
        TickGuard(Arc::clone(&self.0))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_all();
    }
}

impl Drop for TickGuard {
    fn drop(&mut self) {
        self.0.lock().runs -= 1;
    }
}

fn tick(shared: &TickerShared, engine: &Engine) {
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
