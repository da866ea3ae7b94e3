//! The events since the watcher of a folder last ran, held in bounded memory.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::outcome::FileOutcome;

/// Number of names that are tracked one by one. If more change at once, the whole folder is scanned.
const MAX_NAMES: usize = 1_024;

/// The events that wait for the watcher.
#[derive(Debug, Default)]
pub(super) struct PendingEvents {
    /// Names in which something changed.
    pub names: BTreeSet<OsString>,
    /// Whether to scan the whole folder.
    pub rescan: bool,
    /// How often the system lost events.
    pub overflows: u64,
    /// Imports that ended.
    pub ended_imports: Vec<(OsString, FileOutcome)>,
    /// Whether the watcher should stop.
    pub stop: bool,
}

/// The mailbox in which events wait for the watcher.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    /// Guards the pending events.
    pending: Mutex<PendingEvents>,
    arrived: Condvar,
}

impl Mailbox {
    /// Records that something changed in `name`.
    pub(super) fn changed(&self, name: &OsStr) {
        self.update(|pending| {
            if pending.rescan || pending.names.len() >= MAX_NAMES {
                pending.rescan = true;
                pending.names.clear();
            } else {
                pending.names.insert(name.to_owned());
            }
        });
    }

    /// Requests a scan of the whole folder.
    pub(super) fn rescan(&self) {
        self.update(|pending| pending.rescan = true);
    }

    /// Records that the system lost events.
    pub(super) fn overflowed(&self) {
        self.update(|pending| (pending.rescan, pending.overflows) = (true, pending.overflows + 1));
    }

    /// Records that an import ended. The list is bounded by the number of imports that were started.
    pub(super) fn import_ended(&self, name: OsString, outcome: FileOutcome) {
        self.update(|pending| pending.ended_imports.push((name, outcome)));
    }

    /// Asks the watcher to stop.
    pub(super) fn stop(&self) {
        self.update(|pending| pending.stop = true);
    }

    /// Returns whether the watcher should stop.
    pub(super) fn stopping(&self) -> bool {
        self.lock().stop
    }

    /// Waits for events, at most `max_wait`, and takes them. Changes are collected for `min_wait`; an ended import and a
    /// stop end the wait at once.
    pub(super) fn wait(&self, min_wait: Duration, max_wait: Duration) -> PendingEvents {
        let early = self.arrived.wait_timeout_while(self.lock(), min_wait, |pending| {
            !pending.stop && pending.ended_imports.is_empty()
        });
        let (pending, _) = early.unwrap_or_else(PoisonError::into_inner);
        let late = self
            .arrived
            .wait_timeout_while(pending, max_wait.saturating_sub(min_wait), |pending| pending.is_empty());
        let (mut pending, _) = late.unwrap_or_else(PoisonError::into_inner);
        let stop = pending.stop;
        PendingEvents {
            stop,
            ..std::mem::replace(&mut pending, PendingEvents { stop, ..PendingEvents::default() })
        }
    }

    fn update(&self, change: impl FnOnce(&mut PendingEvents)) {
        change(&mut self.lock());
        self.arrived.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, PendingEvents> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingEvents {
    fn is_empty(&self) -> bool {
        self.names.is_empty() && !self.rescan && self.ended_imports.is_empty() && !self.stop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_events_becomes_one_scan_of_the_whole_folder() {
        let mailbox = Mailbox::default();
        (0..5_000).for_each(|at| mailbox.changed(OsStr::new(&at.to_string())));
        let pending = mailbox.wait(Duration::ZERO, Duration::ZERO);
        assert!(pending.rescan && pending.names.len() <= MAX_NAMES);
        mailbox.changed(OsStr::new("one"));
        let pending = mailbox.wait(Duration::ZERO, Duration::ZERO);
        assert!(!pending.rescan && pending.names.len() == 1);
        assert!(mailbox.wait(Duration::ZERO, Duration::ZERO).is_empty());
    }

    #[test]
    fn a_stop_ends_the_wait_and_stays() {
        let mailbox = Mailbox::default();
        mailbox.stop();
        let hour = Duration::from_hours(1);
        assert!(mailbox.wait(hour, hour).stop && mailbox.wait(hour, hour).stop && mailbox.stopping());
    }
}
