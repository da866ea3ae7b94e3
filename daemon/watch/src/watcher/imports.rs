//! Imports of settled names: a name is passed to the imports, and the outcome decides whether and when it is tried
//! again.

use std::{
    ffi::{OsStr, OsString},
    time::Duration,
};

use satchel_source::names;

use super::FolderWatcher;
use crate::{
    outcome::FileOutcome,
    queue::StartError,
    settle::{MonotonicTime, Stamp},
    verdicts::{FailedImport, FileVerdict, KnownFile},
};

/// Imports of one folder that run or wait in the queue. Two run at once, and the next one should be ready when one
/// ends.
pub(super) const MAX_RUNNING_IMPORTS: usize = 4;
/// How often a failing file is tried, unless the file or the importers change; this takes about a day.
pub(super) const MAX_TRIES: u32 = 12;
/// Longest time between two tries.
const MAX_RETRY_DELAY: Duration = Duration::from_hours(6);
/// How often the delay doubles for a file that keeps changing and is never recognised.
const MAX_STREAK: u32 = 8;
/// The time between two imports of a session that grows is at least this many times the duration of one.
const IMPORT_COST_FACTOR: u32 = 8;
/// It is also at least the size of the session divided by this, because each import writes the list of its messages to the
/// journal anew, about a sixtieth of the session: 10 kB a second, however long it is.
const SESSION_BYTES_PER_MILLISECOND: u64 = 600;
/// Longest such time. An import may have waited for others.
const MAX_PAUSE: Duration = Duration::from_mins(1);
/// The same for a database, which may have all conversations of years and is read from its start each time.
const MAX_DATABASE_PAUSE: Duration = Duration::from_mins(10);
/// How long to wait before another attempt when the queue is full.
const QUEUE_FULL_DELAY: Duration = Duration::from_secs(1);

/// A name that is being imported.
pub(super) struct RunningImport {
    pub(super) stamp: Stamp,
    pub(super) job: String,
    pub(super) started: MonotonicTime,
}

impl FolderWatcher {
    /// Returns whether there is nothing to do now for a name with this stamp. Schedules a retry if there is something
    /// to do later.
    pub(super) fn needs_no_import(&mut self, name: &OsStr, stamp: Stamp, now: MonotonicTime) -> bool {
        let importers = self.dependencies.queue.importers();
        let Some(known) = self.known_file(name) else { return false };
        let same = known.stamp == stamp;
        match &known.verdict {
            FileVerdict::Imported | FileVerdict::Cancelled => same,
            FileVerdict::Unrecognised { importers: previous } if same => **previous == *importers,
            FileVerdict::Unrecognised { .. } => self.retries.get(name).is_some_and(|at| *at > now),
            FileVerdict::Failed(failure) if same && *failure.importers == *importers => {
                let tries = failure.tries;
                if tries >= MAX_TRIES {
                    return true;
                }
                let delay = self.retry_delay(tries);
                *self.retries.entry(name.to_owned()).or_insert(now + delay) > now
            }
            FileVerdict::Failed(_) => false,
        }
    }

    pub(super) fn known_file(&mut self, name: &OsStr) -> Option<&KnownFile> {
        if self.known_files.get(name).is_none() {
            let known = self.dependencies.verdicts.load(name)?;
            self.known_files.insert(name, known);
        }
        self.known_files.get(name)
    }

    pub(super) fn mark_ready(&mut self, name: &OsStr, stamp: Stamp) {
        self.problems.remove(name);
        self.retries.remove(name);
        self.ready.push(name, stamp);
    }

    /// Handles a name whose retry is due, because it failed or was not recognised.
    pub(super) fn retry(&mut self, name: &OsStr) {
        self.retries.remove(name);
        let observation =
            self.dependencies.fs.inspect(name).ok().and_then(|inspection| inspection.observation);
        match (observation, self.known_files.get(name)) {
            // The file had settled and was not written to since.
            (Some(observation), Some(KnownFile { stamp, verdict: FileVerdict::Failed(_) }))
                if observation.stamp == *stamp && !self.importing.contains_key(name) =>
            {
                self.mark_ready(name, observation.stamp);
            }
            _ => self.inspect(name),
        }
    }

