//! Encrypted exports: one ZIP inside an `age` file, for recipients or for anybody who knows a passphrase.
//!
//! They are written and read as a stream, so no plain byte of such an export is ever on a disk. Neither keys nor
//! passphrases are shown by anything here: not in errors, and not by `Debug`.

mod ssh;

use std::{
    collections::BTreeSet,
    fmt,
    io::{self, Read, Seek, Write},
    iter,
    path::Path,
    str::FromStr as _,
};

use age::{
    DecryptError, Decryptor, Encryptor, Identity, Recipient, scrypt, secrecy::SecretString, stream, x25519,
};
use satchel_pam::hash::Sha256Digest;
use sha2::{Digest as _, Sha256};

/// The start of every such file.
pub const MAGIC: &[u8] = b"age-encryption.org/v1\n";
/// The file extension of encrypted exports.
const EXTENSION: &str = "age";
/// The maximum number of recipients of one export.
const MAX_RECIPIENTS: usize = 100;
/// The maximum number of identities that are tried.
const MAX_IDENTITIES: usize = 100;
/// The shortest passphrase, in characters. It has to withstand guessing by machines; a good one is far longer.
const MIN_PASSPHRASE_CHARACTERS: usize = 8;

/// The scrypt work factor of a passphrase as a power of two, the same as `age` itself uses: about a second, and 256 MiB
/// during that time. It is fixed, because a measurement on a busy machine would result in too low a value.
const WORK_FACTOR: u8 = 18;
/// The maximum work factor that a file may require: one GiB of memory.
const MAX_WORK_FACTOR: u8 = 20;
/// The longest list of recipients at the start of a file, in bytes.
const MAX_HEADER_BYTES: u64 = 64 << 10;
/// The start of the last line of that list.
const HEADER_END: &[u8] = b"\n--- ";

/// Who can open an export.
#[derive(Clone)]
pub enum ExportEncryption {
    /// Anybody who holds an identity of one of these recipients.
    Recipients(Vec<ExportRecipient>),
    /// Anybody who knows the passphrase.
    Passphrase(SecretString),
}

/// A recipient.
#[derive(Clone)]
pub enum ExportRecipient {
    /// An age key.
    Age(x25519::Recipient),
    /// An `ssh-ed25519` key.
    Ssh(Box<age::ssh::Recipient>),
}

impl ExportRecipient {
    fn as_recipient(&self) -> &dyn Recipient {
        match self {
            Self::Age(recipient) => recipient,
            Self::Ssh(recipient) => recipient.as_ref(),
        }
    }
}

impl fmt::Display for ExportRecipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Age(recipient) => recipient.fmt(f),
            Self::Ssh(recipient) => recipient.fmt(f),
        }
    }
}

/// One private key.
#[derive(Clone)]
enum ExportIdentity {
    Age(x25519::Identity),
    Ssh(Box<age::ssh::Identity>),
}

impl ExportIdentity {
    fn as_identity(&self) -> &dyn Identity {
        match self {
            Self::Age(identity) => identity,
            Self::Ssh(identity) => identity.as_ref(),
        }
    }
}

/// The keys that open an encrypted export.
#[derive(Clone, Default)]
pub struct DecryptionKeys {
    identities: Vec<ExportIdentity>,
    passphrase: Option<SecretString>,
}

/// Why a lock or keys cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// A text that is not a recipient. It may be shown because recipients are public, unless it is an identity.
    #[error(
        "{0} is no age recipient; give the age1… that `age-keygen` printed as the public key, or an ssh-ed25519 key"
    )]
    Recipient(String),
    /// An `ssh` public key of another type.
    #[error(
        "{0} is no whole ssh key of the kind ssh-ed25519, the only one that is taken; give one, or an age1…"
    )]
    SshRecipient(String),
    /// An unusable `ssh` private key.
    #[error("{0}")]
    Ssh(&'static str),
    /// An invalid line in a file of identities.
    #[error(
        "line {0} of the identities is no age identity; give a file that `age-keygen` wrote, with AGE-SECRET-KEY-1…, or an ssh key"
    )]
    Identity(usize),
    /// A file of identities without any identity.
    #[error("there is no age identity in the file; give one that `age-keygen` wrote")]
    NoIdentity,
    /// More than anybody has.
    #[error("more than {0} age {1} are too many")]
    TooMany(usize, &'static str),
    /// age supports one or the other.
    #[error("an export is encrypted to recipients or by a passphrase, not by both")]
    Both,
    /// The passphrase could be guessed.
    #[error("the passphrase is shorter than {MIN_PASSPHRASE_CHARACTERS} characters; take several words")]
    ShortPassphrase,
}

