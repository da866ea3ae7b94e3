//! What one run may take.

use std::time::Duration;

/// Bytes in a KiB and a MiB.
pub(crate) const KIB: usize = 1 << 10;
pub(crate) const MIB: usize = 1 << 20;

/// Memory of all linear memories together. Importers stream; the first-party ones pass 1 GB exports in 64 MiB.
const MEMORY_BYTES: usize = 128 * MIB;
/// Work without anything emitted. The slowest guest measured (JavaScript, 9 MB/s) reads 270 MB in it.
const IDLE: Duration = Duration::from_secs(30);
/// Work of a whole run: 36 GB at 10 MB/s, more than any export known.
const TOTAL: Duration = Duration::from_hours(1);
/// One conversation while it is gathered; it is held whole in memory.
const CONVERSATION_BYTES: usize = 256 * MIB;
/// Records that wait for the consumer. Enough for a few long conversations, little beside the rest of the process.
const QUEUE_BYTES: usize = 4 * MIB;
/// Skips that are delivered one by one; all of them are counted.
const SKIPS: u64 = 100_000;
/// Warnings that are delivered one by one; all of them are counted.
const WARNINGS: u64 = 1_000;
/// Emitted bytes that any export may give, however small it is.
const EMITTED_FLOOR: u64 = 64 * MIB as u64;
/// Emitted bytes for each byte of the export. Typed records take up to four times their JSON; an archive's entries
/// are counted unpacked.
const EMITTED_RATIO: u64 = 16;

/// What one run may take. Times are processor time of the plugin: waiting for the consumer or for a disk is free.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of all its memories together.
    pub memory_bytes: usize,
    /// Work between two records, skips or reports of progress.
    pub idle: Duration,
    /// Work of the whole run.
    pub total: Duration,
    /// Bytes of all records; none: the larger of 64 MiB and 16 times the size of the files.
    pub emitted_bytes: Option<u64>,
    /// Bytes of one conversation; a larger one is skipped.
    pub conversation_bytes: usize,
    /// Bytes that wait for the consumer before the plugin does.
    pub queue_bytes: usize,
    /// Skips delivered one by one; further ones are only counted.
    pub skips: u64,
    /// Warnings delivered one by one; further ones are only counted.
    pub warnings: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: MEMORY_BYTES,
            idle: IDLE,
            total: TOTAL,
            emitted_bytes: None,
            conversation_bytes: CONVERSATION_BYTES,
            queue_bytes: QUEUE_BYTES,
            skips: SKIPS,
            warnings: WARNINGS,
        }
    }
}

impl Limits {
    /// Bytes that a run over `export_bytes` may emit.
    pub(crate) fn emitted_budget(&self, export_bytes: u64) -> u64 {
        self.emitted_bytes.unwrap_or_else(|| EMITTED_FLOOR.max(export_bytes.saturating_mul(EMITTED_RATIO)))
    }
}