    /// Passes ready names to the imports, a few at a time.
    pub(super) fn start_imports(&mut self) {
        let now = self.now();
        if now < self.next_import_start {
            return;
        }
        while self.importing.len() < MAX_RUNNING_IMPORTS
            && !(self.dependencies.stopping)()
            && let Some((name, stamp)) = self.ready.pop()
        {
            let observation =
                self.dependencies.fs.inspect(&name).ok().and_then(|inspection| inspection.observation);
            // A session may have grown; another file has to settle again.
            let stamp = match observation {
                Some(observation) if observation.stamp == stamp || self.dependencies.sessions => {
                    observation.stamp
                }
                _ => {
                    self.reinspect.insert(name);
                    continue;
                }
            };
            match self.dependencies.queue.start(&name) {
                Ok(job) => {
                    self.importing.insert(name, RunningImport { stamp, job, started: now });
                }
                Err(StartError::Busy) => {
                    self.ready.put_back(name, stamp);
                    self.next_import_start = now + QUEUE_FULL_DELAY;
                    return;
                }
                Err(StartError::Rejected(reason)) => {
                    self.record_outcome(&name, stamp, FileOutcome::Failed(reason));
                }
            }
        }
    }

    pub(super) fn import_ended(&mut self, name: OsString, outcome: FileOutcome) {
        if let Some(RunningImport { stamp, started, .. }) = self.importing.remove(&name) {
            self.pause(&name, (started, stamp.bytes));
            self.record_outcome(&name, stamp, outcome);
            self.reinspect.insert(name);
        }
    }

    /// Sets when a session of `bytes` bytes whose import has ended may be imported again.
    fn pause(&mut self, name: &OsStr, (started, bytes): (MonotonicTime, u64)) {
        if self.dependencies.sessions {
            let now = self.now();
            let processor = now.saturating_sub(started).saturating_mul(IMPORT_COST_FACTOR);
            let disk = Duration::from_millis(bytes / SESSION_BYTES_PER_MILLISECOND);
            let longest = if names::is_database(name) { MAX_DATABASE_PAUSE } else { MAX_PAUSE };
            let pause = processor.max(disk).min(longest);
            self.pauses.retain(|_, at| *at > now);
            self.pauses.insert(name.to_owned(), now + pause);
        }
    }

    pub(super) fn record_outcome(&mut self, name: &OsStr, stamp: Stamp, outcome: FileOutcome) {
        let now = self.now();
        let importers = self.dependencies.queue.importers();
        self.retries.remove(name);
        let verdict = match outcome {
            FileOutcome::Changed => return,
            FileOutcome::Imported => FileVerdict::Imported,
            FileOutcome::Cancelled => FileVerdict::Cancelled,
            FileOutcome::Unrecognised => {
                let streak = self.streaks.entry(name.to_owned()).or_insert(0);
                *streak = (*streak + 1).min(MAX_STREAK);
                let delay = self.dependencies.intervals.quiet * 2_u32.pow(*streak);
                self.retries.insert(name.to_owned(), now + delay);
                FileVerdict::Unrecognised { importers: importers.into() }
            }
            FileOutcome::Failed(reason) => {
                let tries = self.failed_tries(name, stamp, &importers) + 1;
                if tries < MAX_TRIES {
                    self.retries.insert(name.to_owned(), now + self.retry_delay(tries));
                }
                let (file, why) = (names::shown(name), &reason);
                tracing::warn!(file, why, tries, "a watched file could not be imported");
                FileVerdict::Failed(Box::new(FailedImport { reason, tries, importers: importers.into() }))
            }
        };
        if !matches!(verdict, FileVerdict::Unrecognised { .. }) {
            self.streaks.remove(name);
        }
        let known = KnownFile { stamp, verdict };
        self.dependencies.verdicts.save(name, &known, (self.dependencies.wall_clock)());
        self.known_files.insert(name, known);
    }

    /// Returns how often the file failed with this stamp and these importers.
    pub(super) fn failed_tries(&mut self, name: &OsStr, stamp: Stamp, importers: &str) -> u32 {
        match self.known_file(name) {
            Some(KnownFile { stamp: before, verdict: FileVerdict::Failed(failure) })
                if *before == stamp && *failure.importers == *importers =>
            {
                failure.tries
            }
            _ => 0,
        }
    }

    pub(super) fn retry_delay(&self, tries: u32) -> Duration {
        backoff(self.dependencies.intervals.retry, tries, MAX_RETRY_DELAY)
    }
}

/// Returns `first`, doubled for each try after the first, but at most `longest`.
pub(super) fn backoff(first: Duration, tries: u32, longest: Duration) -> Duration {
    first.saturating_mul(1 << tries.saturating_sub(1).min(20)).min(longest)
}
