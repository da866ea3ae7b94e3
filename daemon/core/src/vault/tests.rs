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

struct Home(tempfile::TempDir);

impl Home {
    /// Creates a data directory with one commit.
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        let store = Store::open(&home.data(), OpenOptions::default(), &mut |_| {}).unwrap();
        commit(&store, 1);
        store.close().unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn data(&self) -> PathBuf {
        self.path("data")
    }

    fn encrypt(&self, opener: &Opener, unlock: &Unlock) -> Result<Secret, VaultError> {
        let mut told = None;
        encrypt(&self.data(), opener, unlock, &mut |_| {}, &mut |phrase| told = Some(phrase.clone()))?;
        Ok(told.unwrap())
    }

    fn open(&self, unlock: &Unlock) -> Result<Store, VaultError> {
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

fn readable(dir: &Path) -> Vec<PathBuf> {
    let holds = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap();
        bytes.windows(PLANTED.len()).any(|window| window == PLANTED.as_bytes())
    };
    files(dir).into_iter().filter(holds).collect()
}

fn by_passphrase(text: &str) -> Unlock {
    Unlock { passphrase: Some(Secret::new(text.to_owned())), ..Unlock::default() }
}

#[test]
fn a_passphrase_opens_what_it_closed_and_another_changes_nothing() {
    let home = Home::new();
    assert!(!readable(&home.data()).is_empty());
    let right = by_passphrase("correct horse battery");
    home.encrypt(&Opener::Passphrase, &right).unwrap();
    assert_eq!(readable(&home.data()), Vec::<PathBuf>::new());
    let before = home.bytes();
    let refused = home.open(&by_passphrase("correct horse battery ")).unwrap_err();
    assert!(matches!(refused, VaultError::WrongPassphrase), "{refused}");
    assert!(matches!(home.open(&Unlock::default()), Err(VaultError::NoPassphrase)));
    assert!(home.bytes() == before);
    let store = home.open(&right).unwrap();
    assert_eq!(store.stats().unwrap().evidence, 1);
    commit(&store, 2);
    drop(store);
    assert_eq!(readable(&home.data()), Vec::<PathBuf>::new());
    assert_eq!(status(&home.data()).unwrap().unwrap().opened_by, ["passphrase"]);
}

#[test]
fn a_new_passphrase_wraps_the_key_anew_and_leaves_what_is_stored() {
    let home = Home::new();
    let (old, new) = (by_passphrase("correct horse battery"), by_passphrase("staple and tea"));
    home.encrypt(&Opener::Passphrase, &old).unwrap();
    let before = home.bytes();
    let refused = change(&home.data(), &Opener::Passphrase, &new, None, &new);
    assert!(matches!(refused, Err(VaultError::WrongPassphrase)));
    let refused = change(&home.data(), &Opener::Passphrase, &old, None, &by_passphrase("short"));
    assert!(matches!(refused, Err(VaultError::TooShort { .. })));
    assert!(home.bytes() == before);
    change(&home.data(), &Opener::Passphrase, &old, None, &new).unwrap();
    let changed: Vec<_> =
        home.bytes().into_iter().filter(|file| !before.contains(file)).map(|file| file.0).collect();
    assert_eq!(
        changed,
        ["data-key.copy.json", "data-key.json"].map(|name| home.data().join("keys").join(name))
    );
    assert!(matches!(home.open(&old), Err(VaultError::WrongPassphrase)));
    drop(home.open(&new).unwrap());
}

#[test]
fn a_passphrase_file_that_others_may_read_is_refused() {
    let home = Home::new();
    let path = home.path("passphrase");
    fs::write(&path, "correct horse battery\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let unlock = Unlock { passphrase_file: Some(path.clone()), ..Unlock::default() };
    assert!(matches!(home.encrypt(&Opener::Passphrase, &unlock), Err(VaultError::OpenToOthers { .. })));
    assert!(status(&home.data()).unwrap().is_none());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    home.encrypt(&Opener::Passphrase, &unlock).unwrap();
    drop(home.open(&by_passphrase("correct horse battery")).unwrap());
}

#[test]
fn a_key_file_opens_wherever_it_is_and_only_if_it_is_the_right_one() {
    let home = Home::new();
    let key = home.path("data.key");
    home.encrypt(&Opener::KeyFile(key.clone()), &Unlock::default()).unwrap();
    drop(home.open(&Unlock::default()).unwrap());
    assert_eq!(status(&home.data()).unwrap().unwrap().opened_by, [format!("key file {}", key.display())]);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(home.open(&Unlock::default()), Err(VaultError::OpenToOthers { .. })));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let moved = home.path("elsewhere.key");
    fs::rename(&key, &moved).unwrap();
    assert!(matches!(home.open(&Unlock::default()), Err(VaultError::NoKeyFile { .. })));
    drop(home.open(&Unlock { key_file: Some(moved), ..Unlock::default() }).unwrap());
    let other = Home::new();
    other.encrypt(&Opener::KeyFile(key), &Unlock::default()).unwrap();
    let before = home.bytes();
    assert!(matches!(home.open(&Unlock::default()), Err(VaultError::WrongKeyFile { .. })));
    assert!(home.bytes() == before);
}

#[test]
fn the_recovery_phrase_opens_what_has_lost_its_key() {
    let home = Home::new();
    let key = home.path("data.key");
    let phrase = home.encrypt(&Opener::KeyFile(key.clone()), &Unlock::default()).unwrap();
    let written = files(&home.data()).iter().any(|path| {
        let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        text.contains(phrase.expose())
    });
    assert!(!written, "the phrase stands nowhere");
    fs::remove_file(&key).unwrap();
    let opener = Opener::KeyFile(home.path("new.key"));
    let none = Unlock::default();
    let other = words::create().unwrap();
    let refused = change(&home.data(), &opener, &none, Some(&other), &none);
    assert!(matches!(refused, Err(VaultError::WrongPhrase)));
    change(&home.data(), &opener, &none, Some(&phrase), &none).unwrap();
    drop(home.open(&none).unwrap());
    // A new phrase replaces the old one.
    let newer = renew_phrase(&home.data(), &none).unwrap();
    let refused = change(&home.data(), &opener, &none, Some(&phrase), &none);
    assert!(matches!(refused, Err(VaultError::WrongPhrase)));
    change(&home.data(), &opener, &none, Some(&newer), &none).unwrap();
    drop(home.open(&none).unwrap());
}

#[test]
fn the_key_store_of_the_system_opens_and_is_told_from_none() {
    let home = Home::new();
    let tool = home.path("secret-tool");
    // Behaves like the real program for the same arguments and pipes.
    let kept = home.path("kept");
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = store ]; then test \"$2\" = '--label=Satchel data key' && cat > '{0}'-\"$6\"; else test -f '{0}'-\"$5\" && cat '{0}'-\"$5\"; fi\n",
        kept.display()
    );
    fs::write(&tool, script).unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o700)).unwrap();
    let unlock = Unlock { key_store: Arc::new(SecretTool::at(tool.clone().into())), ..Unlock::default() };
    home.encrypt(&Opener::KeyStore, &unlock).unwrap();
    drop(home.open(&unlock).unwrap());
    let kept =
        files(home.0.path()).into_iter().find(|path| path.to_string_lossy().contains("/kept-")).unwrap();
    fs::remove_file(kept).unwrap();
    assert!(matches!(home.open(&unlock), Err(VaultError::NotInKeyStore { .. })));
    let missing = SecretTool::at(home.path("no-such-program").into());
    let unlock = Unlock { key_store: Arc::new(missing), ..Unlock::default() };
    assert!(matches!(home.open(&unlock), Err(VaultError::KeyStore { .. })));
    let plain = Home::new();
    assert!(plain.encrypt(&Opener::KeyStore, &unlock).is_err());
    assert!(status(&plain.data()).unwrap().is_none() && !readable(&plain.data()).is_empty());
}

