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
pub(super) enum Deaf {
    /// The system's limit of watched folders is reached.
    Folders,
    /// The system's limit of watchers is reached.
    Watchers,
    /// Another reason.
    Other(String),
}

/// A source of change events for folders; [`Events`] is the real one.
pub(super) trait Hints: Send {
    /// Starts to report changes in one folder, but not in the folders below it.
    ///
    /// # Errors
    /// If the system refuses.
    fn watch(&mut self, folder: &Path) -> Result<(), Deaf>;

    /// Stops reporting changes in the folder.
    fn forget(&mut self, folder: &Path);
}

/// A function that creates [`Hints`] for a folder.
pub(super) type Listen = Box<dyn Fn() -> Result<Box<dyn Hints>, Deaf> + Send>;

/// The event source of the operating system.
pub(super) struct Events(RecommendedWatcher);

impl Events {
    /// Creates a watcher that reports changes below `root` to `mailbox`.
    ///
    /// # Errors
    /// If the system has no watcher left.
    pub(super) fn new(root: PathBuf, mailbox: Arc<Mailbox>) -> Result<Self, Deaf> {
        let config = Config::default().with_follow_symlinks(false);
        let tell = move |told: notify::Result<Event>| match told {
            Ok(event) => tell(&root, &mailbox, &event),
            Err(error) => {
                tracing::debug!(%error, "an event was lost");
                mailbox.rescan();
            }
        };
        RecommendedWatcher::new(tell, config).map(Self).map_err(deaf)
    }
}

impl Hints for Events {
    fn watch(&mut self, folder: &Path) -> Result<(), Deaf> {
        self.0.watch(folder, RecursiveMode::NonRecursive).map_err(deaf)
    }

    fn forget(&mut self, folder: &Path) {
        if let Err(error) = self.0.unwatch(folder) {
            // The folder was removed, and its watch with it.
            tracing::trace!(%error, "a folder is watched no more");
        }
    }
}

fn tell(root: &Path, mailbox: &Mailbox, event: &Event) {
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
        match below(root, path) {
            Some(name) => {
                // When a partner file disappears, the file beside it may be complete.
                if let Some(finished) = names::finished(&name) {
                    mailbox.changed(finished);
                }
                mailbox.changed(&name);
            }
            None => mailbox.rescan(),
        }
    }
}

/// Returns the name in `root` that contains `path`; `None` for the root itself.
fn below(root: &Path, path: &Path) -> Option<OsString> {
    let rest = path.strip_prefix(root).ok()?;
    rest.components().next().map(|first| first.as_os_str().to_owned())
}

fn deaf(error: notify::Error) -> Deaf {
    match error.kind {
        ErrorKind::MaxFilesWatch => Deaf::Folders,
        ErrorKind::Io(ref source) => match source.raw_os_error() {
            Some(code) if code == code_of(rustix::io::Errno::NOSPC) => Deaf::Folders,
            Some(code)
                if [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].map(code_of).contains(&code) =>
            {
                Deaf::Watchers
            }
            _ => Deaf::Other(error.to_string()),
        },
        ErrorKind::Generic(_)
        | ErrorKind::PathNotFound
        | ErrorKind::WatchNotFound
        | ErrorKind::InvalidConfig(_) => Deaf::Other(error.to_string()),
    }
}

fn code_of(error: rustix::io::Errno) -> i32 {
    io::Error::from(error).raw_os_error().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use notify::event::Flag;

    use super::*;

    #[test]
    fn events_name_what_lies_in_the_folder() {
        let mailbox = Mailbox::default();
        let root = Path::new("/r");
        let event = |path: &str| Event::new(EventKind::Any).add_path(path.into());
        tell(root, &mailbox, &event("/r/export/conversations.json"));
        tell(root, &mailbox, &event("/r/a.zip.part"));
        let pending = mailbox.wait(std::time::Duration::ZERO, std::time::Duration::ZERO);
        assert!(!pending.all);
        assert_eq!(pending.names.into_iter().collect::<Vec<_>>(), ["a.zip", "a.zip.part", "export"]);
    }

    #[test]
    fn a_lost_count_looks_at_everything_and_is_counted() {
        let mailbox = Mailbox::default();
        tell(Path::new("/r"), &mailbox, &Event::new(EventKind::Other).set_flag(Flag::Rescan));
        let pending = mailbox.wait(std::time::Duration::ZERO, std::time::Duration::ZERO);
        assert!(pending.all && pending.overflows == 1);
    }

    #[test]
    fn the_limits_of_the_system_are_told_apart() {
        let io = |code| deaf(notify::Error::io(io::Error::from_raw_os_error(code)));
        assert_eq!((io(28), io(24)), (Deaf::Folders, Deaf::Watchers));
        assert_eq!(deaf(notify::Error::new(ErrorKind::MaxFilesWatch)), Deaf::Folders);
        assert!(matches!(io(13), Deaf::Other(_)));
    }
}
