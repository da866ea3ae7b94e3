//! What a backup says about itself, and which names may stand in one.

use serde::{Deserialize, Serialize};

pub(super) use satchel_source::names::BACKUP_MANIFEST as MANIFEST;

/// The format that this program writes; newer ones are refused.
pub(super) const FORMAT: u32 = 1;
/// Files that a backup may hold.
pub(super) const MOST_FILES: usize = 400_000;
/// Longest manifest that is read, in bytes; one of [`MOST_FILES`] is shorter.
pub(super) const MAX_MANIFEST_BYTES: u64 = 96 << 20;
/// Longest name of a key or plugin file, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// The manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) format: u32,
    /// The program that wrote it.
    pub(super) program: String,
    /// The store that it was taken of.
    pub(super) store_id: String,
    /// The last revision in it.
    pub(super) revision: u64,
    /// The digest of what the store shows at that revision.
    pub(super) digest: String,
    /// Microseconds since the Unix epoch.
    pub(super) made_at_micros: i64,
    pub(super) files: Vec<Entry>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// Lower-case hex.
    pub(super) sha256: String,
}

impl Manifest {
    /// Whether the store that it was taken of is encrypted.
    pub(super) fn encrypted(&self) -> bool {
        self.files
            .iter()
            .any(|file| ["keys/data-key.json", "keys/data-key.copy.json"].contains(&file.name.as_str()))
    }
}

/// Whether a name is one that we write. Only such names ever become paths.
pub(super) fn known(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        ["journal", segment] => segment.strip_suffix(".seg").is_some_and(|digits| {
            (8..=10).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
        }),
        ["blobs", first, rest] => first.len() == 2 && rest.len() == 62 && hex(first) && hex(rest),
        ["keys" | "plugins", name] => plain(name),
        _ => false,
    }
}

/// The name of an attachment's bytes, if it is one.
pub(super) fn blob_hash(name: &str) -> Option<String> {
    let (first, rest) = name.strip_prefix("blobs/")?.split_once('/')?;
    Some(format!("{first}{rest}"))
}

/// A file name that means the same on every system, hides nothing and leads nowhere.
pub(super) fn plain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

fn hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}