#[test]
fn an_encryption_that_was_cut_off_is_done_by_the_next_start() {
    let home = Home::new();
    let key = DataKey::random().unwrap();
    let opener = Opener::KeyFile(home.path("data.key"));
    let lock = lock(&key, &opener, &home.data(), &Unlock::default()).unwrap();
    // Simulates a process that ends right after the commit point.
    drop(satchel_store::stage(&home.data(), &Seal::new(&key), &|| false, &mut |_| {}).unwrap());
    Ring::new(State::Replacing, vec![lock]).write(&home.data()).unwrap();
    assert!(!status(&home.data()).unwrap().unwrap().complete);
    let store = home.open(&Unlock::default()).unwrap();
    assert_eq!(store.stats().unwrap().evidence, 1);
    drop(store);
    assert!(status(&home.data()).unwrap().unwrap().complete);
    assert_eq!(readable(&home.data()), Vec::<PathBuf>::new());
}

#[test]
fn a_new_data_directory_is_sealed_from_its_first_byte() {
    let home = Home(tempfile::tempdir().unwrap());
    home.encrypt(&Opener::KeyFile(home.path("data.key")), &Unlock::default()).unwrap();
    let store = home.open(&Unlock::default()).unwrap();
    commit(&store, 1);
    drop(store);
    assert_eq!(readable(&home.data()), Vec::<PathBuf>::new());
    let again = home.encrypt(&Opener::KeyFile(home.path("data.key")), &Unlock::default());
    assert!(matches!(again, Err(VaultError::Encrypted)));
}

