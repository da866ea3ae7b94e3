//! Inspection of a watched folder that never leaves it: symbolic links are not followed, and only regular files are
//! opened.
//!
//! Every folder is opened by its name relative to the open parent folder, never by its path. So the inspection stays
//! inside even if a folder is replaced by a link (`symbolic_links_are_not_followed`,
//! `a_folder_swapped_for_a_link_is_not_followed` in `scan::tests`).

mod os_folder;
mod session_folder;

use std::{
    collections::hash_map::DefaultHasher,
    ffi::{OsStr, OsString},
    fs::File,
    hash::{Hash, Hasher},
    io,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    time::Instant,
};

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{AtFlags, FileType, Mode, OFlags, Stat},
};
use satchel_source::{completeness, names};

pub(super) use self::{os_folder::OsFolder, session_folder::SessionFolder};
use super::{
    folder_fs::{FolderFs, Inspection},
    settle::{Hold, Observation, Stamp},
};

/// Largest number of names listed of a watched folder.
pub(super) const MAX_NAMES: usize = 100_000;
/// Largest number of files and folders below one entry that are inspected. An export has at most this many, a disk
/// image has more.
const MAX_BELOW: usize = 100_000;
/// Largest nesting depth of folders, the same as for intake.
const MAX_DEPTH: usize = 32;
/// Number of files in a folder that are checked for their ends.
const MAX_CHECKED_FILES: usize = 2_000;

impl FolderFs for OsFolder {
    fn identity(&self) -> io::Result<(u64, u64)> {
        let stat = rustix::fs::fstat(self.open_root()?)?;
        Ok((stat.st_dev, stat.st_ino))
    }

    fn reports_changes(&self) -> bool {
        self.has_change_events()
    }

    fn list(&self) -> io::Result<(Vec<OsString>, bool)> {
        let mut names = Vec::new();
        let mut truncated = false;
        for_each_entry(self.open_root()?, &mut |name, _| {
            truncated = names.len() >= MAX_NAMES;
            if !truncated && !self.is_ignored(name) {
                names.push(name.to_owned());
            }
            Ok(!truncated)
        })?;
        names.sort();
        Ok((names, truncated))
    }

    fn inspect(&self, name: &OsStr) -> io::Result<Inspection> {
        if self.is_ignored(name) {
            return Ok(Inspection::default());
        }
        let begun = Instant::now();
        let root = self.open_root()?;
        let Some(stat) = stat_at(&root, name)? else { return Ok(Inspection::default()) };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                let observation = inspect_file(&root, name, &stat);
                Ok(Inspection {
                    observation: observation.map(|(stamp, hold)| Observation {
                        stamp,
                        hold,
                        took: begun.elapsed(),
                    }),
                    ..Inspection::default()
                })
            }
            FileType::Directory if self.recursive() && !self.is_data_dir(&stat) => {
                let mut walk = FolderWalk::new(self);
                walk.walk_folder(open_folder(&root, name)?, self.root().join(name), 0)?;
                let stamp = walk.stamp(&stat);
                let hold = (walk.unfinished || names::unfinished_download(name)).then_some(Hold::Name);
                let observation =
                    (walk.exported > 0).then(|| Observation { stamp, hold, took: begun.elapsed() });
                Ok(Inspection { observation, folders: walk.folders, ..Inspection::default() })
            }
            _ => Ok(Inspection::default()),
        }
    }

    fn check_complete(&self, name: &OsStr) -> io::Result<Result<(), String>> {
        let root = self.open_root()?;
        let Some(stat) = stat_at(&root, name)? else { return Ok(Err("it no longer exists".to_owned())) };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => file_complete(&root, name),
            FileType::Directory => {
                folder_complete(self, open_folder(&root, name)?, 0, &mut { MAX_CHECKED_FILES })
            }
            _ => Ok(Err("it is no longer a file or a folder".to_owned())),
        }
    }
}

/// Returns a file's stamp and its hold; `None` if no importer would read it.
fn inspect_file(folder: &OwnedFd, name: &OsStr, stat: &Stat) -> Option<(Stamp, Option<Hold>)> {
    let stamp = stamp(stat);
    if let Some(stem) = names::completed_name(name) {
        let browser = name.as_bytes().to_ascii_lowercase().ends_with(b".crdownload");
        return (browser || names::importable(stem)).then_some((stamp, Some(Hold::Name)));
    }
    if !names::importable(name) {
        return None;
    }
    for partner in names::partial_names(name) {
        // A name that is too long with the added suffix has no partner.
        if let Ok(Some(stat)) = stat_at(folder, &partner) {
            return Some((stamp, Some(Hold::Partner(self::stamp(&stat)))));
        }
    }
    let below = if names::is_database(name) { changes_stamp(folder, name) } else { 0 };
    Some((Stamp { below, ..stamp }, (stamp.bytes == 0).then_some(Hold::Empty)))
}

/// Returns the hash of the state of the files beside a database that have its newest changes; 0 if there is none.
fn changes_stamp(folder: &OwnedFd, name: &OsStr) -> u64 {
    let beside = names::beside_database(name).filter_map(|file| stat_at(folder, &file).ok().flatten());
    beside.fold(0, |sum: u64, stat| sum.wrapping_add(stable_hash(&stamp(&stat))))
}

#[expect(
    clippy::useless_conversion,
    clippy::cast_sign_loss,
    reason = "the types of stat differ between systems"
)]
fn stamp(stat: &Stat) -> Stamp {
    let nanos = i64::from(stat.st_mtime).saturating_mul(1_000_000_000);
    Stamp {
        bytes: stat.st_size as u64,
        modified: nanos.saturating_add(i64::try_from(stat.st_mtime_nsec).unwrap_or(0)),
        inode: u64::from(stat.st_ino),
        below: 0,
    }
}

