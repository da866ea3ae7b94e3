//! The watcher of one folder, as a state machine. Its inputs are events and the time, its outputs are imports; it never
//! waits.
//!
//! **Invariant:** a name is passed to the imports only when it has settled, and not again with the stamp that it had
//! then (`folder::tests`).

mod book;
mod course;
mod ears;
mod gone;
mod ready;
mod view;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
    time::Duration,
};

pub use self::view::{FolderView, Notice, State, Trouble};
use self::{
    book::Book,
    course::{Busy, FEED, backed_off},
    ears::Ears,
    ready::Ready,
};
use super::{
    disk::{Disk, Sight},
    events::Listen,
    mailbox::Pending,
    memory::Memory,
    queue::Queue,
    settle::{Look, Moment, Settle, Step},
};

/// Number of entries that are inspected before the machine takes in new events.
const STEP: usize = 256;
/// Longest time between two inspections of an entry that cannot be read.
const LONGEST_TROUBLE: Duration = Duration::from_mins(10);
/// The time between two rescans is at least this many times the duration of one, so that rescans use less than a
/// thousandth of a processor.
const SCAN_SHARE: u32 = 2_000;

/// The intervals of the watcher.
#[derive(Clone, Debug)]
pub struct Pace {
    /// How long a file must keep its size, time and inode.
    pub quiet: Duration,
    /// Time between two scans of the whole folder.
    pub rescan: Duration,
    /// The same where the system does not report changes.
    pub poll: Duration,
    /// Time between two checks that the folder itself exists and is the same one.
    pub pulse: Duration,
    /// Time before the first retry of a failed file; it doubles with each try.
    pub retry: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            quiet: Duration::from_secs(3),
            rescan: Duration::from_mins(10),
            poll: Duration::from_secs(30),
            pulse: Duration::from_secs(30),
            retry: Duration::from_mins(1),
        }
    }
}

/// The dependencies of a folder's watcher.
pub(super) struct Parts {
    pub root: PathBuf,
    pub pace: Pace,
    /// Poll instead of relying on events from the system.
    pub poll: bool,
    pub disk: Box<dyn Disk>,
    pub listen: Listen,
    pub queue: Box<dyn Queue>,
    pub memory: Box<dyn Memory>,
    /// Returns microseconds since the Unix epoch, for stored entries.
    pub wall: Box<dyn Fn() -> i64 + Send>,
    /// Returns the time since some fixed moment.
    pub clock: Box<dyn Fn() -> Moment + Send>,
    /// Returns whether the watcher should stop.
    pub stopping: Box<dyn Fn() -> bool + Send>,
}

/// The watcher of one folder.
pub(super) struct Folder {
    parts: Parts,
    ears: Ears,
    settle: Settle,
    known: Book,
    ready: Ready,
    busy: BTreeMap<OsString, Busy>,
    /// When to inspect a name again that failed, or that is unrecognised and still changes.
    retries: BTreeMap<OsString, Moment>,
    /// How often a file that keeps changing was unrecognised.
    streaks: BTreeMap<OsString, u32>,
    troubles: BTreeMap<OsString, Trouble>,
    /// The reason why the folder itself cannot be watched.
    broken: Option<Trouble>,
    again: BTreeSet<OsString>,
    /// Names that left the folder and are still in the store's ledger.
    gone: BTreeSet<OsString>,
    identity: Option<(u64, u64)>,
    next_scan: Moment,
    next_pulse: Moment,
    next_feed: Moment,
    overflows: u64,
    more: bool,
    scanned: bool,
}

impl Folder {
    /// Creates a watcher. It begins with a scan of the whole folder.
    pub(super) fn new(parts: Parts) -> Self {
        let settle = Settle::new(parts.pace.quiet);
        Self {
            parts,
            ears: Ears::Closed,
            settle,
            known: Book::default(),
            ready: Ready::default(),
            busy: BTreeMap::new(),
            retries: BTreeMap::new(),
            streaks: BTreeMap::new(),
            troubles: BTreeMap::new(),
            broken: None,
            again: BTreeSet::new(),
            gone: BTreeSet::new(),
            identity: None,
            next_scan: Moment::ZERO,
            next_pulse: Moment::ZERO,
            next_feed: Moment::ZERO,
            overflows: 0,
            more: false,
            scanned: false,
        }
    }

    /// Processes the pending events, and does the work that is due.
    pub(super) fn step(&mut self, pending: Pending) {
        let Pending { names, all, overflows, ended, stop } = pending;
        if stop {
            return;
        }
        self.overflows += overflows;
        for (name, outcome) in ended {
            self.ended(name, outcome);
        }
        let now = self.now();
        if now >= self.next_pulse {
            self.pulse();
        }
        if all || now >= self.next_scan {
            self.scan();
        }
        if self.broken.is_none() {
            let again = std::mem::take(&mut self.again);
            for name in names.into_iter().chain(again) {
                if !self.settle.touched(&name, now) {
                    self.visit(&name);
                }
            }
            self.due();
            self.feed();
            self.give_back();
        }
    }

