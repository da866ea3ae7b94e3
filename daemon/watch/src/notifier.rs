//! Change events of the operating system. They are hints only, because systems lose some events.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use notify::{
    Config, ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _,
    event::{AccessKind, AccessMode},
};
use satchel_source::names;

use super::mailbox::Mailbox;

/// The reason why the system does not report changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NotifierError {
    /// The system's limit of watched folders is reached.
    WatchLimit,
    /// The system's limit of watchers is reached.
    InstanceLimit,
    /// Another reason.
    Other(String),
}

/// A source of change events for folders; [`SystemNotifier`] is the real one.
pub(super) trait Notifier: Send {
    /// Starts to report changes in one folder, but not in the folders below it.
    ///
    /// # Errors
    /// If the system refuses.
    fn watch(&mut self, folder: &Path) -> Result<(), NotifierError>;

    /// Stops reporting changes in the folder.
    fn unwatch(&mut self, folder: &Path);
}

/// A function that creates a [`Notifier`] for a folder.
pub(super) type NotifierFactory = Box<dyn Fn() -> Result<Box<dyn Notifier>, NotifierError> + Send>;

/// The event source of the operating system.
pub(super) struct SystemNotifier(RecommendedWatcher);

impl SystemNotifier {
    /// Creates a watcher that reports changes below `root` to `mailbox`: of folders with `sessions` the paths below
    /// `root`, else the names in it.
    ///
    /// # Errors
    /// If the system has no watcher left.
    pub(super) fn new(root: PathBuf, sessions: bool, mailbox: Arc<Mailbox>) -> Result<Self, NotifierError> {
        let config = Config::default().with_follow_symlinks(false);
        let handler = move |result: notify::Result<Event>| match result {
            Ok(event) => forward((&root, sessions), &mailbox, &event),
            Err(error) => {
                tracing::debug!(%error, "an event was lost");
                mailbox.rescan();
            }
        };
        RecommendedWatcher::new(handler, config).map(Self).map_err(notifier_error)
    }
}

impl Notifier for SystemNotifier {
    fn watch(&mut self, folder: &Path) -> Result<(), NotifierError> {
        self.0.watch(folder, RecursiveMode::NonRecursive).map_err(notifier_error)
    }

    fn unwatch(&mut self, folder: &Path) {
        if let Err(error) = self.0.unwatch(folder) {
            // The folder was removed, and its watch with it.
            tracing::trace!(%error, "a folder is no longer watched");
        }
    }
}

fn forward((root, sessions): (&Path, bool), mailbox: &Mailbox, event: &Event) {
    if event.need_rescan() {
        mailbox.overflowed();
        return;
    }
    // Ignore events that are caused by our own opening and reading of files.
    let written = AccessKind::Close(AccessMode::Write);
    if matches!(event.kind, EventKind::Access(kind) if kind != written) {
        return;
    }
    for path in &event.paths {
        match name_in_root((root, sessions), path) {
            Some(name) => {
                // When a partner file disappears, the file beside it may be complete.
                if let Some(finished) = names::completed_name(&name) {
                    mailbox.changed(finished);
                }
                // The newest changes of a database are beside it.
                if let Some(database) = names::database_of_log(&name) {
                    mailbox.changed(database);
                }
                mailbox.changed(&name);
            }
            None => mailbox.rescan(),
        }
    }
}

/// Returns the name in `root` that contains `path`, or of a folder with `sessions` the path below it; `None` for the
/// root itself.
fn name_in_root((root, sessions): (&Path, bool), path: &Path) -> Option<OsString> {
    let rest = path.strip_prefix(root).ok().filter(|rest| *rest != Path::new(""))?;
    if sessions {
        return Some(rest.as_os_str().to_owned());
    }
    rest.components().next().map(|first| first.as_os_str().to_owned())
}

fn notifier_error(error: notify::Error) -> NotifierError {
    match error.kind {
        ErrorKind::MaxFilesWatch => NotifierError::WatchLimit,
        ErrorKind::Io(ref source) => match source.raw_os_error() {
            Some(code) if code == os_code(rustix::io::Errno::NOSPC) => NotifierError::WatchLimit,
            Some(code)
                if [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].map(os_code).contains(&code) =>
            {
                NotifierError::InstanceLimit
            }
            _ => NotifierError::Other(error.to_string()),
        },
        ErrorKind::Generic(_)
        | ErrorKind::PathNotFound
        | ErrorKind::WatchNotFound
        | ErrorKind::InvalidConfig(_) => NotifierError::Other(error.to_string()),
    }
}

fn os_code(error: rustix::io::Errno) -> i32 {
    io::Error::from(error).raw_os_error().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use notify::event::Flag;

    use super::*;

    #[test]
    fn events_name_entries_of_the_folder() {
        let mailbox = Mailbox::default();
        let root = (Path::new("/r"), false);
        let event = |path: &str| Event::new(EventKind::Any).add_path(path.into());
        forward(root, &mailbox, &event("/r/export/conversations.json"));
        forward(root, &mailbox, &event("/r/a.zip.part"));
        forward(root, &mailbox, &event("/r/b.db-wal"));
        let pending = mailbox.wait(std::time::Duration::ZERO, std::time::Duration::ZERO);
        assert!(!pending.rescan);
        assert_eq!(
            pending.names.into_iter().collect::<Vec<_>>(),
            ["a.zip", "a.zip.part", "b.db", "b.db-wal", "export"]
        );
    }

    #[test]
    fn events_in_folders_with_sessions_name_paths() {
        let mailbox = Mailbox::default();
        let root = (Path::new("/r"), true);
        forward(root, &mailbox, &Event::new(EventKind::Any).add_path("/r/project/a.jsonl".into()));
        let pending = mailbox.wait(std::time::Duration::ZERO, std::time::Duration::ZERO);
        assert_eq!(pending.names.into_iter().collect::<Vec<_>>(), ["project/a.jsonl"]);
        forward(root, &mailbox, &Event::new(EventKind::Any).add_path("/r".into()));
        assert!(mailbox.wait(std::time::Duration::ZERO, std::time::Duration::ZERO).rescan);
    }

    #[test]
    fn an_overflow_requests_a_rescan_and_is_counted() {
        let mailbox = Mailbox::default();
        forward((Path::new("/r"), false), &mailbox, &Event::new(EventKind::Other).set_flag(Flag::Rescan));
        let pending = mailbox.wait(std::time::Duration::ZERO, std::time::Duration::ZERO);
        assert!(pending.rescan && pending.overflows == 1);
    }

    #[test]
    fn the_limits_of_the_system_are_distinguished() {
        let io = |code| notifier_error(notify::Error::io(io::Error::from_raw_os_error(code)));
        assert_eq!((io(28), io(24)), (NotifierError::WatchLimit, NotifierError::InstanceLimit));
        assert_eq!(notifier_error(notify::Error::new(ErrorKind::MaxFilesWatch)), NotifierError::WatchLimit);
        assert!(matches!(io(13), NotifierError::Other(_)));
    }
}
