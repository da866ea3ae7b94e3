//! Pauses that let API requests run during imports: a caller waits for each request, but no caller waits for an import
//! run.
//!
//! A lower thread priority is not enough: a scheduler lets a running thread continue for some milliseconds before it
//! switches to a waiting one, and a request crosses several threads.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// How long a thread works without a pause while requests arrive.
const WORK: Duration = Duration::from_micros(500);
/// Length of a pause. It is never longer than the work before it, so requests at most double the time of a run.
const REST: Duration = Duration::from_micros(400);
/// How long threads continue to pause after a request, so that they also pause for the next one when a program reads
/// page after page.
const LINGER: Duration = Duration::from_millis(20);

/// The time of the last request. Clones share it.
#[derive(Clone, Debug)]
pub struct Pace(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    start: Instant,
    /// Threads take pauses until this time, in microseconds since `start`.
    until: AtomicU64,
}

impl Default for Pace {
    fn default() -> Self {
        Self(Arc::new(Shared { start: Instant::now(), until: AtomicU64::new(0) }))
    }
}

impl Pace {
    /// Records that a request arrived.
    pub fn asked(&self) {
        let until = self.0.start.elapsed() + LINGER;
        self.0.until.store(u64::try_from(until.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the stride of one thread that has not worked yet.
    pub fn stride(&self) -> Stride {
        Stride { pace: self.clone(), since: Instant::now() }
    }

    /// Returns whether a request arrived a moment ago.
    pub fn asked_lately(&self) -> bool {
        self.rests_at(Instant::now())
    }

    fn rests_at(&self, now: Instant) -> bool {
        let now = now.duration_since(self.0.start).as_micros();
        u128::from(self.0.until.load(Ordering::Relaxed)) > now
    }
}

/// How long a thread has worked without a pause.
#[derive(Debug)]
pub struct Stride {
    pace: Pace,
    since: Instant,
}

impl Stride {
    /// Pauses if a pause is due. Call it between small pieces of work.
    pub fn step(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.since) < WORK {
            return;
        }
        if self.pace.rests_at(now) {
            thread::sleep(REST);
        }
        self.since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_makes_room_for_a_while_and_then_no_more() {
        let pace = Pace::default();
        let start = pace.0.start;
        assert!(!pace.rests_at(start + Duration::from_micros(1)));
        pace.asked();
        assert!(pace.rests_at(start));
        assert!(!pace.rests_at(Instant::now() + LINGER + LINGER));
    }

    #[test]
    fn clones_hear_the_same_questions() {
        let pace = Pace::default();
        pace.clone().asked();
        assert!(pace.rests_at(Instant::now()));
    }
}
