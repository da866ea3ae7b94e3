//! The manifest of a backup, and the file names that a backup may contain.

use serde::{Deserialize, Serialize};

pub(super) use satchel_source::names::BACKUP_MANIFEST as MANIFEST;

/// The format that this program writes; newer formats are refused.
pub(super) const FORMAT: u32 = 1;
/// Maximum number of files in a backup.
pub(super) const MAX_FILES: usize = 400_000;
/// Largest manifest that is read, in bytes. A manifest of [`MAX_FILES`] files is smaller.
pub(super) const MAX_MANIFEST_BYTES: u64 = 96 << 20;
/// Longest name of a key or plugin file, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// The manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BackupManifest {
    pub(super) format: u32,
    /// The program that wrote the backup.
    pub(super) program: String,
    /// The id of the store that was backed up.
    pub(super) store_id: String,
    /// The last revision in the backup.
    pub(super) revision: u64,
    /// The digest of the store's state at that revision.
    pub(super) digest: String,
    /// Microseconds since the Unix epoch.
    pub(super) made_at_micros: i64,
    pub(super) files: Vec<BackupEntry>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BackupEntry {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// Lower-case hex.
    pub(super) sha256: String,
}

impl BackupManifest {
    /// Returns whether the store that was backed up is encrypted.
    pub(super) fn is_encrypted(&self) -> bool {
        self.files
            .iter()
            .any(|file| ["keys/data-key.json", "keys/data-key.copy.json"].contains(&file.name.as_str()))
    }
}

/// Returns whether a name is one that this program writes. Only such names are ever used as paths.
pub(super) fn is_backup_name(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        ["journal", segment] => segment.strip_suffix(".seg").is_some_and(|digits| {
            (8..=10).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
        }),
        ["blobs", first, rest] => first.len() == 2 && rest.len() == 62 && hex(first) && hex(rest),
        ["keys" | "plugins", name] => is_plain_name(name),
        _ => false,
    }
}

/// Returns the hash in the name of an attachment's file, if it is one.
pub(super) fn blob_hash(name: &str) -> Option<String> {
    let (first, rest) = name.strip_prefix("blobs/")?.split_once('/')?;
    Some(format!("{first}{rest}"))
}

/// Returns whether a file name is valid on every system, is not hidden, and contains no path.
pub(super) fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

fn hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}
