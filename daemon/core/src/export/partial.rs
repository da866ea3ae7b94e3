//! What an export is before it is whole: hidden beside its place, held by whoever writes it, and removed if nobody does.

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

/// How the names begin; the export's id follows, not the output's name, which may be as long as names may be.
const PREFIX: &str = ".satchel-partial-";
/// An unfinished export in which something was touched since is left alone: a lock does not reach to another machine that writes
/// it on a share, and whoever made it may be about to lock it.
const YOUNG: Duration = Duration::from_hours(24);
/// How deep the folders of an export lie at most.
const DEPTH: usize = 8;

/// An unfinished export. It goes with this value, unless it was put in its place.
pub(super) struct Partial {
    path: PathBuf,
    /// Locked, so that others see that it is being written.
    _held: File,
    placed: bool,
}

impl Partial {
    /// A new file, and what writes to it.
    pub(super) fn file(parent: &Path, id: &str) -> io::Result<(Self, File)> {
        let path = parent.join(format!("{PREFIX}{id}"));
        let file = new_file(&path)?;
        let partial = Self::of(path, file.try_clone()?);
        Ok((partial, file))
    }

    /// A new folder.
    pub(super) fn folder(parent: &Path, id: &str) -> io::Result<Self> {
        let path = parent.join(format!("{PREFIX}{id}"));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let held = File::open(&path)?;
        Ok(Self::of(path, held))
    }

    fn of(path: PathBuf, held: File) -> Self {
        // Where there are no locks, none is taken for one that nobody holds either.
        if let Err(error) = flock(&held, FlockOperation::NonBlockingLockExclusive) {
            tracing::debug!(%error, ?path, "an unfinished export is not locked");
        }
        Self { path, _held: held, placed: false }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// It stands in its place now.
    pub(super) fn placed(&mut self) {
        self.placed = true;
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.placed
            && let Err(error) = remove(&self.path)
        {
            tracing::warn!(%error, path = ?self.path, "an unfinished export stays behind");
        }
    }
}

/// Removes the unfinished exports in a folder that nobody writes any more, as the program was killed. An export is never refused for
/// what stays.
pub(super) fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if id.is_none_or(|id| Uuid::try_parse(id).is_err()) {
            continue;
        }
        let path = entry.path();
        match left_behind(&path).and_then(|left| if left { remove(&path) } else { Ok(()) }) {
            Ok(()) => {}
            Err(error) => tracing::warn!(%error, ?path, "an unfinished export of a kill stays behind"),
        }
    }
}

