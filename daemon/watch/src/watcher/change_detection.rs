//! Change detection for a folder: by events of the system, or by polling where the system does not report changes.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::PathBuf,
};

use super::{FolderWatcher, status::WatchProblem};
use crate::{
    notifier::{Notifier, NotifierError},
    settle::MonotonicTime,
};

/// How a folder detects changes.
pub(super) enum ChangeDetection {
    /// Not started yet.
    NotStarted,
    /// The system reports changes.
    Notifications {
        notifier: Box<dyn Notifier>,
        /// The watched subfolders, by the name in the folder that contains them.
        folders: BTreeMap<OsString, Vec<PathBuf>>,
    },
    /// The system reports nothing: the reason, a problem if the user can do something about it, and the time of the
    /// next attempt.
    Polling { reason: String, problem: Option<WatchProblem>, retry_at: MonotonicTime },
}

impl ChangeDetection {
    pub(super) fn has_notifications(&self) -> bool {
        matches!(self, Self::Notifications { .. })
    }

    /// Stops watching the folders under names that no longer exist.
    pub(super) fn retain(&mut self, exists: impl Fn(&OsStr) -> bool) {
        if let Self::Notifications { notifier, folders } = self {
            folders.retain(|name, folders| {
                let keep = exists(name);
                if !keep {
                    folders.iter().for_each(|folder| notifier.unwatch(folder));
                }
                keep
            });
        }
    }
}

impl FolderWatcher {
    /// Starts to listen for events, unless it already does.
    pub(super) fn start_notifications(&mut self, now: MonotonicTime) {
        match &self.change_detection {
            ChangeDetection::Notifications { .. } => return,
            ChangeDetection::Polling { retry_at, .. } if *retry_at > now => return,
            ChangeDetection::NotStarted | ChangeDetection::Polling { .. } => {}
        }
        if self.dependencies.poll || !self.dependencies.fs.reports_changes() {
            let reason = if self.dependencies.poll {
                "the configuration asks for polling"
            } else {
                "its file system does not report changes made by others"
            };
            self.change_detection = ChangeDetection::Polling {
                reason: reason.to_owned(),
                problem: None,
                retry_at: MonotonicTime::MAX,
            };
            return;
        }
        let started = (self.dependencies.notifier_factory)().and_then(|mut notifier| {
            notifier.watch(&self.dependencies.root)?;
            Ok(ChangeDetection::Notifications { notifier, folders: BTreeMap::new() })
        });
        match started {
            Ok(notifications) => self.change_detection = notifications,
            Err(error) => self.fall_back_to_polling(&error, now),
        }
    }

    fn fall_back_to_polling(&mut self, error: &NotifierError, now: MonotonicTime) {
        let problem = WatchProblem::for_notifier(
            &self.dependencies.root,
            error,
            now + self.dependencies.intervals.rescan,
        );
        tracing::warn!(why = problem.message, fix = problem.fix, "a folder is polled");
        self.next_scan = self.next_scan.min(now + self.dependencies.intervals.poll);
        self.change_detection = ChangeDetection::Polling {
            reason: problem.message.clone(),
            retry_at: problem.next_try,
            problem: Some(problem),
        };
    }

    /// Watches the folders below `name`. Returns true if some of them are new.
    pub(super) fn watch_subfolders(&mut self, name: &OsStr, found: Vec<PathBuf>) -> bool {
        let ChangeDetection::Notifications { notifier, folders } = &mut self.change_detection else {
            return false;
        };
        let before = folders.remove(name).unwrap_or_default();
        if found.is_empty() && before.is_empty() {
            return false;
        }
        let mut limit_error = None;
        let mut new = false;
        let mut watched = Vec::with_capacity(found.len());
        for folder in found {
            if before.binary_search(&folder).is_ok() {
                watched.push(folder);
                continue;
            }
            match notifier.watch(&folder) {
                Ok(()) => {
                    new = true;
                    watched.push(folder);
                }
                // The folder was removed or may not be read; inspecting it reports that.
                Err(NotifierError::Other(why)) => tracing::debug!(why, "a folder cannot be watched"),
                Err(limit) => {
                    limit_error = Some(limit);
                    break;
                }
            }
        }
        watched.sort();
        before.iter().filter(|old| watched.binary_search(old).is_err()).for_each(|old| notifier.unwatch(old));
        folders.insert(name.to_owned(), watched);
        if let Some(limit) = limit_error {
            self.fall_back_to_polling(&limit, self.now());
            return false;
        }
        new
    }
}
