//! The events since the watcher of a folder last ran, held in bounded memory.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::queue::Outcome;

/// Number of names that are tracked one by one. If more change at once, the whole folder is scanned.
const MAX_NAMES: usize = 1_024;

/// The events that wait for the watcher.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Names in which something changed.
    pub names: BTreeSet<OsString>,
    /// Whether to scan the whole folder.
    pub all: bool,
    /// How often the system lost events.
    pub overflows: u64,
    /// Imports that ended.
    pub ended: Vec<(OsString, Outcome)>,
    /// Whether the watcher should stop.
    pub stop: bool,
}

/// The mailbox in which events wait for the watcher.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    /// Guards the pending events.
    pending: Mutex<Pending>,
    told: Condvar,
}

impl Mailbox {
    /// Records that something changed in `name`.
    pub(super) fn changed(&self, name: &OsStr) {
        self.put(|pending| {
            if pending.all || pending.names.len() >= MAX_NAMES {
                pending.all = true;
                pending.names.clear();
            } else {
                pending.names.insert(name.to_owned());
            }
        });
    }

    /// Requests a scan of the whole folder.
    pub(super) fn rescan(&self) {
        self.put(|pending| pending.all = true);
    }

    /// Records that the system lost events.
    pub(super) fn overflowed(&self) {
        self.put(|pending| (pending.all, pending.overflows) = (true, pending.overflows + 1));
    }

    /// Records that an import ended. The list is bounded by the number of imports that were started.
    pub(super) fn ended(&self, name: OsString, outcome: Outcome) {
        self.put(|pending| pending.ended.push((name, outcome)));
    }

    /// Asks the watcher to stop.
    pub(super) fn stop(&self) {
        self.put(|pending| pending.stop = true);
    }

    /// Returns whether the watcher should stop.
    pub(super) fn stopping(&self) -> bool {
        self.lock().stop
    }

    /// Waits for events, at most `most`, and takes them. Changes are collected for `least`; an ended import and a stop
    /// end the wait at once.
    pub(super) fn wait(&self, least: Duration, most: Duration) -> Pending {
        let early = self
            .told
            .wait_timeout_while(self.lock(), least, |pending| !pending.stop && pending.ended.is_empty());
        let (pending, _) = early.unwrap_or_else(PoisonError::into_inner);
        let late =
            self.told.wait_timeout_while(pending, most.saturating_sub(least), |pending| pending.idle());
        let (mut pending, _) = late.unwrap_or_else(PoisonError::into_inner);
        let stop = pending.stop;
        Pending { stop, ..std::mem::replace(&mut pending, Pending { stop, ..Pending::default() }) }
    }

    fn put(&self, change: impl FnOnce(&mut Pending)) {
        change(&mut self.lock());
        self.told.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
    fn idle(&self) -> bool {
        self.names.is_empty() && !self.all && self.ended.is_empty() && !self.stop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_becomes_one_look_at_the_whole_folder() {
        let mailbox = Mailbox::default();
        (0..5_000).for_each(|at| mailbox.changed(OsStr::new(&at.to_string())));
        let pending = mailbox.wait(Duration::ZERO, Duration::ZERO);
        assert!(pending.all && pending.names.len() <= MAX_NAMES);
        mailbox.changed(OsStr::new("one"));
        let pending = mailbox.wait(Duration::ZERO, Duration::ZERO);
        assert!(!pending.all && pending.names.len() == 1);
        assert!(mailbox.wait(Duration::ZERO, Duration::ZERO).idle());
    }

    #[test]
    fn a_stop_ends_the_wait_and_stays() {
        let mailbox = Mailbox::default();
        mailbox.stop();
        let hour = Duration::from_hours(1);
        assert!(mailbox.wait(hour, hour).stop && mailbox.wait(hour, hour).stop && mailbox.stopping());
    }
}
