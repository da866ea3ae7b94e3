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
const WORK_TIME: Duration = Duration::from_micros(500);
/// Length of a pause. It is never longer than the work before it, so requests at most double the time of a run.
const PAUSE_TIME: Duration = Duration::from_micros(400);
/// How long threads continue to pause after a request, so that they also pause for the next one when a program reads
/// page after page.
const ACTIVE_TIME: Duration = Duration::from_millis(20);

/// The time of the last request. Clones share it.
#[derive(Clone, Debug)]
pub struct Throttle(Arc<ThrottleState>);

#[derive(Debug)]
struct ThrottleState {
    start: Instant,
    /// Threads take pauses until this time, in microseconds since `start`.
    until: AtomicU64,
}

impl Default for Throttle {
    fn default() -> Self {
        Self(Arc::new(ThrottleState { start: Instant::now(), until: AtomicU64::new(0) }))
    }
}

impl Throttle {
    /// Records that a request arrived.
    pub fn request_arrived(&self) {
        let until = self.0.start.elapsed() + ACTIVE_TIME;
        self.0.until.store(u64::try_from(until.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the throttle of one worker thread that has not worked yet.
    pub fn worker(&self) -> WorkerThrottle {
        WorkerThrottle { throttle: self.clone(), since: Instant::now() }
    }

    /// Returns whether a request arrived a moment ago.
    pub fn recently_requested(&self) -> bool {
        self.active_at(Instant::now())
    }

    fn active_at(&self, now: Instant) -> bool {
        let now = now.duration_since(self.0.start).as_micros();
        u128::from(self.0.until.load(Ordering::Relaxed)) > now
    }
}

/// How long a thread has worked without a pause.
#[derive(Debug)]
pub struct WorkerThrottle {
    throttle: Throttle,
    since: Instant,
}

impl WorkerThrottle {
    /// Pauses if a pause is due. Call it between small pieces of work.
    pub fn pause_if_due(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.since) < WORK_TIME {
            return;
        }
        if self.throttle.active_at(now) {
            thread::sleep(PAUSE_TIME);
        }
        self.since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_activates_the_throttle_for_a_limited_time() {
        let throttle = Throttle::default();
        let start = throttle.0.start;
        assert!(!throttle.active_at(start + Duration::from_micros(1)));
        throttle.request_arrived();
        assert!(throttle.active_at(start));
        assert!(!throttle.active_at(Instant::now() + ACTIVE_TIME + ACTIVE_TIME));
    }

    #[test]
    fn clones_share_the_time_of_the_last_request() {
        let throttle = Throttle::default();
        throttle.clone().request_arrived();
        assert!(throttle.active_at(Instant::now()));
    }
}
