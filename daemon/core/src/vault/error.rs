//! The reasons why an encrypted data directory cannot be opened.

use std::{io, path::PathBuf};

use satchel_store::StoreError;

/// An error of the vault. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file cannot be read.
    #[error("cannot read {path:?}")]
    Read { path: PathBuf, source: io::Error },
    /// A file cannot be written.
    #[error("cannot write {path:?}")]
    Write { path: PathBuf, source: io::Error },
    /// The file with the wrapped key is damaged.
    #[error("{path:?} is damaged; put it back from a backup, without it the data cannot be opened")]
    Damaged { path: PathBuf },
    /// A newer program wrote the file.
    #[error("{path:?} was written by a newer program; use a newer satchel")]
    Newer { path: PathBuf },
    /// The file names no regular key that opens the data directory.
    #[error(
        "keys/data-key.json contains no key that opens the data directory; restore it from a backup, or use the recovery phrase: `satchel keys change --recovery`"
    )]
    NoWrappedKey,
    /// Other users can read the secret, and may know it.
    #[error(
        "others may read {path:?} (mode {mode:03o}); close it with `chmod 600`, and consider what is in it known to them"
    )]
    ReadableByOthers { path: PathBuf, mode: u32 },
    /// The key file is missing.
    #[error(
        "the key file {path:?} does not exist; restore it, or set its path as key-file in [security] of the configuration; if it is lost, use the recovery phrase: `satchel keys change --recovery`"
    )]
    NoKeyFile { path: PathBuf },
    /// The file is not a key file.
    #[error("{path:?} is not a satchel key file; choose another file")]
    InvalidKeyFile { path: PathBuf },
    /// The key file belongs to another data directory.
    #[error(
        "the key file {path:?} does not open the data directory; nothing was changed; name the right one"
    )]
    WrongKeyFile { path: PathBuf },
    /// The key would be stored next to the data that it opens.
    #[error("{path:?} lies in the data directory, where a key protects nothing; choose a path outside of it")]
    KeyInside { path: PathBuf },
    /// No passphrase was given.
    #[error(
        "the data directory requires a passphrase, and none was given; set SATCHEL_DATA_PASSPHRASE, name a file with --data-passphrase-file, or run the command at a terminal"
    )]
    NoPassphrase,
    /// The passphrase is wrong.
    #[error(
        "the passphrase does not open the data directory; nothing was changed; try again, or use the recovery phrase: `satchel keys change --recovery`"
    )]
    WrongPassphrase,
    /// The two typed passphrases differ.
    #[error("the two passphrases differ; nothing was changed")]
    PassphrasesDiffer,
    /// The passphrase is too short to be secure.
    #[error("a passphrase needs at least {min} characters")]
    TooShort { min: usize },
    /// The Argon2id parameters are not usable.
    #[error("keys/data-key.json has unusable passphrase parameters: {problem}; restore it from a backup")]
    BadParameters { problem: String },
    /// The system's key store failed.
    #[error("the key store of the system does not answer")]
    KeyStore { source: io::Error },
    /// The key store has no key for this data directory.
    #[error(
        "the key store of the system has no key of this data directory (account {account}); if it is lost, use the recovery phrase: `satchel keys change --recovery`"
    )]
    NotInKeyStore { account: String },
    /// The words are not a recovery phrase.
    #[error(
        "these {words} words are not a recovery phrase: a phrase has twelve words; check for one that is mistyped or missing"
    )]
    InvalidPhrase { words: usize },
    /// The recovery phrase belongs to another data directory.
    #[error("the recovery phrase does not belong to this data directory; nothing was changed")]
    WrongPhrase,
    /// There is no recovery phrase.
    #[error("the data directory has no recovery phrase; `satchel keys recovery` creates one")]
    NoRecovery,
    /// The data directory is not encrypted.
    #[error("the data directory is not encrypted; `satchel keys encrypt` does that")]
    NotEncrypted,
    /// The data directory is already encrypted.
    #[error("the data directory is already encrypted; `satchel keys change` changes the key")]
    AlreadyEncrypted,
    /// The system provides no random numbers.
    #[error("the system provides no random numbers")]
    Random { source: io::Error },
    /// The terminal cannot be used for a prompt.
    #[error("cannot prompt at the terminal")]
    Terminal { source: io::Error },
}
