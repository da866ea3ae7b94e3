//! An unfinished backup. It is a file without a name if the system supports that, so that a killed process leaves
//! nothing behind. It contains all data and the signing key.

use std::{
    fs::{self, File, Metadata},
    io::{self, Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, Mode, OFlags, flock},
    process::geteuid,
};
use tempfile::NamedTempFile;

/// Prefix of the names of unfinished backups, including those of older programs.
const PREFIX: &str = ".satchel-backup-";
/// Prefix of the names of unfinished backups that are locked while they are written.
const LOCKED: &str = ".satchel-backup-locked-";
/// Age after which an unfinished backup without a lock is considered abandoned. It is long because a large store is
/// read for a long time before anything is written.
const STALE: Duration = Duration::from_hours(24);

/// A file that is being written.
pub(super) enum PartialBackup {
    /// A file without a name; it disappears with the process, however that ends.
    #[cfg(target_os = "linux")]
    Unnamed(File),
    /// A file that is removed on drop, or by [`remove_abandoned`] after the process was killed. The second handle holds the lock.
    Named(NamedTempFile, File),
}

/// Creates a file in `folder`, mode 0600.
pub(super) fn create(folder: &Path) -> io::Result<PartialBackup> {
    #[cfg(target_os = "linux")]
    if let Some(file) = unnamed(folder) {
        return Ok(PartialBackup::Unnamed(file));
    }
    named(folder)
}

/// Creates a file without a name. Returns `None` if the file system has no such files, or if there is no way to give it
/// a name later.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR).ok()?);
    fs::metadata(proc_path(&file)).is_ok().then_some(file)
}

#[cfg(target_os = "linux")]
fn proc_path(file: &File) -> String {
    format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file))
}

fn named(folder: &Path) -> io::Result<PartialBackup> {
    let file = tempfile::Builder::new().prefix(LOCKED).tempfile_in(folder)?;
    let lock = file.as_file().try_clone()?;
    if let Err(error) = flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        tracing::debug!(%error, "an unfinished backup is not locked");
    }
    Ok(PartialBackup::Named(file, lock))
}

impl PartialBackup {
    pub(super) fn as_file(&self) -> &File {
        match self {
            #[cfg(target_os = "linux")]
            Self::Unnamed(file) => file,
            Self::Named(file, _) => file.as_file(),
        }
    }

    /// Gives the file its final name, which must not exist.
    pub(super) fn publish(self, output: &Path) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Unnamed(file) => {
                use rustix::fs::{AtFlags, CWD, linkat};
                Ok(linkat(CWD, proc_path(&file), CWD, output, AtFlags::SYMLINK_FOLLOW)?)
            }
            Self::Named(file, _lock) => file.persist_noclobber(output).map(drop).map_err(|error| error.error),
        }
    }
}

impl Write for PartialBackup {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.as_file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.as_file().flush()
    }
}

impl Seek for PartialBackup {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.as_file().seek(to)
    }
}

/// Removes the unfinished backups in a folder that a killed process left behind, and logs those that remain. A failure
/// to remove one never fails a backup.
pub(super) fn remove_abandoned(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else { continue };
        let path = entry.path();
        match is_abandoned(&path, name.starts_with(LOCKED)) {
            Ok(true) => {
                if let Err(error) = fs::remove_file(&path) {
                    tracing::warn!(%error, ?path, "an unfinished backup stays behind, with all data in it; remove it");
                }
            }
            Ok(false) => {
                tracing::warn!(?path, "an unfinished backup lies here; remove it if none is being written");
            }
            Err(error) => tracing::warn!(%error, ?path, "an unfinished backup cannot be looked at"),
        }
    }
}

/// Returns whether the file belongs to this user and no process writes it.
fn is_abandoned(path: &Path, locks: bool) -> io::Result<bool> {
    let ours = |about: &Metadata| about.is_file() && about.uid() == geteuid().as_raw();
    let about = fs::symlink_metadata(path)?;
    if !ours(&about) {
        return Ok(false);
    }
    if !locks {
        return Ok(about.modified()?.elapsed().is_ok_and(|age| age > STALE));
    }
    // Another user may have replaced the file in the meantime, so do not block on it and do not follow a link.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    Ok(ours(&file.metadata()?) && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn an_unfinished_backup_has_no_name_and_never_replaces_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (begin, output) in [(create as fn(&Path) -> _, "one.zip"), (named, "two.zip")] {
            let mut partial = begin(folder.path()).unwrap();
            partial.write_all(b"whole").unwrap();
            #[cfg(target_os = "linux")]
            if matches!(partial, PartialBackup::Unnamed(_)) {
                assert!(!names(folder.path()).iter().any(|name| name.starts_with(PREFIX)));
            }
            partial.publish(&at(output)).unwrap();
            assert_eq!(fs::read(at(output)).unwrap(), b"whole");
            assert_eq!(fs::metadata(at(output)).unwrap().mode() & 0o777, 0o600);
            let again = begin(folder.path()).unwrap().publish(&at(output));
            assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        }
        assert_eq!(names(folder.path()), ["one.zip", "two.zip"]);
    }

    #[test]
    fn abandoned_backups_are_removed_and_active_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let old = SystemTime::now() - Duration::from_hours(48);
        for name in
            [".satchel-backup-old", ".satchel-backup-young", ".satchel-backup-locked-left", "mine.zip"]
        {
            let file = File::create(at(name)).unwrap();
            if name != ".satchel-backup-young" {
                file.set_modified(old).unwrap();
            }
        }
        std::os::unix::fs::symlink(at("mine.zip"), at(".satchel-backup-locked-link")).unwrap();
        let written = named(folder.path()).unwrap();
        remove_abandoned(folder.path());
        let left = names(folder.path());
        assert_eq!(left.len(), 4, "{left:?}");
        drop(written);
        assert_eq!(
            names(folder.path()),
            [".satchel-backup-locked-link", ".satchel-backup-young", "mine.zip"]
        );
    }
}
