//! Measures for how long a source has not responded: a read or a stat on an unresponsive network share may never
//! return.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The calls to a source that have not returned; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Heartbeat(Arc<Mutex<PendingCalls>>);

#[derive(Debug, Default)]
struct PendingCalls {
    next: u64,
    /// When each call began.
    started: BTreeMap<u64, Instant>,
}

/// A call to the source, which counts as returned when this is dropped.
#[derive(Debug)]
pub struct PendingCall<'a> {
    heartbeat: &'a Heartbeat,
    number: u64,
}

impl Heartbeat {
    /// Records the start of a call to the source.
    pub fn begin_call(&self) -> PendingCall<'_> {
        let mut calls = self.calls();
        let number = calls.next;
        calls.next += 1;
        calls.started.insert(number, Instant::now());
        drop(calls);
        satchel_failpoints::reached("source called");
        PendingCall { heartbeat: self, number }
    }

    /// Records progress of a long call, so that it does not count as hanging.
    pub(crate) fn beat(&self) {
        let now = Instant::now();
        self.calls().started.values_mut().for_each(|began| *began = now);
    }

    /// Returns how long the source has not responded, or `None` if no call is in progress.
    pub fn stalled_for(&self) -> Option<Duration> {
        self.calls().started.values().min().map(Instant::elapsed)
    }

    fn calls(&self) -> MutexGuard<'_, PendingCalls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        self.heartbeat.calls().started.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_pending_call_counts_and_a_beat_restarts_it() {
        let heartbeat = Heartbeat::default();
        assert_eq!(heartbeat.stalled_for(), None);
        let first = heartbeat.begin_call();
        std::thread::sleep(Duration::from_millis(5));
        let second = heartbeat.clone();
        let second = second.begin_call();
        assert!(heartbeat.stalled_for() >= Some(Duration::from_millis(5)));
        drop(first);
        let now = heartbeat.stalled_for();
        assert!(now.is_some());
        drop(second);
        assert_eq!(heartbeat.stalled_for(), None);
        let long = heartbeat.begin_call();
        std::thread::sleep(Duration::from_millis(5));
        let before = heartbeat.stalled_for();
        heartbeat.beat();
        assert!(heartbeat.stalled_for() < before);
        drop(long);
    }
}
