//! What can be typed about keys: those that sign exports, and what opens an encrypted data directory.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::examples;

/// `keys …`.
#[derive(Debug, Subcommand)]
pub enum Keys {
    #[command(flatten)]
    Signing(Signing),
    #[command(flatten)]
    Locking(Locking),
}

/// `keys …` about what opens an encrypted data directory; works on the files themselves.
#[derive(Debug, Subcommand)]
pub enum Locking {
    /// Whether the data directory is encrypted, and what opens it
    #[command(after_help = examples::KEYS_STATUS)]
    Status,
    /// Encrypt the data directory, empty or not
    ///
    /// What is stored is written anew, sealed, and compared; then the plain files are overwritten and removed. It can be cut off at
    /// any time: run it again, or simply go on. It needs room for the data a second time, and no daemon may run. The recovery phrase
    /// that it shows stands nowhere else: write it down.
    #[command(after_help = examples::KEYS_ENCRYPT)]
    Encrypt(LockArgs),
    /// Change what opens the data directory; what is stored stays as it is
    #[command(after_help = examples::KEYS_CHANGE)]
    Change {
        #[command(flatten)]
        lock: LockArgs,
        /// Open it with the recovery phrase, asked for at the terminal or read from standard input, because the key is lost
        #[arg(long)]
        recovery: bool,
        /// A file with the new passphrase, closed to others, instead of asking
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "passphrase")]
        new_passphrase_file: Option<PathBuf>,
    },
    /// Make another recovery phrase; the one before opens nothing any more
    #[command(after_help = examples::KEYS_RECOVERY)]
    Recovery,
}

/// `keys …` about those that sign; a daemon answers.
#[derive(Debug, Subcommand)]
pub enum Signing {
    /// List the keys that sign and signed your exports, who the exports say that you are, and the keys that you trust
    #[command(after_help = examples::KEYS_LIST)]
    List,
    /// Sign with a new key from now on
    ///
    /// The old key signs that the new one follows it, and every bundle carries that word: whoever trusts the old key can check
    /// the new one. Bundles that were signed before stay valid. The old secret key is erased.
    #[command(after_help = examples::KEYS_ROTATE)]
    Rotate {
        /// Begin a new identity, because the key that signed is damaged or gone and no backup has it; nobody trusts it yet
        #[arg(long)]
        new_identity: bool,
    },
    /// Trust somebody's key: what it signs is merged like your own bundles, and may change what is here
    ///
    /// Also what a key signs that is proven to follow it. Without this, documents of others add memories and conversations that are
    /// not here, and change none.
    #[command(after_help = examples::KEYS_TRUST)]
    Trust {
        /// z6Mk… or did:key:z6Mk…, as `satchel verify` shows it
        key: String,
    },
    /// Trust a key no more; what its documents brought and changed stays, and `satchel imports undo` takes it back
    #[command(after_help = examples::KEYS_UNTRUST)]
    Untrust {
        /// As `satchel keys list` shows it
        key: String,
    },
    /// Print the public keys with the words that tie them together, for those who check your bundles
    #[command(after_help = examples::KEYS_EXPORT_PUBLIC)]
    ExportPublic,
}

/// What is to open the data directory: one of these.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = false)]
pub struct LockArgs {
    /// A key file outside of the data directory; it is made if it is not there
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,
    /// A passphrase
    #[arg(long)]
    pub passphrase: bool,
    /// The key store of the system, which opens with your session (needs `secret-tool`)
    #[arg(long)]
    pub key_store: bool,
}
