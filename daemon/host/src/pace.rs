//! Runs leave room for questions: whoever asks waits for an answer, a run is waited for by nobody.
//!
//! A lower priority alone does not do it: a scheduler lets a thread that works go on for some milliseconds before it looks who
//! waits, and a question crosses several threads.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// How long a thread works at a stretch while questions come.
const WORK: Duration = Duration::from_micros(500);
/// How long it rests then. It never rests longer than it works, so questions at most double the time of a run.
const REST: Duration = Duration::from_micros(400);
/// For how long a question makes room for the next: that of somebody who turns pages by a program.
const LINGER: Duration = Duration::from_millis(20);

/// When somebody asked last. Clones share it.
#[derive(Clone, Debug)]
pub struct Pace(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    start: Instant,
    /// Microseconds from `start` until which threads rest now and then.
    until: AtomicU64,
}

impl Default for Pace {
    fn default() -> Self {
        Self(Arc::new(Shared { start: Instant::now(), until: AtomicU64::new(0) }))
    }
}

impl Pace {
    /// Somebody asks something.
    pub fn asked(&self) {
        let until = self.0.start.elapsed() + LINGER;
        self.0.until.store(u64::try_from(until.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The pace of one thread, which has not worked yet.
    pub fn stride(&self) -> Stride {
        Stride { pace: self.clone(), since: Instant::now() }
    }

    /// Whether somebody asked a moment ago.
    pub fn asked_lately(&self) -> bool {
        self.rests_at(Instant::now())
    }

    fn rests_at(&self, now: Instant) -> bool {
        let now = now.duration_since(self.0.start).as_micros();
        u128::from(self.0.until.load(Ordering::Relaxed)) > now
    }
}

/// How long a thread has worked at a stretch.
#[derive(Debug)]
pub struct Stride {
    pace: Pace,
    since: Instant,
}

impl Stride {
    /// Rests if it is due. To be called between small pieces of work.
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
