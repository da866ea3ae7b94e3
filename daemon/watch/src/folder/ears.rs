//! How a folder hears of changes: by the system, or by looking itself where the system does not tell.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::PathBuf,
};

use super::{Folder, view::Trouble};
use crate::{
    events::{Deaf, Hints},
    settle::Moment,
};

/// How a folder hears of changes.
pub(super) enum Ears {
    /// Not yet.
    Closed,
    /// The system tells.
    Open {
        hints: Box<dyn Hints>,
        /// The folders that it tells of, by the name that they lie under.
        folders: BTreeMap<OsString, Vec<PathBuf>>,
    },
    /// Nobody tells; why, and whether a person can do something about it, and when that is tried again.
    Deaf { why: String, trouble: Option<Trouble>, until: Moment },
}

impl Ears {
    pub(super) fn open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    /// Forgets the folders under names that are there no more.
    pub(super) fn keep(&mut self, there: impl Fn(&OsStr) -> bool) {
        if let Self::Open { hints, folders } = self {
            folders.retain(|name, folders| {
                let keep = there(name);
                if !keep {
                    folders.iter().for_each(|folder| hints.forget(folder));
                }
                keep
            });
        }
    }
}

impl Folder {
    /// Begins to listen, if that is not so yet.
    pub(super) fn hear(&mut self, now: Moment) {
        match &self.ears {
            Ears::Open { .. } => return,
            Ears::Deaf { until, .. } if *until > now => return,
            Ears::Closed | Ears::Deaf { .. } => {}
        }
        if self.parts.poll || !self.parts.disk.tells() {
            let why = if self.parts.poll {
                "the configuration says so"
            } else {
                "its file system does not tell of changes by others"
            };
            self.ears = Ears::Deaf { why: why.to_owned(), trouble: None, until: Moment::MAX };
            return;
        }
        let opened = (self.parts.listen)().and_then(|mut hints| {
            hints.watch(&self.parts.root)?;
            Ok(Ears::Open { hints, folders: BTreeMap::new() })
        });
        match opened {
            Ok(open) => self.ears = open,
            Err(deaf) => self.deafen(&deaf, now),
        }
    }

    fn deafen(&mut self, deaf: &Deaf, now: Moment) {
        let trouble = Trouble::of_ears(&self.parts.root, deaf, now + self.parts.pace.rescan);
        tracing::warn!(why = trouble.message, fix = trouble.fix, "a folder is looked at now and then");
        self.next_scan = self.next_scan.min(now + self.parts.pace.poll);
        self.ears = Ears::Deaf { why: trouble.message.clone(), until: trouble.next, trouble: Some(trouble) };
    }

    /// Listens to the folders below `name`; true: some are new.
    pub(super) fn hear_of(&mut self, name: &OsStr, found: Vec<PathBuf>) -> bool {
        let Ears::Open { hints, folders } = &mut self.ears else { return false };
        let before = folders.remove(name).unwrap_or_default();
        if found.is_empty() && before.is_empty() {
            return false;
        }
        let mut deaf = None;
        let mut new = false;
        let mut heard = Vec::with_capacity(found.len());
        for folder in found {
            if before.binary_search(&folder).is_ok() {
                heard.push(folder);
                continue;
            }
            match hints.watch(&folder) {
                Ok(()) => {
                    new = true;
                    heard.push(folder);
                }
                // It went away, or may not be read; its own look says so.
                Err(Deaf::Other(why)) => tracing::debug!(why, "a folder cannot be listened to"),
                Err(limit) => {
                    deaf = Some(limit);
                    break;
                }
            }
        }
        heard.sort();
        before.iter().filter(|old| heard.binary_search(old).is_err()).for_each(|old| hints.forget(old));
        folders.insert(name.to_owned(), heard);
        if let Some(limit) = deaf {
            self.deafen(&limit, self.now());
            return false;
        }
        new
    }
}
