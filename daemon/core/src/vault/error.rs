//! Why an encrypted data directory stays closed.

use std::{io, path::PathBuf};

use satchel_store::StoreError;

/// A refusal. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file cannot be read.
    #[error("cannot read {path:?}")]
    Read { path: PathBuf, source: io::Error },
    /// A file cannot be written.
    #[error("cannot write {path:?}")]
    Write { path: PathBuf, source: io::Error },
    /// The file with the wrapped key is not what was written.
    #[error("{path:?} is damaged; put it back from a backup, without it the data cannot be opened")]
    Damaged { path: PathBuf },
    /// A newer program wrote it.
    #[error("{path:?} was written by a newer program; use a newer satchel")]
    Newer { path: PathBuf },
    /// It has nothing that opens it.
    #[error(
        "keys/data-key.json names nothing that opens the data directory; put it back from a backup, or use the recovery phrase: `satchel keys change --recovery`"
    )]
    NoLock,
    /// Others know the secret, or may.
    #[error(
        "others may read {path:?} (mode {mode:03o}); close it with `chmod 600`, and consider what is in it known to them"
    )]
    OpenToOthers { path: PathBuf, mode: u32 },
    /// The key file is gone.
    #[error(
        "the key file {path:?} is not there; put it back, or name its place as key-file in [security] of the configuration; if it is lost, use the recovery phrase: `satchel keys change --recovery`"
    )]
    NoKeyFile { path: PathBuf },
    /// Something else stands in its place.
    #[error("{path:?} is no key file of satchel; name another file")]
    NoKey { path: PathBuf },
    /// It is another's.
    #[error(
        "the key file {path:?} does not open the data directory; nothing was changed; name the right one"
    )]
    WrongKeyFile { path: PathBuf },
    /// The key would lie beside what it opens.
    #[error("{path:?} lies in the data directory, where a key protects nothing; name a place outside")]
    KeyInside { path: PathBuf },
    /// Nobody gave the passphrase.
    #[error(
        "the data directory is opened by a passphrase, and none was given; set SATCHEL_DATA_PASSPHRASE, name a file with --data-passphrase-file, or run the command at a terminal"
    )]
    NoPassphrase,
    /// It is another.
    #[error(
        "the passphrase does not open the data directory; nothing was changed; try again, or use the recovery phrase: `satchel keys change --recovery`"
    )]
    WrongPassphrase,
    /// The two that were typed differ.
    #[error("the two passphrases differ; nothing was changed")]
    Differs,
    /// Everybody could guess it.
    #[error("a passphrase needs at least {fewest} characters")]
    TooShort { fewest: usize },
    /// The parameters make no sense.
    #[error(
        "keys/data-key.json asks for a passphrase in a way that cannot be: {problem}; put it back from a backup"
    )]
    Recipe { problem: String },
    /// The key store of the system refuses.
    #[error("the key store of the system does not answer")]
    KeyStore { source: io::Error },
    /// It does not have it.
    #[error(
        "the key store of the system has no key of this data directory (account {account}); if it is lost, use the recovery phrase: `satchel keys change --recovery`"
    )]
    NotInKeyStore { account: String },
    /// The words are none.
    #[error(
        "these {words} words are no recovery phrase: it has twelve, and one of them is mistyped or missing"
    )]
    NoPhrase { words: usize },
    /// They are another's.
    #[error("the recovery phrase is not the one of this data directory; nothing was changed")]
    WrongPhrase,
    /// There is none.
    #[error("the data directory has no recovery phrase; `satchel keys recovery` makes one")]
    NoRecovery,
    /// There is nothing to change.
    #[error("the data directory is not encrypted; `satchel keys encrypt` does that")]
    Plain,
    /// There is nothing to do.
    #[error("the data directory is encrypted already; `satchel keys change` changes what opens it")]
    Encrypted,
    /// The system gives no randomness.
    #[error("the system gives no random numbers")]
    Random { source: io::Error },
    /// Nobody answers.
    #[error("cannot ask at the terminal")]
    Terminal { source: io::Error },
}
