//! Tests of the keys that open an encrypted data directory, and of failures to open it.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use satchel_store::{Batch, Change, EvidenceWrite, Store, StoreError};

use super::*;

/// Cache size of the database, in bytes.
const CACHE: u64 = 16 << 20;

const PLANTED: &str = "planted-Clementine";

struct TestDataDir(tempfile::TempDir);

impl TestDataDir {
    /// Creates a data directory with one commit.
    fn new() -> Self {
        let dir = Self(tempfile::tempdir().unwrap());
        let store = Store::open(&dir.data(), OpenOptions::default(), &mut |_| {}).unwrap();
        commit(&store, 1);
        store.close().unwrap();
        dir
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn data(&self) -> PathBuf {
        self.path("data")
    }

    fn encrypt(&self, method: &UnlockMethod, unlock: &UnlockOptions) -> Result<Secret, VaultError> {
        let mut phrase_shown = None;
        encrypt(&self.data(), method, unlock, &mut |_| {}, &mut |phrase| {
            phrase_shown = Some(phrase.clone());
        })?;
        Ok(phrase_shown.unwrap())
    }

    fn open(&self, unlock: &UnlockOptions) -> Result<Store, VaultError> {
        Ok(Store::open(&self.data(), open_options(&self.data(), unlock, CACHE)?, &mut |_| {})?)
    }

    /// Returns all files with their contents, except for the lock.
    fn bytes(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found: Vec<_> =
            files(&self.data()).into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
        found.retain(|(path, _)| !path.ends_with("store.lock"));
        found
    }
}

fn commit(store: &Store, n: u8) {
    let evidence = EvidenceWrite { id: [n; 16], json: PLANTED.as_bytes().to_vec() };
    store.blob_put(&mut [PLANTED.as_bytes(), &[n]].concat().as_slice()).unwrap();
    store.commit(Batch { changes: vec![Change::Evidence(evidence)], ..Batch::default() }).unwrap();
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

fn files_with_plaintext(dir: &Path) -> Vec<PathBuf> {
    let holds = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap();
        bytes.windows(PLANTED.len()).any(|window| window == PLANTED.as_bytes())
    };
    files(dir).into_iter().filter(holds).collect()
}

fn with_passphrase(text: &str) -> UnlockOptions {
    UnlockOptions { passphrase: Some(Secret::new(text.to_owned())), ..UnlockOptions::default() }
}

#[test]
fn only_the_right_passphrase_opens_the_store_and_a_wrong_one_changes_nothing() {
    let dir = TestDataDir::new();
    assert!(!files_with_plaintext(&dir.data()).is_empty());
    let right = with_passphrase("correct horse battery");
    dir.encrypt(&UnlockMethod::Passphrase, &right).unwrap();
    assert_eq!(files_with_plaintext(&dir.data()), Vec::<PathBuf>::new());
    let before = dir.bytes();
    let refused = dir.open(&with_passphrase("correct horse battery ")).unwrap_err();
    assert!(matches!(refused, VaultError::WrongPassphrase), "{refused}");
    assert!(matches!(dir.open(&UnlockOptions::default()), Err(VaultError::NoPassphrase)));
    assert!(dir.bytes() == before);
    let store = dir.open(&right).unwrap();
    assert_eq!(store.stats().unwrap().evidence, 1);
    commit(&store, 2);
    drop(store);
    assert_eq!(files_with_plaintext(&dir.data()), Vec::<PathBuf>::new());
    assert_eq!(status(&dir.data()).unwrap().unwrap().opened_by, ["passphrase"]);
}

#[test]
fn a_new_passphrase_rewraps_the_key_and_leaves_the_data_as_it_is() {
    let dir = TestDataDir::new();
    let (old, new) = (with_passphrase("correct horse battery"), with_passphrase("staple and tea"));
    dir.encrypt(&UnlockMethod::Passphrase, &old).unwrap();
    let before = dir.bytes();
    let refused = change(&dir.data(), &UnlockMethod::Passphrase, &new, None, &new);
    assert!(matches!(refused, Err(VaultError::WrongPassphrase)));
    let refused = change(&dir.data(), &UnlockMethod::Passphrase, &old, None, &with_passphrase("short"));
    assert!(matches!(refused, Err(VaultError::TooShort { .. })));
    assert!(dir.bytes() == before);
    change(&dir.data(), &UnlockMethod::Passphrase, &old, None, &new).unwrap();
    let changed: Vec<_> =
        dir.bytes().into_iter().filter(|file| !before.contains(file)).map(|file| file.0).collect();
    assert_eq!(
        changed,
        ["data-key.copy.json", "data-key.json"].map(|name| dir.data().join("keys").join(name))
    );
    assert!(matches!(dir.open(&old), Err(VaultError::WrongPassphrase)));
    drop(dir.open(&new).unwrap());
}

#[test]
fn a_passphrase_file_that_others_may_read_is_refused() {
    let dir = TestDataDir::new();
    let path = dir.path("passphrase");
    fs::write(&path, "correct horse battery\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let unlock = UnlockOptions { passphrase_file: Some(path.clone()), ..UnlockOptions::default() };
    assert!(matches!(
        dir.encrypt(&UnlockMethod::Passphrase, &unlock),
        Err(VaultError::ReadableByOthers { .. })
    ));
    assert!(status(&dir.data()).unwrap().is_none());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    dir.encrypt(&UnlockMethod::Passphrase, &unlock).unwrap();
    drop(dir.open(&with_passphrase("correct horse battery")).unwrap());
}

#[test]
fn a_key_file_may_be_moved_and_must_be_the_right_one() {
    let dir = TestDataDir::new();
    let key = dir.path("data.key");
    dir.encrypt(&UnlockMethod::KeyFile(key.clone()), &UnlockOptions::default()).unwrap();
    drop(dir.open(&UnlockOptions::default()).unwrap());
    assert_eq!(status(&dir.data()).unwrap().unwrap().opened_by, [format!("key file {}", key.display())]);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(dir.open(&UnlockOptions::default()), Err(VaultError::ReadableByOthers { .. })));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let moved = dir.path("elsewhere.key");
    fs::rename(&key, &moved).unwrap();
    assert!(matches!(dir.open(&UnlockOptions::default()), Err(VaultError::NoKeyFile { .. })));
    drop(dir.open(&UnlockOptions { key_file: Some(moved), ..UnlockOptions::default() }).unwrap());
    let other = TestDataDir::new();
    other.encrypt(&UnlockMethod::KeyFile(key), &UnlockOptions::default()).unwrap();
    let before = dir.bytes();
    assert!(matches!(dir.open(&UnlockOptions::default()), Err(VaultError::WrongKeyFile { .. })));
    assert!(dir.bytes() == before);
}

#[test]
fn the_recovery_phrase_replaces_a_lost_key() {
    let dir = TestDataDir::new();
    let key = dir.path("data.key");
    let phrase = dir.encrypt(&UnlockMethod::KeyFile(key.clone()), &UnlockOptions::default()).unwrap();
    let written = files(&dir.data()).iter().any(|path| {
        let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        text.contains(phrase.expose())
    });
    assert!(!written, "the phrase stands nowhere");
    fs::remove_file(&key).unwrap();
    let method = UnlockMethod::KeyFile(dir.path("new.key"));
    let none = UnlockOptions::default();
    let other = recovery_phrase::create().unwrap();
    let refused = change(&dir.data(), &method, &none, Some(&other), &none);
    assert!(matches!(refused, Err(VaultError::WrongPhrase)));
    change(&dir.data(), &method, &none, Some(&phrase), &none).unwrap();
    drop(dir.open(&none).unwrap());
    // A new phrase replaces the old one.
    let newer = renew_phrase(&dir.data(), &none).unwrap();
    let refused = change(&dir.data(), &method, &none, Some(&phrase), &none);
    assert!(matches!(refused, Err(VaultError::WrongPhrase)));
    change(&dir.data(), &method, &none, Some(&newer), &none).unwrap();
    drop(dir.open(&none).unwrap());
}

#[test]
fn the_key_store_opens_the_store_and_a_missing_one_is_reported() {
    let dir = TestDataDir::new();
    let tool = dir.path("secret-tool");
    // Behaves like the real program for the same arguments and pipes.
    let kept = dir.path("kept");
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = store ]; then test \"$2\" = '--label=Satchel data key' && cat > '{0}'-\"$6\"; else test -f '{0}'-\"$5\" && cat '{0}'-\"$5\"; fi\n",
        kept.display()
    );
    fs::write(&tool, script).unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o700)).unwrap();
    let unlock = UnlockOptions {
        key_store: Arc::new(SecretTool::at(tool.clone().into())),
        ..UnlockOptions::default()
    };
    dir.encrypt(&UnlockMethod::KeyStore, &unlock).unwrap();
    drop(dir.open(&unlock).unwrap());
    let kept =
        files(dir.0.path()).into_iter().find(|path| path.to_string_lossy().contains("/kept-")).unwrap();
    fs::remove_file(kept).unwrap();
    assert!(matches!(dir.open(&unlock), Err(VaultError::NotInKeyStore { .. })));
    let missing = SecretTool::at(dir.path("no-such-program").into());
    let unlock = UnlockOptions { key_store: Arc::new(missing), ..UnlockOptions::default() };
    assert!(matches!(dir.open(&unlock), Err(VaultError::KeyStore { .. })));
    let plain = TestDataDir::new();
    assert!(plain.encrypt(&UnlockMethod::KeyStore, &unlock).is_err());
    assert!(status(&plain.data()).unwrap().is_none() && !files_with_plaintext(&plain.data()).is_empty());
}

