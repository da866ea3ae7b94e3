//! Decides when a file has arrived: what was seen and when goes in, what to do comes out; no clock, no disk.
//!
//! **Invariant:** a file is only called whole after two looks, at least the quiet time apart, found the same size, time and inode,
//! no look between them found others, nothing held it, and its own end was there (`settle::tests`).

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    time::Duration,
};

/// Time since some fixed moment; never falls.
pub(super) type Moment = Duration;

/// Longest time between two looks at what does not change and is not whole either.
const LONGEST: Duration = Duration::from_mins(1);
/// How long something that holds a file, and does not change, is believed: a browser that died leaves its partner file for ever.
const BELIEVED: Duration = Duration::from_mins(10);
/// A look may take this part of the time between looks: a walk through a large folder must not fill a processor.
const LOOK_SHARE: u32 = 20;

/// Size, time and identity of a file, or of all files of a folder: if all stay, the bytes did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(super) struct Stamp {
    /// Bytes of all files.
    pub bytes: u64,
    /// When it was last written; nanoseconds since the Unix epoch.
    pub modified: i64,
    /// Which file it is on its file system.
    pub inode: u64,
    /// A hash over names, sizes, times and inodes of what lies below; 0 for a file.
    pub below: u64,
}

/// What says that somebody still writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// Its own name is that of an unfinished download, or of one inside it.
    Name,
    /// Such a file stands beside it.
    Partner(Stamp),
    /// It has no byte yet.
    Empty,
}

/// One look at a file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub stamp: Stamp,
    pub hold: Option<Hold>,
    /// How long the look took.
    pub took: Duration,
}

/// Why a file waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// It has changed a moment ago.
    Growing,
    /// A browser is at work.
    Downloading,
    /// It has no byte yet.
    Empty,
    /// Its end is not there; what is missing.
    Unfinished(String),
}

/// What to do with a file after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Look again later.
    Wait,
    /// See whether its end is there.
    Check,
}

/// Files that are not known to be whole.
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
    /// When what holds it was first seen as it is.
    held_since: Moment,
    looked: Moment,
    next: Moment,
    gap: Duration,
    wait: Wait,
}

impl Settle {
    /// Files are quiet when they kept their stamp for `quiet`.
    pub(super) fn new(quiet: Duration) -> Self {
        Self { quiet, files: BTreeMap::new() }
    }

    /// Takes a look into account.
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
            // What held it is gone, or has only just come: the writer was here a moment ago.
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
            // One look when it may be quiet; its events bring others.
            file.next = (file.since + quiet).max(now + cost);
            return Step::Wait;
        }
        file.gap = (file.gap * 2).min(LONGEST.max(quiet));
        file.next = now + file.gap.max(cost);
        if file.held(now).is_some() { Step::Wait } else { Step::Check }
    }

    /// Takes into account whether its end was there, and how it looked after that; true: it has arrived, and is let go.
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

    /// Something happened to a file that waits: it is looked at soon, however often that is said.
    pub(super) fn touched(&mut self, name: &OsStr, now: Moment) -> bool {
        let soon = self.quiet / 3;
        self.files.get_mut(name).is_some_and(|file| {
            file.next = file.next.min((file.looked + soon).max(now));
            true
        })
    }

    /// It is there no more, or is none of ours.
    pub(super) fn gone(&mut self, name: &OsStr) {
        self.files.remove(name);
    }

    /// Keeps only those that `there` knows.
    pub(super) fn keep(&mut self, there: impl Fn(&OsStr) -> bool) {
        self.files.retain(|name, _| there(name));
    }

    /// The files to be looked at, at most `most`.
    pub(super) fn due(&self, now: Moment, most: usize) -> Vec<OsString> {
        self.files
            .iter()
            .filter(|(_, file)| file.next <= now)
            .take(most)
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// When the next one is to be looked at.
    pub(super) fn next(&self) -> Option<Moment> {
        self.files.values().map(|file| file.next).min()
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// Those that wait, and why.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (&OsStr, &Wait)> {
        self.files.iter().map(|(name, file)| (name.as_os_str(), &file.wait))
    }
}

impl File {
    /// What holds it, as long as that is believed.
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