/// A walk through a folder and everything below it.
struct FolderWalk<'a> {
    root: &'a OsFolder,
    entries: usize,
    bytes: u64,
    newest: i64,
    /// Sum of the hashes of all files, so that it does not depend on the order in which the system lists them.
    below: u64,
    exported: usize,
    unfinished: bool,
    folders: Vec<PathBuf>,
}

impl<'a> FolderWalk<'a> {
    fn new(root: &'a OsFolder) -> Self {
        Self {
            root,
            entries: 0,
            bytes: 0,
            newest: i64::MIN,
            below: 0,
            exported: 0,
            unfinished: false,
            folders: Vec::new(),
        }
    }

    fn stamp(&self, folder: &Stat) -> Stamp {
        // Never 0, so that the hash of an empty folder differs from that of a file.
        let below = self.below.max(1);
        Stamp { bytes: self.bytes, modified: self.newest, below, ..stamp(folder) }
    }

    fn walk_folder(&mut self, folder: OwnedFd, path: PathBuf, depth: usize) -> io::Result<()> {
        let mut inner = Vec::new();
        let mut files = Vec::new();
        let listing = rustix::io::dup(&folder)?;
        for_each_entry(listing, &mut |name, kind| {
            self.entries += 1;
            if self.entries > MAX_BELOW {
                return Err(io::Error::other(format!(
                    "it contains more than {MAX_BELOW} files; move the export out of it, or exclude the folder with `ignore`"
                )));
            }
            if self.root.is_ignored(name) {
                return Ok(true);
            }
            match kind {
                FileType::Directory => inner.push(name.to_owned()),
                FileType::RegularFile | FileType::Unknown => files.push(name.to_owned()),
                _ => {}
            }
            Ok(true)
        })?;
        for name in files {
            self.add_file(&folder, &name, &path)?;
        }
        self.folders.push(path.clone());
        for name in inner.into_iter().filter(|_| depth < MAX_DEPTH) {
            let below = path.join(&name);
            match open_folder(&folder, &name) {
                Ok(opened) => self.walk_folder(opened, below, depth + 1)?,
                // The folder was replaced, removed or may not be read. The import reports what it leaves out.
                Err(_) => self.below = self.below.wrapping_add(stable_hash(&below)),
            }
        }
        Ok(())
    }

    fn add_file(&mut self, folder: &OwnedFd, name: &OsStr, path: &std::path::Path) -> io::Result<()> {
        let Some(stat) = stat_at(folder, name)? else { return Ok(()) };
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(());
        }
        let stamp = stamp(&stat);
        self.bytes = self.bytes.saturating_add(stamp.bytes);
        self.newest = self.newest.max(stamp.modified);
        self.below = self.below.wrapping_add(stable_hash(&(path, name, stamp)));
        self.exported += usize::from(names::importable(name));
        self.unfinished |= names::unfinished_download(name);
        Ok(())
    }
}

/// Returns a hash that is the same in every run, because it is stored.
fn stable_hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns the metadata of a name without following links; `None` if it does not exist.
fn stat_at(folder: &impl AsFd, name: &OsStr) -> io::Result<Option<Stat>> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens a folder below `folder`. A link in its place is refused.
fn open_folder(folder: &impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(folder, name, flags, Mode::empty())?)
}

/// Calls `visit` with each name and its apparent type, until it returns false.
fn for_each_entry(
    folder: OwnedFd,
    visit: &mut dyn FnMut(&OsStr, FileType) -> io::Result<bool>,
) -> io::Result<()> {
    for entry in rustix::fs::Dir::new(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." && !visit(name, entry.file_type())? {
            return Ok(());
        }
    }
    Ok(())
}

/// Checks whether the end of one file is present; otherwise returns a description of the missing part.
fn file_complete(folder: &OwnedFd, name: &OsStr) -> io::Result<Result<(), String>> {
    // Do not block if a pipe or device took the place of the file.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    if FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode) != FileType::RegularFile {
        return Ok(Err("it is no longer a regular file".to_owned()));
    }
    Ok(completeness::missing_end(File::from(opened), name)?.map_or(Ok(()), Err))
}

/// Does the same for the files of a folder that importers might read, at most `left` of them.
fn folder_complete(
    root: &OsFolder,
    folder: OwnedFd,
    depth: usize,
    left: &mut usize,
) -> io::Result<Result<(), String>> {
    let mut names = Vec::new();
    for_each_entry(rustix::io::dup(&folder)?, &mut |name, _| {
        if !root.is_ignored(name) {
            names.push(name.to_owned());
        }
        Ok(true)
    })?;
    for name in names {
        let Some(stat) = stat_at(&folder, &name)? else { continue };
        let missing = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if names::importable(&name) && *left > 0 => {
                *left -= 1;
                // Unreadable and empty files are reported by the receipt.
                file_complete(&folder, &name).unwrap_or(Ok(())).err().filter(|_| stat.st_size > 0)
            }
            FileType::Directory if depth < MAX_DEPTH => match open_folder(&folder, &name) {
                Ok(inner) => folder_complete(root, inner, depth + 1, left)?.err(),
                Err(_) => None,
            },
            _ => None,
        };
        if let Some(missing) = missing {
            return Ok(Err(format!("{:?}: {missing}", names::shown(&name))));
        }
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests;
