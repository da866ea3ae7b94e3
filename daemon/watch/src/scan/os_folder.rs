//! A watched folder on a real file system.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
};

use glob::Pattern;
use rustix::{
    fd::OwnedFd,
    fs::{Mode, OFlags, Stat},
};
use satchel_source::names;

/// File systems that do not report changes made by other machines or by the program behind them, as numbers of
/// `statfs(2)`.
const FILE_SYSTEMS_WITHOUT_EVENTS: [u64; 12] = [
    0x6969,      // NFS
    0x517b,      // SMB
    0xfe53_4d42, // SMB 2
    0xff53_4d42, // CIFS
    0x6573_5546, // FUSE
    0x0102_1997, // 9P
    0x564c,      // NCP
    0x5346_414f, // AFS
    0x6b41_4653, // kAFS
    0x00c3_6400, // Ceph
    0x0bd0_0bd0, // Lustre
    0x786f_4256, // VirtualBox's shared folders
];

/// A watched folder on a real file system.
#[derive(Debug)]
pub(crate) struct OsFolder {
    root: PathBuf,
    recursive: bool,
    ignore: Vec<Pattern>,
    /// The only name that is not skipped, if a single file is watched.
    only: Option<OsString>,
    /// Device and inode of the data directory that this program writes to.
    data_dir_id: Option<(u64, u64)>,
}

impl OsFolder {
    /// Creates the folder `root`. Names that match a pattern in `ignore` are skipped, and so is our own `data_dir`
    /// below it.
    pub(crate) fn new(root: &Path, recursive: bool, ignore: &[Pattern], data_dir: &Path) -> Self {
        let data_dir_id = rustix::fs::stat(data_dir).ok().map(|stat| (stat.st_dev, stat.st_ino));
        Self { root: root.to_owned(), recursive, ignore: ignore.to_vec(), only: None, data_dir_id }
    }

    /// Skips all names but this one, if there is one.
    pub(crate) fn with_only(self, name: Option<&OsStr>) -> Self {
        Self { only: name.map(OsStr::to_owned), ..self }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn recursive(&self) -> bool {
        self.recursive
    }

    /// Returns whether it is our own data directory.
    pub(super) fn is_data_dir(&self, stat: &Stat) -> bool {
        self.data_dir_id == Some((stat.st_dev, stat.st_ino))
    }

    /// Returns whether this name is skipped, because it cannot be meant as an export.
    pub(super) fn is_ignored(&self, name: &OsStr) -> bool {
        if let Some(only) = &self.only {
            return name != only;
        }
        names::hidden(name) || self.ignore.iter().any(|pattern| pattern.matches(&name.to_string_lossy()))
    }

    /// Opens the folder. It may be a symbolic link, because the user named it.
    pub(super) fn open_root(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(&self.root, flags, Mode::empty())?)
    }

    /// Returns whether the system reports changes there. If the type of the file system cannot be read, returns true.
    #[cfg(target_os = "linux")]
    #[expect(clippy::cast_sign_loss, reason = "a magic number, of 32 bits wherever it is kept")]
    pub(super) fn has_change_events(&self) -> bool {
        let Ok(stat) = rustix::fs::statfs(&self.root) else { return true };
        !FILE_SYSTEMS_WITHOUT_EVENTS.contains(&(stat.f_type as u64 & 0xffff_ffff))
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn has_change_events(&self) -> bool {
        true
    }
}
