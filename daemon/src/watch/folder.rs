//! The watcher of one folder, as a machine: what happened and what time it is goes in, imports come out; it never waits.
//!
//! **Invariant:** a name is handed to the imports only when it has settled, and not again with the stamp that it had then
//! (`folder::tests`).

mod ears;
mod view;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
    time::Duration,
};

use self::ears::Ears;
pub use self::view::{FolderView, Notice, State, Trouble};
use super::{
    disk::{Disk, Sight},
    events::Listen,
    mailbox::Pending,
    memory::{Known, Memory, Verdict},
    names,
    queue::{Outcome, Queue, Refused},
    settle::{Look, Moment, Settle, Stamp, Step},
};

/// Imports of one folder that run or wait in the queue; two run at once, and the next must not be late.
const FEED: usize = 4;
/// Files whose ends are looked at before the machine looks up.
const STEP: usize = 256;
/// How often a file that fails is tried, until it or the importers change: for about a day.
pub(super) const MAX_TRIES: u32 = 12;
/// Longest time between two tries.
const LONGEST_RETRY: Duration = Duration::from_hours(6);
/// Longest time between two looks at what may not be read.
const LONGEST_TROUBLE: Duration = Duration::from_mins(10);
/// How often the delay of a file that changes and is never known doubles.
const MAX_STREAK: u32 = 8;
/// A rescan may take this part of the time between rescans: less than a thousandth of a processor.
const SCAN_SHARE: u32 = 2_000;
/// How long the queue is left alone when it is full.
const BUSY: Duration = Duration::from_secs(1);

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
    known: BTreeMap<OsString, Known>,
    ready: VecDeque<(OsString, Stamp)>,
    /// The names in `ready`.
    queued: BTreeSet<OsString>,
    busy: BTreeMap<OsString, Busy>,
    /// When what failed, or is unknown and changes, is looked at again.
    retries: BTreeMap<OsString, Moment>,
    /// How often a file that changes was unknown.
    streaks: BTreeMap<OsString, u32>,
    troubles: BTreeMap<OsString, Trouble>,
    /// Why the folder itself cannot be watched.
    broken: Option<Trouble>,
    again: BTreeSet<OsString>,
    identity: Option<(u64, u64)>,
    next_scan: Moment,
    next_pulse: Moment,
    next_feed: Moment,
    overflows: u64,
    more: bool,
    scanned: bool,
}

struct Busy {
    stamp: Stamp,
    job: String,
}

