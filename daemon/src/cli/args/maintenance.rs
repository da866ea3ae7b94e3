//! The options of the commands that check, repair, copy and restore the data directory.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// `doctor`.
#[derive(Clone, Copy, Debug, Args)]
pub struct DoctorArgs {
    /// Repair what can be repaired without data loss: rebuild a database that differs from the journal, and remove files that are no longer
    /// needed; no daemon may be running
    #[arg(long)]
    pub repair: bool,
}

/// `rebuild`.
#[derive(Clone, Copy, Debug, Args)]
pub struct RebuildArgs {
    /// Rebuild even if the journal is damaged; the old database, which is more complete, is kept
    #[arg(long)]
    pub accept_loss: bool,
    /// Restore the database that --accept-loss kept
    #[arg(long, conflicts_with = "accept_loss")]
    pub put_back: bool,
}

/// `backup`.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// File to write; it must not exist yet
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

/// `restore`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// Backup file written by `satchel backup`
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Move an existing data directory aside first, to its path with the suffix `.replaced-1`
    #[arg(long)]
    pub replace: bool,
    /// Unlock an encrypted backup with the recovery phrase, if the key is lost; the phrase is prompted for, or read from standard input
    #[arg(long)]
    pub recovery: bool,
}
