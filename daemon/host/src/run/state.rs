//! What the host keeps for one call of a plugin.

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

/// Files that a plugin may hold open: each may cost a descriptor and an unpacker.
const MAX_OPEN_FILES: usize = 64;
/// How long a plugin may go on after it was asked to stop, by the wall clock.
const GRACE: Duration = Duration::from_millis(400);

/// The data of one store.
pub(crate) struct State {
    pub(crate) memory: MemoryLimiter,
    pub(crate) clock: Clock,
    pub(crate) table: ResourceTable,
    pub(crate) library: Library,
    /// The text of its last `error` log: the SDK's panic hook speaks through it.
    pub(crate) last_words: Option<String>,
    pub(crate) memory_bytes: usize,
    /// What is known of earlier runs, if anything is.
    pub(crate) recalling: Option<Recalling>,
    /// Whether a piece began that nothing was emitted of.
    pub(crate) unsaid: bool,
    share: Share,
    asked_at: Option<Instant>,
}

/// What the plugin may do in this call.
pub(crate) enum Share {
    /// Look at files.
    Files,
    /// Emit too.
    Everything {
        /// Takes what it emits.
        out: Sender<Delivery>,
        /// Says how much of it there may be.
        meter: Meter,
        /// Says whether it shall end.
        stop: StopFlag,
        /// Makes room for others.
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

    /// Called every few ticks while the plugin works: whether it may go on.
    pub(crate) fn look(&mut self) -> Result<(), RunError> {
        if self.stopping() {
            let asked_at = *self.asked_at.get_or_insert_with(Instant::now);
            if asked_at.elapsed() > GRACE {
                return Err(RunError::Cancelled);
            }
        }
        self.clock.check()
    }

    /// Whether the call shall end soon.
    pub(crate) fn stopping(&self) -> bool {
        match &self.share {
            Share::Files => false,
            Share::Everything { stop, .. } => stop.asked(),
        }
    }

    /// Sends something on its way, waiting for room, and says whether the plugin shall go on.
    pub(crate) fn emit(&mut self, delivery: Delivery) -> Result<Verdict, RunError> {
        if std::mem::take(&mut self.unsaid) && self.send(Delivery::Piece)? == Verdict::Stop {
            return Ok(Verdict::Stop);
        }
        self.send(delivery)
    }

    fn send(&mut self, delivery: Delivery) -> Result<Verdict, RunError> {
        let Share::Everything { out, meter, stop, stride } = &mut self.share else {
            // `describe` and `detect` have no sink: nothing may come of what they emit.
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
