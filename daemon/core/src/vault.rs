//! Opens an encrypted data directory. The data key is stored in `keys/data-key.json`, wrapped by a key file, a
//! passphrase or the system's key store, and by a recovery phrase.
//!
//! **Invariant:** the store is not touched before the data key is open, and a wrong key changes nothing. The tests of
//! this module and of `satchel-store` hold it.

mod error;
mod key_file;
mod key_store;
mod passphrase;
mod ring;
mod secret;
#[cfg(test)]
mod tests;
mod words;

use std::{
    io::IsTerminal as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use satchel_seal::{DataKey, Seal};
use satchel_store::{CheckProgress, OpenOptions};
use uuid::Uuid;
use zeroize::Zeroizing;

pub use self::{
    error::VaultError,
    key_store::{KeyStore, SecretTool},
    secret::Secret,
};
use self::{
    passphrase::Recipe,
    ring::{Bytes, Found, Lock, Ring, State},
};

/// The sources of the user's secrets.
#[derive(Clone, Debug)]
pub struct Unlock {
    /// The key file, if it is no longer at the path where it was when encryption was switched on.
    pub key_file: Option<PathBuf>,
    /// A file that contains the passphrase, readable only by its owner.
    pub passphrase_file: Option<PathBuf>,
    /// The passphrase itself, from the environment.
    pub passphrase: Option<Secret>,
    /// The recovery phrase, used if the regular key is lost.
    pub phrase: Option<Secret>,
    /// Whether the user can be prompted.
    pub terminal: bool,
    /// The system's key store.
    pub key_store: Arc<dyn KeyStore>,
}

impl Default for Unlock {
    fn default() -> Self {
        Self {
            key_file: None,
            passphrase_file: None,
            passphrase: None,
            phrase: None,
            terminal: false,
            key_store: Arc::new(SecretTool::default()),
        }
    }
}

impl Unlock {
    /// Returns whether a person uses the terminal.
    #[must_use]
    pub fn somebody() -> bool {
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }

    /// Returns the current passphrase.
    fn passphrase(&self) -> Result<Secret, VaultError> {
        if let Some(passphrase) = &self.passphrase {
            return Ok(passphrase.clone());
        }
        if let Some(path) = &self.passphrase_file {
            return Secret::from_file(path);
        }
        if self.terminal { ask("passphrase of the data directory: ") } else { Err(VaultError::NoPassphrase) }
    }

    /// Returns a new passphrase.
    fn chosen(&self) -> Result<Secret, VaultError> {
        let typed = self.passphrase.is_none() && self.passphrase_file.is_none();
        let passphrase = self.passphrase()?;
        if typed && ask("the same passphrase again: ")? != passphrase {
            return Err(VaultError::Differs);
        }
        Ok(passphrase)
    }
}

/// Prompts at the terminal without echoing the input.
pub fn ask(prompt: &str) -> Result<Secret, VaultError> {
    rpassword::prompt_password(prompt).map(Secret::new).map_err(|source| VaultError::Terminal { source })
}

/// The kind of key that is to open a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opener {
    /// A key file, which is created if it does not exist.
    KeyFile(PathBuf),
    /// The passphrase of [`Unlock`].
    Passphrase,
    /// The system's key store.
    KeyStore,
}

/// The encryption status of a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Whether everything is encrypted; false until an interrupted encryption is completed.
    pub complete: bool,
    /// The kinds of keys that open it, in words.
    pub opened_by: Vec<String>,
    /// Whether there is a recovery phrase.
    pub recovery: bool,
}

/// Returns the options that open the store of `data_dir` with these settings.
///
/// # Errors
/// The data directory is encrypted and cannot be opened.
pub fn open_options(data_dir: &Path, keys: &Unlock, cache_bytes: u64) -> Result<OpenOptions, VaultError> {
    let seal = unlock(data_dir, keys)?;
    Ok(OpenOptions { cache_bytes, seal, ..OpenOptions::default() })
}

/// Opens the data key of a data directory. Returns `None` if it is not encrypted. An interrupted encryption is
/// completed first.
///
/// # Errors
/// The key is missing or wrong, or the interrupted encryption cannot be completed.
pub fn unlock(data_dir: &Path, unlock: &Unlock) -> Result<Option<Seal>, VaultError> {
    let Some(mut ring) = Ring::read(data_dir)? else { return Ok(None) };
    let key = open(&ring, unlock)?;
    if ring.state == State::Replacing {
        satchel_store::finish(data_dir)?;
        // Another command may have changed the keys while this one prompted for a passphrase.
        ring = Ring::read(data_dir)?.unwrap_or(ring);
        ring.state = State::On;
        ring.write(data_dir)?;
    } else {
        mend(data_dir, false);
    }
    Ok(Some(Seal::new(&key)))
}

