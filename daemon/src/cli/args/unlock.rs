//! Arguments that unlock an encrypted export. A passphrase itself is never an argument, because other users can list the
//! arguments of a process.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// What opens an encrypted export.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Encrypted exports")]
pub struct UnlockArgs {
    /// File with age identities, as written by `age-keygen`, or an ssh-ed25519 key; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub identity: Vec<PathBuf>,
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
}

/// Where a passphrase comes from.
#[derive(Clone, Debug, Default, Args)]
pub struct PassphraseArgs {
    /// Use a passphrase: `SATCHEL_PASSPHRASE` if set, otherwise prompt for it
    #[arg(long, conflicts_with = "passphrase_file")]
    pub passphrase: bool,
    /// Read the passphrase from the first line of this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub passphrase_file: Option<PathBuf>,
}
