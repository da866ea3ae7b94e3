//! The owner of a data directory and the key that signs for them: made at the first export, kept for ever.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ed25519_dalek::SigningKey;
use satchel_pam::time::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::ExportError;
use crate::exported::ExportedError;

const KEY_FILE: &str = "signing.json";
/// Longest key file that is read, in bytes.
const MAX_KEY_FILE: u64 = 4_096;

/// Who signs.
pub(super) struct Signer {
    pub(super) owner: String,
    pub(super) owner_since: Timestamp,
    pub(super) key: SigningKey,
}

impl Signer {
    /// An owner id that says nothing of who it is and stays the same: for those whose own is an e-mail address.
    pub(super) fn stand_in(&self) -> String {
        Uuid::new_v5(&satchel_pam::ids::NAMESPACE, self.key.verifying_key().as_bytes()).to_string()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    version: u32,
    algorithm: String,
    /// base64url of the 32-byte seed (RFC 8032).
    seed: String,
    /// PAM `owner.id`, UUID v4.
    owner: String,
    created_at: Timestamp,
}

/// Reads the key of the data directory, or makes one; for the `owner` that the store has already, if it has one.
pub(super) fn load_or_create(
    keys: &Path,
    now: i64,
    owner: impl FnOnce() -> Result<Option<String>, ExportedError>,
) -> Result<Signer, ExportError> {
    let path = keys.join(KEY_FILE);
    match read(&path) {
        Ok(file) => open(&path, &file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(keys, &path, now, owner()?),
        Err(source) => Err(ExportError::Key { path, problem: source.to_string() }),
    }
}

/// Whom the key belongs to; none before the first export.
pub(super) fn owner(keys: &Path) -> Option<String> {
    let path = keys.join(KEY_FILE);
    Some(open(&path, &read(&path).ok()?).ok()?.owner)
}

/// The public keys that this data directory signs with, as multibase.
pub(super) fn known(keys: &Path) -> Option<String> {
    let path = keys.join(KEY_FILE);
    let signer = open(&path, &read(&path).ok()?).ok()?;
    Some(satchel_pam::sign::PublicKey::of(&signer.key).multibase())
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = File::open(path)?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        let problem = "others may read it; close it by chmod 600, and consider the key known to them";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    file.take(MAX_KEY_FILE).read_to_string(&mut text)?;
    Ok(text)
}

fn open(path: &Path, text: &str) -> Result<Signer, ExportError> {
    let damaged = |problem: &str| ExportError::Key { path: path.to_owned(), problem: problem.to_owned() };
    let file: KeyFile =
        serde_json::from_str(text).map_err(|_| damaged("it is damaged; restore it from a backup"))?;
    if file.version != 1 || file.algorithm != "Ed25519" {
        return Err(damaged("it is of a newer version of this program"));
    }
    let seed = URL_SAFE_NO_PAD.decode(&file.seed).ok().and_then(|seed| <[u8; 32]>::try_from(seed).ok());
    let seed = seed.ok_or_else(|| damaged("its seed is damaged; restore it from a backup"))?;
    Ok(Signer { owner: file.owner, owner_since: file.created_at, key: SigningKey::from_bytes(&seed) })
}

fn create(keys: &Path, path: &Path, now: i64, owner: Option<String>) -> Result<Signer, ExportError> {
    let failed = |source: io::Error| ExportError::Key { path: path.to_owned(), problem: source.to_string() };
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| failed(error.into()))?;
    let file = KeyFile {
        version: 1,
        algorithm: "Ed25519".into(),
        seed: URL_SAFE_NO_PAD.encode(seed),
        owner: owner.unwrap_or_else(|| Uuid::new_v4().to_string()),
        created_at: Timestamp::saturating(now - now.rem_euclid(1_000_000)),
    };
    let text = serde_json::to_string_pretty(&file).map_err(|error| failed(error.into()))?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(keys).map_err(failed)?;
    let fresh = keys.join(format!(".{KEY_FILE}.new-{}", Uuid::new_v4()));
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh).map_err(failed)?;
    out.write_all(text.as_bytes()).and_then(|()| out.sync_all()).map_err(failed)?;
    // A link, not a rename: of two that make a key at once, the second finds that of the first.
    let linked = fs::hard_link(&fresh, path);
    fs::remove_file(&fresh).map_err(failed)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    File::open(keys).and_then(|folder| folder.sync_all()).map_err(failed)?;
    open(path, &read(path).map_err(failed)?)
}
