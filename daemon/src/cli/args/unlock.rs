//! What opens an encrypted export, as it is typed. A passphrase is never an argument: whoever lists processes would read it.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// What opens an encrypted export.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Encrypted exports")]
pub struct UnlockArgs {
    /// A file with age identities, as `age-keygen` writes it, or an ssh-ed25519 key; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub identity: Vec<PathBuf>,
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
}

/// Where a passphrase comes from.
#[derive(Clone, Debug, Default, Args)]
pub struct PassphraseArgs {
    /// By a passphrase: `SATCHEL_PASSPHRASE` if it is set, else it is asked for
    #[arg(long, conflicts_with = "passphrase_file")]
    pub passphrase: bool,
    /// By the passphrase in the first line of this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub passphrase_file: Option<PathBuf>,
}
