//! The identity of a source: the SHA-256 of its bytes, and a stamp that tells whether it changed in the meantime.

use std::io::Read;

use ring::digest::{Context, SHA256};
use rustix::fs::{FileType, Stat};
use satchel_pam::hash::Sha256Digest;

/// The size of a single read; large enough for sequential disk throughput, small enough for the CPU cache.
const CHUNK: usize = 256 << 10;

/// Length, time and identity of a file, or of its first bytes. If none of them changed, the bytes did not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceStamp {
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

    /// Returns the stamp of `length` bytes that are not a file of the machine.
    pub(super) fn stored(length: u64) -> Self {
        Self { folder: false, length, modified: (0, 0), inode: (0, 0) }
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Returns the stamp of the first `length` bytes.
    pub(super) fn shortened(self, length: u64) -> Self {
        Self { length, ..self }
    }

    /// Returns whether the bytes may still be at the start of the same file, which has the stamp `now`.
    pub(super) fn may_begin(&self, now: &Self) -> bool {
        self.inode == now.inode && self.folder == now.folder && self.length <= now.length
    }

    pub(super) fn is_folder(&self) -> bool {
        self.folder
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