/// Whether it is ours, and nobody writes it.
fn left_behind(path: &Path) -> io::Result<bool> {
    if !made_by(&fs::symlink_metadata(path)?, geteuid().as_raw()) || stirs(path, DEPTH)? {
        return Ok(false);
    }
    // In a folder of many people somebody may have put something else there meanwhile: nothing is waited for, no link followed.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    let ours = made_by(&file.metadata()?, geteuid().as_raw());
    Ok(ours && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
}

/// Whether it is something that an export of this user is.
fn made_by(about: &Metadata, user: u32) -> bool {
    (about.is_file() || about.is_dir()) && about.uid() == user
}

/// Whether anything in it was touched lately. What is written in a folder within does not touch the folder.
fn stirs(path: &Path, depth: usize) -> io::Result<bool> {
    let about = fs::symlink_metadata(path)?;
    // A time that is yet to come is of another machine's clock.
    if about.modified()?.elapsed().map_or(true, |age| age < YOUNG) {
        return Ok(true);
    }
    if !about.is_dir() {
        return Ok(false);
    }
    if depth == 0 {
        // No export lies so deep: whoever made it needs it.
        return Ok(true);
    }
    for child in fs::read_dir(path)? {
        if stirs(&child?.path(), depth - 1)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn remove(path: &Path) -> io::Result<()> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

/// Creates a file that only its owner may read.
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

    /// As if it was touched so long ago.
    fn touched(path: &Path, ago: Duration) {
        let at = (SystemTime::now() - ago).duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let at = Timespec { tv_sec: i64::try_from(at.as_secs()).unwrap(), tv_nsec: 0 };
        let times = Timestamps { last_access: at, last_modification: at };
        utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }

    /// As if it was touched two days ago.
    fn age(path: &Path) {
        touched(path, Duration::from_hours(48));
    }

    /// The place of an unfinished export.
    fn place(folder: &Path) -> PathBuf {
        folder.join(format!("{PREFIX}{}", Uuid::new_v4()))
    }

    #[test]
    fn what_another_machine_writes_on_a_share_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = place(folder.path());
        fs::write(&file, "half").unwrap();
        touched(&file, Duration::from_hours(2));
        let written = place(folder.path());
        let within = written.join("conversations/c1.json");
        fs::create_dir_all(within.parent().unwrap()).unwrap();
        fs::write(&within, "half").unwrap();
        // Made long ago, and written in since.
        [written.join("conversations").as_path(), &written].into_iter().for_each(age);
        sweep(folder.path());
        assert!(file.exists(), "nobody here holds it, and it was written within the day");
        assert!(within.exists(), "something in it was written just now");
        [file.as_path(), &within].into_iter().for_each(age);
        sweep(folder.path());
        assert_eq!(names(folder.path()), Vec::<String>::new());
    }

    #[test]
    fn what_somebody_else_put_there_under_such_a_name_is_neither_opened_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, link) = (place(folder.path()), place(folder.path()));
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let mine = folder.path().join("mine");
        fs::write(&mine, "mine").unwrap();
        std::os::unix::fs::symlink(&mine, &link).unwrap();
        [pipe.as_path(), &link, &mine].into_iter().for_each(age);
        let (done, ended) = mpsc::channel();
        let at = folder.path().to_owned();
        thread::spawn(move || {
            sweep(&at);
            done.send(()).unwrap();
        });
        ended.recv_timeout(Duration::from_mins(1)).expect("a pipe nobody writes to holds the sweep");
        assert!(pipe.exists() && fs::symlink_metadata(&link).unwrap().is_symlink() && mine.exists());
        let about = fs::metadata(&mine).unwrap();
        assert!(made_by(&about, about.uid()) && !made_by(&about, about.uid() + 1), "another user's stays");
    }

    #[test]
    fn what_a_kill_left_is_removed_and_what_is_being_written_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let ids: Vec<String> = (0..5).map(|_| Uuid::new_v4().to_string()).collect();
        let partial = |n: usize| at(&format!("{PREFIX}{}", ids[n]));
        // Left by a kill: nobody holds them.
        fs::write(partial(0), "half").unwrap();
        fs::create_dir(partial(1)).unwrap();
        fs::write(partial(1).join("memory-store.json"), "half").unwrap();
        age(&partial(1).join("memory-store.json"));
        // A person's own, by another name.
        fs::write(at(".satchel-partial-of-mine"), "mine").unwrap();
        fs::write(partial(2), "just begun").unwrap();
        let (written, file) = Partial::file(folder.path(), &ids[3]).unwrap();
        let built = Partial::folder(folder.path(), &ids[4]).unwrap();
        for path in [&partial(0), &partial(1), &at(".satchel-partial-of-mine"), &partial(3), &partial(4)] {
            age(path);
        }
        sweep(folder.path());
        let mut left = vec![".satchel-partial-of-mine".to_owned()];
        left.extend([2, 3, 4].map(|n| format!("{PREFIX}{}", ids[n])));
        left.sort();
        assert_eq!(names(folder.path()), left);
        // The writer may be done with the file and yet about to put it in its place.
        drop(file);
        age(&partial(3));
        sweep(folder.path());
        assert!(partial(3).exists());
        drop((written, built));
        fs::remove_file(partial(2)).unwrap();
        assert_eq!(names(folder.path()), [".satchel-partial-of-mine"]);
        sweep(&at("absent"));
    }
}