/// Makes sure that both copies of the wrapped data key are intact. Call it after the key has opened the store of
/// `data_dir`.
pub fn confirm(data_dir: &Path) {
    mend(data_dir, true);
}

fn mend(data_dir: &Path, proven: bool) {
    if let Err(error) = Ring::mend(data_dir, proven) {
        // Not an error: the copy that opened the data key exists.
        tracing::warn!(error = satchel_source::chain(&error), "the wrapped data key is not kept twice");
    }
}

/// Returns the problems of the two files that hold the wrapped data key, in words. The list is empty if both are intact
/// or neither exists. Changes nothing.
#[must_use]
pub fn key_files(data_dir: &Path) -> Vec<String> {
    let both = Ring::both(data_dir);
    if both.iter().all(|found| matches!(found.ring, Ok(None))) {
        return Vec::new();
    }
    let problem = |Found { path, ring }: &Found| match ring {
        Ok(Some(_)) => None,
        Ok(None) => Some(format!("{} is not there", path.display())),
        Err(VaultError::Damaged { .. }) => Some(format!("{} is damaged", path.display())),
        Err(error) => Some(satchel_source::chain(error)),
    };
    let mut problems: Vec<String> = both.iter().filter_map(problem).collect();
    if let [Found { ring: Ok(Some(first)), .. }, Found { ring: Ok(Some(second)), path }] = &both
        && first != second
    {
        problems.push(format!("{} is an older copy", path.display()));
    }
    problems
}

/// Returns how a data directory is encrypted, or `None` if it is not. Opens nothing.
///
/// # Errors
/// The file with the wrapped key cannot be read.
pub fn status(data_dir: &Path) -> Result<Option<Status>, VaultError> {
    let Some(ring) = Ring::read(data_dir)? else { return Ok(None) };
    let words = |lock: &Lock| match lock {
        Lock::KeyFile { path, .. } => Some(format!("key file {}", path.display())),
        Lock::Passphrase { .. } => Some("passphrase".to_owned()),
        Lock::KeyStore { .. } => Some("key store of the system".to_owned()),
        Lock::Recovery { .. } => None,
    };
    Ok(Some(Status {
        complete: ring.state == State::On,
        opened_by: ring.locks.iter().filter_map(words).collect(),
        recovery: ring.recovery().is_some(),
    }))
}

/// Encrypts a data directory, empty or not, that no process has open. The recovery phrase is passed to `told` before
/// any unencrypted data is erased; it is not stored anywhere else.
///
/// The write of `keys/data-key.json` is the commit point: before it nothing is changed, after it every start continues
/// the encryption.
///
/// # Errors
/// The store is in use or damaged, there is not enough space, or the file system refuses.
pub fn encrypt(
    data_dir: &Path,
    opener: &Opener,
    unlock: &Unlock,
    progress: &mut dyn FnMut(CheckProgress),
    told: &mut dyn FnMut(&Secret),
) -> Result<(), VaultError> {
    if Ring::read(data_dir)?.is_some() {
        return Err(VaultError::Encrypted);
    }
    let random = |source| VaultError::Random { source };
    let key = DataKey::random().map_err(random)?;
    let usual = lock(&key, opener, data_dir, unlock)?;
    let phrase = words::create().map_err(random)?;
    let begun = || !matches!(Ring::read(data_dir), Ok(None));
    let staged = satchel_store::stage(data_dir, &Seal::new(&key), &begun, progress)?;
    // Another command encrypted it while this one prompted for a passphrase.
    let staged = staged.ok_or(VaultError::Encrypted)?;
    let mut ring = Ring::new(State::Replacing, vec![usual, recovery(&key, &phrase)?]);
    ring.write(data_dir)?;
    told(&phrase);
    staged.replace()?;
    ring.state = State::On;
    ring.write(data_dir)
}

/// Changes which key opens a data directory. The stored data stays as it is; only the data key is wrapped again.
/// `phrase` opens the directory if its current key is lost.
///
/// # Errors
/// The data directory cannot be opened.
pub fn change(
    data_dir: &Path,
    opener: &Opener,
    unlock: &Unlock,
    phrase: Option<&Secret>,
    chosen: &Unlock,
) -> Result<(), VaultError> {
    let mut ring = Ring::read(data_dir)?.ok_or(VaultError::Plain)?;
    let key = match phrase {
        Some(phrase) => recover(&ring, phrase)?,
        None => open(&ring, unlock)?,
    };
    let usual = lock(&key, opener, data_dir, chosen)?;
    ring.locks.retain(|lock| matches!(lock, Lock::Recovery { .. }));
    ring.locks.insert(0, usual);
    ring.write(data_dir)
}

