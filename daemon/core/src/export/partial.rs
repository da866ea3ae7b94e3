//! Unfinished exports: hidden next to the output path, locked by the writer, and removed if no process writes them any
//! more.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, Mode, OFlags, flock, open},
    process::geteuid,
};
use uuid::Uuid;

/// Prefix of the names. It is followed by the export's id, not by the output's name, because that name may already have
/// the maximum length.
const PREFIX: &str = ".satchel-partial-";
/// Minimum age of an unfinished export, and of everything in it, before it may be removed. A lock is not visible to
/// another machine that writes to the same share, and a new file may be about to be locked.
const MIN_AGE: Duration = Duration::from_hours(24);
/// Maximum depth of the folders of an export.
const MAX_DEPTH: usize = 8;

/// An unfinished export. It is removed on drop, unless it was moved to its final place.
pub(super) struct PartialExport {
    path: PathBuf,
    /// Holds a lock, so that other processes see that the export is being written.
    _lock: File,
    published: bool,
}

impl PartialExport {
    /// Creates a new file. Returns the guard and the handle to write to.
    pub(super) fn file(parent: &Path, id: &str) -> io::Result<(Self, File)> {
        let path = parent.join(format!("{PREFIX}{id}"));
        let file = new_file(&path)?;
        let partial = Self::new(path, file.try_clone()?);
        Ok((partial, file))
    }

    /// Creates a new folder.
    pub(super) fn folder(parent: &Path, id: &str) -> io::Result<Self> {
        let path = parent.join(format!("{PREFIX}{id}"));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let lock = File::open(&path)?;
        Ok(Self::new(path, lock))
    }

    fn new(path: PathBuf, lock: File) -> Self {
        // On a file system without locks, `remove_abandoned` cannot lock either, and never removes
        // this export.
        if let Err(error) = flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            tracing::debug!(%error, ?path, "an unfinished export is not locked");
        }
        Self { path, _lock: lock, published: false }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Records that the export is in its final place.
    pub(super) fn mark_published(&mut self) {
        self.published = true;
    }
}

impl Drop for PartialExport {
    fn drop(&mut self) {
        if !self.published
            && let Err(error) = remove(&self.path)
        {
            tracing::warn!(%error, path = ?self.path, "an unfinished export stays behind");
        }
    }
}

/// Removes the unfinished exports in a folder that a killed process left behind. A failure to remove one never fails an
/// export.
pub(super) fn remove_abandoned(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if id.is_none_or(|id| Uuid::try_parse(id).is_err()) {
            continue;
        }
        let path = entry.path();
        match is_abandoned(&path).and_then(|left| if left { remove(&path) } else { Ok(()) }) {
            Ok(()) => {}
            Err(error) => tracing::warn!(%error, ?path, "an unfinished export of a kill stays behind"),
        }
    }
}

