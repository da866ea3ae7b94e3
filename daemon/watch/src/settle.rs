//! The decision when a file has arrived. Its inputs are inspections and times, its outputs are next steps; it uses no
//! clock and no disk.
//!
//! **Invariant:** a file counts as complete only if two inspections, at least the quiet time apart, found the same
//! size, time and inode, no inspection between them found others, no hold was present, and the end of the file was
//! there (`settle::tests`).

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    time::Duration,
};

/// Time since some fixed moment; it never decreases.
pub(super) type MonotonicTime = Duration;

/// Longest time between two inspections of a file that does not change and is not complete.
const MAX_INTERVAL: Duration = Duration::from_mins(1);
/// How long an unchanging partner file counts as a hold: a browser that crashed leaves its partner file for ever.
const PARTNER_TIMEOUT: Duration = Duration::from_mins(10);
/// The time between inspections is at least this many times the duration of one, so that a walk through a large folder
/// does not occupy a processor.
const INSPECTION_COST_FACTOR: u32 = 20;

/// Size, time and identity of a file, or of all files of a folder. If they are unchanged, the bytes count as unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(super) struct Stamp {
    /// Bytes of all files together.
    pub bytes: u64,
    /// Time of the last modification, in nanoseconds since the Unix epoch.
    pub modified: i64,
    /// The inode of the file on its file system.
    pub inode: u64,
    /// A hash over the names, sizes, times and inodes of everything below, or of what belongs to a file; 0 if there is nothing.
    pub below: u64,
}

/// A sign that the file is still being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// Its own name, or that of a file inside it, is the name of an unfinished download.
    Name,
    /// A partner file of an unfinished download is beside it.
    Partner(Stamp),
    /// It has no bytes yet.
    Empty,
}

/// The result of inspecting a file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Observation {
    pub stamp: Stamp,
    pub hold: Option<Hold>,
    /// How long the inspection took.
    pub took: Duration,
}

/// The reason why a file waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WaitReason {
    /// It changed a moment ago.
    Growing,
    /// A browser is downloading it.
    Downloading,
    /// It has no bytes yet.
    Empty,
    /// Its end is missing; a description of the missing part.
    Unfinished(String),
}

/// The next step for a file after an inspection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SettleStep {
    /// Inspect it again later.
    Wait,
    /// Check whether its end is there.
    Check,
}

/// The files that are not yet known to be complete.
#[derive(Debug)]
pub(super) struct SettleTracker {
    quiet: Duration,
    /// Whether the files are sessions: they are imported while they grow.
    sessions: bool,
    files: BTreeMap<OsString, TrackedFile>,
}

#[derive(Debug)]
struct TrackedFile {
    stamp: Stamp,
    /// When the stamp was first seen.
    stable_since: MonotonicTime,
    hold: Option<Hold>,
    /// When the hold was first seen in its current form.
    held_since: MonotonicTime,
    inspected: MonotonicTime,
    next_inspection: MonotonicTime,
    interval: Duration,
    wait_reason: WaitReason,
}

impl SettleTracker {
    /// Creates the state. A file is quiet when it kept its stamp for `quiet`; a session, when `quiet` has passed since it
    /// was first seen.
    pub(super) fn new(quiet: Duration, sessions: bool) -> Self {
        Self { quiet, sessions, files: BTreeMap::new() }
    }

