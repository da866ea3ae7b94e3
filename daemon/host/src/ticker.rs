//! The clock hand of running plugins: raises the engine's epoch every 10 ms while a run is on.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use wasmtime::Engine;

/// How often a running plugin is looked at; one atomic add each.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Owns the thread, which sleeps while nothing runs: an idle daemon must not wake the machine.
pub(crate) struct Ticker(Arc<Shared>);

/// Keeps the hand moving until it is dropped.
pub(crate) struct Running(Arc<Shared>);

struct Shared {
    /// Guards how many runs are on, and whether the host is gone.
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
        // A run may outlive the host that started it; the hand moves until the last one ends.
        if state.closed && state.runs == 0 {
            return;
        }
        drop(state);
        thread::sleep(TICK);
        engine.increment_epoch();
    }
}