/// Returns whether the export belongs to this user and no process writes it.
fn is_abandoned(path: &Path) -> io::Result<bool> {
    if !is_owned_by(&fs::symlink_metadata(path)?, geteuid().as_raw()) || modified_recently(path, MAX_DEPTH)? {
        return Ok(false);
    }
    // In a shared folder, another user may have replaced the file in the meantime, so do not block on it and do not
    // follow a link.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    let ours = is_owned_by(&file.metadata()?, geteuid().as_raw());
    Ok(ours && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
}

/// Returns whether the file or folder can be an export of this user.
fn is_owned_by(about: &Metadata, user: u32) -> bool {
    (about.is_file() || about.is_dir()) && about.uid() == user
}

/// Returns whether anything in it was modified recently. A write in a nested folder does not change the time of the
/// outer folder.
fn modified_recently(path: &Path, depth: usize) -> io::Result<bool> {
    let about = fs::symlink_metadata(path)?;
    // A time in the future comes from another machine's clock.
    if about.modified()?.elapsed().map_or(true, |age| age < MIN_AGE) {
        return Ok(true);
    }
    if !about.is_dir() {
        return Ok(false);
    }
    if depth == 0 {
        // No export is that deep, so keep the folder: its creator needs it.
        return Ok(true);
    }
    for child in fs::read_dir(path)? {
        if modified_recently(&child?.path(), depth - 1)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn remove(path: &Path) -> io::Result<()> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

/// Creates a file that only its owner can read.
pub(super) fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::{sync::mpsc, thread, time::SystemTime};

    use rustix::fs::{AtFlags, CWD, FileType, Timespec, Timestamps, mknodat, utimensat};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Sets the modification time to `ago` before now.
    fn set_modified(path: &Path, ago: Duration) {
        let at = (SystemTime::now() - ago).duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let at = Timespec { tv_sec: i64::try_from(at.as_secs()).unwrap(), tv_nsec: 0 };
        let times = Timestamps { last_access: at, last_modification: at };
        utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }

    /// Sets the modification time to two days ago.
    fn age(path: &Path) {
        set_modified(path, Duration::from_hours(48));
    }

    /// Returns the path of an unfinished export.
    fn partial_path(folder: &Path) -> PathBuf {
        folder.join(format!("{PREFIX}{}", Uuid::new_v4()))
    }

    #[test]
    fn an_export_that_another_machine_writes_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = partial_path(folder.path());
        fs::write(&file, "half").unwrap();
        set_modified(&file, Duration::from_hours(2));
        let written = partial_path(folder.path());
        let within = written.join("conversations/c1.json");
        fs::create_dir_all(within.parent().unwrap()).unwrap();
        fs::write(&within, "half").unwrap();
        // Created long ago, and written to since.
        [written.join("conversations").as_path(), &written].into_iter().for_each(age);
        remove_abandoned(folder.path());
        assert!(file.exists(), "nobody here holds it, and it was written within the day");
        assert!(within.exists(), "something in it was written just now");
        [file.as_path(), &within].into_iter().for_each(age);
        remove_abandoned(folder.path());
        assert_eq!(names(folder.path()), Vec::<String>::new());
    }

    #[test]
    fn foreign_files_with_such_a_name_are_neither_opened_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, link) = (partial_path(folder.path()), partial_path(folder.path()));
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let mine = folder.path().join("mine");
        fs::write(&mine, "mine").unwrap();
        std::os::unix::fs::symlink(&mine, &link).unwrap();
        [pipe.as_path(), &link, &mine].into_iter().for_each(age);
        let (done, ended) = mpsc::channel();
        let at = folder.path().to_owned();
        thread::spawn(move || {
            remove_abandoned(&at);
            done.send(()).unwrap();
        });
        ended.recv_timeout(Duration::from_mins(1)).expect("a pipe nobody writes to blocks the removal");
        assert!(pipe.exists() && fs::symlink_metadata(&link).unwrap().is_symlink() && mine.exists());
        let about = fs::metadata(&mine).unwrap();
        assert!(
            is_owned_by(&about, about.uid()) && !is_owned_by(&about, about.uid() + 1),
            "another user's stays"
        );
    }

    #[test]
    fn abandoned_exports_are_removed_and_active_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let ids: Vec<String> = (0..5).map(|_| Uuid::new_v4().to_string()).collect();
        let partial = |n: usize| at(&format!("{PREFIX}{}", ids[n]));
        // Left by a killed process: no process holds them.
        fs::write(partial(0), "half").unwrap();
        fs::create_dir(partial(1)).unwrap();
        fs::write(partial(1).join("memory-store.json"), "half").unwrap();
        age(&partial(1).join("memory-store.json"));
        // A user's own file with another name.
        fs::write(at(".satchel-partial-of-mine"), "mine").unwrap();
        fs::write(partial(2), "just begun").unwrap();
        let (written, file) = PartialExport::file(folder.path(), &ids[3]).unwrap();
        let built = PartialExport::folder(folder.path(), &ids[4]).unwrap();
        for path in [&partial(0), &partial(1), &at(".satchel-partial-of-mine"), &partial(3), &partial(4)] {
            age(path);
        }
        remove_abandoned(folder.path());
        let mut left = vec![".satchel-partial-of-mine".to_owned()];
        left.extend([2, 3, 4].map(|n| format!("{PREFIX}{}", ids[n])));
        left.sort();
        assert_eq!(names(folder.path()), left);
        // The writer may have closed the file and be about to move it to its final place.
        drop(file);
        age(&partial(3));
        remove_abandoned(folder.path());
        assert!(partial(3).exists());
        drop((written, built));
        fs::remove_file(partial(2)).unwrap();
        assert_eq!(names(folder.path()), [".satchel-partial-of-mine"]);
        remove_abandoned(&at("absent"));
    }
}