    /// Processes an inspection.
    pub(super) fn observe(
        &mut self,
        name: &OsStr,
        observation: Observation,
        now: MonotonicTime,
    ) -> SettleStep {
        let Observation { stamp, hold, took } = observation;
        let (quiet, sessions) = (self.quiet, self.sessions);
        let file = self.files.entry(name.to_owned()).or_insert_with(|| TrackedFile {
            stamp,
            stable_since: now,
            hold: hold.clone(),
            held_since: now,
            inspected: now,
            next_inspection: now,
            interval: quiet,
            wait_reason: WaitReason::Growing,
        });
        if file.stamp != stamp && !sessions {
            (file.stable_since, file.interval, file.wait_reason) = (now, quiet, WaitReason::Growing);
        }
        file.stamp = stamp;
        if file.hold != hold {
            (file.hold, file.held_since) = (hold, now);
            // The hold has just disappeared or appeared, so the file was written to a moment ago.
            (file.stable_since, file.interval) = (now, quiet);
        }
        file.inspected = now;
        let quiet_enough = now.saturating_sub(file.stable_since) >= quiet;
        let hold_reason = file.hold_reason(now);
        if let Some(wait) = hold_reason {
            file.wait_reason = wait;
        } else if file.wait_reason != WaitReason::Growing
            && !matches!(file.wait_reason, WaitReason::Unfinished(_))
        {
            file.wait_reason = WaitReason::Growing;
        }
        let cost = took.saturating_mul(INSPECTION_COST_FACTOR);
        if !quiet_enough {
            // Inspect it once when it may be quiet; further events cause further inspections.
            file.next_inspection = (file.stable_since + quiet).max(now + cost);
            return SettleStep::Wait;
        }
        file.interval = (file.interval * 2).min(MAX_INTERVAL.max(quiet));
        file.next_inspection = now + file.interval.max(cost);
        if file.hold_reason(now).is_some() { SettleStep::Wait } else { SettleStep::Check }
    }

    /// Processes the check of the file's end, and the inspection after it. Returns true if the file has arrived; it is
    /// then removed.
    pub(super) fn end_checked(
        &mut self,
        name: &OsStr,
        after: &Observation,
        end: Result<(), String>,
        now: MonotonicTime,
    ) -> bool {
        let Some(file) = self.files.get_mut(name) else { return false };
        if (file.stamp != after.stamp && !self.sessions) || file.hold != after.hold {
            self.observe(name, after.clone(), now);
            return false;
        }
        match end {
            Ok(()) => {
                self.files.remove(name);
                true
            }
            Err(missing) => {
                file.wait_reason = WaitReason::Unfinished(missing);
                false
            }
        }
    }

    /// Schedules an early inspection of a waiting file after an event, no matter how many events there are. Returns
    /// whether the file is waiting.
    pub(super) fn inspect_early(&mut self, name: &OsStr, now: MonotonicTime) -> bool {
        let min_gap = self.quiet / 3;
        self.files.get_mut(name).is_some_and(|file| {
            file.next_inspection = file.next_inspection.min((file.inspected + min_gap).max(now));
            true
        })
    }

    /// Removes a file that no longer exists or does not matter.
    pub(super) fn remove(&mut self, name: &OsStr) {
        self.files.remove(name);
    }

    /// Keeps only the files for which `exists` returns true.
    pub(super) fn retain(&mut self, exists: impl Fn(&OsStr) -> bool) {
        self.files.retain(|name, _| exists(name));
    }

    /// Returns the files that are due for an inspection, at most `limit`.
    pub(super) fn due(&self, now: MonotonicTime, limit: usize) -> Vec<OsString> {
        self.files
            .iter()
            .filter(|(_, file)| file.next_inspection <= now)
            .take(limit)
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Returns when the next inspection is due.
    pub(super) fn next_inspection(&self) -> Option<MonotonicTime> {
        self.files.values().map(|file| file.next_inspection).min()
    }

    /// Returns the number of waiting files.
    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// Returns the waiting files and the reasons.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (&OsStr, &WaitReason)> {
        self.files.iter().map(|(name, file)| (name.as_os_str(), &file.wait_reason))
    }
}

impl TrackedFile {
    /// Returns the reason for waiting that follows from the hold, as long as the hold counts.
    fn hold_reason(&self, now: MonotonicTime) -> Option<WaitReason> {
        match &self.hold {
            None => None,
            Some(Hold::Name) => Some(WaitReason::Downloading),
            Some(Hold::Empty) => Some(WaitReason::Empty),
            Some(Hold::Partner(_)) if now.saturating_sub(self.held_since) >= PARTNER_TIMEOUT => None,
            Some(Hold::Partner(_)) => Some(WaitReason::Downloading),
        }
    }
}

#[cfg(test)]
mod tests;
