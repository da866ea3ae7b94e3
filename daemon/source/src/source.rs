//! The identity of a source: the SHA-256 of its bytes, and a stamp that tells whether it changed in the meantime.

use std::{
    ffi::OsStr,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use ring::digest::{Context, SHA256};
use rustix::fs::{FileType, Stat};
use satchel_pam::hash::Sha256Digest;

use super::{Bundle, Limits, Pulse, SourceError, below, bundle::Unit};
use crate::{CancelToken, envelope::Keys};

/// The size of a single read; large enough for sequential disk throughput, small enough for the CPU cache.
const CHUNK: usize = 256 << 10;

/// A file or folder, with its state when it was examined.
#[derive(Clone, Debug)]
pub struct Source {
    /// Where it is.
    pub path: PathBuf,
    /// The last component of the path, for messages.
    pub name: String,
    /// The folder that no link may lead out of; the path itself if the user named it.
    pub(super) base: PathBuf,
    /// The keys that open it if it is encrypted.
    pub(super) keys: Option<Keys>,
    stamp: SourceStamp,
    /// Whether unfinished downloads in it are skipped.
    pub(super) waits: bool,
    /// Records every call to the file system that holds the source.
    pub(super) pulse: Pulse,
}

/// Length, time and identity of a file. If none of them changed, its bytes did not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceStamp {
    folder: bool,
    length: u64,
    modified: (i64, i64),
    inode: (u64, u64),
}

impl SourceStamp {
    #[expect(clippy::cast_sign_loss, reason = "no file has less than no bytes")]
    pub(super) fn of(stat: &Stat) -> Self {
        let folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        Self {
            folder,
            length: if folder { 0 } else { stat.st_size as u64 },
            modified: (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0)),
            inode: (stat.st_dev, stat.st_ino),
        }
    }
}

impl SourceStamp {
    pub(super) fn length(&self) -> u64 {
        self.length
    }
}

impl Source {
    /// Examines `path`, following a symbolic link that the user named.
    pub fn at(path: &Path) -> Result<Self, SourceError> {
        let name = path
            .canonicalize()
            .ok()
            .and_then(|whole| whole.file_name().map(|name| name.to_string_lossy().into_owned()))
            .unwrap_or_else(|| path.display().to_string());
        Self::look(path, path, name)
    }

    /// Examines `name` in the folder `root`. Nothing outside of `root` is read, even if something is replaced by a link
    /// in the meantime.
    pub fn below(root: &Path, name: &OsStr) -> Result<Self, SourceError> {
        Self::look(root, &root.join(name), name.to_string_lossy().into_owned())
    }

    fn look(base: &Path, path: &Path, name: String) -> Result<Self, SourceError> {
        let stat = below::stat(base, path).map_err(SourceError::read(path))?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind != FileType::RegularFile && kind != FileType::Directory {
            return Err(SourceError::Special { path: path.to_owned() });
        }
        let (stamp, pulse) = (SourceStamp::of(&stat), Pulse::default());
        Ok(Self {
            path: path.to_owned(),
            name,
            base: base.to_owned(),
            keys: None,
            stamp,
            waits: false,
            pulse,
        })
    }

    /// Sets the `keys` that open the source if it is encrypted.
    #[must_use]
    pub fn with_keys(self, keys: Option<Keys>) -> Self {
        Self { keys, ..self }
    }

    /// Records every call to the file system in `pulse`.
    #[must_use]
    pub fn telling(self, pulse: Pulse) -> Self {
        Self { pulse, ..self }
    }

    /// Returns the number of bytes of a file; 0 for a folder.
    pub fn length(&self) -> u64 {
        self.stamp.length
    }

    /// Skips unfinished downloads in a folder and lists them as unread.
    #[must_use]
    pub fn leaving_downloads(self) -> Self {
        Self { waits: true, ..self }
    }

    /// Returns the unit that this source is, if it is an archive.
    pub(super) fn unit(&self) -> Arc<Unit> {
        Arc::new(Unit { name: self.name.as_str().into(), nesting: 1 })
    }

    /// Returns whether it is a folder.
    pub fn folder(&self) -> bool {
        self.stamp.folder
    }

    /// Opens it as a bundle of files.
    pub fn open(&self, limits: &Limits) -> Result<Bundle, SourceError> {
        self.open_until(limits, &CancelToken::new())
    }

    /// Opens it as a bundle of files. Once `cancel` was raised, opening and reading fail at the next bytes.
    pub fn open_until(&self, limits: &Limits, cancel: &CancelToken) -> Result<Bundle, SourceError> {
        Bundle::open(self, limits, cancel)
    }

    /// Fails if the bytes may differ from those at the time when the source was examined.
    pub fn unchanged(&self) -> Result<(), SourceError> {
        let _asked = self.pulse.call();
        let now = below::stat(&self.base, &self.path).map_err(SourceError::read(&self.path))?;
        if SourceStamp::of(&now) == self.stamp {
            Ok(())
        } else {
            Err(SourceError::Changed { path: self.path.clone() })
        }
    }

    /// Hashes a single file in one pass.
    pub fn checksum(
        &self,
        mut progress: impl FnMut(u64) -> bool,
    ) -> Result<Option<Sha256Digest>, SourceError> {
        let asked = self.pulse.call();
        let mut file = below::file(&self.base, &self.path).map_err(SourceError::read(&self.path))?;
        let mut progress = |bytes| {
            self.pulse.beats();
            progress(bytes)
        };
        let digest = hash(&mut file, &mut progress).map_err(SourceError::read(&self.path))?;
        drop(asked);
        self.unchanged()?;
        Ok(digest)
    }
}

/// Returns the SHA-256 of all bytes of `reader`.
pub(super) fn hash(
    reader: &mut dyn Read,
    progress: &mut dyn FnMut(u64) -> bool,
) -> std::io::Result<Option<Sha256Digest>> {
    // `ring` hashes in assembly, which matters because every byte of an export is hashed.
    let mut hasher = Context::new(&SHA256);
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = reader.read(&mut chunk)?;
        if read == 0 {
            let mut digest = [0; 32];
            digest.copy_from_slice(hasher.finish().as_ref());
            return Ok(Some(Sha256Digest::from_bytes(digest)));
        }
        hasher.update(&chunk[..read]);
        if !progress(read as u64) {
            return Ok(None);
        }
    }
}
