//! The status of a watched folder as shown to users.

use std::{ffi::OsStr, io, path::Path};

use satchel_source::names;

use super::{Ears, Folder, course::MAX_TRIES};
use crate::{
    events::Deaf,
    memory::Verdict,
    settle::{Moment, Wait},
};

/// Number of names of one kind that are listed; the rest is only counted.
const NAMED: usize = 20;

/// A problem that the user should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub message: String,
    /// How to fix it.
    pub fix: String,
    /// How often the problem occurred.
    pub tries: u32,
    /// When the next attempt is made.
    pub next: Moment,
}

/// How a folder is watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
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
pub struct Notice {
    pub name: String,
    /// The problem, or the event that it waits for; empty if the list that holds the notice says enough.
    pub reason: String,
    /// The job that imports it.
    pub job: Option<String>,
    /// When it is tried again.
    pub again: Option<Moment>,
}

/// The status of a watched folder as shown to users. Lists are truncated, counts are not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderView {
    pub state: State,
    pub imported: usize,
    pub unrecognised: usize,
    pub reading: Vec<Notice>,
    /// Number of settled names that wait for an import slot.
    pub queued: usize,
    pub waiting: Vec<Notice>,
    pub waiting_total: usize,
    pub failed: Vec<Notice>,
    pub failed_total: usize,
    pub troubles: Vec<Trouble>,
    /// How often the system lost events.
    pub overflows: u64,
    /// Whether the whole folder was scanned at least once.
    pub scanned: bool,
}

impl Trouble {
    pub(super) fn of_folder(root: &Path, error: &io::Error, tries: u32, next: Moment) -> Self {
        let shown = names::shown(root.as_os_str());
        let (message, fix) = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => (
                format!("the watched folder {shown:?} is not there"),
                "mount its volume or make the folder; it is picked up by itself",
            ),
            io::ErrorKind::PermissionDenied => (
                format!("the watched folder {shown:?} may not be read"),
                "give your user the right to read and enter it; it is picked up by itself",
            ),
            _ => (
                format!("the watched folder {shown:?} cannot be read: {error}"),
                "look at its disk or network; it is picked up by itself",
            ),
        };
        Self { message, fix: fix.to_owned(), tries, next }
    }

    pub(super) fn of_file(name: &OsStr, error: &io::Error, tries: u32, next: Moment) -> Self {
        let shown = names::shown(name);
        let fix = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "give your user the right to read it; it is picked up by itself"
            }
            _ => "it is looked at again by itself; if it is no export, leave it out with `ignore`",
        };
        Self { message: format!("cannot read {shown:?}: {error}"), fix: fix.to_owned(), tries, next }
    }

    pub(super) fn of_ears(root: &Path, deaf: &Deaf, next: Moment) -> Self {
        let shown = names::shown(root.as_os_str());
        let (why, fix) = match deaf {
            Deaf::Folders => (
                "the system's limit of watched folders is reached".to_owned(),
                "sudo sysctl fs.inotify.max_user_watches=524288".to_owned(),
            ),
            Deaf::Watchers => (
                "the system's limit of watchers or open files is reached".to_owned(),
                "sudo sysctl fs.inotify.max_user_instances=1024".to_owned(),
            ),
            Deaf::Other(why) => {
                (format!("the system does not tell of changes: {why}"), "nothing has to be done".to_owned())
            }
        };
        let message = format!("{shown:?} is looked at now and then only: {why}");
        Self { message, fix, tries: 1, next }
    }
}

impl Wait {
    /// Returns the reason in words for users.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Growing => "it has changed a moment ago".to_owned(),
            Self::Downloading => "its download is in progress".to_owned(),
            Self::Empty => "it is empty".to_owned(),
            Self::Unfinished(missing) => format!("unfinished: {missing}"),
        }
    }
}

impl Folder {
    /// Returns the status shown to users.
    pub(crate) fn view(&self) -> FolderView {
        let mut view = FolderView {
            state: self.state(),
            queued: self.ready.len(),
            waiting_total: self.settle.len(),
            overflows: self.overflows,
            scanned: self.scanned,
            ..FolderView::default()
        };
        view.reading = self.busy.iter().map(|(name, busy)| notice(name, "", Some(&busy.job))).collect();
        view.waiting =
            self.settle.waiting().take(NAMED).map(|(name, wait)| notice(name, &wait.words(), None)).collect();
        (view.imported, view.unrecognised) = (self.known.imported(), self.known.unrecognised());
        for (name, known) in self.known.failed().filter(|(name, _)| !self.busy.contains_key(*name)) {
            view.failed_total += 1;
            if let Verdict::Failed(failure) = &known.verdict
                && view.failed.len() < NAMED
            {
                let again = (failure.tries < MAX_TRIES).then(|| self.retries.get(name).copied()).flatten();
                view.failed.push(Notice { again, ..notice(name, &failure.reason, None) });
            }
        }
        let deaf = match &self.ears {
            Ears::Deaf { trouble, .. } => trouble.as_ref(),
            Ears::Closed | Ears::Open { .. } => None,
        };
        let mut troubles: Vec<Trouble> =
            self.broken.iter().chain(deaf).chain(self.troubles.values()).take(NAMED).cloned().collect();
        if self.more {
            troubles.push(self.too_many());
        }
        view.troubles = troubles;
        view
    }

    fn state(&self) -> State {
        match (&self.broken, &self.ears) {
            (Some(_), _) => State::Broken,
            (None, Ears::Closed) => State::Idle,
            (None, Ears::Open { .. }) => State::Watching,
            (None, Ears::Deaf { why, .. }) => State::Polling(why.clone()),
        }
    }

    fn too_many(&self) -> Trouble {
        let (shown, most) = (names::shown(self.parts.root.as_os_str()), crate::scan::MAX_NAMES);
        Trouble {
            message: format!("{shown:?} holds more than {most} files; the rest is not watched"),
            fix: "move some of them into another folder".to_owned(),
            tries: 1,
            next: self.next_scan,
        }
    }
}

fn notice(name: &OsStr, reason: &str, job: Option<&str>) -> Notice {
    Notice { name: names::shown(name), reason: reason.to_owned(), job: job.map(str::to_owned), again: None }
}
