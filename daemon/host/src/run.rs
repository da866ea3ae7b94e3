//! One call of a plugin: a new store, a separate thread, and the reason if it ends early.

mod clock;
mod ended;
mod state;

use std::{
    sync::Arc,
    thread::{self, Scope, ScopedJoinHandle},
    time::Duration,
};

use wasmtime::{Store, UpdateDeadline};

use self::{clock::Clock, state::Share};
pub(crate) use self::{ended::from_import_error, state::State};
use satchel_source::{CancelToken, Entry, Files};

use crate::{
    bindings::{Importer, ImporterPre, exports::satchel::importer::plugin as wit},
    channel::{self, Receiver, Sender},
    collect::Collector,
    delivery::{Delivery, Meter},
    emitted::{Emitted, Summary, Verdict},
    error::RunError,
    imports::Library,
    limits::{Limits, MIB},
    memo::{Memo, Recalling},
    runtime::Runtime,
    stop::StopFlag,
};

/// Bytes that one call may pass from the plugin to the host. A longer conversation is sent in several calls.
pub(crate) const HOSTCALL_BYTES: usize = 64 * MIB;
/// Readers and other handles that a plugin may hold.
const MAX_HANDLES: usize = 10_000;
/// Ticks between two checks of a running plugin; 20 ms.
const LOOK_TICKS: u64 = 2;
/// Native stack of the plugin's thread: 1 MiB for wasm, and the rest for the host's own calls.
const THREAD_STACK: usize = 8 * MIB;
/// Processor time that `describe` and `detect` may use.
const GLANCE: Duration = Duration::from_secs(1);
/// Bytes that `detect` may read from the start of each file.
const DETECT_FILE_BYTES: u64 = 16 * MIB as u64;

/// The export to read, and the limits of the run.
pub(crate) struct Job<'a> {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) format: &'a str,
    pub(crate) limits: &'a Limits,
    pub(crate) cancel: &'a CancelToken,
    /// The results of earlier runs, and the name of this plugin in them.
    pub(crate) memo: Option<(Arc<dyn Memo>, String)>,
}

pub(crate) fn describe(host: &Runtime, pre: &ImporterPre<State>) -> Result<wit::PluginInfo, RunError> {
    alone(|| {
        let mut call = Call::start(host, pre, glance(Arc::new(NoFiles)))?;
        let described = call.importer.satchel_importer_plugin().call_describe(&mut call.store);
        described.map_err(|error| call.ended(&error))
    })
}

pub(crate) fn detect(
    host: &Runtime,
    pre: &ImporterPre<State>,
    files: Arc<dyn Files>,
) -> Result<Vec<wit::Detection>, RunError> {
    alone(|| {
        let mut call = Call::start(host, pre, glance(files))?;
        let detected = call.importer.satchel_importer_plugin().call_detect(&mut call.store);
        detected.map_err(|error| call.ended(&error))?.map_err(from_import_error)
    })
}

/// Runs the plugin on its own thread. Checks the emitted records and passes them to `sink` on the calling thread.
pub(crate) fn run(
    host: &Runtime,
    pre: &ImporterPre<State>,
    job: &Job<'_>,
    sink: &mut dyn FnMut(Emitted) -> Verdict,
) -> Result<Summary, RunError> {
    let (sender, receiver) = channel::bounded(job.limits.queue_bytes);
    let stop = StopFlag::new(job.cancel.clone());
    let library = Library::new(Arc::clone(&job.files), u64::MAX);
    let collector = Collector::new(sink, &stop, job.limits, library.paths(), library.size());
    thread::scope(|scope| {
        // The closure owns the receiver, so that a panicking sink drops it and thereby wakes a plugin that waits for
        // space.
        let receiver = receiver;
        let guest = spawn(scope, || read_export(host, pre, job, library, sender, stop.clone()))?;
        let collector = collect(&receiver, collector, &stop);
        let bytes_read = join(guest)?;
        let summary = Summary { bytes_read, ..collector.finish() };
        if stop.asked() { Err(RunError::Cancelled) } else { Ok(summary) }
    })
    .map_err(|error| if stop.asked() { RunError::Cancelled } else { error })
}

