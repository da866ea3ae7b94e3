//! The owner of a data directory and the keys that sign for them: one at a time, made at the first export, followed by others
//! when the person says so.
//!
//! One file holds it all, so that a rotation is there whole or not at all. Of older keys only the public half stays.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ed25519_dalek::SigningKey;
use satchel_pam::{sign::PublicKey, time::Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::ExportError;
use crate::{
    exported::ExportedError,
    rotation::{self, Rotation},
};

const KEY_FILE: &str = "signing.json";
/// How the names of those begin that are to become it.
const FRESH: &str = ".signing.json.new-";
/// Longest key file that is read, in bytes: one key and [`rotation::MOST`] records.
const MAX_KEY_FILE: u64 = 256 << 10;
/// Microseconds of a second.
const SECOND: i64 = 1_000_000;

/// Who signs.
pub(super) struct Signer {
    pub(super) owner: String,
    pub(super) owner_since: Timestamp,
    pub(super) key: SigningKey,
    /// When the key was made.
    pub(super) since: Timestamp,
    /// How the key came to sign, the first rotation first.
    pub(super) rotations: Vec<Rotation>,
}

/// A key that signs, or signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKeyInfo {
    /// Multibase.
    pub public_key: String,
    /// As a DID.
    pub did: String,
    /// Since when it signs.
    pub since: Timestamp,
    /// Until when it signed, and what names its successor; none: it signs.
    pub followed: Option<Rotation>,
}

/// All keys of a data directory, the one that signs first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKeys {
    /// PAM `owner.id`.
    pub owner: String,
    /// PAM `owner.did` as exports name it.
    pub did: String,
    pub keys: Vec<SigningKeyInfo>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    /// 1, or 2 once a key has followed another.
    version: u32,
    algorithm: String,
    /// base64url of the 32-byte seed (RFC 8032).
    seed: String,
    /// PAM `owner.id`, UUID v4.
    owner: String,
    /// Of the owner, and of the first key.
    created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rotations: Vec<Rotation>,
}

impl Signer {
    /// An owner id that says nothing of who it is and stays the same: for those whose own is an e-mail address.
    pub(super) fn stand_in(&self) -> String {
        let first = self.rotations.first().map(|rotation| rotation.from.clone());
        let first = first.unwrap_or_else(|| PublicKey::of(&self.key).multibase());
        Uuid::new_v5(&satchel_pam::ids::NAMESPACE, first.as_bytes()).to_string()
    }

    /// The public keys, that which signs first.
    fn public(&self) -> Vec<String> {
        let old = self.rotations.iter().rev().map(|rotation| rotation.from.clone());
        std::iter::once(PublicKey::of(&self.key).multibase()).chain(old).collect()
    }

    /// What people are shown; `did` is their own, if they have one.
    pub(super) fn shown(&self, did: Option<&str>) -> SigningKeys {
        let current = PublicKey::of(&self.key);
        let mut keys = vec![SigningKeyInfo {
            public_key: current.multibase(),
            did: current.did_key(),
            since: self.since,
            followed: None,
        }];
        for (at, rotation) in self.rotations.iter().enumerate().rev() {
            let since = at.checked_sub(1).map_or(self.owner_since, |before| self.rotations[before].at);
            keys.push(SigningKeyInfo {
                public_key: rotation.from.clone(),
                did: format!("did:key:{}", rotation.from),
                since,
                followed: Some(rotation.clone()),
            });
        }
        let did = did.map_or_else(|| current.did_key(), str::to_owned);
        SigningKeys { owner: self.owner.clone(), did, keys }
    }
}

/// Reads the key of the data directory, or makes one; for the `owner` that the store has already, if it has one. Nobody else makes
/// one meanwhile: what a kill left half made is removed.
pub(super) fn load_or_create(
    keys: &Path,
    now: i64,
    owner: impl FnOnce() -> Result<Option<String>, ExportedError>,
) -> Result<Signer, ExportError> {
    sweep(keys);
    match load(keys)? {
        Some(signer) => Ok(signer),
        None => create(keys, &keys.join(KEY_FILE), now, owner()?),
    }
}

/// Reads the key of the data directory; none before its first export.
pub(super) fn load(keys: &Path) -> Result<Option<Signer>, ExportError> {
    let path = keys.join(KEY_FILE);
    match read(&path) {
        Ok(file) => open(&path, &file).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ExportError::Key { path, problem: source.to_string() }),
    }
}

/// Lets a new key follow the one that signs. Durable when this returns; the old secret is gone then.
pub(super) fn rotate(keys: &Path, signer: &Signer, now: i64) -> Result<Signer, ExportError> {
    let path = keys.join(KEY_FILE);
    if signer.rotations.len() >= rotation::MOST {
        let problem = format!("{} keys have followed each other, and no more can", rotation::MOST);
        return Err(ExportError::Key { path, problem });
    }
    let next = SigningKey::from_bytes(&seed(&path)?);
    // A clock that went back does not let a key end before it began.
    let at = second(now).max(signer.since);
    let rotation = Rotation::make(&signer.key, &next, at);
    let rotation = rotation.ok_or(ExportError::Unencodable { what: "a rotation" })?;
    let file = KeyFile {
        version: 2,
        algorithm: "Ed25519".into(),
        seed: URL_SAFE_NO_PAD.encode(next.to_bytes()),
        owner: signer.owner.clone(),
        created_at: signer.owner_since,
        rotations: signer.rotations.iter().cloned().chain([rotation]).collect(),
    };
    let fresh = write(keys, &path, &file)?;
    let failed = failed(&path);
    fs::rename(&fresh.0, &path).map_err(&failed)?;
    File::open(keys).and_then(|folder| folder.sync_all()).map_err(&failed)?;
    open(&path, &read(&path).map_err(failed)?)
}

