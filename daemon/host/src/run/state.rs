//! The host's state for one call of a plugin.

use std::time::{Duration, Instant};

use wasmtime::component::ResourceTable;

use super::cpu_clock::CpuClock;
use crate::{
    channel::Sender,
    emitted::SinkVerdict,
    error::PluginError,
    imports::ExportFiles,
    memo::MemoSession,
    memory_limiter::MemoryLimiter,
    sink_call::{Meter, SinkCall},
    stop::StopFlag,
    throttle::WorkerThrottle,
};

/// Files that a plugin may hold open; each may cost a file descriptor and a decompressor.
const MAX_OPEN_FILES: usize = 64;
/// How long a plugin may continue after it was asked to stop, in wall-clock time.
const STOP_GRACE: Duration = Duration::from_millis(400);

/// The data of one wasmtime store.
pub(crate) struct CallState {
    pub(crate) memory: MemoryLimiter,
    pub(crate) clock: CpuClock,
    pub(crate) table: ResourceTable,
    pub(crate) files: ExportFiles,
    /// The text of its last `error` log; the panic hook of the SDK logs there.
    pub(crate) last_error_log: Option<String>,
    pub(crate) memory_bytes: usize,
    /// The results of earlier runs, if there are any.
    pub(crate) memo: Option<MemoSession>,
    /// Whether a piece began and nothing was emitted from it yet.
    pub(crate) piece_start_pending: bool,
    capabilities: Capabilities,
    stop_requested_at: Option<Instant>,
}

/// The functions that the plugin may use in this call.
pub(crate) enum Capabilities {
    /// Read files only.
    Files,
    /// Read files and emit records.
    FilesAndSink {
        /// Receives the emitted records.
        calls: Sender<SinkCall>,
        /// Limits their size.
        meter: Meter,
        /// Says whether the run should stop.
        stop: StopFlag,
        /// Pauses for API requests.
        throttle: WorkerThrottle,
    },
}

impl CallState {
    pub(crate) fn new(
        files: ExportFiles,
        clock: CpuClock,
        memory_bytes: usize,
        capabilities: Capabilities,
    ) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_OPEN_FILES);
        Self {
            memory: MemoryLimiter::new(memory_bytes),
            clock,
            table,
            files,
            last_error_log: None,
            memory_bytes,
            memo: None,
            piece_start_pending: false,
            capabilities,
            stop_requested_at: None,
        }
    }

    /// Checks whether the plugin may continue. Called every few ticks while it works.
    pub(crate) fn check_limits(&mut self) -> Result<(), PluginError> {
        if self.stopping() {
            let requested_at = *self.stop_requested_at.get_or_insert_with(Instant::now);
            if requested_at.elapsed() > STOP_GRACE {
                return Err(PluginError::Cancelled);
            }
        }
        self.clock.check()
    }

    /// Returns whether the call should end soon.
    pub(crate) fn stopping(&self) -> bool {
        match &self.capabilities {
            Capabilities::Files => false,
            Capabilities::FilesAndSink { stop, .. } => stop.requested(),
        }
    }

    /// Sends a sink call, waiting for space in the queue, and returns whether the plugin should continue.
    pub(crate) fn emit(&mut self, call: SinkCall) -> Result<SinkVerdict, PluginError> {
        if std::mem::take(&mut self.piece_start_pending)
            && self.send(SinkCall::PieceStarted)? == SinkVerdict::Stop
        {
            return Ok(SinkVerdict::Stop);
        }
        self.send(call)
    }

    fn send(&mut self, call: SinkCall) -> Result<SinkVerdict, PluginError> {
        let Capabilities::FilesAndSink { calls, meter, stop, throttle } = &mut self.capabilities else {
            // `describe` and `detect` have no sink, so whatever they emit must have no effect.
            return Ok(SinkVerdict::Stop);
        };
        if stop.requested() {
            return Ok(SinkVerdict::Stop);
        }
        let size = call.size_estimate();
        meter.charge(size)?;
        calls.send_sized(call, size).map_err(|_| PluginError::Cancelled)?;
        throttle.pause_if_due();
        self.clock.progress();
        Ok(if stop.requested() { SinkVerdict::Stop } else { SinkVerdict::Proceed })
    }
}
