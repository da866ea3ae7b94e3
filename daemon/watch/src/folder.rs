//! The watcher of one folder, as a machine: what happened and what time it is goes in, imports come out; it never waits.
//!
//! **Invariant:** a name is handed to the imports only when it has settled, and not again with the stamp that it had then
//! (`folder::tests`).

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

/// Files whose ends are looked at before the machine looks up.
const STEP: usize = 256;
/// Longest time between two looks at what may not be read.
const LONGEST_TROUBLE: Duration = Duration::from_mins(10);
/// A rescan may take this part of the time between rescans: less than a thousandth of a processor.
const SCAN_SHARE: u32 = 2_000;

/// How patient the watcher is.
#[derive(Clone, Debug)]
pub struct Pace {
    /// How long a file must keep size, time and inode.
    pub quiet: Duration,
    /// Between two looks at everything.
    pub rescan: Duration,
    /// The same where the system tells of no changes.
    pub poll: Duration,
    /// Between two looks whether the folder itself is there and the same.
    pub pulse: Duration,
    /// Before a failed file is tried again, the first time; then twice as long each time.
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

/// What a folder is watched with.
pub(super) struct Parts {
    pub root: PathBuf,
    pub pace: Pace,
    /// Do not rely on the system to tell of changes.
    pub poll: bool,
    pub disk: Box<dyn Disk>,
    pub listen: Listen,
    pub queue: Box<dyn Queue>,
    pub memory: Box<dyn Memory>,
    /// Microseconds since the Unix epoch, for what is kept.
    pub wall: Box<dyn Fn() -> i64 + Send>,
    /// Time since some fixed moment.
    pub clock: Box<dyn Fn() -> Moment + Send>,
    /// Whether to end.
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
    /// When what failed, or is unknown and changes, is looked at again.
    retries: BTreeMap<OsString, Moment>,
    /// How often a file that changes was unknown.
    streaks: BTreeMap<OsString, u32>,
    troubles: BTreeMap<OsString, Trouble>,
    /// Why the folder itself cannot be watched.
    broken: Option<Trouble>,
    again: BTreeSet<OsString>,
    /// What left the folder and is still in the store's ledger.
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
    /// Begins with a look at everything.
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

    /// Takes in what happened, and does what is due.
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

    /// When there is something to do, if nothing happens.
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

    /// Whether the folder is there, and the one that it was.
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

    /// Looks at everything.
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
            // It is looked at when its import has ended.
            return;
        }
        match self.parts.disk.look(name) {
            Err(error) => self.trouble(name, &error),
            Ok(Sight { look, folders }) => {
                if self.hear_of(name, folders) {
                    // Something may have come between the look and the listening.
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

    /// Looks at what is due.
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
            // It looks well; whether it can be read is seen when it has settled.
            if let Some(trouble) = self.troubles.get_mut(&name).filter(|trouble| trouble.next <= now) {
                trouble.next = now + LONGEST_TROUBLE;
            }
        }
    }
}

#[cfg(test)]
mod tests;
