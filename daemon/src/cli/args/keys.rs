//! Arguments of `keys`: the keys that sign exports, and the encryption of the data directory.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::examples;

/// `keys …`.
#[derive(Debug, Subcommand)]
pub enum Keys {
    #[command(flatten)]
    Signing(SigningCommand),
    #[command(flatten)]
    Encryption(EncryptionCommand),
}

/// The commands of `keys` for encryption; they work on the files directly.
#[derive(Debug, Subcommand)]
pub enum EncryptionCommand {
    /// Show whether the data directory is encrypted, and what unlocks it
    #[command(after_help = examples::KEYS_STATUS)]
    Status,
    /// Encrypt the data directory
    ///
    /// Everything that is stored is rewritten in encrypted form and compared with the original; then the unencrypted files are overwritten
    /// and removed. The command may be interrupted at any time: run it again, or any other command, to continue. It needs free space for a
    /// second copy of the data, and no daemon may be running. The recovery phrase is shown only once and is not stored: write it down.
    #[command(after_help = examples::KEYS_ENCRYPT)]
    Encrypt(DataKeyArgs),
    /// Change what unlocks the data directory; the data itself is not rewritten
    #[command(after_help = examples::KEYS_CHANGE)]
    Change {
        #[command(flatten)]
        lock: DataKeyArgs,
        /// Unlock it with the recovery phrase, if the key is lost; the phrase is prompted for, or read from standard input
        #[arg(long)]
        recovery: bool,
        /// File with the new passphrase, readable only by you, instead of a prompt
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "passphrase")]
        new_passphrase_file: Option<PathBuf>,
    },
    /// Create a new recovery phrase; the old one stops working
    #[command(after_help = examples::KEYS_RECOVERY)]
    Recovery,
}

/// The commands of `keys` for signing; they are sent to a daemon.
#[derive(Debug, Subcommand)]
pub enum SigningCommand {
    /// List your current and former signing keys, your identity in exports, and the keys that you trust
    #[command(after_help = examples::KEYS_LIST)]
    List,
    /// Replace the signing key
    ///
    /// The old key signs the new one, and every bundle contains this proof: anyone who trusts the old key can verify the new one. Bundles
    /// that were signed before stay valid. The old secret key is erased.
    #[command(after_help = examples::KEYS_ROTATE)]
    Rotate {
        /// Start a new identity, if the signing key is damaged or lost and no backup contains it; nobody trusts the new key yet
        #[arg(long)]
        new_identity: bool,
    },
    /// Trust someone's key: what it signs is merged like your own bundles, and may change existing records
    ///
    /// This includes keys that are proven to succeed it. Without trust, bundles of others only add memories and conversations that are
    /// missing here, and change none.
    #[command(after_help = examples::KEYS_TRUST)]
    Trust {
        /// Key as `satchel verify` shows it: z6Mk… or did:key:z6Mk…
        key: String,
    },
    /// Stop trusting a key; data from its bundles is kept until you run `satchel imports undo`
    #[command(after_help = examples::KEYS_UNTRUST)]
    Untrust {
        /// Key as `satchel keys list` shows it
        key: String,
    },
    /// Print the public keys with their proofs of succession, for people who verify your bundles
    #[command(after_help = examples::KEYS_EXPORT_PUBLIC)]
    ExportPublic,
}

/// What unlocks the data directory: one of these.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = false)]
pub struct DataKeyArgs {
    /// Unlock with this key file outside of the data directory; it is created if it does not exist
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,
    /// Unlock with a passphrase
    #[arg(long)]
    pub passphrase: bool,
    /// Unlock with the system keyring, which opens with your session (needs `secret-tool`)
    #[arg(long)]
    pub key_store: bool,
}
