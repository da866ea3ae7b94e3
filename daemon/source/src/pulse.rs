//! Measures for how long a source has not responded: a read or a stat on an unresponsive network share may never
//! return.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The calls to a source that have not returned; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<Mutex<Calls>>);

#[derive(Debug, Default)]
struct Calls {
    next: u64,
    /// When each call began.
    open: BTreeMap<u64, Instant>,
}

/// A call to the source, which counts as returned when this is dropped.
#[derive(Debug)]
pub struct Call<'a> {
    pulse: &'a Pulse,
    number: u64,
}

impl Pulse {
    /// Records the start of a call to the source.
    pub fn call(&self) -> Call<'_> {
        let mut calls = self.calls();
        let number = calls.next;
        calls.next += 1;
        calls.open.insert(number, Instant::now());
        drop(calls);
        satchel_failpoints::reached("source asked");
        Call { pulse: self, number }
    }

    /// Records progress of a long call, so that it does not count as hanging.
    pub fn beats(&self) {
        let now = Instant::now();
        self.calls().open.values_mut().for_each(|began| *began = now);
    }

    /// Returns how long the source has not responded, or `None` if no call is in progress.
    pub fn silent_for(&self) -> Option<Duration> {
        self.calls().open.values().min().map(Instant::elapsed)
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.pulse.calls().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_open_call_counts_and_a_beat_starts_it_anew() {
        let pulse = Pulse::default();
        assert_eq!(pulse.silent_for(), None);
        let first = pulse.call();
        std::thread::sleep(Duration::from_millis(5));
        let second = pulse.clone();
        let second = second.call();
        assert!(pulse.silent_for() >= Some(Duration::from_millis(5)));
        drop(first);
        let now = pulse.silent_for();
        assert!(now.is_some());
        drop(second);
        assert_eq!(pulse.silent_for(), None);
        let long = pulse.call();
        std::thread::sleep(Duration::from_millis(5));
        let before = pulse.silent_for();
        pulse.beats();
        assert!(pulse.silent_for() < before);
        drop(long);
    }
}