#[test]
fn an_interrupted_encryption_is_completed_by_the_next_start() {
    let dir = TestDataDir::new();
    let key = DataKey::random().unwrap();
    let method = UnlockMethod::KeyFile(dir.path("data.key"));
    let wrapped = wrap_new_key(&key, &method, &dir.data(), &UnlockOptions::default()).unwrap();
    // Simulates a process that ends right after the commit point.
    drop(satchel_store::stage_encryption(&dir.data(), &Seal::new(&key), &|| false, &mut |_| {}).unwrap());
    Keyring::new(EncryptionState::Replacing, vec![wrapped]).write(&dir.data()).unwrap();
    assert!(!status(&dir.data()).unwrap().unwrap().complete);
    let store = dir.open(&UnlockOptions::default()).unwrap();
    assert_eq!(store.stats().unwrap().evidence, 1);
    drop(store);
    assert!(status(&dir.data()).unwrap().unwrap().complete);
    assert_eq!(files_with_plaintext(&dir.data()), Vec::<PathBuf>::new());
}

#[test]
fn a_new_data_directory_is_encrypted_from_the_first_byte() {
    let dir = TestDataDir(tempfile::tempdir().unwrap());
    dir.encrypt(&UnlockMethod::KeyFile(dir.path("data.key")), &UnlockOptions::default()).unwrap();
    let store = dir.open(&UnlockOptions::default()).unwrap();
    commit(&store, 1);
    drop(store);
    assert_eq!(files_with_plaintext(&dir.data()), Vec::<PathBuf>::new());
    let again = dir.encrypt(&UnlockMethod::KeyFile(dir.path("data.key")), &UnlockOptions::default());
    assert!(matches!(again, Err(VaultError::AlreadyEncrypted)));
}