/// Why an encrypted file cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum EnvelopeOpenError {
    /// None of the keys fits.
    #[error("{0}")]
    NoMatchingKey(&'static str),
    /// The file is truncated or was changed.
    #[error("it is damaged or cut; copy it again")]
    Damaged,
    /// The file system refused.
    #[error("it cannot be read")]
    Read(#[source] io::Error),
}

impl ExportEncryption {
    /// Creates a lock for these recipients or this passphrase; `None` if neither is given.
    ///
    /// # Errors
    /// If a text is not a recipient, if the passphrase is too short, or if both are given.
    pub fn parse(recipients: &[String], passphrase: Option<String>) -> Result<Option<Self>, EnvelopeError> {
        match (recipients, passphrase) {
            ([], None) => Ok(None),
            ([], Some(passphrase)) if passphrase.chars().count() < MIN_PASSPHRASE_CHARACTERS => {
                Err(EnvelopeError::ShortPassphrase)
            }
            ([], Some(passphrase)) => Ok(Some(Self::Passphrase(SecretString::from(passphrase)))),
            (recipients, None) if recipients.len() > MAX_RECIPIENTS => {
                Err(EnvelopeError::TooMany(MAX_RECIPIENTS, "recipients"))
            }
            (recipients, None) => {
                let all: Result<Vec<_>, _> = recipients.iter().map(|text| recipient(text)).collect();
                Ok(Some(Self::Recipients(all?)))
            }
            (_, Some(_)) => Err(EnvelopeError::Both),
        }
    }

    /// Returns a digest that identifies the set of recipients, regardless of their order. There is none for a
    /// passphrase.
    #[must_use]
    pub fn digest(&self) -> Option<String> {
        let Self::Recipients(recipients) = self else { return None };
        let names: BTreeSet<String> = recipients.iter().map(ToString::to_string).collect();
        let mut hasher = Sha256::new();
        for name in names {
            hasher.update(name);
            hasher.update("\n");
        }
        Some(Sha256Digest::from_bytes(hasher.finalize().into()).to_hex())
    }

    /// Starts an encrypted file in `out`; it is complete once the writer was finished.
    pub fn encrypt<W: Write>(&self, out: W) -> io::Result<stream::StreamWriter<W>> {
        let encryptor = match self {
            Self::Passphrase(passphrase) => {
                let mut recipient = scrypt::Recipient::new(passphrase.clone());
                recipient.set_work_factor(WORK_FACTOR);
                Encryptor::with_recipients(iter::once(&recipient as &dyn Recipient))
            }
            Self::Recipients(recipients) => {
                Encryptor::with_recipients(recipients.iter().map(ExportRecipient::as_recipient))
            }
        };
        encryptor.map_err(io::Error::other)?.wrap_output(out)
    }
}

fn recipient(text: &str) -> Result<ExportRecipient, EnvelopeError> {
    let text = text.trim();
    let shown = || {
        // Users confuse the two, and a secret must not end up in a log because of that.
        let secret = text.to_ascii_uppercase().contains("SECRET") || ssh::is_private(text);
        // A text that only begins like an ssh key may be anything, for example an API key.
        let other = ssh::is_public(text) && text.split_whitespace().count() < 2;
        match (secret, other) {
            (true, _) => "this identity, which is secret,".to_owned(),
            (_, true) => "this text".to_owned(),
            _ => format!("{text:?}"),
        }
    };
    if ssh::is_public(text) {
        let found = ssh::recipient(text).map(|key| ExportRecipient::Ssh(Box::new(key)));
        return found.ok_or_else(|| EnvelopeError::SshRecipient(shown()));
    }
    x25519::Recipient::from_str(text).map(ExportRecipient::Age).map_err(|_| EnvelopeError::Recipient(shown()))
}

impl DecryptionKeys {
    /// Parses keys from these texts, each in the format of a file from `age-keygen` or `ssh-keygen`, and a passphrase,
    /// which also unlocks locked `ssh` keys.
    ///
    /// # Errors
    /// If a line is not an identity, if a text contains none, or if an `ssh` key has another type or stays locked.
    pub fn parse(files: &[String], passphrase: Option<String>) -> Result<Self, EnvelopeError> {
        let passphrase = passphrase.map(SecretString::from);
        let mut identities = Vec::new();
        for file in files {
            let before = identities.len();
            if ssh::is_private(file) {
                identities.push(ExportIdentity::Ssh(Box::new(ssh::identity(file, passphrase.as_ref())?)));
                if identities.len() > MAX_IDENTITIES {
                    return Err(EnvelopeError::TooMany(MAX_IDENTITIES, "identities"));
                }
                continue;
            }
            for (at, line) in file.lines().map(str::trim).enumerate() {
                if line.is_empty() || line.starts_with('#') {
                    continue;
                }
                let identity = x25519::Identity::from_str(line);
                identities.push(ExportIdentity::Age(identity.map_err(|_| EnvelopeError::Identity(at + 1))?));
                if identities.len() > MAX_IDENTITIES {
                    return Err(EnvelopeError::TooMany(MAX_IDENTITIES, "identities"));
                }
            }
            if identities.len() == before {
                return Err(EnvelopeError::NoIdentity);
            }
        }
        Ok(Self { identities, passphrase })
    }

    /// Opens an encrypted file. Its content can be read from any position, and is decrypted while it is read.
    ///
    /// # Errors
    /// None of the keys fits, the file is damaged, or it cannot be read.
    pub fn open<R: Read + Seek>(&self, mut file: R) -> Result<stream::StreamReader<R>, EnvelopeOpenError> {
        if !header_ends(&mut file).map_err(EnvelopeOpenError::Read)? {
            return Err(EnvelopeOpenError::Damaged);
        }
        let decryptor = Decryptor::new(file).map_err(|error| open_error(error, OTHER_RECIPIENTS))?;
        if decryptor.is_scrypt() {
            let passphrase =
                self.passphrase.clone().ok_or(EnvelopeOpenError::NoMatchingKey(PASSPHRASE_REQUIRED))?;
            let mut identity = scrypt::Identity::new(passphrase);
            identity.set_max_work_factor(MAX_WORK_FACTOR);
            let opened = decryptor.decrypt(iter::once(&identity as &dyn Identity));
            return opened.map_err(|error| open_error(error, OTHER_PASSPHRASE));
        }
        if self.identities.is_empty() {
            return Err(EnvelopeOpenError::NoMatchingKey(IDENTITY_REQUIRED));
        }
        let opened = decryptor.decrypt(self.identities.iter().map(ExportIdentity::as_identity));
        opened.map_err(|error| open_error(error, OTHER_RECIPIENTS))
    }
}

const PASSPHRASE_REQUIRED: &str = "it is encrypted by a passphrase; give it with --passphrase, --passphrase-file FILE or SATCHEL_PASSPHRASE";
const IDENTITY_REQUIRED: &str =
    "it is encrypted to age recipients; give the identity of one with --identity FILE";
const OTHER_RECIPIENTS: &str = "it is encrypted to others: none of the identities given opens it; give that of a recipient with --identity FILE";
const OTHER_PASSPHRASE: &str =
    "the passphrase is not the one that it was encrypted by; try again with that one";
const EXCESSIVE_WORK: &str = "its passphrase asks for more work than is reasonable; open it with `age -d`";
const NEWER_FORMAT: &str = "it is of a newer version of age; open it with `age -d`";

/// Returns whether the list of recipients ends within the limit. Without this check `age` would read any amount of it
/// into memory.
fn header_ends(file: &mut (impl Read + Seek)) -> io::Result<bool> {
    let mut head = Vec::new();
    file.by_ref().take(MAX_HEADER_BYTES).read_to_end(&mut head)?;
    file.rewind()?;
    Ok(head.windows(HEADER_END.len()).any(|window| window == HEADER_END))
}

/// Converts `error` to the error for the user; `other` is the message for a key that does not fit.
fn open_error(error: DecryptError, other: &'static str) -> EnvelopeOpenError {
    match error {
        DecryptError::Io(source) => match source.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => EnvelopeOpenError::Damaged,
            _ => EnvelopeOpenError::Read(source),
        },
        DecryptError::NoMatchingKeys | DecryptError::DecryptionFailed | DecryptError::KeyDecryptionFailed => {
            EnvelopeOpenError::NoMatchingKey(other)
        }
        DecryptError::ExcessiveWork { .. } => EnvelopeOpenError::NoMatchingKey(EXCESSIVE_WORK),
        DecryptError::UnknownFormat => EnvelopeOpenError::NoMatchingKey(NEWER_FORMAT),
        _ => EnvelopeOpenError::Damaged,
    }
}

