//! Imports of settled names: a name is passed to the imports, and the outcome decides whether and when it is tried
//! again.

use std::{
    ffi::{OsStr, OsString},
    time::Duration,
};

use satchel_source::names;

use super::Folder;
use crate::{
    memory::{Failure, Known, Verdict},
    queue::{Outcome, Refused},
    settle::{Moment, Stamp},
};

/// Imports of one folder that run or wait in the queue. Two run at once, and the next one should be ready when one
/// ends.
pub(super) const FEED: usize = 4;
/// How often a failing file is tried, unless the file or the importers change; this takes about a day.
pub(super) const MAX_TRIES: u32 = 12;
/// Longest time between two tries.
const LONGEST_RETRY: Duration = Duration::from_hours(6);
/// How often the delay doubles for a file that keeps changing and is never recognised.
const MAX_STREAK: u32 = 8;
/// How long to wait before another attempt when the queue is full.
const BUSY: Duration = Duration::from_secs(1);

/// A name that is being imported.
pub(super) struct Busy {
    pub(super) stamp: Stamp,
    pub(super) job: String,
}

impl Folder {
    /// Returns whether there is nothing to do now for a name with this stamp. Schedules a retry if there is something
    /// to do later.
    pub(super) fn done_with(&mut self, name: &OsStr, stamp: Stamp, now: Moment) -> bool {
        let importers = self.parts.queue.importers();
        let Some(known) = self.known_of(name) else { return false };
        let same = known.stamp == stamp;
        match &known.verdict {
            Verdict::Imported | Verdict::Cancelled => same,
            Verdict::Unrecognised { importers: those } if same => **those == *importers,
            Verdict::Unrecognised { .. } => self.retries.get(name).is_some_and(|at| *at > now),
            Verdict::Failed(failure) if same && *failure.importers == *importers => {
                let tries = failure.tries;
                if tries >= MAX_TRIES {
                    return true;
                }
                let delay = self.retry_delay(tries);
                *self.retries.entry(name.to_owned()).or_insert(now + delay) > now
            }
            Verdict::Failed(_) => false,
        }
    }

    pub(super) fn known_of(&mut self, name: &OsStr) -> Option<&Known> {
        if self.known.get(name).is_none() {
            let known = self.parts.memory.recall(name)?;
            self.known.insert(name, known);
        }
        self.known.get(name)
    }

    pub(super) fn is_ready(&mut self, name: &OsStr, stamp: Stamp) {
        self.troubles.remove(name);
        self.retries.remove(name);
        self.ready.push(name, stamp);
    }

    /// Handles a name whose retry is due, because it failed or was not recognised.
    pub(super) fn retry(&mut self, name: &OsStr) {
        self.retries.remove(name);
        let look = self.parts.disk.look(name).ok().and_then(|sight| sight.look);
        match (look, self.known.get(name)) {
            // The file had settled and was not written to since.
            (Some(look), Some(Known { stamp, verdict: Verdict::Failed(_) }))
                if look.stamp == *stamp && !self.busy.contains_key(name) =>
            {
                self.is_ready(name, look.stamp);
            }
            _ => self.visit(name),
        }
    }

    /// Passes ready names to the imports, a few at a time.
    pub(super) fn feed(&mut self) {
        let now = self.now();
        if now < self.next_feed {
            return;
        }
        while self.busy.len() < FEED
            && !(self.parts.stopping)()
            && let Some((name, stamp)) = self.ready.pop()
        {
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
                    self.ready.put_back(name, stamp);
                    self.next_feed = now + BUSY;
                    return;
                }
                Err(Refused::Never(reason)) => self.conclude(&name, stamp, Outcome::Failed(reason)),
            }
        }
    }

    pub(super) fn ended(&mut self, name: OsString, outcome: Outcome) {
        if let Some(Busy { stamp, .. }) = self.busy.remove(&name) {
            self.conclude(&name, stamp, outcome);
            self.again.insert(name);
        }
    }

    pub(super) fn conclude(&mut self, name: &OsStr, stamp: Stamp, outcome: Outcome) {
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
                Verdict::Unrecognised { importers: importers.into() }
            }
            Outcome::Failed(reason) => {
                let tries = self.tries(name, stamp, &importers) + 1;
                if tries < MAX_TRIES {
                    self.retries.insert(name.to_owned(), now + self.retry_delay(tries));
                }
                let (file, why) = (names::shown(name), &reason);
                tracing::warn!(file, why, tries, "a watched file could not be imported");
                Verdict::Failed(Box::new(Failure { reason, tries, importers: importers.into() }))
            }
        };
        if !matches!(verdict, Verdict::Unrecognised { .. }) {
            self.streaks.remove(name);
        }
        let known = Known { stamp, verdict };
        self.parts.memory.keep(name, &known, (self.parts.wall)());
        self.known.insert(name, known);
    }

    /// Returns how often the file failed with this stamp and these importers.
    pub(super) fn tries(&mut self, name: &OsStr, stamp: Stamp, importers: &str) -> u32 {
        match self.known_of(name) {
            Some(Known { stamp: before, verdict: Verdict::Failed(failure) })
                if *before == stamp && *failure.importers == *importers =>
            {
                failure.tries
            }
            _ => 0,
        }
    }

    pub(super) fn retry_delay(&self, tries: u32) -> Duration {
        backed_off(self.parts.pace.retry, tries, LONGEST_RETRY)
    }
}

/// Returns `first`, doubled for each try after the first, but at most `longest`.
pub(super) fn backed_off(first: Duration, tries: u32, longest: Duration) -> Duration {
    first.saturating_mul(1 << tries.saturating_sub(1).min(20)).min(longest)
}
