//! Inspection of a watched folder that never leaves it: symbolic links are not followed, and only regular files are
//! opened.
//!
//! Every folder is opened by its name relative to the open parent folder, never by its path. So the inspection stays
//! inside even if a folder is replaced by a link (`links_lead_nowhere`, `a_swap_for_a_link_leads_nowhere` in
//! `scan::tests`).

mod ends;
mod ground;

use std::{
    collections::hash_map::DefaultHasher,
    ffi::{OsStr, OsString},
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
use satchel_source::names;

pub(super) use self::ground::Ground;
use super::{
    disk::{Disk, Sight},
    settle::{Hold, Look, Stamp},
};

/// Largest number of names listed of a watched folder.
pub(super) const MAX_NAMES: usize = 100_000;
/// Largest number of files and folders below one entry that are inspected. An export has at most this many, a disk
/// image has more.
const MAX_BELOW: usize = 100_000;
/// Largest nesting depth of folders, the same as for intake.
const MAX_DEPTH: usize = 32;
/// Number of files in a folder that are checked for their ends.
const MAX_ENDS: usize = 2_000;

impl Disk for Ground {
    fn identity(&self) -> io::Result<(u64, u64)> {
        let stat = rustix::fs::fstat(self.open_root()?)?;
        Ok((stat.st_dev, stat.st_ino))
    }

    fn tells(&self) -> bool {
        self.told()
    }

    fn list(&self) -> io::Result<(Vec<OsString>, bool)> {
        let mut names = Vec::new();
        let mut more = false;
        each(self.open_root()?, &mut |name, _| {
            more = names.len() >= MAX_NAMES;
            if !more && !self.passed_over(name) {
                names.push(name.to_owned());
            }
            Ok(!more)
        })?;
        names.sort();
        Ok((names, more))
    }

    fn look(&self, name: &OsStr) -> io::Result<Sight> {
        if self.passed_over(name) {
            return Ok(Sight::default());
        }
        let begun = Instant::now();
        let root = self.open_root()?;
        let Some(stat) = stat_at(&root, name)? else { return Ok(Sight::default()) };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                let look = file_look(&root, name, &stat);
                Ok(Sight {
                    look: look.map(|(stamp, hold)| Look { stamp, hold, took: begun.elapsed() }),
                    folders: Vec::new(),
                })
            }
            FileType::Directory if self.recursive() && !self.own(&stat) => {
                let mut walk = Walk::new(self);
                walk.folder(open_folder(&root, name)?, self.root().join(name), 0)?;
                let stamp = walk.stamp(&stat);
                let hold = (walk.unfinished || names::unfinished(name)).then_some(Hold::Name);
                let look = (walk.exported > 0).then(|| Look { stamp, hold, took: begun.elapsed() });
                Ok(Sight { look, folders: walk.folders })
            }
            _ => Ok(Sight::default()),
        }
    }

    fn whole(&self, name: &OsStr) -> io::Result<Result<(), String>> {
        let root = self.open_root()?;
        let Some(stat) = stat_at(&root, name)? else { return Ok(Err("it is gone".to_owned())) };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => ends::whole(&root, name),
            FileType::Directory => ends::whole_folder(self, open_folder(&root, name)?, 0, &mut { MAX_ENDS }),
            _ => Ok(Err("it is neither a file nor a folder any more".to_owned())),
        }
    }
}

/// Returns a file's stamp and its hold; `None` if no importer would read it.
fn file_look(folder: &OwnedFd, name: &OsStr, stat: &Stat) -> Option<(Stamp, Option<Hold>)> {
    let stamp = stamp(stat);
    if let Some(stem) = names::finished(name) {
        let browser = name.as_bytes().to_ascii_lowercase().ends_with(b".crdownload");
        return (browser || names::exported(stem)).then_some((stamp, Some(Hold::Name)));
    }
    if !names::exported(name) {
        return None;
    }
    for partner in names::partners(name) {
        // A name that is too long with the added suffix has no partner.
        if let Ok(Some(stat)) = stat_at(folder, &partner) {
            return Some((stamp, Some(Hold::Partner(self::stamp(&stat)))));
        }
    }
    Some((stamp, (stamp.bytes == 0).then_some(Hold::Empty)))
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
struct Walk<'a> {
    ground: &'a Ground,
    seen: usize,
    bytes: u64,
    newest: i64,
    /// Sum of the hashes of all files, so that it does not depend on the order in which the system lists them.
    below: u64,
    exported: usize,
    unfinished: bool,
    folders: Vec<PathBuf>,
}

impl<'a> Walk<'a> {
    fn new(ground: &'a Ground) -> Self {
        Self {
            ground,
            seen: 0,
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

    fn folder(&mut self, folder: OwnedFd, path: PathBuf, depth: usize) -> io::Result<()> {
        let mut inner = Vec::new();
        let mut files = Vec::new();
        let here = rustix::io::dup(&folder)?;
        each(here, &mut |name, kind| {
            self.seen += 1;
            if self.seen > MAX_BELOW {
                return Err(io::Error::other(format!(
                    "it holds more than {MAX_BELOW} files; move the export out of it, or leave the folder out with `ignore`"
                )));
            }
            if self.ground.passed_over(name) {
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
            self.file(&folder, &name, &path)?;
        }
        self.folders.push(path.clone());
        for name in inner.into_iter().filter(|_| depth < MAX_DEPTH) {
            let below = path.join(&name);
            match open_folder(&folder, &name) {
                Ok(opened) => self.folder(opened, below, depth + 1)?,
                // The folder was replaced, removed or may not be read. The import reports what it leaves out.
                Err(_) => self.below = self.below.wrapping_add(hash(&below)),
            }
        }
        Ok(())
    }

    fn file(&mut self, folder: &OwnedFd, name: &OsStr, path: &std::path::Path) -> io::Result<()> {
        let Some(stat) = stat_at(folder, name)? else { return Ok(()) };
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(());
        }
        let stamp = stamp(&stat);
        self.bytes = self.bytes.saturating_add(stamp.bytes);
        self.newest = self.newest.max(stamp.modified);
        self.below = self.below.wrapping_add(hash(&(path, name, stamp)));
        self.exported += usize::from(names::exported(name));
        self.unfinished |= names::unfinished(name);
        Ok(())
    }
}

/// Returns a hash that is the same in every run, because it is stored.
fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
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

/// Calls `one` with each name and its apparent type, until it returns false.
fn each(folder: OwnedFd, one: &mut dyn FnMut(&OsStr, FileType) -> io::Result<bool>) -> io::Result<()> {
    for entry in rustix::fs::Dir::new(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." && !one(name, entry.file_type())? {
            return Ok(());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