#[test]
fn a_foreign_or_damaged_keyring_opens_nothing_and_changes_nothing() {
    let (dir, other) = (TestDataDir::new(), TestDataDir::new());
    let unlock = UnlockOptions::default();
    for (dir, name) in [(&dir, "a.key"), (&other, "b.key")] {
        dir.encrypt(&UnlockMethod::KeyFile(dir.path(name)), &unlock).unwrap();
    }
    let path = dir.data().join("keys/data-key.json");
    let copy = dir.data().join("keys/data-key.copy.json");
    let original = fs::read(&path).unwrap();
    fs::copy(other.data().join("keys/data-key.json"), &path).unwrap();
    let before = dir.bytes();
    let refused = dir.open(&unlock).unwrap_err();
    assert!(matches!(refused, VaultError::Store(StoreError::WrongKey { .. })), "{refused}");
    assert!(dir.bytes() == before);
    assert_eq!(fs::read(&copy).unwrap(), original, "the copy is not overwritten");
    fs::write(&path, "{\"version\": 3}").unwrap();
    assert!(matches!(dir.open(&unlock), Err(VaultError::Newer { .. })));
    // A file that is damaged or missing is restored from the other one.
    for damage in [Some("{"), None] {
        match damage {
            Some(text) => fs::write(&path, text).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        drop(dir.open(&unlock).unwrap());
        assert_eq!(fs::read(&path).unwrap(), original);
    }
    fs::remove_file(&copy).unwrap();
    fs::write(&path, "{").unwrap();
    assert!(matches!(dir.open(&unlock), Err(VaultError::Damaged { .. })));
    fs::remove_file(&path).unwrap();
    let refused = dir.open(&unlock).unwrap_err();
    assert!(matches!(refused, VaultError::Store(StoreError::NoKey { .. })), "{refused}");
    fs::write(&path, original).unwrap();
    drop(dir.open(&unlock).unwrap());
}

#[test]
fn a_secret_is_not_printed() {
    let unlock = with_passphrase("correct horse battery");
    assert!(!format!("{unlock:?}").contains("horse"));
}

#[test]
fn a_backup_of_an_encrypted_directory_is_restored_with_the_phrase_if_the_key_is_lost() {
    let dir = TestDataDir::new();
    let key = dir.path("key");
    let phrase = dir.encrypt(&UnlockMethod::KeyFile(key.clone()), &UnlockOptions::default()).unwrap();
    let store = dir.open(&UnlockOptions::default()).unwrap();
    let backup = dir.path("backup.zip");
    crate::backup::create::create(&store, &dir.data(), &backup, 1, &mut |_| true).unwrap();
    assert!(crate::backup::restore::encrypted(&backup).unwrap());
    let digest = store.state_digest();
    store.close().unwrap();
    fs::remove_file(&key).unwrap();
    let restore_to_new = |unlock: &UnlockOptions| {
        crate::backup::restore::restore(&backup, &dir.path("restored"), false, unlock, &mut |_| true)
    };
    assert!(restore_to_new(&UnlockOptions::default()).is_err(), "the key is lost");
    let wrong = Secret::new(
        "abandon ability able about above absent absorb abstract absurd abuse access accident".to_owned(),
    );
    assert!(restore_to_new(&UnlockOptions { phrase: Some(wrong), ..UnlockOptions::default() }).is_err());
    assert!(!dir.path("restored").exists());
    let unlock = UnlockOptions { phrase: Some(phrase), ..UnlockOptions::default() };
    restore_to_new(&unlock).unwrap();
    let restored = dir.path("restored");
    let store =
        Store::open(&dir.path("restored"), open_options(&restored, &unlock, CACHE).unwrap(), &mut |_| {})
            .unwrap();
    assert_eq!(store.state_digest(), digest);
    assert_eq!(files_with_plaintext(&dir.path("restored")), Vec::<PathBuf>::new());
}
