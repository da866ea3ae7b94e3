//! What an export is before it is whole: hidden beside its place, held by whoever writes it, and removed if nobody does.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::{FlockOperation, flock};
use uuid::Uuid;

use super::target::new_file;

/// How the names begin; the export's id follows, not the output's name, which may be as long as names may be.
const PREFIX: &str = ".satchel-partial-";
/// An unfinished export that was touched since is left alone, as whoever made it may be about to lock it.
const YOUNG: Duration = Duration::from_mins(1);

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

/// Whether nobody writes it.
fn left_behind(path: &Path) -> io::Result<bool> {
    let about = fs::symlink_metadata(path)?;
    let young = about.modified()?.elapsed().is_ok_and(|age| age < YOUNG);
    if young || about.is_symlink() {
        return Ok(false);
    }
    Ok(flock(File::open(path)?, FlockOperation::NonBlockingLockExclusive).is_ok())
}

fn remove(path: &Path) -> io::Result<()> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
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

    /// As if it was touched an hour ago.
    fn age(path: &Path) {
        let file = File::open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_hours(1)).unwrap();
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
