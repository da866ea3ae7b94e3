//! The owner of a data directory and its signing keys. One key signs at a time; it is created at the first export and
//! replaced when the user rotates it.
//!
//! One file holds everything, so that a rotation is either complete or not visible at all. Only the public half of
//! older keys is kept.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ed25519_dalek::SigningKey;
use satchel_bundle::rotation::{self, KeyRotation};
use satchel_pam::{sign::PublicKey, time::Timestamp};
use satchel_store::StoreError;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::ExportError;
use crate::{export_ledger::ExportLedgerError, key_checksum, plain_file};

const KEY_FILE: &str = "signing.json";
/// The file version that this program writes.
const VERSION: u32 = 3;
/// Prefix of the temporary files that are written before they become the key file.
const TEMP_PREFIX: &str = ".signing.json.new-";
/// Largest key file that is read, in bytes: one key and [`rotation::MAX_ROTATIONS`] records.
const MAX_KEY_FILE: u64 = 256 << 10;
/// Microseconds in a second.
const SECOND: i64 = 1_000_000;

/// The owner and the key that signs.
pub(super) struct SigningIdentity {
    pub(super) owner: String,
    pub(super) owner_since: Timestamp,
    pub(super) key: SigningKey,
    /// When the key was created.
    pub(super) since: Timestamp,
    /// The rotations that led to this key, oldest first.
    pub(super) rotations: Vec<KeyRotation>,
    /// Whether an older program wrote the file, without a checksum.
    outdated: bool,
}

/// A current or former signing key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKeyInfo {
    /// The public key, multibase.
    pub public_key: String,
    /// The public key as a DID.
    pub did: String,
    /// When the key began to sign.
    pub since: Timestamp,
    /// When the key stopped signing, and its successor. `None` for the current key.
    pub followed: Option<KeyRotation>,
}

/// All keys of a data directory, the current one first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKeys {
    /// PAM `owner.id`.
    pub owner: String,
    /// PAM `owner.did` as exports name it.
    pub did: String,
    pub keys: Vec<SigningKeyInfo>,
}

/// What the user can do about a key file that cannot be used.
const REMEDY: &str = "put keys/signing.json back from a backup (`satchel restore FILE --data-dir DIR` unpacks one elsewhere), or begin a new identity, which nobody trusts yet: `satchel keys rotate --new-identity`";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    /// The file version: 3. Before the checksum was introduced it was 1, or 2 after a rotation.
    version: u32,
    algorithm: String,
    /// base64url of the 32-byte seed (RFC 8032).
    seed: String,
    /// PAM `owner.id`, UUID v4.
    owner: String,
    /// Creation time of the owner and of the first key.
    created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rotations: Vec<KeyRotation>,
    /// The public key of the seed, multibase. A damaged seed yields a different public key, so this detects the damage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    public_key: Option<String>,
    /// SHA-256 of the JCS form of all other fields, lower-case hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

impl KeyFile {
    fn new(
        key: &SigningKey,
        owner: String,
        created_at: Timestamp,
        rotations: Vec<KeyRotation>,
    ) -> Option<Self> {
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
        file.checksum = Some(key_checksum::compute(&file)?);
        Some(file)
    }

    /// Returns whether the file is intact, as far as that can be told: files of older programs have no checksum.
    fn is_intact(&self, key: &SigningKey) -> bool {
        if self.version < VERSION {
            return self.public_key.is_none() && self.checksum.is_none();
        }
        self.public_key.as_deref() == Some(PublicKey::of(key).multibase().as_str())
            && self.checksum.is_some()
            && self.checksum == key_checksum::compute(self)
    }
}

impl SigningIdentity {
    /// Returns the current public key, multibase.
    pub(super) fn current_public_key(&self) -> String {
        PublicKey::of(&self.key).multibase()
    }

    /// Returns a stable owner id that does not reveal the owner's identity. It replaces an owner id that is an e-mail
    /// address.
    pub(super) fn pseudonymous_owner_id(&self) -> String {
        let first = self.rotations.first().map(|rotation| rotation.from.clone());
        let first = first.unwrap_or_else(|| PublicKey::of(&self.key).multibase());
        Uuid::new_v5(&satchel_pam::ids::NAMESPACE, first.as_bytes()).to_string()
    }

