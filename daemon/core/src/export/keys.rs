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
use satchel_bundle::rotation::{self, Rotation};
use satchel_pam::{sign::PublicKey, time::Timestamp};
use satchel_store::StoreError;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::ExportError;
use crate::{exported::ExportedError, key_checksum, plain_file};

const KEY_FILE: &str = "signing.json";
/// The version that this program writes.
const VERSION: u32 = 3;
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
    /// Whether its file is of an older program, without a checksum.
    old: bool,
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

/// What is wrong with a key file that cannot be used, and the ways out.
const WAY_OUT: &str = "put keys/signing.json back from a backup (`satchel restore FILE --data-dir DIR` unpacks one elsewhere), or begin a new identity, which nobody trusts yet: `satchel keys rotate --new-identity`";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    /// 3; before there was a checksum 1, or 2 once a key had followed another.
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
    /// Of the seed, multibase: a seed that was damaged makes another key, which is seen by this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    public_key: Option<String>,
    /// SHA-256 of the JCS form of all the rest, lower-case hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

impl KeyFile {
    fn new(key: &SigningKey, owner: String, created_at: Timestamp, rotations: Vec<Rotation>) -> Option<Self> {
        let mut file = Self {
            version: VERSION,
            algorithm: "Ed25519".into(),
            seed: URL_SAFE_NO_PAD.encode(key.to_bytes()),
            owner,
            created_at,
            rotations,
            public_key: Some(PublicKey::of(key).multibase()),
            checksum: None,
        };
        file.checksum = Some(key_checksum::of(&file)?);
        Some(file)
    }

    /// Whether it is what was written, as far as it can tell: files of older programs say nothing of it.
    fn holds(&self, key: &SigningKey) -> bool {
        if self.version < VERSION {
            return self.public_key.is_none() && self.checksum.is_none();
        }
        self.public_key.as_deref() == Some(PublicKey::of(key).multibase().as_str())
            && self.checksum.is_some()
            && self.checksum == key_checksum::of(self)
    }
}