#[test]
fn a_file_of_another_store_or_a_damaged_one_opens_nothing_and_changes_nothing() {
    let (home, other) = (Home::new(), Home::new());
    let unlock = Unlock::default();
    for (home, name) in [(&home, "a.key"), (&other, "b.key")] {
        home.encrypt(&Opener::KeyFile(home.path(name)), &unlock).unwrap();
    }
    let path = home.data().join("keys/data-key.json");
    let copy = home.data().join("keys/data-key.copy.json");
    let own = fs::read(&path).unwrap();
    fs::copy(other.data().join("keys/data-key.json"), &path).unwrap();
    let before = home.bytes();
    let refused = home.open(&unlock).unwrap_err();
    assert!(matches!(refused, VaultError::Store(StoreError::WrongKey { .. })), "{refused}");
    assert!(home.bytes() == before);
    assert_eq!(fs::read(&copy).unwrap(), own, "the own one is not overwritten");
    fs::write(&path, "{\"version\": 3}").unwrap();
    assert!(matches!(home.open(&unlock), Err(VaultError::Newer { .. })));
    // A file that is damaged or missing is restored from the other one.
    for damage in [Some("{"), None] {
        match damage {
            Some(text) => fs::write(&path, text).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        drop(home.open(&unlock).unwrap());
        assert_eq!(fs::read(&path).unwrap(), own);
    }
    fs::remove_file(&copy).unwrap();
    fs::write(&path, "{").unwrap();
    assert!(matches!(home.open(&unlock), Err(VaultError::Damaged { .. })));
    fs::remove_file(&path).unwrap();
    let refused = home.open(&unlock).unwrap_err();
    assert!(matches!(refused, VaultError::Store(StoreError::NoKey { .. })), "{refused}");
    fs::write(&path, own).unwrap();
    drop(home.open(&unlock).unwrap());
}

#[test]
fn a_secret_is_not_shown() {
    let unlock = by_passphrase("correct horse battery");
    assert!(!format!("{unlock:?}").contains("horse"));
}

#[test]
fn a_backup_of_an_encrypted_directory_is_put_back_with_the_phrase_when_the_key_is_lost() {
    let home = Home::new();
    let key = home.path("key");
    let phrase = home.encrypt(&Opener::KeyFile(key.clone()), &Unlock::default()).unwrap();
    let store = home.open(&Unlock::default()).unwrap();
    let backup = home.path("backup.zip");
    crate::backup::create::create(&store, &home.data(), &backup, 1, &mut |_| true).unwrap();
    assert!(crate::backup::restore::encrypted(&backup).unwrap());
    let digest = store.state_digest();
    store.close().unwrap();
    fs::remove_file(&key).unwrap();
    let put_back = |unlock: &Unlock| {
        crate::backup::restore::restore(&backup, &home.path("restored"), false, unlock, &mut |_| true)
    };
    assert!(put_back(&Unlock::default()).is_err(), "the key is lost");
    let wrong = Secret::new(
        "abandon ability able about above absent absorb abstract absurd abuse access accident".to_owned(),
    );
    assert!(put_back(&Unlock { phrase: Some(wrong), ..Unlock::default() }).is_err());
    assert!(!home.path("restored").exists());
    let unlock = Unlock { phrase: Some(phrase), ..Unlock::default() };
    put_back(&unlock).unwrap();
    let restored = home.path("restored");
    let store =
        Store::open(&home.path("restored"), open_options(&restored, &unlock, CACHE).unwrap(), &mut |_| {})
            .unwrap();
    assert_eq!(store.state_digest(), digest);
    assert_eq!(readable(&home.path("restored")), Vec::<PathBuf>::new());
}
