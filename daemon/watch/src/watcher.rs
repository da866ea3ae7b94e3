//! The watcher of one folder, as a state machine. Its inputs are events and the time, its outputs are imports; it never
//! waits.
//!
//! **Invariant:** a name is passed to the imports only when it has settled, and not again with the stamp that it had
//! then (`watcher::tests`).

mod change_detection;
mod imports;
mod known_files;
mod ready_queue;
mod removal;
mod status;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
    time::Duration,
};

pub use self::status::{FileStatus, FolderStatus, WatchProblem, WatchState};
use self::{
    change_detection::ChangeDetection,
    imports::{MAX_RUNNING_IMPORTS, RunningImport, backoff},
    known_files::KnownFiles,
    ready_queue::ReadyQueue,
};
use super::{
    folder_fs::{FolderFs, Inspection},
    mailbox::PendingEvents,
    notifier::NotifierFactory,
    queue::ImportQueue,
    settle::{MonotonicTime, Observation, SettleStep, SettleTracker},
    verdicts::VerdictStore,
};

/// Number of entries that are inspected before the machine takes in new events.
const MAX_INSPECTIONS_PER_STEP: usize = 256;
/// Longest time between two inspections of an entry that cannot be read.
const MAX_PROBLEM_RETRY: Duration = Duration::from_mins(10);
/// The time between two rescans is at least this many times the duration of one, so that rescans use less than a
/// thousandth of a processor.
const SCAN_COST_FACTOR: u32 = 2_000;

/// The intervals of the watcher.
#[derive(Clone, Debug)]
pub struct WatchIntervals {
    /// How long a file must keep its size, time and inode.
    pub quiet: Duration,
    /// Time between two scans of the whole folder.
    pub rescan: Duration,
    /// The same where the system does not report changes.
    pub poll: Duration,
    /// Time between two checks that the folder itself exists and is the same one.
    pub health_check: Duration,
    /// Time before the first retry of a failed file; it doubles with each try.
    pub retry: Duration,
}

impl Default for WatchIntervals {
    fn default() -> Self {
        Self {
            quiet: Duration::from_secs(3),
            rescan: Duration::from_mins(10),
            poll: Duration::from_secs(30),
            health_check: Duration::from_secs(30),
            retry: Duration::from_mins(1),
        }
    }
}

/// The dependencies of a folder's watcher.
pub(super) struct FolderDependencies {
    pub root: PathBuf,
    pub intervals: WatchIntervals,
    /// Whether the names are those of sessions, which are imported while they grow.
    pub sessions: bool,
    /// Poll instead of relying on events from the system.
    pub poll: bool,
    pub fs: Box<dyn FolderFs>,
    pub notifier_factory: NotifierFactory,
    pub queue: Box<dyn ImportQueue>,
    pub verdicts: Box<dyn VerdictStore>,
    /// Returns microseconds since the Unix epoch, for stored entries.
    pub wall_clock: Box<dyn Fn() -> i64 + Send>,
    /// Returns the time since some fixed moment.
    pub clock: Box<dyn Fn() -> MonotonicTime + Send>,
    /// Returns whether the watcher should stop.
    pub stopping: Box<dyn Fn() -> bool + Send>,
}

/// The watcher of one folder.
pub(super) struct FolderWatcher {
    dependencies: FolderDependencies,
    change_detection: ChangeDetection,
    settle: SettleTracker,
    known_files: KnownFiles,
    ready: ReadyQueue,
    importing: BTreeMap<OsString, RunningImport>,
    /// When to inspect a name again that failed, or that is unrecognised and still changes.
    retries: BTreeMap<OsString, MonotonicTime>,
    /// Until when a session is not imported again, so that the imports of a long one that grows take a small part of a
    /// processor.
    pauses: BTreeMap<OsString, MonotonicTime>,
    /// How often a file that keeps changing was unrecognised.
    streaks: BTreeMap<OsString, u32>,
    problems: BTreeMap<OsString, WatchProblem>,
    /// The reason why the folder itself cannot be watched.
    folder_problem: Option<WatchProblem>,
    reinspect: BTreeSet<OsString>,
    /// Names that left the folder and are still in the store's ledger.
    removed: BTreeSet<OsString>,
    identity: Option<(u64, u64)>,
    next_scan: MonotonicTime,
    next_health_check: MonotonicTime,
    next_import_start: MonotonicTime,
    overflows: u64,
    truncated: bool,
    scanned: bool,
}

