//! The error of everything that reads or writes files, makes certificates, or changes the list of devices.

use std::{
    io,
    path::{Path, PathBuf},
};

/// The reason why devices, certificates or credentials cannot be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DevicesError {
    /// A file cannot be read or written.
    #[error("cannot read or write {path:?}")]
    Io { path: PathBuf, source: io::Error },
    /// A file is damaged, or was written by a newer version of the program.
    #[error("{path:?} cannot be used: {reason}; {remedy}")]
    Damaged { path: PathBuf, reason: String, remedy: &'static str },
    /// A file has a format that this version does not know.
    #[error(
        "{path:?} was written by a newer version of the program (format {found}, this one knows {known}); \
         update the program"
    )]
    Newer { path: PathBuf, found: u32, known: u32 },
    /// The certificate request is not valid, or not signed by its own key.
    #[error("the certificate request is not valid: {reason}")]
    Request { reason: String },
    /// A certificate cannot be read.
    #[error("the certificate is not valid: {reason}")]
    Certificate { reason: String },
    /// A key cannot be read.
    #[error("the key is not valid: {reason}")]
    Key { reason: String },
    /// Earlier versions made keys of this kind.
    #[error(
        "it holds an Ed25519 key, as earlier versions made them; many programs refuse such keys for TLS, so this \
         version uses ECDSA P-256"
    )]
    Ed25519Key,
    /// A certificate cannot be made or used.
    #[error("cannot make a certificate")]
    MakeCertificate { source: rcgen::Error },
    /// TLS cannot be set up.
    #[error("cannot set up TLS")]
    Tls { source: rustls::Error },
    /// The clock shows a time that certificates cannot contain.
    #[error("the clock of this machine is wrong: it shows a time before 1970 or after the year 9000")]
    Clock,
    /// The operating system gives no random numbers.
    #[error("the operating system gives no random numbers")]
    Random { source: getrandom::Error },
    /// The name cannot be used.
    #[error("the name {name:?} {problem}")]
    Name { name: String, problem: &'static str },
    /// The policy contradicts itself.
    #[error("the policy {problem}")]
    Policy { problem: &'static str },
    /// No such device.
    #[error("no device {text:?} is known")]
    NotFound { text: String },
    /// Several devices fit.
    #[error("{text:?} fits several devices: {}", candidates.join(", "))]
    Ambiguous { text: String, candidates: Vec<String> },
    /// The device is listed already.
    #[error("this key is paired already, as {name:?}; revoke that device or pair with a new key")]
    AlreadyPaired { name: String },
    /// The device was revoked. A revoked key stays revoked.
    #[error("the device {name:?} was revoked; pair it again with a new key")]
    Revoked { name: String },
    /// The device is of another kind than the change needs.
    #[error("the device {name:?} {problem}")]
    WrongKind { name: String, problem: &'static str },
    /// The end date of a token is missing or too late.
    #[error("a token must end within {max_days} days, and after now")]
    TokenLifetime { max_days: i64 },
    /// The device list is full.
    #[error("there are {limit} devices already, revoked ones included; no more can be added")]
    TooMany { limit: usize },
    /// There are no credentials for a server of this name.
    #[error("no server {name:?} is known here")]
    NoCredentials { name: String },
}

impl DevicesError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    pub(crate) fn certificate(reason: impl ToString) -> Self {
        Self::Certificate { reason: reason.to_string() }
    }
}

impl From<rcgen::Error> for DevicesError {
    fn from(source: rcgen::Error) -> Self {
        Self::MakeCertificate { source }
    }
}

impl From<rustls::Error> for DevicesError {
    fn from(source: rustls::Error) -> Self {
        Self::Tls { source }
    }
}

impl From<getrandom::Error> for DevicesError {
    fn from(source: getrandom::Error) -> Self {
        Self::Random { source }
    }
}
