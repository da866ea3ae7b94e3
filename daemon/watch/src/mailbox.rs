//! What happened since the watcher of a folder last looked: bounded, however much happens.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::queue::Outcome;

/// Names that are told apart; when more change at once the whole folder is looked at.
const MAX_NAMES: usize = 1_024;

/// What happened.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Names in which something changed.
    pub names: BTreeSet<OsString>,
    /// The whole folder is to be looked at.
    pub all: bool,
    /// How often the system lost count of what changed.
    pub overflows: u64,
    /// Imports that ended.
    pub ended: Vec<(OsString, Outcome)>,
    /// The watcher is to end.
    pub stop: bool,
}

/// Where it is left for the watcher.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    /// Guards what is pending.
    pending: Mutex<Pending>,
    told: Condvar,
}

impl Mailbox {
    /// Something changed in `name`.
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

    /// The whole folder is to be looked at.
    pub(super) fn rescan(&self) {
        self.put(|pending| pending.all = true);
    }

    /// The system lost count.
    pub(super) fn overflowed(&self) {
        self.put(|pending| (pending.all, pending.overflows) = (true, pending.overflows + 1));
    }

    /// An import ended; there are only as many as were begun.
    pub(super) fn ended(&self, name: OsString, outcome: Outcome) {
        self.put(|pending| pending.ended.push((name, outcome)));
    }

    /// The watcher is to end.
    pub(super) fn stop(&self) {
        self.put(|pending| pending.stop = true);
    }

    /// Whether the watcher is to end.
    pub(super) fn stopping(&self) -> bool {
        self.lock().stop
    }

    /// Waits until something happened, at most `most`, and takes what did. Changes are gathered for `least`; an import that ended
    /// and a stop do not wait.
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
