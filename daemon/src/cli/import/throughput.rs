//! The speed of a job and the remaining time.

use std::time::{Duration, Instant};

use satchel_proto::{
    integers::unsigned,
    v1::{OperationPhase, OperationProgress},
};

use crate::cli::text;

/// A rate over less than this time is meaningless.
const MIN_SAMPLE: Duration = Duration::from_millis(500);

/// One phase of a job, observed since it began.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThroughputMeter {
    phase: i32,
    began: Instant,
    /// Bytes that were already done when the phase was first seen.
    start_bytes: u64,
}

impl ThroughputMeter {
    pub(super) fn new(now: Instant) -> Self {
        Self { phase: OperationPhase::Unspecified.into(), began: now, start_bytes: 0 }
    }

    /// Records the current state of the job; a new phase starts a new measurement.
    pub(super) fn observe(&mut self, progress: &OperationProgress, now: Instant) {
        if progress.phase != self.phase {
            *self = Self { phase: progress.phase, began: now, start_bytes: unsigned(progress.bytes_done) };
        }
    }

    /// Returns a line such as `reading 120 MB of 500 MB (24 %), 45 MB/s, 12,345 records, 8.4 s left`.
    pub(super) fn line(&self, progress: &OperationProgress, now: Instant) -> String {
        let mut line = phase_label(progress.phase()).to_owned();
        let done = unsigned(progress.bytes_done);
        match unsigned(progress.bytes_total).filter(|total| *total > 0) {
            Some(total) => {
                let percent = u128::from(done.min(total)) * 100 / u128::from(total);
                text::append(
                    &mut line,
                    format_args!(" {} of {} ({percent} %)", text::bytes(done), text::bytes(total)),
                );
            }
            None if done > 0 => text::append(&mut line, format_args!(" {}", text::bytes(done))),
            None => {}
        }
        let rate = self.rate(done, now);
        if let Some(rate) = rate {
            text::append(&mut line, format_args!(", {}/s", text::bytes(rate)));
        }
        if progress.records_done > 0 {
            text::append(
                &mut line,
                format_args!(", {}", text::count(unsigned(progress.records_done), "record", "records")),
            );
        }
        let left =
            unsigned(progress.bytes_total).and_then(|total| total.checked_sub(done)).filter(|left| *left > 0);
        if let (Some(left), Some(rate)) = (left, rate) {
            // Whole seconds; fractions would only flicker.
            text::append(
                &mut line,
                format_args!(", {} left", text::duration((left / rate + 1) * 1_000).replace(".0 s", " s")),
            );
        }
        line
    }

    /// Returns the bytes per second since the phase began, or `None` as long as a rate would be meaningless.
    fn rate(&self, done: u64, now: Instant) -> Option<u64> {
        let elapsed = now.saturating_duration_since(self.began);
        let transferred = done.checked_sub(self.start_bytes).filter(|transferred| *transferred > 0)?;
        if elapsed < MIN_SAMPLE {
            return None;
        }
        let rate = u128::from(transferred) * 1_000 / elapsed.as_millis().max(1);
        u64::try_from(rate).ok().filter(|rate| *rate > 0)
    }
}

fn phase_label(phase: OperationPhase) -> &'static str {
    match phase {
        OperationPhase::Unspecified
        | OperationPhase::WritingConversations
        | OperationPhase::WritingMemories
        | OperationPhase::Compiling
        | OperationPhase::Installing => "waiting",
        OperationPhase::Detecting => "detecting the format",
        OperationPhase::Hashing => "hashing",
        OperationPhase::Reading => "reading",
        OperationPhase::Deriving => "deriving memories",
    }
}

#[cfg(test)]
mod tests {
    use satchel_proto::integers::signed;

    use super::*;

    fn at(phase: OperationPhase, done: u64, total: Option<u64>, records: u64) -> OperationProgress {
        OperationProgress {
            phase: phase.into(),
            bytes_done: signed(done),
            bytes_total: signed(total),
            records_done: signed(records),
            records_total: None,
        }
    }

    #[test]
    fn rate_and_remaining_time_are_per_phase() {
        let start = Instant::now();
        let mut meter = ThroughputMeter::new(start);
        assert_eq!(meter.line(&at(OperationPhase::Unspecified, 0, None, 0), start), "waiting");

        let hashing = at(OperationPhase::Hashing, 500_000_000, Some(500_000_000), 0);
        meter.observe(&hashing, start);
        let reading = at(OperationPhase::Reading, 0, Some(500_000_000), 0);
        meter.observe(&reading, start + Duration::from_secs(10));
        assert_eq!(meter.line(&reading, start + Duration::from_secs(10)), "reading 0 B of 500 MB (0 %)");

        let later = at(OperationPhase::Reading, 120_000_000, Some(500_000_000), 12_345);
        meter.observe(&later, start + Duration::from_secs(12));
        assert_eq!(
            meter.line(&later, start + Duration::from_secs(12)),
            "reading 120 MB of 500 MB (24 %), 60 MB/s, 12,345 records, 7 s left"
        );
    }

    #[test]
    fn unknown_values_are_left_out() {
        let start = Instant::now();
        let mut meter = ThroughputMeter::new(start);
        let odd = at(OperationPhase::Deriving, 9, Some(3), 1);
        meter.observe(&odd, start);
        assert_eq!(
            meter.line(&odd, start + Duration::from_secs(5)),
            "deriving memories 9 B of 3 B (100 %), 1 record"
        );
        let unknown = at(OperationPhase::Deriving, 2_000, None, 0);
        assert_eq!(meter.line(&unknown, start + Duration::from_millis(1)), "deriving memories 2.0 kB");
    }
}