impl Folder {
    /// Begins with a look at everything.
    pub(super) fn new(parts: Parts) -> Self {
        let settle = Settle::new(parts.pace.quiet);
        Self {
            parts,
            ears: Ears::Closed,
            settle,
            known: BTreeMap::new(),
            ready: VecDeque::new(),
            queued: BTreeSet::new(),
            busy: BTreeMap::new(),
            retries: BTreeMap::new(),
            streaks: BTreeMap::new(),
            troubles: BTreeMap::new(),
            broken: None,
            again: BTreeSet::new(),
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

    /// Forgets what is there no more. What runs goes on.
    fn keep_only(&mut self, listed: &[OsString]) {
        let there = |name: &OsStr| listed.binary_search_by(|one| one.as_os_str().cmp(name)).is_ok();
        self.settle.keep(there);
        self.known.retain(|name, _| there(name));
        self.ready.retain(|(name, _)| there(name));
        self.queued.retain(|name| there(name));
        self.retries.retain(|name, _| there(name));
        self.streaks.retain(|name, _| there(name));
        self.troubles.retain(|name, _| there(name));
        self.ears.keep(there);
    }

    fn forget(&mut self, name: &OsStr) {
        self.settle.gone(name);
        self.known.remove(name);
        self.retries.remove(name);
        self.troubles.remove(name);
        if self.queued.remove(name) {
            self.ready.retain(|(one, _)| one != name);
        }
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
        if self.queued.contains(name) {
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

    /// Whether nothing is to be done about a name as it stands; what is to be done later is noted.
    fn done_with(&mut self, name: &OsStr, stamp: Stamp, now: Moment) -> bool {
        let importers = self.parts.queue.importers();
        let Some(known) = self.known_of(name) else { return false };
        let same = known.stamp == stamp;
        match &known.verdict {
            Verdict::Imported | Verdict::Cancelled => same,
            Verdict::Unrecognised { importers: those } if same => *those == importers,
            Verdict::Unrecognised { .. } => self.retries.get(name).is_some_and(|at| *at > now),
            Verdict::Failed { importers: those, tries, .. } if same && *those == importers => {
                let tries = *tries;
                if tries >= MAX_TRIES {
                    return true;
                }
                let delay = self.retry_delay(tries);
                *self.retries.entry(name.to_owned()).or_insert(now + delay) > now
            }
            Verdict::Failed { .. } => false,
        }
    }

    fn known_of(&mut self, name: &OsStr) -> Option<&Known> {
        if !self.known.contains_key(name) {
            let known = self.parts.memory.recall(name)?;
            self.known.insert(name.to_owned(), known);
        }
        self.known.get(name)
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

    fn is_ready(&mut self, name: &OsStr, stamp: Stamp) {
        self.troubles.remove(name);
        self.retries.remove(name);
        if self.queued.insert(name.to_owned()) {
            self.ready.push_back((name.to_owned(), stamp));
        }
    }

    /// The time of a file that failed, or was not known, has come.
    fn retry(&mut self, name: &OsStr) {
        self.retries.remove(name);
        let look = self.parts.disk.look(name).ok().and_then(|sight| sight.look);
        match (look, self.known.get(name)) {
            // It had settled, and nobody wrote to it since.
            (Some(look), Some(Known { stamp, verdict: Verdict::Failed { .. }, .. }))
                if look.stamp == *stamp && !self.busy.contains_key(name) =>
            {
                self.is_ready(name, look.stamp);
            }
            _ => self.visit(name),
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

    /// Hands on what is ready, a few at a time.
    fn feed(&mut self) {
        let now = self.now();
        if now < self.next_feed {
            return;
        }
        while self.busy.len() < FEED
            && !(self.parts.stopping)()
            && let Some((name, stamp)) = self.ready.pop_front()
        {
            self.queued.remove(&name);
            let look = self.parts.disk.look(&name).ok().and_then(|sight| sight.look);
            if look.is_none_or(|look| look.stamp != stamp) {
                self.again.insert(name);
                continue;
            }
            match self.parts.queue.start(&name) {
                Ok(job) => {
                    self.busy.insert(name, Busy { stamp, job });
                }
                Err(Refused::Busy) => {
                    self.queued.insert(name.clone());
                    self.ready.push_front((name, stamp));
                    self.next_feed = now + BUSY;
                    return;
                }
                Err(Refused::Never(reason)) => self.conclude(&name, stamp, Outcome::Failed(reason)),
            }
        }
    }

    fn ended(&mut self, name: OsString, outcome: Outcome) {
        if let Some(Busy { stamp, .. }) = self.busy.remove(&name) {
            self.conclude(&name, stamp, outcome);
            self.again.insert(name);
        }
    }

    fn conclude(&mut self, name: &OsStr, stamp: Stamp, outcome: Outcome) {
        let now = self.now();
        let importers = self.parts.queue.importers();
        self.retries.remove(name);
        let verdict = match outcome {
            Outcome::Changed => return,
            Outcome::Imported => Verdict::Imported,
            Outcome::Cancelled => Verdict::Cancelled,
            Outcome::Unrecognised(_) => {
                let streak = self.streaks.entry(name.to_owned()).or_insert(0);
                *streak = (*streak + 1).min(MAX_STREAK);
                let rest = self.parts.pace.quiet * 2_u32.pow(*streak);
                self.retries.insert(name.to_owned(), now + rest);
                Verdict::Unrecognised { importers }
            }
            Outcome::Failed(reason) => {
                let tries = self.tries(name, stamp, &importers) + 1;
                if tries < MAX_TRIES {
                    self.retries.insert(name.to_owned(), now + self.retry_delay(tries));
                }
                let (file, why) = (names::shown(name), &reason);
                tracing::warn!(file, why, tries, "a watched file could not be imported");
                Verdict::Failed { reason, tries, importers }
            }
        };
        if !matches!(verdict, Verdict::Unrecognised { .. }) {
            self.streaks.remove(name);
        }
        let known = Known { stamp, verdict, at: (self.parts.wall)() };
        self.parts.memory.keep(name, &known);
        self.known.insert(name.to_owned(), known);
    }

    /// How often the file failed as it stands.
    fn tries(&mut self, name: &OsStr, stamp: Stamp, importers: &str) -> u32 {
        match self.known_of(name) {
            Some(Known {
                stamp: before, verdict: Verdict::Failed { tries, importers: those, .. }, ..
            }) if *before == stamp && those == importers => *tries,
            _ => 0,
        }
    }

    fn retry_delay(&self, tries: u32) -> Duration {
        backed_off(self.parts.pace.retry, tries, LONGEST_RETRY)
    }
}

/// `first`, and twice as long for each try after the first.
fn backed_off(first: Duration, tries: u32, longest: Duration) -> Duration {
    first.saturating_mul(1 << tries.saturating_sub(1).min(20)).min(longest)
}

#[cfg(test)]
mod tests;
