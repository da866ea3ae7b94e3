//! Limits of one run.

use std::time::Duration;

/// Bytes in a KiB and a MiB.
pub(crate) const KIB: usize = 1 << 10;
pub(crate) const MIB: usize = 1 << 20;

/// Default of all linear memories together. Importers stream; the first-party ones read exports of 1 GB in 64 MiB.
const MEMORY_BYTES: usize = 128 * MIB;
/// Default processor time without output. The slowest guest that was measured (JavaScript, 9 MB/s) reads 270 MB in this
/// time.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// Default processor time of a whole run: 36 GB at 10 MB/s, more than any known export.
const TOTAL_TIME: Duration = Duration::from_hours(1);
/// Default size of one conversation while it is collected; it is held in memory as a whole.
const CONVERSATION_BYTES: usize = 256 * MIB;
/// Default size of the records that wait for the consumer: enough for a few long conversations, and little compared
/// with the rest of the process.
const QUEUE_BYTES: usize = 4 * MIB;
/// Default number of skips that are delivered one by one; all of them are counted.
const SKIPS: u64 = 100_000;
/// Default number of warnings that are delivered one by one; all of them are counted.
const WARNINGS: u64 = 1_000;
/// Bytes that may be emitted for any export, however small.
const EMITTED_FLOOR: u64 = 64 * MIB as u64;
/// Bytes that may be emitted for each byte of the export. Typed records take up to four times the size of their JSON;
/// entries of an archive count with their unpacked size.
const EMITTED_RATIO: u64 = 16;

/// Limits of one run. Times are processor time of the plugin: waiting for the consumer or for a disk does not count.
#[derive(Clone, Debug)]
pub struct PluginLimits {
    /// Bytes of all linear memories together.
    pub memory_bytes: usize,
    /// Processor time between two records, skips or progress reports.
    pub idle: Duration,
    /// Processor time of the whole run.
    pub total: Duration,
    /// Bytes of all records; `None` means the larger of 64 MiB and 16 times the size of the files.
    pub emitted_bytes: Option<u64>,
    /// Bytes of one conversation; a larger one is skipped.
    pub conversation_bytes: usize,
    /// Bytes that may wait for the consumer before the plugin has to wait.
    pub queue_bytes: usize,
    /// Number of skips delivered one by one; further ones are only counted.
    pub skips: u64,
    /// Number of warnings delivered one by one; further ones are only counted.
    pub warnings: u64,
}

impl Default for PluginLimits {
    fn default() -> Self {
        Self {
            memory_bytes: MEMORY_BYTES,
            idle: IDLE_TIME,
            total: TOTAL_TIME,
            emitted_bytes: None,
            conversation_bytes: CONVERSATION_BYTES,
            queue_bytes: QUEUE_BYTES,
            skips: SKIPS,
            warnings: WARNINGS,
        }
    }
}

impl PluginLimits {
    /// Returns the bytes that a run over `export_bytes` may emit.
    pub(crate) fn emitted_budget(&self, export_bytes: u64) -> u64 {
        self.emitted_bytes.unwrap_or_else(|| EMITTED_FLOOR.max(export_bytes.saturating_mul(EMITTED_RATIO)))
    }
}