/// Returns whether an export to this path is an encrypted one, judging by its name.
#[must_use]
pub fn has_age_extension(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(EXTENSION))
}

impl fmt::Debug for ExportEncryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recipients(recipients) => write!(f, "Recipients({})", recipients.len()),
            Self::Passphrase(_) => f.write_str("Passphrase"),
        }
    }
}

impl fmt::Debug for DecryptionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({} identities, passphrase: {})", self.identities.len(), self.passphrase.is_some())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::fs::File;

    use age::secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn no_error_and_no_debug_text_shows_a_secret() {
        let identity = x25519::Identity::generate();
        let secret = identity.to_string().expose_secret().to_owned();
        let errors = [
            ExportEncryption::parse(std::slice::from_ref(&secret), None).unwrap_err().to_string(),
            DecryptionKeys::parse(&[format!("# mine\n{secret}x")], None).unwrap_err().to_string(),
            ExportEncryption::parse(&[], Some("hunter2".into())).unwrap_err().to_string(),
        ];
        let lock = ExportEncryption::parse(&[], Some("correct horse battery".into())).unwrap();
        let keys = DecryptionKeys::parse(std::slice::from_ref(&secret), Some("correct horse battery".into()))
            .unwrap();
        let shown = format!("{errors:?} {lock:?} {keys:?}");
        for text in [&secret[..20], "hunter2", "correct horse"] {
            assert!(!shown.contains(text), "{shown}");
        }
        assert!(errors[1].starts_with("line 2 "), "{errors:?}");
    }

    #[test]
    fn an_export_is_encrypted_to_recipients_or_by_a_passphrase() {
        let public = x25519::Identity::generate().to_public().to_string();
        assert!(matches!(
            ExportEncryption::parse(std::slice::from_ref(&public), None),
            Ok(Some(ExportEncryption::Recipients(_)))
        ));
        assert_eq!(
            ExportEncryption::parse(&[public], Some("long enough".into())).unwrap_err(),
            EnvelopeError::Both
        );
        assert!(ExportEncryption::parse(&[], None).unwrap().is_none());
        assert!(ExportEncryption::parse(&["age1nobody".into()], None).is_err());
        assert_eq!(
            DecryptionKeys::parse(&["# empty\n".into()], None).unwrap_err(),
            EnvelopeError::NoIdentity
        );
    }

    /// Creates a file that begins with `bytes`.
    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        file
    }

    #[test]
    fn a_passphrase_that_asks_for_gigabytes_is_refused() {
        let keys = DecryptionKeys::parse(&[], Some("correct horse battery".into())).unwrap();
        let mut recipient = scrypt::Recipient::new(SecretString::from("correct horse battery".to_owned()));
        recipient.set_work_factor(2);
        let encryptor = Encryptor::with_recipients(iter::once(&recipient as &dyn Recipient)).unwrap();
        let mut bytes = Vec::new();
        encryptor.wrap_output(&mut bytes).unwrap().finish().unwrap();
        assert!(keys.open(file(&bytes)).is_ok());
        // The work factor follows the salt, at the end of the second line.
        let end = bytes[MAGIC.len()..].iter().position(|byte| *byte == b'\n').unwrap() + MAGIC.len();
        bytes.splice(end - 1..end, *b"30");
        let error = keys.open(file(&bytes)).err().unwrap().to_string();
        assert!(error.contains("more work"), "{error}");
    }

    #[test]
    fn a_list_of_recipients_without_end_is_not_read() {
        let mut bytes = MAGIC.to_vec();
        let stanza = b"-> X25519 TEiF0ypqr+bpvcqXNyCVJpL7OuwPdVwPL7KQEbFDOCc\nEmECAEcKN+n/Vs9SbWiV+Hu0r+E8R77DdWYyd83nw7U\n";
        while bytes.len() < 1 << 20 {
            bytes.extend_from_slice(stanza);
        }
        assert!(matches!(DecryptionKeys::default().open(file(&bytes)), Err(EnvelopeOpenError::Damaged)));
    }
}