    /// Returns when the next work is due if no event arrives.
    pub(super) fn next(&self) -> Moment {
        let mut next = self.next_scan.min(self.next_pulse);
        if self.broken.is_some() {
            return next;
        }
        if !self.again.is_empty() {
            return Moment::ZERO;
        }
        if !self.ready.is_empty() && self.busy.len() < FEED {
            next = next.min(self.next_feed);
        }
        let troubles = self.troubles.values().map(|trouble| trouble.next);
        self.retries.values().copied().chain(troubles).chain(self.settle.next()).fold(next, Moment::min)
    }

    fn now(&self) -> Moment {
        (self.parts.clock)()
    }

    /// Checks whether the folder exists and is still the same one.
    fn pulse(&mut self) {
        self.next_pulse = self.now() + self.parts.pace.pulse;
        match self.parts.disk.identity() {
            Err(error) => self.breaks(&error),
            Ok(identity) if self.identity != Some(identity) || self.broken.is_some() => {
                self.identity = Some(identity);
                self.ears = Ears::Closed;
                self.next_scan = Moment::ZERO;
            }
            Ok(_) => {}
        }
    }

    fn breaks(&mut self, error: &io::Error) {
        let tries = self.broken.as_ref().map_or(0, |trouble| trouble.tries) + 1;
        if tries == 1 {
            tracing::warn!(folder = %self.parts.root.display(), %error, "a watched folder cannot be read");
        }
        let now = self.now();
        self.ears = Ears::Closed;
        self.broken = Some(Trouble::of_folder(&self.parts.root, error, tries, self.next_pulse));
        self.next_scan = now + self.parts.pace.rescan;
    }

    /// Scans the whole folder.
    fn scan(&mut self) {
        let begun = self.now();
        self.hear(begun);
        let (listed, more) = match self.parts.disk.list() {
            Ok(listed) => listed,
            Err(error) => return self.breaks(&error),
        };
        self.broken = None;
        self.more = more;
        for name in &listed {
            if (self.parts.stopping)() {
                return;
            }
            self.visit(name);
        }
        self.keep_only(&listed);
        self.scanned = true;
        let now = self.now();
        let interval = if self.ears.open() { self.parts.pace.rescan } else { self.parts.pace.poll };
        self.next_scan = now + interval.max(now.saturating_sub(begun) * SCAN_SHARE);
    }

    fn visit(&mut self, name: &OsStr) {
        if self.busy.contains_key(name) {
            // The name is inspected when its import has ended.
            return;
        }
        match self.parts.disk.look(name) {
            Err(error) => self.trouble(name, &error),
            Ok(Sight { look, folders }) => {
                if self.hear_of(name, folders) {
                    // Something may have changed between the inspection and the start of the watch.
                    self.again.insert(name.to_owned());
                }
                match look {
                    None => self.forget(name),
                    Some(look) => self.seen(name, look),
                }
            }
        }
    }

    fn seen(&mut self, name: &OsStr, look: Look) {
        let now = self.now();
        if self.ready.has(name) {
            return;
        }
        if self.done_with(name, look.stamp, now) {
            self.settle.gone(name);
            self.troubles.remove(name);
            return;
        }
        if let Step::Check = self.settle.look(name, look, now) {
            self.check(name);
        }
    }

    fn check(&mut self, name: &OsStr) {
        let whole = match self.parts.disk.whole(name) {
            Ok(whole) => whole,
            Err(error) => return self.trouble(name, &error),
        };
        let Ok(Sight { look: Some(after), .. }) = self.parts.disk.look(name) else { return };
        let now = self.now();
        if self.settle.checked(name, &after, whole, now) {
            self.is_ready(name, after.stamp);
        }
    }

    fn trouble(&mut self, name: &OsStr, error: &io::Error) {
        self.settle.gone(name);
        if error.kind() == io::ErrorKind::NotFound {
            return;
        }
        let tries = self.troubles.get(name).map_or(0, |trouble| trouble.tries) + 1;
        let delay = backed_off(self.parts.pace.pulse, tries, LONGEST_TROUBLE);
        let trouble = Trouble::of_file(name, error, tries, self.now() + delay);
        self.troubles.insert(name.to_owned(), trouble);
    }

    /// Inspects the names that are due.
    fn due(&mut self) {
        let now = self.now();
        for name in self.settle.due(now, STEP) {
            if (self.parts.stopping)() {
                return;
            }
            self.visit(&name);
        }
        let retries = self.retries.iter().filter(|(_, at)| **at <= now);
        for name in retries.map(|(name, _)| name.clone()).take(STEP).collect::<Vec<_>>() {
            self.retry(&name);
        }
        let troubles = self.troubles.iter().filter(|(_, trouble)| trouble.next <= now);
        for name in troubles.map(|(name, _)| name.clone()).take(STEP).collect::<Vec<_>>() {
            self.visit(&name);
            // The entry can be inspected again. Whether its content can be read is checked when it has settled.
            if let Some(trouble) = self.troubles.get_mut(&name).filter(|trouble| trouble.next <= now) {
                trouble.next = now + LONGEST_TROUBLE;
            }
        }
    }
}

#[cfg(test)]
mod tests;
