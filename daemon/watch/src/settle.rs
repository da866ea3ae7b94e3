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
pub(super) type Moment = Duration;

/// Longest time between two inspections of a file that does not change and is not complete.
const LONGEST: Duration = Duration::from_mins(1);
/// How long an unchanging partner file counts as a hold: a browser that crashed leaves its partner file for ever.
const BELIEVED: Duration = Duration::from_mins(10);
/// The time between inspections is at least this many times the duration of one, so that a walk through a large folder
/// does not occupy a processor.
const LOOK_SHARE: u32 = 20;

/// Size, time and identity of a file, or of all files of a folder. If they are unchanged, the bytes count as unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(super) struct Stamp {
    /// Bytes of all files together.
    pub bytes: u64,
    /// Time of the last modification, in nanoseconds since the Unix epoch.
    pub modified: i64,
    /// The inode of the file on its file system.
    pub inode: u64,
    /// A hash over the names, sizes, times and inodes of everything below; 0 for a file.
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
pub(super) struct Look {
    pub stamp: Stamp,
    pub hold: Option<Hold>,
    /// How long the inspection took.
    pub took: Duration,
}

/// The reason why a file waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wait {
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
pub(super) enum Step {
    /// Inspect it again later.
    Wait,
    /// Check whether its end is there.
    Check,
}

/// The files that are not yet known to be complete.
#[derive(Debug)]
pub(super) struct Settle {
    quiet: Duration,
    files: BTreeMap<OsString, File>,
}

#[derive(Debug)]
struct File {
    stamp: Stamp,
    /// When the stamp was first seen.
    since: Moment,
    hold: Option<Hold>,
    /// When the hold was first seen in its current form.
    held_since: Moment,
    looked: Moment,
    next: Moment,
    gap: Duration,
    wait: Wait,
}

impl Settle {
    /// Creates the state. A file is quiet when it kept its stamp for `quiet`.
    pub(super) fn new(quiet: Duration) -> Self {
        Self { quiet, files: BTreeMap::new() }
    }

    /// Processes an inspection.
    pub(super) fn look(&mut self, name: &OsStr, look: Look, now: Moment) -> Step {
        let Look { stamp, hold, took } = look;
        let quiet = self.quiet;
        let file = self.files.entry(name.to_owned()).or_insert_with(|| File {
            stamp,
            since: now,
            hold: hold.clone(),
            held_since: now,
            looked: now,
            next: now,
            gap: quiet,
            wait: Wait::Growing,
        });
        if file.stamp != stamp {
            (file.stamp, file.since, file.gap, file.wait) = (stamp, now, quiet, Wait::Growing);
        }
        if file.hold != hold {
            (file.hold, file.held_since) = (hold, now);
            // The hold has just disappeared or appeared, so the file was written to a moment ago.
            (file.since, file.gap) = (now, quiet);
        }
        file.looked = now;
        let calm = now.saturating_sub(file.since) >= quiet;
        let held = file.held(now);
        if let Some(wait) = held {
            file.wait = wait;
        } else if file.wait != Wait::Growing && !matches!(file.wait, Wait::Unfinished(_)) {
            file.wait = Wait::Growing;
        }
        let cost = took.saturating_mul(LOOK_SHARE);
        if !calm {
            // Inspect it once when it may be quiet; further events cause further inspections.
            file.next = (file.since + quiet).max(now + cost);
            return Step::Wait;
        }
        file.gap = (file.gap * 2).min(LONGEST.max(quiet));
        file.next = now + file.gap.max(cost);
        if file.held(now).is_some() { Step::Wait } else { Step::Check }
    }

    /// Processes the check of the file's end, and the inspection after it. Returns true if the file has arrived; it is
    /// then removed.
    pub(super) fn checked(
        &mut self,
        name: &OsStr,
        after: &Look,
        whole: Result<(), String>,
        now: Moment,
    ) -> bool {
        let Some(file) = self.files.get_mut(name) else { return false };
        if file.stamp != after.stamp || file.hold != after.hold {
            self.look(name, after.clone(), now);
            return false;
        }
        match whole {
            Ok(()) => {
                self.files.remove(name);
                true
            }
            Err(missing) => {
                file.wait = Wait::Unfinished(missing);
                false
            }
        }
    }

    /// Schedules an early inspection of a waiting file after an event, no matter how many events there are. Returns
    /// whether the file is waiting.
    pub(super) fn touched(&mut self, name: &OsStr, now: Moment) -> bool {
        let soon = self.quiet / 3;
        self.files.get_mut(name).is_some_and(|file| {
            file.next = file.next.min((file.looked + soon).max(now));
            true
        })
    }

    /// Removes a file that no longer exists or does not matter.
    pub(super) fn gone(&mut self, name: &OsStr) {
        self.files.remove(name);
    }

    /// Keeps only the files for which `there` returns true.
    pub(super) fn keep(&mut self, there: impl Fn(&OsStr) -> bool) {
        self.files.retain(|name, _| there(name));
    }

    /// Returns the files that are due for an inspection, at most `most`.
    pub(super) fn due(&self, now: Moment, most: usize) -> Vec<OsString> {
        self.files
            .iter()
            .filter(|(_, file)| file.next <= now)
            .take(most)
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Returns when the next inspection is due.
    pub(super) fn next(&self) -> Option<Moment> {
        self.files.values().map(|file| file.next).min()
    }

    /// Returns the number of waiting files.
    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// Returns the waiting files and the reasons.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (&OsStr, &Wait)> {
        self.files.iter().map(|(name, file)| (name.as_os_str(), &file.wait))
    }
}

impl File {
    /// Returns the reason for waiting that follows from the hold, as long as the hold counts.
    fn held(&self, now: Moment) -> Option<Wait> {
        match &self.hold {
            None => None,
            Some(Hold::Name) => Some(Wait::Downloading),
            Some(Hold::Empty) => Some(Wait::Empty),
            Some(Hold::Partner(_)) if now.saturating_sub(self.held_since) >= BELIEVED => None,
            Some(Hold::Partner(_)) => Some(Wait::Downloading),
        }
    }
}

#[cfg(test)]
mod tests;