/// Replaces the recovery phrase with a new one.
///
/// # Errors
/// The data directory cannot be opened.
pub fn renew_phrase(data_dir: &Path, unlock: &Unlock) -> Result<Secret, VaultError> {
    let mut ring = Ring::read(data_dir)?.ok_or(VaultError::Plain)?;
    let key = open(&ring, unlock)?;
    let phrase = words::create().map_err(|source| VaultError::Random { source })?;
    ring.locks.retain(|lock| !matches!(lock, Lock::Recovery { .. }));
    ring.locks.push(recovery(&key, &phrase)?);
    ring.write(data_dir)?;
    Ok(phrase)
}

/// The contexts that wrapped keys are bound to.
const BY_KEY_FILE: &[u8] = b"satchel data key v1 by key file";
const BY_PASSPHRASE: &[u8] = b"satchel data key v1 by passphrase";
const BY_KEY_STORE: &[u8] = b"satchel data key v1 by key store";
const BY_PHRASE: &[u8] = b"satchel data key v1 by recovery phrase";

fn open(ring: &Ring, unlock: &Unlock) -> Result<DataKey, VaultError> {
    if let Some(phrase) = &unlock.phrase {
        return recover(ring, phrase);
    }
    match ring.usual().ok_or(VaultError::NoLock)? {
        Lock::KeyFile { path, wrapped } => {
            let path = unlock.key_file.as_ref().unwrap_or(path);
            let with = key_file::read(path)?;
            let wrong = || VaultError::WrongKeyFile { path: path.clone() };
            DataKey::unwrap(&wrapped.0, &with, BY_KEY_FILE).ok_or_else(wrong)
        }
        Lock::Passphrase { memory_kib, passes, lanes, salt, wrapped } => {
            let recipe =
                Recipe { memory_kib: *memory_kib, passes: *passes, lanes: *lanes, salt: salt.0.as_slice() };
            let with = recipe.key(&unlock.passphrase()?)?;
            DataKey::unwrap(&wrapped.0, &with, BY_PASSPHRASE).ok_or(VaultError::WrongPassphrase)
        }
        Lock::KeyStore { account, wrapped } => {
            let found = unlock.key_store.find(account).map_err(|source| VaultError::KeyStore { source })?;
            let secret = found.ok_or_else(|| VaultError::NotInKeyStore { account: account.clone() })?;
            let with = key_of_store(&secret);
            let wrong = || VaultError::NotInKeyStore { account: account.clone() };
            DataKey::unwrap(&wrapped.0, &with, BY_KEY_STORE).ok_or_else(wrong)
        }
        Lock::Recovery { .. } => Err(VaultError::NoLock),
    }
}

fn recover(ring: &Ring, phrase: &Secret) -> Result<DataKey, VaultError> {
    let wrapped = ring.recovery().ok_or(VaultError::NoRecovery)?;
    DataKey::unwrap(&wrapped.0, &*words::key(phrase)?, BY_PHRASE).ok_or(VaultError::WrongPhrase)
}

fn wrap(key: &DataKey, with: &[u8; 32], place: &[u8]) -> Result<Bytes, VaultError> {
    key.wrap(with, place).map(Bytes).map_err(|source| VaultError::Random { source })
}

fn lock(key: &DataKey, opener: &Opener, data_dir: &Path, chosen: &Unlock) -> Result<Lock, VaultError> {
    match opener {
        Opener::KeyFile(path) => {
            let with = key_file::read_or_create(path, data_dir)?;
            Ok(Lock::KeyFile { path: path.clone(), wrapped: wrap(key, &with, BY_KEY_FILE)? })
        }
        Opener::Passphrase => passphrase::lock(&chosen.chosen()?, |with| wrap(key, with, BY_PASSPHRASE)),
        Opener::KeyStore => {
            let account = Uuid::new_v4().to_string();
            let random = DataKey::random().map_err(|source| VaultError::Random { source })?;
            let secret = Secret::new(URL_SAFE_NO_PAD.encode(random.as_bytes()));
            let store = &chosen.key_store;
            store.put(&account, &secret).map_err(|source| VaultError::KeyStore { source })?;
            // Read the secret back: if the key store does not return it, the data would be lost.
            let found = store.find(&account).map_err(|source| VaultError::KeyStore { source })?;
            if found.as_ref() != Some(&secret) {
                return Err(VaultError::NotInKeyStore { account });
            }
            let with = key_of_store(&secret);
            Ok(Lock::KeyStore { account, wrapped: wrap(key, &with, BY_KEY_STORE)? })
        }
    }
}

fn recovery(key: &DataKey, phrase: &Secret) -> Result<Lock, VaultError> {
    Ok(Lock::Recovery { wrapped: wrap(key, &*words::key(phrase)?, BY_PHRASE)? })
}

fn key_of_store(secret: &Secret) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(blake3::derive_key("satchel vault v1: key store", secret.expose().as_bytes()))
}