impl FolderWatcher {
    /// Creates a watcher. It begins with a scan of the whole folder.
    pub(super) fn new(dependencies: FolderDependencies) -> Self {
        let settle = SettleTracker::new(dependencies.intervals.quiet, dependencies.sessions);
        Self {
            dependencies,
            change_detection: ChangeDetection::NotStarted,
            settle,
            known_files: KnownFiles::default(),
            ready: ReadyQueue::default(),
            importing: BTreeMap::new(),
            retries: BTreeMap::new(),
            pauses: BTreeMap::new(),
            streaks: BTreeMap::new(),
            problems: BTreeMap::new(),
            folder_problem: None,
            reinspect: BTreeSet::new(),
            removed: BTreeSet::new(),
            identity: None,
            next_scan: MonotonicTime::ZERO,
            next_health_check: MonotonicTime::ZERO,
            next_import_start: MonotonicTime::ZERO,
            overflows: 0,
            truncated: false,
            scanned: false,
        }
    }

    /// Processes the pending events, and does the work that is due.
    pub(super) fn step(&mut self, pending: PendingEvents) {
        let PendingEvents { names, rescan, overflows, ended_imports, stop } = pending;
        if stop {
            return;
        }
        self.overflows += overflows;
        for (name, outcome) in ended_imports {
            self.import_ended(name, outcome);
        }
        let now = self.now();
        if now >= self.next_health_check {
            self.check_health();
        }
        if rescan || now >= self.next_scan {
            self.scan();
        }
        if self.folder_problem.is_none() {
            let reinspect = std::mem::take(&mut self.reinspect);
            for name in names.into_iter().chain(reinspect) {
                if !self.settle.inspect_early(&name, now) {
                    self.inspect(&name);
                }
            }
            self.inspect_due();
            self.start_imports();
            self.remove_stored_verdicts();
        }
    }

    /// Returns when the next work is due if no event arrives.
    pub(super) fn next(&self) -> MonotonicTime {
        let mut next = self.next_scan.min(self.next_health_check);
        if self.folder_problem.is_some() {
            return next;
        }
        if !self.reinspect.is_empty() {
            return MonotonicTime::ZERO;
        }
        if !self.ready.is_empty() && self.importing.len() < MAX_RUNNING_IMPORTS {
            next = next.min(self.next_import_start);
        }
        let problems = self.problems.values().map(|problem| problem.next_try);
        self.retries
            .values()
            .copied()
            .chain(problems)
            .chain(self.settle.next_inspection())
            .fold(next, MonotonicTime::min)
    }

    fn now(&self) -> MonotonicTime {
        (self.dependencies.clock)()
    }

    /// Checks whether the folder exists and is still the same one.
    fn check_health(&mut self) {
        self.next_health_check = self.now() + self.dependencies.intervals.health_check;
        match self.dependencies.fs.identity() {
            Err(error) => self.mark_broken(&error),
            Ok(identity) if self.identity != Some(identity) || self.folder_problem.is_some() => {
                self.identity = Some(identity);
                self.change_detection = ChangeDetection::NotStarted;
                self.next_scan = MonotonicTime::ZERO;
            }
            Ok(_) => {}
        }
    }

    fn mark_broken(&mut self, error: &io::Error) {
        let tries = self.folder_problem.as_ref().map_or(0, |problem| problem.tries) + 1;
        if tries == 1 {
            tracing::warn!(folder = %self.dependencies.root.display(), %error, "a watched folder cannot be read");
        }
        let now = self.now();
        self.change_detection = ChangeDetection::NotStarted;
        self.folder_problem =
            Some(WatchProblem::for_folder(&self.dependencies.root, error, tries, self.next_health_check));
        self.next_scan = now + self.dependencies.intervals.rescan;
    }