fn collect<'a>(
    receiver: &Receiver<Delivery>,
    mut collector: Collector<'a>,
    stop: &StopFlag,
) -> Collector<'a> {
    while let Some(delivery) = receiver.recv() {
        if !stop.asked() {
            delivery.collect(&mut collector);
        }
    }
    collector
}

/// Returns the number of bytes that the plugin read. The plugin's own summary is not trusted; the collector counts.
fn read_export(
    host: &Runtime,
    pre: &ImporterPre<State>,
    job: &Job<'_>,
    library: Library,
    out: Sender<Delivery>,
    stop: StopFlag,
) -> Result<u64, RunError> {
    let limits = job.limits;
    let meter = Meter::new(limits.emitted_budget(library.size()));
    let clock = Clock::start(limits.idle, limits.total);
    let mut state = State::new(
        library,
        clock,
        limits.memory_bytes,
        Share::Everything { out, meter, stop, stride: host.pace.stride() },
    );
    state.recalling = job.memo.clone().map(|(memo, software)| Recalling::new(memo, &software, job.format));
    let mut call = Call::start(host, pre, state)?;
    let ran = call.importer.satchel_importer_plugin().call_run(&mut call.store, job.format);
    ran.map_err(|error| call.ended(&error))?.map_err(from_import_error)?;
    Ok(call.store.data().library.bytes_read())
}

/// Creates a state without a sink, with limits for a short call.
fn glance(files: Arc<dyn Files>) -> State {
    let library = Library::new(files, DETECT_FILE_BYTES);
    State::new(library, Clock::start(GLANCE, GLANCE), Limits::default().memory_bytes, Share::Files)
}

/// An instance in its own store.
struct Call {
    store: Store<State>,
    importer: Importer,
    /// Keeps the epoch advancing.
    _ticking: crate::ticker::Running,
}

impl Call {
    fn start(host: &Runtime, pre: &ImporterPre<State>, state: State) -> Result<Self, RunError> {
        let ticking = host.ticker.running();
        let mut store = Store::new(&host.engine, state);
        store.limiter(|state| &mut state.memory);
        store.set_hostcall_fuel(HOSTCALL_BYTES);
        store.set_max_component_handles(MAX_HANDLES);
        store.set_epoch_deadline(LOOK_TICKS);
        store.epoch_deadline_callback(|mut store| {
            store.data_mut().look()?;
            Ok(UpdateDeadline::Continue(LOOK_TICKS))
        });
        match pre.instantiate(&mut store) {
            Ok(importer) => Ok(Self { store, importer, _ticking: ticking }),
            Err(error) => Err(ended::reason(&error, store.data())),
        }
    }

    fn ended(&self, error: &wasmtime::Error) -> RunError {
        ended::reason(error, self.store.data())
    }
}

/// Runs `work` on a thread whose stack is known to be large enough.
fn alone<T: Send>(work: impl FnOnce() -> Result<T, RunError> + Send) -> Result<T, RunError> {
    thread::scope(|scope| join(spawn(scope, work)?))
}

fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> Result<T, RunError> + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, Result<T, RunError>>, RunError> {
    thread::Builder::new()
        .name("plugin".to_owned())
        .stack_size(THREAD_STACK)
        .spawn_scoped(scope, work)
        .map_err(|error| RunError::Host(format!("no thread for it: {error}")))
}

fn join<T>(thread: ScopedJoinHandle<'_, Result<T, RunError>>) -> Result<T, RunError> {
    thread
        .join()
        .unwrap_or_else(|_| Err(RunError::Host("the host failed while it served the plugin".to_owned())))
}

struct NoFiles;

impl Files for NoFiles {
    fn list(&self) -> &[Entry] {
        &[]
    }

    fn open(&self, _: &str, _: u64) -> std::io::Result<Box<dyn std::io::Read + Send>> {
        Err(std::io::ErrorKind::NotFound.into())
    }
}
