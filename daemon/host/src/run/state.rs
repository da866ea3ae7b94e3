//! The host's state for one call of a plugin.

use std::time::{Duration, Instant};

use wasmtime::component::ResourceTable;

use super::clock::Clock;
use crate::{
    channel::Sender,
    delivery::{Delivery, Meter},
    emitted::Verdict,
    error::RunError,
    imports::Library,
    memo::Recalling,
    memory::MemoryLimiter,
    pace::Stride,
    stop::StopFlag,
};

/// Files that a plugin may hold open; each may cost a file descriptor and a decompressor.
const MAX_OPEN_FILES: usize = 64;
/// How long a plugin may continue after it was asked to stop, in wall-clock time.
const GRACE: Duration = Duration::from_millis(400);

/// The data of one wasmtime store.
pub(crate) struct State {
    pub(crate) memory: MemoryLimiter,
    pub(crate) clock: Clock,
    pub(crate) table: ResourceTable,
    pub(crate) library: Library,
    /// The text of its last `error` log; the panic hook of the SDK logs there.
    pub(crate) last_words: Option<String>,
    pub(crate) memory_bytes: usize,
    /// The results of earlier runs, if there are any.
    pub(crate) recalling: Option<Recalling>,
    /// Whether a piece began and nothing was emitted from it yet.
    pub(crate) unsaid: bool,
    share: Share,
    asked_at: Option<Instant>,
}

/// The functions that the plugin may use in this call.
pub(crate) enum Share {
    /// Read files only.
    Files,
    /// Read files and emit records.
    Everything {
        /// Receives the emitted records.
        out: Sender<Delivery>,
        /// Limits their size.
        meter: Meter,
        /// Says whether the run should stop.
        stop: StopFlag,
        /// Pauses for API requests.
        stride: Stride,
    },
}

impl State {
    pub(crate) fn new(library: Library, clock: Clock, memory_bytes: usize, share: Share) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_OPEN_FILES);
        Self {
            memory: MemoryLimiter::new(memory_bytes),
            clock,
            table,
            library,
            last_words: None,
            memory_bytes,
            recalling: None,
            unsaid: false,
            share,
            asked_at: None,
        }
    }

    /// Checks whether the plugin may continue. Called every few ticks while it works.
    pub(crate) fn look(&mut self) -> Result<(), RunError> {
        if self.stopping() {
            let asked_at = *self.asked_at.get_or_insert_with(Instant::now);
            if asked_at.elapsed() > GRACE {
                return Err(RunError::Cancelled);
            }
        }
        self.clock.check()
    }

    /// Returns whether the call should end soon.
    pub(crate) fn stopping(&self) -> bool {
        match &self.share {
            Share::Files => false,
            Share::Everything { stop, .. } => stop.asked(),
        }
    }

    /// Sends a delivery, waiting for space in the queue, and returns whether the plugin should continue.
    pub(crate) fn emit(&mut self, delivery: Delivery) -> Result<Verdict, RunError> {
        if std::mem::take(&mut self.unsaid) && self.send(Delivery::Piece)? == Verdict::Stop {
            return Ok(Verdict::Stop);
        }
        self.send(delivery)
    }

    fn send(&mut self, delivery: Delivery) -> Result<Verdict, RunError> {
        let Share::Everything { out, meter, stop, stride } = &mut self.share else {
            // `describe` and `detect` have no sink, so whatever they emit must have no effect.
            return Ok(Verdict::Stop);
        };
        if stop.asked() {
            return Ok(Verdict::Stop);
        }
        let weight = delivery.weight();
        meter.charge(weight)?;
        out.send_weighed(delivery, weight).map_err(|_| RunError::Cancelled)?;
        stride.step();
        self.clock.progress();
        Ok(if stop.asked() { Verdict::Stop } else { Verdict::Proceed })
    }
}
