//! Backups: one file that contains everything a data directory needs. A backup is made while the store is in use, and
//! restored only after every byte of it was checked.
//!
//! The file is a ZIP without compression (the journal is compressed already): `journal/`, `blobs/`, `keys/`,
//! `plugins/`, and at its end `satchel-backup.json` with the SHA-256 of each file. `daemon/store/FORMAT.md` describes
//! it.

pub mod create;
mod manifest;
mod partial;
pub mod restore;
#[cfg(test)]
mod tests;

/// The progress of a backup or restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupProgress {
    /// Bytes processed so far.
    pub done: u64,
    /// Total number of bytes, over all passes.
    pub total: u64,
}

/// A callback that receives the progress. Returning false cancels the work.
pub type BackupProgressFn<'a> = &'a mut dyn FnMut(BackupProgress) -> bool;

/// Bytes per copy step, and between two progress reports.
const COPY_BYTES: usize = 1 << 20;
