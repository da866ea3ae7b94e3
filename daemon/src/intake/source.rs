//! Who a source is: the SHA-256 of its bytes, and a stamp that tells whether it changed meanwhile.

use std::{
    fs::{self, File, Metadata},
    io::Read,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use satchel_pam::hash::Sha256Digest;
use sha2::{Digest, Sha256};

use super::{Bundle, IntakeError, Limits};

/// Reads of this size keep the disk busy and the cache warm.
const CHUNK: usize = 256 << 10;

/// A file or folder as it was when it was looked at.
#[derive(Clone, Debug)]
pub struct Source {
    /// Where it lies.
    pub path: PathBuf,
    /// The last part of the path, for people.
    pub name: String,
    stamp: SourceStamp,
}

/// Length, time and identity of a file: if all stay, its bytes did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceStamp {
    folder: bool,
    length: u64,
    modified: (i64, i64),
    inode: (u64, u64),
}

impl SourceStamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            folder: metadata.is_dir(),
            length: if metadata.is_dir() { 0 } else { metadata.len() },
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            inode: (metadata.dev(), metadata.ino()),
        }
    }
}

impl Source {
    /// Looks at `path`, following a symbolic link that the person named.
    pub fn at(path: &Path) -> Result<Self, IntakeError> {
        let metadata = fs::metadata(path).map_err(IntakeError::read(path))?;
        if !metadata.is_file() && !metadata.is_dir() {
            return Err(IntakeError::Special { path: path.to_owned() });
        }
        let name = path
            .canonicalize()
            .ok()
            .and_then(|whole| whole.file_name().map(|name| name.to_string_lossy().into_owned()))
            .unwrap_or_else(|| path.display().to_string());
        Ok(Self { path: path.to_owned(), name, stamp: SourceStamp::of(&metadata) })
    }

    /// Whether it is a folder.
    pub fn folder(&self) -> bool {
        self.stamp.folder
    }

    /// Opens it as a bundle of files.
    pub fn open(&self, limits: &Limits) -> Result<Bundle, IntakeError> {
        Bundle::open(self, limits)
    }

    /// Fails if the bytes may differ from those that were there when it was looked at.
    pub fn unchanged(&self) -> Result<(), IntakeError> {
        let now = fs::metadata(&self.path).map_err(IntakeError::read(&self.path))?;
        if SourceStamp::of(&now) == self.stamp {
            Ok(())
        } else {
            Err(IntakeError::Changed { path: self.path.clone() })
        }
    }

    /// Hashes a single file in one pass.
    pub fn checksum(
        &self,
        mut progress: impl FnMut(u64) -> bool,
    ) -> Result<Option<Sha256Digest>, IntakeError> {
        let digest = hash_file(&self.path, &mut progress)?;
        self.unchanged()?;
        Ok(digest)
    }
}

/// The SHA-256 of a file; none if `progress`, which is told of every chunk's bytes, answers false.
pub(super) fn hash_file(
    path: &Path,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<Sha256Digest>, IntakeError> {
    let mut file = File::open(path).map_err(IntakeError::read(path))?;
    hash(&mut file, progress).map_err(IntakeError::read(path))
}

/// The SHA-256 of everything that `reader` gives.
pub(super) fn hash(
    reader: &mut dyn Read,
    progress: &mut dyn FnMut(u64) -> bool,
) -> std::io::Result<Option<Sha256Digest>> {
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = reader.read(&mut chunk)?;
        if read == 0 {
            return Ok(Some(Sha256Digest::from_bytes(hasher.finalize().into())));
        }
        hasher.update(&chunk[..read]);
        if !progress(read as u64) {
            return Ok(None);
        }
    }
}