    /// Returns the public keys, the current one first.
    fn public_keys(&self) -> Vec<String> {
        let old = self.rotations.iter().rev().map(|rotation| rotation.from.clone());
        std::iter::once(PublicKey::of(&self.key).multibase()).chain(old).collect()
    }

    /// Returns the keys as they are shown to the user. `did` is the user's own DID, if any.
    pub(super) fn to_signing_keys(&self, did: Option<&str>) -> SigningKeys {
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

/// Reads the key of the data directory, or creates one if the store has not recorded any. A new key gets the `owner`
/// that the store already knows, if there is one. No other process creates a key at the same time, so temporary files
/// left by a killed process are removed.
pub(super) fn load_or_create(
    keys: &Path,
    now: i64,
    known: Option<&str>,
    owner: impl FnOnce() -> Result<Option<String>, ExportLedgerError>,
) -> Result<SigningIdentity, ExportError> {
    remove_temp_files(keys);
    match check_recorded(keys, load(keys)?, known)? {
        Some(signer) if signer.outdated => upgrade(keys, &signer),
        Some(signer) => Ok(signer),
        None => create(keys, &keys.join(KEY_FILE), now, owner()?),
    }
}

/// Refuses a key other than the one that the store has recorded (`known`), and also a missing key file.
pub(super) fn check_recorded(
    keys: &Path,
    found: Option<SigningIdentity>,
    known: Option<&str>,
) -> Result<Option<SigningIdentity>, ExportError> {
    let Some(known) = known else { return Ok(found) };
    let problem = match &found {
        Some(signer) if signer.public_keys().iter().any(|public| public == known) => return Ok(found),
        Some(signer) => {
            format!("it holds the key {}, but {known} signed before; {REMEDY}", signer.current_public_key())
        }
        None => format!("the file is gone, and {known} signed before; {REMEDY}"),
    };
    Err(ExportError::Key { path: keys.join(KEY_FILE), problem })
}

/// Rewrites the file of an older program with a checksum. The caller has checked the key against the one that the store
/// has recorded, if any.
fn upgrade(keys: &Path, signer: &SigningIdentity) -> Result<SigningIdentity, ExportError> {
    let file = KeyFile::new(&signer.key, signer.owner.clone(), signer.owner_since, signer.rotations.clone());
    replace(keys, file)
}

/// Moves the remains of an unusable key file out of the way, to the first free name.
pub(super) fn set_aside(keys: &Path) -> Result<(), ExportError> {
    let path = keys.join(KEY_FILE);
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let free = (1_u32..).map(|number| keys.join(format!("{KEY_FILE}.replaced-{number}")));
    let place = free.into_iter().find(|place| place.symlink_metadata().is_err());
    fs::rename(&path, place.unwrap_or_else(|| keys.join("signing.json.replaced"))).map_err(failed(&path))
}

/// Reads the key of the data directory. Returns `None` before the first export.
pub(super) fn load(keys: &Path) -> Result<Option<SigningIdentity>, ExportError> {
    let path = keys.join(KEY_FILE);
    match read(&path) {
        Ok(file) => open(&path, &file).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(ExportError::Key { path, problem: format!("it is damaged; {REMEDY}") })
        }
        Err(source) => Err(ExportError::Key { path, problem: source.to_string() }),
    }
}

/// Replaces the signing key with a new one. When this returns, the rotation is durable and the old secret is deleted.
pub(super) fn rotate(
    keys: &Path,
    signer: &SigningIdentity,
    now: i64,
) -> Result<SigningIdentity, ExportError> {
    let path = keys.join(KEY_FILE);
    if signer.rotations.len() >= rotation::MAX_ROTATIONS {
        let problem = format!("{} keys have been used, which is the maximum", rotation::MAX_ROTATIONS);
        return Err(ExportError::Key { path, problem });
    }
    let next = SigningKey::from_bytes(&seed(&path)?);
    // If the clock went back, a key must not end before it began.
    let at = to_seconds(now).max(signer.since);
    let rotation = KeyRotation::sign(&signer.key, &next, at);
    let rotation = rotation.ok_or(ExportError::Unencodable { what: "a rotation" })?;
    let rotations = signer.rotations.iter().cloned().chain([rotation]).collect();
    replace(keys, KeyFile::new(&next, signer.owner.clone(), signer.owner_since, rotations))
}

/// Replaces the current key file. Durable when this returns.
fn replace(keys: &Path, file: Option<KeyFile>) -> Result<SigningIdentity, ExportError> {
    let path = keys.join(KEY_FILE);
    let file = file.ok_or(ExportError::Unencodable { what: "a key file" })?;
    let temp = write(keys, &path, &file)?;
    let failed = failed(&path);
    fs::rename(&temp.0, &path).map_err(&failed)?;
    File::open(keys).and_then(|folder| folder.sync_all()).map_err(&failed)?;
    open(&path, &read(&path).map_err(failed)?)
}

/// Returns the current and former public keys of this data directory (multibase), the current one first.
pub(super) fn public_keys_in(keys: &Path) -> Vec<String> {
    let path = keys.join(KEY_FILE);
    let signer = read(&path).ok().and_then(|file| open(&path, &file).ok());
    signer.map(|signer| signer.public_keys()).unwrap_or_default()
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = plain_file::open(path)?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        let problem = "other users can read it; run `chmod 600` on it, and consider the key known to them";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    file.take(MAX_KEY_FILE).read_to_string(&mut text)?;
    Ok(text)
}

fn open(path: &Path, text: &str) -> Result<SigningIdentity, ExportError> {
    let unusable = |problem: String| ExportError::Key { path: path.to_owned(), problem };
    let damaged = || unusable(format!("it is damaged; {REMEDY}"));
    // Check the version first: nothing else is known about a newer format.
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
    if file.version == 0 || file.algorithm != "Ed25519" || !file.is_intact(&key) {
        return Err(damaged());
    }
    let outdated = file.version < VERSION;
    let since = file.rotations.last().map_or(file.created_at, |rotation| rotation.at);
    let KeyFile { owner, created_at: owner_since, rotations, .. } = file;
    Ok(SigningIdentity { owner, owner_since, key, since, rotations, outdated })
}

fn create(keys: &Path, path: &Path, now: i64, owner: Option<String>) -> Result<SigningIdentity, ExportError> {
    let failed = failed(path);
    let key = SigningKey::from_bytes(&seed(path)?);
    let owner = owner.unwrap_or_else(|| Uuid::new_v4().to_string());
    let file = KeyFile::new(&key, owner, to_seconds(now), Vec::new());
    let file = file.ok_or(ExportError::Unencodable { what: "a key file" })?;
    let temp = write(keys, path, &file)?;
    // A hard link instead of a rename: if two processes create a key at once, the second one finds the key of the
    // first.
    match fs::hard_link(&temp.0, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    drop(temp);
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

fn to_seconds(now: i64) -> Timestamp {
    Timestamp::saturating(now - now.rem_euclid(SECOND))
}

/// A temporary key file next to the real one. It holds a secret, so it is always moved or removed in the end.
struct TempKeyFile(PathBuf);

impl Drop for TempKeyFile {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Removes temporary key files of interrupted writes.
fn remove_temp_files(keys: &Path) {
    for entry in fs::read_dir(keys).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(TEMP_PREFIX) {
            remove(&entry.path());
        }
    }
}

fn remove(temp: &Path) {
    match fs::remove_file(temp) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, path = ?temp, "a signing key that was not used stays behind");
        }
        _ => {}
    }
}