    /// Scans the whole folder.
    fn scan(&mut self) {
        let begun = self.now();
        self.start_notifications(begun);
        let (listed, truncated) = match self.dependencies.fs.list() {
            Ok(listed) => listed,
            Err(error) => return self.mark_broken(&error),
        };
        self.folder_problem = None;
        self.truncated = truncated;
        for name in &listed {
            if (self.dependencies.stopping)() {
                return;
            }
            self.inspect(name);
        }
        self.retain_listed(&listed);
        self.scanned = true;
        let now = self.now();
        let interval = if self.change_detection.has_notifications() {
            self.dependencies.intervals.rescan
        } else {
            self.dependencies.intervals.poll
        };
        self.next_scan = now + interval.max(now.saturating_sub(begun) * SCAN_COST_FACTOR);
    }

    fn inspect(&mut self, name: &OsStr) {
        if self.importing.contains_key(name) {
            // The name is inspected when its import has ended.
            return;
        }
        match self.dependencies.fs.inspect(name) {
            Err(error) => self.record_problem(name, &error),
            Ok(Inspection { observation, folders, related }) => {
                let is_folder = !folders.is_empty();
                if self.watch_subfolders(name, folders) {
                    // Something may have changed between the inspection and the start of the watch.
                    self.reinspect.insert(name.to_owned());
                    if let Ok(Inspection { related, .. }) = self.dependencies.fs.inspect(name) {
                        self.reinspect.extend(related);
                    }
                }
                if !is_folder {
                    self.reinspect.extend(related);
                }
                match observation {
                    None => self.forget(name),
                    Some(observation) => self.process_observation(name, observation),
                }
            }
        }
    }

    fn process_observation(&mut self, name: &OsStr, observation: Observation) {
        let now = self.now();
        if self.ready.contains(name) {
            return;
        }
        if self.needs_no_import(name, observation.stamp, now) {
            self.settle.remove(name);
            self.problems.remove(name);
            return;
        }
        if let Some(at) = self.pauses.get(name).copied().filter(|at| *at > now) {
            self.retries.insert(name.to_owned(), at);
            return;
        }
        if let SettleStep::Check = self.settle.observe(name, observation, now) {
            self.check_complete(name);
        }
    }

    fn check_complete(&mut self, name: &OsStr) {
        let end = match self.dependencies.fs.check_complete(name) {
            Ok(end) => end,
            Err(error) => return self.record_problem(name, &error),
        };
        let Ok(Inspection { observation: Some(after), .. }) = self.dependencies.fs.inspect(name) else {
            return;
        };
        let now = self.now();
        if self.settle.end_checked(name, &after, end, now) {
            self.mark_ready(name, after.stamp);
        }
    }

    fn record_problem(&mut self, name: &OsStr, error: &io::Error) {
        self.settle.remove(name);
        if error.kind() == io::ErrorKind::NotFound {
            return;
        }
        let tries = self.problems.get(name).map_or(0, |problem| problem.tries) + 1;
        let delay = backoff(self.dependencies.intervals.health_check, tries, MAX_PROBLEM_RETRY);
        let problem = WatchProblem::for_file(name, error, tries, self.now() + delay);
        self.problems.insert(name.to_owned(), problem);
    }

    /// Inspects the names that are due.
    fn inspect_due(&mut self) {
        let now = self.now();
        for name in self.settle.due(now, MAX_INSPECTIONS_PER_STEP) {
            if (self.dependencies.stopping)() {
                return;
            }
            self.inspect(&name);
        }
        let retries = self.retries.iter().filter(|(_, at)| **at <= now);
        for name in retries.map(|(name, _)| name.clone()).take(MAX_INSPECTIONS_PER_STEP).collect::<Vec<_>>() {
            self.retry(&name);
        }
        let problems = self.problems.iter().filter(|(_, problem)| problem.next_try <= now);
        for name in problems.map(|(name, _)| name.clone()).take(MAX_INSPECTIONS_PER_STEP).collect::<Vec<_>>()
        {
            self.inspect(&name);
            // The entry can be inspected again. Whether its content can be read is checked when it has settled.
            if let Some(problem) = self.problems.get_mut(&name).filter(|problem| problem.next_try <= now) {
                problem.next_try = now + MAX_PROBLEM_RETRY;
            }
        }
    }
}

#[cfg(test)]
mod tests;
