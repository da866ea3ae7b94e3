//! The status of a watched folder as shown to users.

use std::{ffi::OsStr, io, path::Path};

use satchel_source::names;

use super::{ChangeDetection, FolderWatcher, imports::MAX_TRIES};
use crate::{
    notifier::NotifierError,
    settle::{MonotonicTime, WaitReason},
    verdicts::FileVerdict,
};

/// Number of names of one kind that are listed; the rest is only counted.
const MAX_LISTED: usize = 20;

/// A problem that the user should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchProblem {
    pub message: String,
    /// How to fix it.
    pub fix: String,
    /// How often the problem occurred.
    pub tries: u32,
    /// When the next attempt is made.
    pub next_try: MonotonicTime,
}

/// How a folder is watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WatchState {
    /// Not watched: no daemon runs, or it has not started to watch.
    #[default]
    Idle,
    /// The system reports changes.
    Watching,
    /// The folder is polled; the reason.
    Polling(String),
    /// The folder cannot be read.
    Broken,
}

/// One file or folder in a watched folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatus {
    pub name: String,
    /// The problem, or the event that it waits for; empty if the list that holds the notice says enough.
    pub reason: String,
    /// The job that imports it.
    pub job: Option<String>,
    /// When it is tried again.
    pub retry_at: Option<MonotonicTime>,
}

/// The status of a watched folder as shown to users. Lists are truncated, counts are not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderStatus {
    pub state: WatchState,
    pub imported: usize,
    pub unrecognised: usize,
    pub reading: Vec<FileStatus>,
    /// Number of settled names that wait for an import slot.
    pub queued: usize,
    pub waiting: Vec<FileStatus>,
    pub waiting_total: usize,
    pub failed: Vec<FileStatus>,
    pub failed_total: usize,
    pub problems: Vec<WatchProblem>,
    /// How often the system lost events.
    pub overflows: u64,
    /// Whether the whole folder was scanned at least once.
    pub scanned: bool,
}

impl WatchProblem {
    pub(super) fn for_folder(root: &Path, error: &io::Error, tries: u32, next_try: MonotonicTime) -> Self {
        let shown = names::shown(root.as_os_str());
        let (message, fix) = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => (
                format!("the watched folder {shown:?} does not exist"),
                "mount its volume or create the folder; it is detected automatically",
            ),
            io::ErrorKind::PermissionDenied => (
                format!("you may not read the watched folder {shown:?}"),
                "give your user the right to read and enter it; it is retried automatically",
            ),
            _ => (
                format!("the watched folder {shown:?} cannot be read: {error}"),
                "check its disk or network; it is retried automatically",
            ),
        };
        Self { message, fix: fix.to_owned(), tries, next_try }
    }

    pub(super) fn for_file(name: &OsStr, error: &io::Error, tries: u32, next_try: MonotonicTime) -> Self {
        let shown = names::shown(name);
        let fix = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "give your user the right to read it; it is retried automatically"
            }
            _ => "it is retried automatically; if it is not an export, exclude it with `ignore`",
        };
        Self { message: format!("cannot read {shown:?}: {error}"), fix: fix.to_owned(), tries, next_try }
    }

    pub(super) fn for_notifier(root: &Path, error: &NotifierError, next_try: MonotonicTime) -> Self {
        let shown = names::shown(root.as_os_str());
        let (why, fix) = match error {
            NotifierError::WatchLimit => (
                "the system's limit of watched folders is reached".to_owned(),
                "sudo sysctl fs.inotify.max_user_watches=524288".to_owned(),
            ),
            NotifierError::InstanceLimit => (
                "the system's limit of watchers or open files is reached".to_owned(),
                "sudo sysctl fs.inotify.max_user_instances=1024".to_owned(),
            ),
            NotifierError::Other(why) => {
                (format!("the system does not report changes: {why}"), "no action is needed".to_owned())
            }
        };
        let message = format!("{shown:?} is polled instead of watched: {why}");
        Self { message, fix, tries: 1, next_try }
    }
}

impl WaitReason {
    /// Returns the reason in words for users.
    pub(super) fn message(&self) -> String {
        match self {
            Self::Growing => "it changed a moment ago".to_owned(),
            Self::Downloading => "its download is in progress".to_owned(),
            Self::Empty => "it is empty".to_owned(),
            Self::Unfinished(missing) => format!("unfinished: {missing}"),
        }
    }
}

impl FolderWatcher {
    /// Returns the status shown to users.
    pub(crate) fn status(&self) -> FolderStatus {
        let mut status = FolderStatus {
            state: self.state(),
            queued: self.ready.len(),
            waiting_total: self.settle.len(),
            overflows: self.overflows,
            scanned: self.scanned,
            ..FolderStatus::default()
        };
        status.reading =
            self.importing.iter().map(|(name, import)| file_status(name, "", Some(&import.job))).collect();
        status.waiting = self
            .settle
            .waiting()
            .take(MAX_LISTED)
            .map(|(name, wait)| file_status(name, &wait.message(), None))
            .collect();
        (status.imported, status.unrecognised) =
            (self.known_files.imported(), self.known_files.unrecognised());
        for (name, known) in self.known_files.failed().filter(|(name, _)| !self.importing.contains_key(*name))
        {
            status.failed_total += 1;
            if let FileVerdict::Failed(failure) = &known.verdict
                && status.failed.len() < MAX_LISTED
            {
                let retry_at = (failure.tries < MAX_TRIES).then(|| self.retries.get(name).copied()).flatten();
                status.failed.push(FileStatus { retry_at, ..file_status(name, &failure.reason, None) });
            }
        }
        let notifier_problem = match &self.change_detection {
            ChangeDetection::Polling { problem, .. } => problem.as_ref(),
            ChangeDetection::NotStarted | ChangeDetection::Notifications { .. } => None,
        };
        let mut problems: Vec<WatchProblem> = self
            .folder_problem
            .iter()
            .chain(notifier_problem)
            .chain(self.problems.values())
            .take(MAX_LISTED)
            .cloned()
            .collect();
        if self.truncated {
            problems.push(self.too_many_files());
        }
        status.problems = problems;
        status
    }

    fn state(&self) -> WatchState {
        match (&self.folder_problem, &self.change_detection) {
            (Some(_), _) => WatchState::Broken,
            (None, ChangeDetection::NotStarted) => WatchState::Idle,
            (None, ChangeDetection::Notifications { .. }) => WatchState::Watching,
            (None, ChangeDetection::Polling { reason, .. }) => WatchState::Polling(reason.clone()),
        }
    }

    fn too_many_files(&self) -> WatchProblem {
        let (shown, limit) = (names::shown(self.dependencies.root.as_os_str()), crate::scan::MAX_NAMES);
        WatchProblem {
            message: format!("{shown:?} contains more than {limit} files; the rest is not watched"),
            fix: "move some of them into another folder".to_owned(),
            tries: 1,
            next_try: self.next_scan,
        }
    }
}

fn file_status(name: &OsStr, reason: &str, job: Option<&str>) -> FileStatus {
    FileStatus {
        name: names::shown(name),
        reason: reason.to_owned(),
        job: job.map(str::to_owned),
        retry_at: None,
    }
}
