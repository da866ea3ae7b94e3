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
        "keys/data-key.json names nothing that opens the data directory; put it back from a backup, or use the recovery phrase: `satchel keys change --recovery`"
    )]
    NoLock,
    /// Other users can read the secret, and may know it.
    #[error(
        "others may read {path:?} (mode {mode:03o}); close it with `chmod 600`, and consider what is in it known to them"
    )]
    OpenToOthers { path: PathBuf, mode: u32 },
    /// The key file is missing.
    #[error(
        "the key file {path:?} is not there; put it back, or name its place as key-file in [security] of the configuration; if it is lost, use the recovery phrase: `satchel keys change --recovery`"
    )]
    NoKeyFile { path: PathBuf },
    /// The file is not a key file.
    #[error("{path:?} is no key file of satchel; name another file")]
    NoKey { path: PathBuf },
    /// The key file belongs to another data directory.
    #[error(
        "the key file {path:?} does not open the data directory; nothing was changed; name the right one"
    )]
    WrongKeyFile { path: PathBuf },
    /// The key would be stored next to the data that it opens.
    #[error("{path:?} lies in the data directory, where a key protects nothing; name a place outside")]
    KeyInside { path: PathBuf },
    /// No passphrase was given.
    #[error(
        "the data directory is opened by a passphrase, and none was given; set SATCHEL_DATA_PASSPHRASE, name a file with --data-passphrase-file, or run the command at a terminal"
    )]
    NoPassphrase,
    /// The passphrase is wrong.
    #[error(
        "the passphrase does not open the data directory; nothing was changed; try again, or use the recovery phrase: `satchel keys change --recovery`"
    )]
    WrongPassphrase,
    /// The two typed passphrases differ.
    #[error("the two passphrases differ; nothing was changed")]
    Differs,
    /// The passphrase is too short to be secure.
    #[error("a passphrase needs at least {fewest} characters")]
    TooShort { fewest: usize },
    /// The Argon2id parameters are not usable.
    #[error(
        "keys/data-key.json asks for a passphrase in a way that cannot be: {problem}; put it back from a backup"
    )]
    Recipe { problem: String },
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
        "these {words} words are no recovery phrase: it has twelve, and one of them is mistyped or missing"
    )]
    NoPhrase { words: usize },
    /// The recovery phrase belongs to another data directory.
    #[error("the recovery phrase is not the one of this data directory; nothing was changed")]
    WrongPhrase,
    /// There is no recovery phrase.
    #[error("the data directory has no recovery phrase; `satchel keys recovery` makes one")]
    NoRecovery,
    /// The data directory is not encrypted.
    #[error("the data directory is not encrypted; `satchel keys encrypt` does that")]
    Plain,
    /// The data directory is already encrypted.
    #[error("the data directory is encrypted already; `satchel keys change` changes what opens it")]
    Encrypted,
    /// The system provides no random numbers.
    #[error("the system gives no random numbers")]
    Random { source: io::Error },
    /// The terminal cannot be used for a prompt.
    #[error("cannot ask at the terminal")]
    Terminal { source: io::Error },
}
