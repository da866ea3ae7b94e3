//! Change detection for a folder: by events of the system, or by polling where the system does not report changes.

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

/// How a folder detects changes.
pub(super) enum Ears {
    /// Not started yet.
    Closed,
    /// The system reports changes.
    Open {
        hints: Box<dyn Hints>,
        /// The watched subfolders, by the name in the folder that contains them.
        folders: BTreeMap<OsString, Vec<PathBuf>>,
    },
    /// The system reports nothing: the reason, a trouble if the user can do something about it, and the time of the
    /// next attempt.
    Deaf { why: String, trouble: Option<Trouble>, until: Moment },
}

impl Ears {
    pub(super) fn open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    /// Stops watching the folders under names that no longer exist.
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
    /// Starts to listen for events, unless it already does.
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

    /// Watches the folders below `name`. Returns true if some of them are new.
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
                // The folder was removed or may not be read; inspecting it reports that.
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
