//! Backups: one file with all that a data directory needs, taken while the store is in use, and put back after every byte of it
//! was checked.
//!
//! The file is a ZIP without compression (the journal is packed already): `journal/`, `blobs/`, `keys/`, `plugins/`, and at its end
//! `satchel-backup.json` with the SHA-256 of each. `daemon/store/FORMAT.md` describes it.

pub mod create;
mod manifest;
mod partial;
pub mod restore;
#[cfg(test)]
mod tests;

/// How far a backup or restore is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that are done.
    pub done: u64,
    /// Bytes in all, of all passes.
    pub total: u64,
}

/// Hears how far it is; false ends the work.
pub type Report<'a> = &'a mut dyn FnMut(Progress) -> bool;

/// Bytes copied at once, and between two reports.
const COPY_BYTES: usize = 1 << 20;
