//! One call of a plugin: a new store, a separate thread, and the reason if it ends early.

mod cpu_clock;
mod failure;
mod state;

use std::{
    sync::Arc,
    thread::{self, Scope, ScopedJoinHandle},
    time::Duration,
};

use wasmtime::{Store, UpdateDeadline};

use self::{cpu_clock::CpuClock, state::Capabilities};
pub(crate) use self::{failure::from_import_error, state::CallState};
use satchel_source::{CancelToken, FileEntry, FileSet};

use crate::{
    bindings::{Importer, ImporterPre, exports::satchel::importer::plugin as wit},
    channel::{self, Receiver, Sender},
    collect::RecordCollector,
    emitted::{Emitted, RunSummary, SinkVerdict},
    error::PluginError,
    imports::ExportFiles,
    limits::{MIB, PluginLimits},
    memo::{MemoSession, PieceMemo},
    runtime::Runtime,
    sink_call::{Meter, SinkCall},
    stop::StopFlag,
};

/// Bytes that one call may pass from the plugin to the host. A longer conversation is sent in several calls.
pub(crate) const HOSTCALL_BYTES: usize = 64 * MIB;
/// Readers and other handles that a plugin may hold.
const MAX_HANDLES: usize = 10_000;
/// Ticks between two checks of a running plugin; 20 ms.
const CHECK_TICKS: u64 = 2;
/// Native stack of the plugin's thread: 1 MiB for wasm, and the rest for the host's own calls.
const THREAD_STACK: usize = 8 * MIB;
/// Processor time that `describe` and `detect` may use.
const SHORT_CALL_TIME: Duration = Duration::from_secs(1);
/// Bytes that `detect` may read from the start of each file.
const DETECT_FILE_BYTES: u64 = 16 * MIB as u64;

/// The export to read, and the limits of the run.
pub(crate) struct PluginRun<'a> {
    pub(crate) files: Arc<dyn FileSet>,
    pub(crate) format: &'a str,
    pub(crate) limits: &'a PluginLimits,
    pub(crate) cancel: &'a CancelToken,
    /// The results of earlier runs, and the name of this plugin in them.
    pub(crate) memo: Option<(Arc<dyn PieceMemo>, String)>,
}

pub(crate) fn describe(
    runtime: &Runtime,
    pre: &ImporterPre<CallState>,
) -> Result<wit::PluginInfo, PluginError> {
    on_plugin_thread(|| {
        let mut call = PluginCall::start(runtime, pre, short_call_state(Arc::new(NoFiles)))?;
        let described = call.importer.satchel_importer_plugin().call_describe(&mut call.store);
        described.map_err(|error| call.failure(&error))
    })
}

pub(crate) fn detect(
    runtime: &Runtime,
    pre: &ImporterPre<CallState>,
    files: Arc<dyn FileSet>,
) -> Result<Vec<wit::Detection>, PluginError> {
    on_plugin_thread(|| {
        let mut call = PluginCall::start(runtime, pre, short_call_state(files))?;
        let detected = call.importer.satchel_importer_plugin().call_detect(&mut call.store);
        detected.map_err(|error| call.failure(&error))?.map_err(from_import_error)
    })
}

/// Runs the plugin on its own thread. Checks the emitted records and passes them to `sink` on the calling thread.
pub(crate) fn run(
    runtime: &Runtime,
    pre: &ImporterPre<CallState>,
    job: &PluginRun<'_>,
    sink: &mut dyn FnMut(Emitted) -> SinkVerdict,
) -> Result<RunSummary, PluginError> {
    let (sender, receiver) = channel::bounded(job.limits.queue_bytes);
    let stop = StopFlag::new(job.cancel.clone());
    let files = ExportFiles::new(Arc::clone(&job.files), u64::MAX);
    let collector = RecordCollector::new(sink, &stop, job.limits, files.paths(), files.size());
    thread::scope(|scope| {
        // The closure owns the receiver, so that a panicking sink drops it and thereby wakes a plugin that waits for
        // space.
        let receiver = receiver;
        let plugin_thread = spawn(scope, || read_export(runtime, pre, job, files, sender, stop.clone()))?;
        let collector = collect(&receiver, collector, &stop);
        let ReadExport { bytes_read, memory_bytes } = join(plugin_thread)?;
        let summary = RunSummary { bytes_read, memory_bytes, ..collector.finish() };
        if stop.requested() { Err(PluginError::Cancelled) } else { Ok(summary) }
    })
    .map_err(|error| if stop.requested() { PluginError::Cancelled } else { error })
}

