//! Limits for each device: how many calls it makes in a second and at once, how many watches it holds, and how many
//! bytes of its responses wait to be read.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::available_parallelism,
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::grpc::{
    status::CallError,
    unread_limit::{MAX_UNREAD_BYTES_PER_DEVICE, UnreadBytes},
};

/// Calls in a second that a device may make in the long run. A device that reads a large store by single records, or uploads
/// in chunks of 1 MiB over a fast network, makes some hundreds. This only ends loops that have gone wrong: the work on the
/// machine is bounded by the calls that are processed at once.
const CALLS_PER_SECOND: f64 = 500.0;
/// Calls that a device may make at once after a pause.
const BURST_CALLS: f64 = 1_000.0;
/// Watches that a device may hold at once.
const MAX_WATCHES: usize = 8;
/// Calls of one device that are processed at once; its others wait. A quarter of those of all callers, because a call is
/// processed from its first byte on: a device that never sends the rest would take the places of all others.
const MAX_CONCURRENT_CALLS: usize = 8;
/// The same for long-running calls.
const MAX_CONCURRENT_LONG_CALLS: usize = 4;
/// Downloads of exports and attachments of one device at once. A quarter of those of all callers: one that nobody reads keeps
/// its place for minutes.
const MAX_DOWNLOADS: usize = 4;
/// A device that made no call for this long has its full burst again, so nothing needs to be remembered of it.
const FORGET_AFTER: Duration = Duration::from_mins(1);

/// The load of all devices. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct DeviceLimits(Arc<Mutex<HashMap<String, DeviceLoad>>>);

#[derive(Debug)]
struct DeviceLoad {
    /// Calls that it may make now.
    calls: f64,
    at: Instant,
    watches: usize,
    share: CallShare,
}

/// The part of the limits on all calls that one device may take. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct CallShare {
    pub(super) short: Arc<Semaphore>,
    pub(super) long: Arc<Semaphore>,
    downloads: Arc<Semaphore>,
    /// Permits for reading from the store. Half of the processors stay free for the calls of others, however large the
    /// pages are that one device asks for.
    pub(super) reading: Arc<Semaphore>,
    pub(super) unread: UnreadBytes,
}

impl Default for CallShare {
    fn default() -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        Self {
            reading: Arc::new(Semaphore::new((processors / 2).max(1))),
            short: Arc::new(Semaphore::new(MAX_CONCURRENT_CALLS)),
            long: Arc::new(Semaphore::new(MAX_CONCURRENT_LONG_CALLS)),
            downloads: Arc::new(Semaphore::new(MAX_DOWNLOADS)),
            unread: UnreadBytes::new(MAX_UNREAD_BYTES_PER_DEVICE),
        }
    }
}

impl CallShare {
    /// Returns whether no call has a part of it.
    fn idle(&self) -> bool {
        self.short.available_permits() == MAX_CONCURRENT_CALLS
            && self.long.available_permits() == MAX_CONCURRENT_LONG_CALLS
            && self.downloads.available_permits() == MAX_DOWNLOADS
            && self.unread.idle()
    }

    /// Returns the permit of a download.
    ///
    /// # Errors
    /// If too many are running.
    pub(super) fn download(&self) -> Result<OwnedSemaphorePermit, CallError> {
        Arc::clone(&self.downloads).try_acquire_owned().map_err(|_| {
            CallError::Busy(format!(
                "{MAX_DOWNLOADS} downloads of this device are running; try again when one of them has ended"
            ))
        })
    }
}

impl DeviceLoad {
    fn new(now: Instant) -> Self {
        Self { calls: BURST_CALLS, at: now, watches: 0, share: CallShare::default() }
    }

    /// Returns whether nothing needs to be remembered of the device.
    fn forgettable(&self, now: Instant) -> bool {
        self.watches == 0 && self.share.idle() && now.saturating_duration_since(self.at) >= FORGET_AFTER
    }
}

/// A watch that counts until it is dropped.
#[derive(Debug)]
pub(super) struct WatchPermit {
    limits: DeviceLimits,
    device: String,
}

impl DeviceLimits {
    /// Counts a call of a device, and returns the part of the limits on all calls that it may take.
    ///
    /// # Errors
    /// If it makes too many.
    pub(super) fn count_call(&self, device: &str, now: Instant) -> Result<CallShare, CallError> {
        let mut loads = self.loads();
        if !loads.contains_key(device) {
            loads.retain(|_, load| !load.forgettable(now));
        }
        let load = loads.entry(device.to_owned()).or_insert_with(|| DeviceLoad::new(now));
        let refill = now.duration_since(load.at).as_secs_f64() * CALLS_PER_SECOND;
        load.calls = (load.calls + refill).min(BURST_CALLS);
        load.at = now;
        if load.calls < 1.0 {
            return Err(CallError::Busy(format!(
                "this device makes more than {CALLS_PER_SECOND} calls in a second; try again in a moment"
            )));
        }
        load.calls -= 1.0;
        Ok(load.share.clone())
    }

    /// Counts a watch of a device, which must have made a call.
    ///
    /// # Errors
    /// If it holds too many.
    pub(super) fn count_watch(&self, device: &str) -> Result<WatchPermit, CallError> {
        let mut loads = self.loads();
        let watches = loads.get_mut(device).map(|load| &mut load.watches);
        match watches {
            Some(watches) if *watches < MAX_WATCHES => {
                *watches += 1;
                Ok(WatchPermit { limits: self.clone(), device: device.to_owned() })
            }
            _ => Err(CallError::Busy(format!(
                "this device holds {MAX_WATCHES} watches already; end one of them"
            ))),
        }
    }

    fn loads(&self) -> MutexGuard<'_, HashMap<String, DeviceLoad>> {
        // Each change is a single step, so a panic leaves no half of one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WatchPermit {
    fn drop(&mut self) {
        if let Some(load) = self.limits.loads().get_mut(&self.device) {
            load.watches = load.watches.saturating_sub(1);
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn calls_beyond_the_burst_wait_for_the_next_moment() {
        let (limits, start) = (DeviceLimits::default(), Instant::now());
        let made = (0..5_000).take_while(|_| limits.count_call("a", start).is_ok()).count();
        assert_eq!(made, 1_000);
        limits.count_call("b", start).unwrap();
        let later = start + Duration::from_millis(100);
        let made = (0..5_000).take_while(|_| limits.count_call("a", later).is_ok()).count();
        assert_eq!(made, 50);
    }

    #[test]
    fn idle_devices_are_forgotten() {
        let (limits, start) = (DeviceLimits::default(), Instant::now());
        for device in 0..100 {
            limits.count_call(&device.to_string(), start).unwrap();
        }
        let held = limits.count_watch("7").unwrap();
        limits.count_call("other", start + FORGET_AFTER).unwrap();
        assert_eq!(limits.loads().len(), 2, "the one with a watch, and the other");
        drop(held);
    }

    #[test]
    fn a_device_holds_eight_watches() {
        let limits = DeviceLimits::default();
        limits.count_call("a", Instant::now()).unwrap();
        let mut held: Vec<_> = (0..MAX_WATCHES).map(|_| limits.count_watch("a").unwrap()).collect();
        assert!(limits.count_watch("a").is_err());
        held.pop();
        assert!(limits.count_watch("a").is_ok());
    }
}