impl Signer {
    /// The public key that signs, multibase.
    pub(super) fn current(&self) -> String {
        PublicKey::of(&self.key).multibase()
    }

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

/// Reads the key of the data directory, or makes one where the store knows of none; for the `owner` that the store has already, if it
/// has one. Nobody else makes one meanwhile: what a kill left half made is removed.
pub(super) fn load_or_create(
    keys: &Path,
    now: i64,
    known: Option<&str>,
    owner: impl FnOnce() -> Result<Option<String>, ExportedError>,
) -> Result<Signer, ExportError> {
    sweep(keys);
    match expect(keys, load(keys)?, known)? {
        Some(signer) if signer.old => upgrade(keys, &signer),
        Some(signer) => Ok(signer),
        None => create(keys, &keys.join(KEY_FILE), now, owner()?),
    }
}

/// Refuses another key in the place of the one that the store `known` to sign for it, and none at all.
pub(super) fn expect(
    keys: &Path,
    found: Option<Signer>,
    known: Option<&str>,
) -> Result<Option<Signer>, ExportError> {
    let Some(known) = known else { return Ok(found) };
    let problem = match &found {
        Some(signer) if signer.public().iter().any(|public| public == known) => return Ok(found),
        Some(signer) => {
            format!("it holds the key {}, but {known} signed before; {WAY_OUT}", signer.current())
        }
        None => format!("the file is gone, and {known} signed before; {WAY_OUT}"),
    };
    Err(ExportError::Key { path: keys.join(KEY_FILE), problem })
}

/// Writes the file of an older program anew, with a checksum. The key is the one that the store knows, if it knows one.
fn upgrade(keys: &Path, signer: &Signer) -> Result<Signer, ExportError> {
    let file = KeyFile::new(&signer.key, signer.owner.clone(), signer.owner_since, signer.rotations.clone());
    replace(keys, file)
}

/// Puts what is left of a key that cannot be used out of the way, under the first free name.
pub(super) fn set_aside(keys: &Path) -> Result<(), ExportError> {
    let path = keys.join(KEY_FILE);
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let free = (1_u32..).map(|number| keys.join(format!("{KEY_FILE}.replaced-{number}")));
    let place = free.into_iter().find(|place| place.symlink_metadata().is_err());
    fs::rename(&path, place.unwrap_or_else(|| keys.join("signing.json.replaced"))).map_err(failed(&path))
}

/// Reads the key of the data directory; none before its first export.
pub(super) fn load(keys: &Path) -> Result<Option<Signer>, ExportError> {
    let path = keys.join(KEY_FILE);
    match read(&path) {
        Ok(file) => open(&path, &file).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(ExportError::Key { path, problem: format!("it is damaged; {WAY_OUT}") })
        }
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
    let rotations = signer.rotations.iter().cloned().chain([rotation]).collect();
    replace(keys, KeyFile::new(&next, signer.owner.clone(), signer.owner_since, rotations))
}

/// Puts a key file in the place of the one that stands. Durable when this returns.
fn replace(keys: &Path, file: Option<KeyFile>) -> Result<Signer, ExportError> {
    let path = keys.join(KEY_FILE);
    let file = file.ok_or(ExportError::Unencodable { what: "a key file" })?;
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
    let file = plain_file::open(path)?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        let problem = "others may read it; close it by chmod 600, and consider the key known to them";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    file.take(MAX_KEY_FILE).read_to_string(&mut text)?;
    Ok(text)
}

fn open(path: &Path, text: &str) -> Result<Signer, ExportError> {
    let unusable = |problem: String| ExportError::Key { path: path.to_owned(), problem };
    let damaged = || unusable(format!("it is damaged; {WAY_OUT}"));
    // The version first: of a newer one nothing else is known.
    let value: serde_json::Value = serde_json::from_str(text).map_err(|_| damaged())?;
    if value
        .get("version")
        .and_then(serde_json::Value::as_u64)
        .is_some_and(|found| found > u64::from(VERSION))
    {
        return Err(unusable("it was written by a newer program; use a newer satchel".to_owned()));
    }
    let file: KeyFile = serde_json::from_value(value).map_err(|_| damaged())?;
    let seed = URL_SAFE_NO_PAD.decode(&file.seed).ok().and_then(|seed| <[u8; 32]>::try_from(seed).ok());
    let key = SigningKey::from_bytes(&seed.ok_or_else(damaged)?);
    if file.version == 0 || file.algorithm != "Ed25519" || !file.holds(&key) {
        return Err(damaged());
    }
    let old = file.version < VERSION;
    let since = file.rotations.last().map_or(file.created_at, |rotation| rotation.at);
    let KeyFile { owner, created_at: owner_since, rotations, .. } = file;
    Ok(Signer { owner, owner_since, key, since, rotations, old })
}

fn create(keys: &Path, path: &Path, now: i64, owner: Option<String>) -> Result<Signer, ExportError> {
    let failed = failed(path);
    let key = SigningKey::from_bytes(&seed(path)?);
    let owner = owner.unwrap_or_else(|| Uuid::new_v4().to_string());
    let file = KeyFile::new(&key, owner, second(now), Vec::new());
    let file = file.ok_or(ExportError::Unencodable { what: "a key file" })?;
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
    move |source| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            StoreError::Full { path: path.clone() }.into()
        }
        _ => ExportError::Key { path: path.clone(), problem: source.to_string() },
    }
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
#[expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_follows_and_the_old_secret_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys");
        let first = load_or_create(&keys, SECOND, None, || Ok(None)).unwrap();
        let secret = URL_SAFE_NO_PAD.encode(first.key.to_bytes());
        assert!(read(&keys.join(KEY_FILE)).unwrap().contains(&secret));
        let second = rotate(&keys, &first, 9 * SECOND).unwrap();
        let third = rotate(&keys, &second, 5 * SECOND).unwrap();
        assert_eq!((&third.owner, third.stand_in()), (&first.owner, first.stand_in()));
        assert!(!read(&keys.join(KEY_FILE)).unwrap().contains(&secret));
        assert_eq!(fs::read_dir(&keys).unwrap().count(), 1, "nothing is left beside it");
        fs::write(keys.join(format!("{FRESH}of a kill")), "secret").unwrap();
        let again = load_or_create(&keys, 0, None, || Ok(None)).unwrap();
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

    fn refused(outcome: Result<Option<Signer>, ExportError>) -> String {
        let Err(ExportError::Key { problem, .. }) = outcome else { panic!("a damaged key file is taken") };
        problem
    }

    #[test]
    fn no_flipped_bit_makes_another_identity() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys");
        let first = load_or_create(&keys, SECOND, None, || Ok(None)).unwrap();
        let signer = rotate(&keys, &first, 9 * SECOND).unwrap();
        let path = keys.join(KEY_FILE);
        let whole = fs::read(&path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &flipped).unwrap();
            match load(&keys) {
                // White space between the fields.
                Ok(Some(found)) => {
                    let same = (found.current(), found.owner, found.rotations);
                    let expected = (signer.current(), signer.owner.clone(), signer.rotations.clone());
                    assert!(same == expected, "bit {bit} is not seen");
                }
                Ok(None) => panic!("bit {bit} makes the key vanish"),
                Err(ExportError::Key { problem, .. }) => {
                    let told = problem.contains("damaged") || problem.contains("newer");
                    assert!(told, "bit {bit}: {problem}");
                }
                Err(error) => panic!("bit {bit}: {error}"),
            }
        }
    }

    #[test]
    fn a_key_that_signed_is_never_replaced_silently() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys");
        let first = load_or_create(&keys, SECOND, None, || Ok(None)).unwrap();
        let known = first.current();
        let second = rotate(&keys, &first, 9 * SECOND).unwrap();
        // The store may not have heard of a rotation that was cut off.
        for known in [known.as_str(), second.current().as_str()] {
            assert!(load_or_create(&keys, 0, Some(known), || Ok(None)).is_ok());
        }
        let path = keys.join(KEY_FILE);
        fs::remove_file(&path).unwrap();
        let gone = load_or_create(&keys, 0, Some(&known), || Ok(None)).map(Some);
        assert!(refused(gone).contains("the file is gone") && !path.exists());
        create(&keys, &path, 0, None).unwrap();
        let other = refused(load_or_create(&keys, 0, Some(&known), || Ok(None)).map(Some));
        assert!(other.contains(&known) && other.contains("satchel keys rotate --new-identity"), "{other}");
        set_aside(&keys).unwrap();
        assert!(keys.join("signing.json.replaced-1").exists() && load(&keys).unwrap().is_none());
    }

    #[test]
    fn the_file_of_an_older_program_opens_and_gets_a_checksum() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys");
        let signer = load_or_create(&keys, SECOND, None, || Ok(None)).unwrap();
        let path = keys.join(KEY_FILE);
        let mut value: serde_json::Value = serde_json::from_str(&read(&path).unwrap()).unwrap();
        value["version"] = 1.into();
        for field in ["public_key", "checksum"] {
            assert!(value.as_object_mut().unwrap().remove(field).is_some());
        }
        fs::write(&path, value.to_string()).unwrap();
        assert_eq!(load(&keys).unwrap().unwrap().current(), signer.current());
        let other = create(&folder.path().join("other"), &folder.path().join("other/k"), 0, None).unwrap();
        assert!(
            load_or_create(&keys, 0, Some(&other.current()), || Ok(None)).is_err(),
            "another's is not upgraded"
        );
        let again = load_or_create(&keys, 0, Some(&signer.current()), || Ok(None)).unwrap();
        assert_eq!((again.current(), again.owner), (signer.current(), signer.owner));
        assert!(
            read(&path).unwrap().contains("\"checksum\"") && read(&path).unwrap().contains("\"version\": 3")
        );
    }
}