/// Writes a temporary key file next to the real one, durably.
fn write(keys: &Path, path: &Path, file: &KeyFile) -> Result<TempKeyFile, ExportError> {
    let failed = failed(path);
    let text = serde_json::to_string_pretty(file).map_err(|error| failed(error.into()))?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(keys).map_err(&failed)?;
    let temp = TempKeyFile(keys.join(format!("{TEMP_PREFIX}{}", Uuid::new_v4())));
    let mut out =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temp.0).map_err(&failed)?;
    out.write_all(text.as_bytes()).and_then(|()| out.sync_all()).map_err(failed)?;
    Ok(temp)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_rotation_deletes_the_old_secret() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys");
        let first = load_or_create(&keys, SECOND, None, || Ok(None)).unwrap();
        let secret = URL_SAFE_NO_PAD.encode(first.key.to_bytes());
        assert!(read(&keys.join(KEY_FILE)).unwrap().contains(&secret));
        let second = rotate(&keys, &first, 9 * SECOND).unwrap();
        let third = rotate(&keys, &second, 5 * SECOND).unwrap();
        assert_eq!(
            (&third.owner, third.pseudonymous_owner_id()),
            (&first.owner, first.pseudonymous_owner_id())
        );
        assert!(!read(&keys.join(KEY_FILE)).unwrap().contains(&secret));
        assert_eq!(fs::read_dir(&keys).unwrap().count(), 1, "nothing is left beside it");
        fs::write(keys.join(format!("{TEMP_PREFIX}of a kill")), "secret").unwrap();
        let again = load_or_create(&keys, 0, None, || Ok(None)).unwrap();
        assert_eq!(fs::read_dir(&keys).unwrap().count(), 1, "what a kill left is gone");
        let not_there = keys.join("not there/signing.json");
        assert!(create(&keys, &not_there, 0, None).is_err());
        assert_eq!(fs::read_dir(&keys).unwrap().count(), 1, "what failed leaves nothing");
        let key = PublicKey::of(&again.key);
        assert_eq!(key, PublicKey::of(&third.key));
        let before = rotation::predecessors(&again.rotations, &key);
        assert_eq!(before, [PublicKey::of(&second.key), PublicKey::of(&first.key)]);
        let shown = again.to_signing_keys(Some("did:web:example.org"));
        let times: Vec<i64> = shown.keys.iter().map(|key| key.since.micros() / SECOND).collect();
        assert_eq!((times, shown.did.as_str()), (vec![9, 9, 1], "did:web:example.org"));
        assert_eq!(
            public_keys_in(&keys),
            shown.keys.iter().map(|key| key.public_key.clone()).collect::<Vec<_>>()
        );
    }

    fn refused(outcome: Result<Option<SigningIdentity>, ExportError>) -> String {
        let Err(ExportError::Key { problem, .. }) = outcome else { panic!("a damaged key file is accepted") };
        problem
    }

    #[test]
    fn a_flipped_bit_never_yields_another_identity() {
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
                // The bit is in white space between the fields.
                Ok(Some(found)) => {
                    let same = (found.current_public_key(), found.owner, found.rotations);
                    let expected =
                        (signer.current_public_key(), signer.owner.clone(), signer.rotations.clone());
                    assert!(same == expected, "bit {bit} is not seen");
                }
                Ok(None) => panic!("bit {bit} makes the key vanish"),
                Err(ExportError::Key { problem, .. }) => {
                    let reported = problem.contains("damaged") || problem.contains("newer");
                    assert!(reported, "bit {bit}: {problem}");
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
        let known = first.current_public_key();
        let second = rotate(&keys, &first, 9 * SECOND).unwrap();
        // The store may not have recorded a rotation that was interrupted.
        for known in [known.as_str(), second.current_public_key().as_str()] {
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
        assert_eq!(load(&keys).unwrap().unwrap().current_public_key(), signer.current_public_key());
        let other = create(&folder.path().join("other"), &folder.path().join("other/k"), 0, None).unwrap();
        assert!(
            load_or_create(&keys, 0, Some(&other.current_public_key()), || Ok(None)).is_err(),
            "another's is not upgraded"
        );
        let again = load_or_create(&keys, 0, Some(&signer.current_public_key()), || Ok(None)).unwrap();
        assert_eq!((again.current_public_key(), again.owner), (signer.current_public_key(), signer.owner));
        assert!(
            read(&path).unwrap().contains("\"checksum\"") && read(&path).unwrap().contains("\"version\": 3")
        );
    }
}