/// The public keys that this data directory signs and signed with, as multibase, that which signs first.
pub(super) fn known(keys: &Path) -> Vec<String> {
    let path = keys.join(KEY_FILE);
    let signer = read(&path).ok().and_then(|file| open(&path, &file).ok());
    signer.map(|signer| signer.public()).unwrap_or_default()
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
    if !(1..=2).contains(&file.version) || file.algorithm != "Ed25519" {
        return Err(damaged("it is of a newer version of this program"));
    }
    let seed = URL_SAFE_NO_PAD.decode(&file.seed).ok().and_then(|seed| <[u8; 32]>::try_from(seed).ok());
    let seed = seed.ok_or_else(|| damaged("its seed is damaged; restore it from a backup"))?;
    let since = file.rotations.last().map_or(file.created_at, |rotation| rotation.at);
    let KeyFile { owner, created_at: owner_since, rotations, .. } = file;
    Ok(Signer { owner, owner_since, key: SigningKey::from_bytes(&seed), since, rotations })
}

fn create(keys: &Path, path: &Path, now: i64, owner: Option<String>) -> Result<Signer, ExportError> {
    let failed = failed(path);
    let file = KeyFile {
        version: 1,
        algorithm: "Ed25519".into(),
        seed: URL_SAFE_NO_PAD.encode(seed(path)?),
        owner: owner.unwrap_or_else(|| Uuid::new_v4().to_string()),
        created_at: second(now),
        rotations: Vec::new(),
    };
    let fresh = write(keys, path, &file)?;
    // A link, not a rename: of two that make a key at once, the second finds that of the first.
    match fs::hard_link(&fresh.0, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    drop(fresh);
    File::open(keys).and_then(|folder| folder.sync_all()).map_err(&failed)?;
    open(path, &read(path).map_err(failed)?)
}

fn failed(path: &Path) -> impl Fn(io::Error) -> ExportError + use<> {
    let path = path.to_owned();
    move |source| ExportError::Key { path: path.clone(), problem: source.to_string() }
}

fn seed(path: &Path) -> Result<[u8; 32], ExportError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| failed(path)(error.into()))?;
    Ok(seed)
}

fn second(now: i64) -> Timestamp {
    Timestamp::saturating(now - now.rem_euclid(SECOND))
}

/// A key file beside the place of the real one, which is gone in the end, moved or removed: it holds a secret.
struct Fresh(PathBuf);

impl Drop for Fresh {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Removes what was left half made.
fn sweep(keys: &Path) {
    for entry in fs::read_dir(keys).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(FRESH) {
            remove(&entry.path());
        }
    }
}

fn remove(fresh: &Path) {
    match fs::remove_file(fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, path = ?fresh, "a signing key that was not used stays behind");
        }
        _ => {}
    }
}

/// Writes a key file beside the place of the real one, durably.
fn write(keys: &Path, path: &Path, file: &KeyFile) -> Result<Fresh, ExportError> {
    let failed = failed(path);
    let text = serde_json::to_string_pretty(file).map_err(|error| failed(error.into()))?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(keys).map_err(&failed)?;
    let fresh = Fresh(keys.join(format!("{FRESH}{}", Uuid::new_v4())));
    let mut out =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh.0).map_err(&failed)?;
    out.write_all(text.as_bytes()).and_then(|()| out.sync_all()).map_err(failed)?;
    Ok(fresh)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_follows_and_the_old_secret_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys");
        let first = load_or_create(&keys, SECOND, || Ok(None)).unwrap();
        let secret = URL_SAFE_NO_PAD.encode(first.key.to_bytes());
        assert!(read(&keys.join(KEY_FILE)).unwrap().contains(&secret));
        let second = rotate(&keys, &first, 9 * SECOND).unwrap();
        let third = rotate(&keys, &second, 5 * SECOND).unwrap();
        assert_eq!((&third.owner, third.stand_in()), (&first.owner, first.stand_in()));
        assert!(!read(&keys.join(KEY_FILE)).unwrap().contains(&secret));
        assert_eq!(fs::read_dir(&keys).unwrap().count(), 1, "nothing is left beside it");
        fs::write(keys.join(format!("{FRESH}of a kill")), "secret").unwrap();
        let again = load_or_create(&keys, 0, || Ok(None)).unwrap();
        assert_eq!(fs::read_dir(&keys).unwrap().count(), 1, "what a kill left is gone");
        let not_there = keys.join("not there/signing.json");
        assert!(create(&keys, &not_there, 0, None).is_err());
        assert_eq!(fs::read_dir(&keys).unwrap().count(), 1, "what failed leaves nothing");
        let key = PublicKey::of(&again.key);
        assert_eq!(key, PublicKey::of(&third.key));
        let before = rotation::predecessors(&again.rotations, &key);
        assert_eq!(before, [PublicKey::of(&second.key), PublicKey::of(&first.key)]);
        let shown = again.shown(Some("did:web:example.org"));
        let times: Vec<i64> = shown.keys.iter().map(|key| key.since.micros() / SECOND).collect();
        assert_eq!((times, shown.did.as_str()), (vec![9, 9, 1], "did:web:example.org"));
        assert_eq!(known(&keys), shown.keys.iter().map(|key| key.public_key.clone()).collect::<Vec<_>>());
    }
}