fn collect<'a>(
    receiver: &Receiver<SinkCall>,
    mut collector: RecordCollector<'a>,
    stop: &StopFlag,
) -> RecordCollector<'a> {
    while let Some(call) = receiver.recv() {
        if !stop.requested() {
            call.collect(&mut collector);
        }
    }
    collector
}

/// What a plugin used for an export that it read to the end.
struct ReadExport {
    bytes_read: u64,
    memory_bytes: usize,
}

/// Lets the plugin read an export. The plugin's own summary is not trusted; the collector counts.
fn read_export(
    runtime: &Runtime,
    pre: &ImporterPre<CallState>,
    job: &PluginRun<'_>,
    files: ExportFiles,
    out: Sender<SinkCall>,
    stop: StopFlag,
) -> Result<ReadExport, PluginError> {
    let limits = job.limits;
    let meter = Meter::new(limits.emitted_budget(files.size()));
    let clock = CpuClock::start(limits.idle, limits.total);
    let mut state = CallState::new(
        files,
        clock,
        limits.memory_bytes,
        Capabilities::FilesAndSink { calls: out, meter, stop, throttle: runtime.throttle.worker() },
    );
    state.memo = job.memo.clone().map(|(memo, software)| MemoSession::new(memo, &software, job.format));
    let mut call = PluginCall::start(runtime, pre, state)?;
    let ran = call.importer.satchel_importer_plugin().call_run(&mut call.store, job.format);
    ran.map_err(|error| call.failure(&error))?.map_err(from_import_error)?;
    let state = call.store.data();
    Ok(ReadExport { bytes_read: state.files.bytes_read(), memory_bytes: state.memory.bytes() })
}

/// Creates a state without a sink, with limits for a short call.
fn short_call_state(files: Arc<dyn FileSet>) -> CallState {
    let files = ExportFiles::new(files, DETECT_FILE_BYTES);
    CallState::new(
        files,
        CpuClock::start(SHORT_CALL_TIME, SHORT_CALL_TIME),
        PluginLimits::default().memory_bytes,
        Capabilities::Files,
    )
}

/// An instance in its own store.
struct PluginCall {
    store: Store<CallState>,
    importer: Importer,
    /// Keeps the epoch advancing.
    _tick_guard: crate::ticker::TickGuard,
}

impl PluginCall {
    fn start(runtime: &Runtime, pre: &ImporterPre<CallState>, state: CallState) -> Result<Self, PluginError> {
        let ticking = runtime.ticker.tick_while_held();
        let mut store = Store::new(&runtime.engine, state);
        store.limiter(|state| &mut state.memory);
        store.set_hostcall_fuel(HOSTCALL_BYTES);
        store.set_max_component_handles(MAX_HANDLES);
        store.set_epoch_deadline(CHECK_TICKS);
        store.epoch_deadline_callback(|mut store| {
            store.data_mut().check_limits()?;
            Ok(UpdateDeadline::Continue(CHECK_TICKS))
        });
        match pre.instantiate(&mut store) {
            Ok(importer) => Ok(Self { store, importer, _tick_guard: ticking }),
            Err(error) => Err(failure::reason(&error, store.data())),
        }
    }

    fn failure(&self, error: &wasmtime::Error) -> PluginError {
        failure::reason(error, self.store.data())
    }
}

/// Runs `work` on a thread whose stack is known to be large enough.
fn on_plugin_thread<T: Send>(work: impl FnOnce() -> Result<T, PluginError> + Send) -> Result<T, PluginError> {
    thread::scope(|scope| join(spawn(scope, work)?))
}

fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> Result<T, PluginError> + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, Result<T, PluginError>>, PluginError> {
    thread::Builder::new()
        .name("plugin".to_owned())
        .stack_size(THREAD_STACK)
        .spawn_scoped(scope, work)
        .map_err(|error| PluginError::Host(format!("cannot start its thread: {error}")))
}

fn join<T>(thread: ScopedJoinHandle<'_, Result<T, PluginError>>) -> Result<T, PluginError> {
    thread
        .join()
        .unwrap_or_else(|_| Err(PluginError::Host("the host panicked while it ran the plugin".to_owned())))
}

struct NoFiles;

impl FileSet for NoFiles {
    fn list(&self) -> &[FileEntry] {
        &[]
    }

    fn open(&self, _: &str, _: u64) -> std::io::Result<Box<dyn std::io::Read + Send>> {
        Err(std::io::ErrorKind::NotFound.into())
    }
}
