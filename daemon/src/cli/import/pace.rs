//! The speed of a job and the remaining time.

use std::time::{Duration, Instant};

use satchel_proto::{
    signed::unsigned,
    v1::{OperationPhase, OperationProgress},
};

use crate::cli::text;

/// A rate over less than this time is meaningless.
const SETTLES: Duration = Duration::from_millis(500);

/// One phase of a job, observed since it began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    phase: i32,
    began: Instant,
    /// Bytes that were already done when the phase was first seen.
    from: u64,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Self {
        Self { phase: OperationPhase::Unspecified.into(), began: now, from: 0 }
    }

    /// Records the current state of the job; a new phase starts a new measurement.
    pub(super) fn see(&mut self, progress: &OperationProgress, now: Instant) {
        if progress.phase != self.phase {
            *self = Self { phase: progress.phase, began: now, from: unsigned(progress.bytes_done) };
        }
    }

    /// Returns a line such as `reading 120 MB of 500 MB (24 %), 45 MB/s, 12,345 records, 8.4 s left`.
    pub(super) fn line(&self, progress: &OperationProgress, now: Instant) -> String {
        let mut line = doing(progress.phase()).to_owned();
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
                format_args!(", {} left", text::span((left / rate + 1) * 1_000).replace(".0 s", " s")),
            );
        }
        line
    }

    /// Returns the bytes per second since the phase began, or `None` as long as a rate would be meaningless.
    fn rate(&self, done: u64, now: Instant) -> Option<u64> {
        let elapsed = now.saturating_duration_since(self.began);
        let moved = done.checked_sub(self.from).filter(|moved| *moved > 0)?;
        if elapsed < SETTLES {
            return None;
        }
        let rate = u128::from(moved) * 1_000 / elapsed.as_millis().max(1);
        u64::try_from(rate).ok().filter(|rate| *rate > 0)
    }
}

fn doing(phase: OperationPhase) -> &'static str {
    match phase {
        OperationPhase::Unspecified
        | OperationPhase::WritingConversations
        | OperationPhase::WritingMemories => "waiting",
        OperationPhase::Detecting => "looking",
        OperationPhase::Hashing => "hashing",
        OperationPhase::Reading => "reading",
        OperationPhase::Deriving => "deriving memories",
    }
}

#[cfg(test)]
mod tests {
    use satchel_proto::signed::signed;

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
    fn rate_and_time_left_belong_to_the_phase() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        assert_eq!(pace.line(&at(OperationPhase::Unspecified, 0, None, 0), start), "waiting");

        let hashing = at(OperationPhase::Hashing, 500_000_000, Some(500_000_000), 0);
        pace.see(&hashing, start);
        let reading = at(OperationPhase::Reading, 0, Some(500_000_000), 0);
        pace.see(&reading, start + Duration::from_secs(10));
        assert_eq!(pace.line(&reading, start + Duration::from_secs(10)), "reading 0 B of 500 MB (0 %)");

        let later = at(OperationPhase::Reading, 120_000_000, Some(500_000_000), 12_345);
        pace.see(&later, start + Duration::from_secs(12));
        assert_eq!(
            pace.line(&later, start + Duration::from_secs(12)),
            "reading 120 MB of 500 MB (24 %), 60 MB/s, 12,345 records, 7 s left"
        );
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let odd = at(OperationPhase::Deriving, 9, Some(3), 1);
        pace.see(&odd, start);
        assert_eq!(
            pace.line(&odd, start + Duration::from_secs(5)),
            "deriving memories 9 B of 3 B (100 %), 1 record"
        );
        let unknown = at(OperationPhase::Deriving, 2_000, None, 0);
        assert_eq!(pace.line(&unknown, start + Duration::from_millis(1)), "deriving memories 2.0 kB");
    }
}
