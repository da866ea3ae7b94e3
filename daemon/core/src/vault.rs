//! Opens an encrypted data directory. The data key is stored in `keys/data-key.json`, wrapped by a key file, a
//! passphrase or the system's key store, and by a recovery phrase.
//!
//! **Invariant:** the store is not touched before the data key is open, and a wrong key changes nothing. The tests of
//! this module and of `satchel-store` hold it.

mod error;
mod key_file;
mod key_store;
mod keyring;
mod passphrase;
mod recovery_phrase;
mod secret;
#[cfg(test)]
mod tests;

use std::{
    fs, io,
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
use crate::{data_dir::SEARCH, export::DOWNLOADS, uploads::UPLOADS};

use self::{
    keyring::{Base64Bytes, EncryptionState, Keyring, KeyringFile, WrappedKey},
    passphrase::Argon2Params,
};

/// Shows a prompt, and reads a secret without echoing the input.
pub type SecretPrompt = fn(&str) -> io::Result<Secret>;

/// The sources of the user's secrets.
#[derive(Clone, Debug)]
pub struct UnlockOptions {
    /// The key file, if it is no longer at the path where it was when encryption was switched on.
    pub key_file: Option<PathBuf>,
    /// A file that contains the passphrase, readable only by its owner.
    pub passphrase_file: Option<PathBuf>,
    /// The passphrase itself, from the environment.
    pub passphrase: Option<Secret>,
    /// The recovery phrase, used if the regular key is lost.
    pub phrase: Option<Secret>,
    /// Asks the user for a secret; `None` if there is nobody to ask.
    pub prompt: Option<SecretPrompt>,
    /// The system's key store.
    pub key_store: Arc<dyn KeyStore>,
}

impl Default for UnlockOptions {
    fn default() -> Self {
        Self {
            key_file: None,
            passphrase_file: None,
            passphrase: None,
            phrase: None,
            prompt: None,
            key_store: Arc::new(SecretTool::default()),
        }
    }
}

impl UnlockOptions {
    /// Returns the current passphrase.
    fn passphrase(&self) -> Result<Secret, VaultError> {
        if let Some(passphrase) = &self.passphrase {
            return Ok(passphrase.clone());
        }
        if let Some(path) = &self.passphrase_file {
            return Secret::from_file(path);
        }
        self.prompt_for("passphrase of the data directory: ")
    }

    /// Returns a new passphrase.
    fn new_passphrase(&self) -> Result<Secret, VaultError> {
        let typed = self.passphrase.is_none() && self.passphrase_file.is_none();
        let passphrase = self.passphrase()?;
        if typed && self.prompt_for("the same passphrase again: ")? != passphrase {
            return Err(VaultError::PassphrasesDiffer);
        }
        Ok(passphrase)
    }

    fn prompt_for(&self, text: &str) -> Result<Secret, VaultError> {
        let prompt = self.prompt.ok_or(VaultError::NoPassphrase)?;
        prompt(text).map_err(|source| VaultError::Terminal { source })
    }
}

/// The method by which a data directory is to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnlockMethod {
    /// A key file, which is created if it does not exist.
    KeyFile(PathBuf),
    /// The passphrase of [`UnlockOptions`].
    Passphrase,
    /// The system's key store.
    KeyStore,
}

/// The encryption status of a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptionStatus {
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
pub fn open_options(
    data_dir: &Path,
    keys: &UnlockOptions,
    cache_bytes: u64,
) -> Result<OpenOptions, VaultError> {
    let seal = unlock(data_dir, keys)?;
    Ok(OpenOptions { cache_bytes, seal, ..OpenOptions::default() })
}

/// Opens the data key of a data directory. Returns `None` if it is not encrypted. An interrupted encryption is
/// completed first.
///
/// # Errors
/// The key is missing or wrong, or the interrupted encryption cannot be completed.
pub fn unlock(data_dir: &Path, unlock: &UnlockOptions) -> Result<Option<Seal>, VaultError> {
    let Some(mut keyring) = Keyring::read(data_dir)? else { return Ok(None) };
    let key = unwrap_key(&keyring, unlock)?;
    if keyring.state == EncryptionState::Replacing {
        satchel_store::finish_encryption(data_dir)?;
        remove_plain_files(data_dir);
        // Another command may have changed the keys while this one prompted for a passphrase.
        keyring = Keyring::read(data_dir)?.unwrap_or(keyring);
        keyring.state = EncryptionState::On;
        keyring.write(data_dir)?;
    } else {
        repair(data_dir, false);
    }
    Ok(Some(Seal::new(&key)))
}

/// Makes sure that both copies of the wrapped data key are intact. Call it after the key has opened the store of
/// `data_dir`.
pub fn confirm(data_dir: &Path) {
    repair(data_dir, true);
}

/// Removes files on their way from or to devices, and the search index, which were written before the data directory was
/// encrypted.
fn remove_plain_files(data_dir: &Path) {
    let index = data_dir.join(SEARCH);
    if let Err(error) = satchel_store::erase(&index) {
        tracing::warn!(%error, ?index, "the unencrypted search index cannot be erased; remove the folder");
    }
    for folder in [UPLOADS, DOWNLOADS] {
        let folder = data_dir.join(folder);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, ?folder, "unencrypted files of devices cannot be removed; remove the folder");
            }
            _ => {}
        }
    }
}

fn repair(data_dir: &Path, proven: bool) {
    if let Err(error) = Keyring::repair(data_dir, proven) {
        // Not an error: the copy that opened the data key exists.
        tracing::warn!(error = satchel_source::chain(&error), "the wrapped data key is not kept twice");
    }
}

/// Returns the problems of the two files that hold the wrapped data key, in words. The list is empty if both are intact
/// or neither exists. Changes nothing.
#[must_use]
pub fn check_key_files(data_dir: &Path) -> Vec<String> {
    let both = Keyring::both(data_dir);
    if both.iter().all(|file| matches!(file.keyring, Ok(None))) {
        return Vec::new();
    }
    let problem = |KeyringFile { path, keyring }: &KeyringFile| match keyring {
        Ok(Some(_)) => None,
        Ok(None) => Some(format!("{} is not there", path.display())),
        Err(VaultError::Damaged { .. }) => Some(format!("{} is damaged", path.display())),
        Err(error) => Some(satchel_source::chain(error)),
    };
    let mut problems: Vec<String> = both.iter().filter_map(problem).collect();
    if let [KeyringFile { keyring: Ok(Some(first)), .. }, KeyringFile { keyring: Ok(Some(second)), path }] =
        &both
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
pub fn status(data_dir: &Path) -> Result<Option<EncryptionStatus>, VaultError> {
    let Some(keyring) = Keyring::read(data_dir)? else { return Ok(None) };
    let description = |key: &WrappedKey| match key {
        WrappedKey::KeyFile { path, .. } => Some(format!("key file {}", path.display())),
        WrappedKey::Passphrase { .. } => Some("passphrase".to_owned()),
        WrappedKey::KeyStore { .. } => Some("key store of the system".to_owned()),
        WrappedKey::Recovery { .. } => None,
    };
    Ok(Some(EncryptionStatus {
        complete: keyring.state == EncryptionState::On,
        opened_by: keyring.wrapped_keys.iter().filter_map(description).collect(),
        recovery: keyring.recovery().is_some(),
    }))
}

/// Encrypts a data directory, empty or not, that no process has open. The recovery phrase is passed to `on_phrase` before
/// any unencrypted data is erased; it is not stored anywhere else.
///
/// The write of `keys/data-key.json` is the commit point: before it nothing is changed, after it every start continues
/// the encryption.
///
/// # Errors
/// The store is in use or damaged, there is not enough space, or the file system refuses.
pub fn encrypt(
    data_dir: &Path,
    method: &UnlockMethod,
    unlock: &UnlockOptions,
    progress: &mut dyn FnMut(CheckProgress),
    on_phrase: &mut dyn FnMut(&Secret),
) -> Result<(), VaultError> {
    if Keyring::read(data_dir)?.is_some() {
        return Err(VaultError::AlreadyEncrypted);
    }
    let random = |source| VaultError::Random { source };
    let key = DataKey::random().map_err(random)?;
    let primary = wrap_new_key(&key, method, data_dir, unlock)?;
    let phrase = recovery_phrase::create().map_err(random)?;
    let begun = || !matches!(Keyring::read(data_dir), Ok(None));
    let staged = satchel_store::stage_encryption(data_dir, &Seal::new(&key), &begun, progress)?;
    // Another command encrypted it while this one prompted for a passphrase.
    let staged = staged.ok_or(VaultError::AlreadyEncrypted)?;
    let mut keyring = Keyring::new(EncryptionState::Replacing, vec![primary, wrap_by_phrase(&key, &phrase)?]);
    keyring.write(data_dir)?;
    on_phrase(&phrase);
    staged.replace()?;
    remove_plain_files(data_dir);
    keyring.state = EncryptionState::On;
    keyring.write(data_dir)
}

/// Changes which key opens a data directory. The stored data stays as it is; only the data key is wrapped again.
/// `phrase` opens the directory if its current key is lost.
///
/// # Errors
/// The data directory cannot be opened.
pub fn change(
    data_dir: &Path,
    method: &UnlockMethod,
    unlock: &UnlockOptions,
    phrase: Option<&Secret>,
    new: &UnlockOptions,
) -> Result<(), VaultError> {
    let mut keyring = Keyring::read(data_dir)?.ok_or(VaultError::NotEncrypted)?;
    let key = match phrase {
        Some(phrase) => unwrap_by_phrase(&keyring, phrase)?,
        None => unwrap_key(&keyring, unlock)?,
    };
    let primary = wrap_new_key(&key, method, data_dir, new)?;
    keyring.wrapped_keys.retain(|key| matches!(key, WrappedKey::Recovery { .. }));
    keyring.wrapped_keys.insert(0, primary);
    keyring.write(data_dir)
}

/// Replaces the recovery phrase with a new one.
///
/// # Errors
/// The data directory cannot be opened.
pub fn renew_phrase(data_dir: &Path, unlock: &UnlockOptions) -> Result<Secret, VaultError> {
    let mut keyring = Keyring::read(data_dir)?.ok_or(VaultError::NotEncrypted)?;
    let key = unwrap_key(&keyring, unlock)?;
    let phrase = recovery_phrase::create().map_err(|source| VaultError::Random { source })?;
    keyring.wrapped_keys.retain(|key| !matches!(key, WrappedKey::Recovery { .. }));
    keyring.wrapped_keys.push(wrap_by_phrase(&key, &phrase)?);
    keyring.write(data_dir)?;
    Ok(phrase)
}

/// The contexts that wrapped keys are bound to.
const BY_KEY_FILE: &[u8] = b"satchel data key v1 by key file";
const BY_PASSPHRASE: &[u8] = b"satchel data key v1 by passphrase";
const BY_KEY_STORE: &[u8] = b"satchel data key v1 by key store";
const BY_PHRASE: &[u8] = b"satchel data key v1 by recovery phrase";

fn unwrap_key(keyring: &Keyring, unlock: &UnlockOptions) -> Result<DataKey, VaultError> {
    if let Some(phrase) = &unlock.phrase {
        return unwrap_by_phrase(keyring, phrase);
    }
    match keyring.primary().ok_or(VaultError::NoWrappedKey)? {
        WrappedKey::KeyFile { path, wrapped } => {
            let path = unlock.key_file.as_ref().unwrap_or(path);
            let with = key_file::read(path)?;
            let wrong = || VaultError::WrongKeyFile { path: path.clone() };
            DataKey::unwrap(&wrapped.0, &with, BY_KEY_FILE).ok_or_else(wrong)
        }
        WrappedKey::Passphrase { memory_kib, passes, lanes, salt, wrapped } => {
            let params = Argon2Params {
                memory_kib: *memory_kib,
                passes: *passes,
                lanes: *lanes,
                salt: salt.0.as_slice(),
            };
            let with = params.key(&unlock.passphrase()?)?;
            DataKey::unwrap(&wrapped.0, &with, BY_PASSPHRASE).ok_or(VaultError::WrongPassphrase)
        }
        WrappedKey::KeyStore { account, wrapped } => {
            let found = unlock.key_store.find(account).map_err(|source| VaultError::KeyStore { source })?;
            let secret = found.ok_or_else(|| VaultError::NotInKeyStore { account: account.clone() })?;
            let with = key_from_store(&secret);
            let wrong = || VaultError::NotInKeyStore { account: account.clone() };
            DataKey::unwrap(&wrapped.0, &with, BY_KEY_STORE).ok_or_else(wrong)
        }
        WrappedKey::Recovery { .. } => Err(VaultError::NoWrappedKey),
    }
}

fn unwrap_by_phrase(keyring: &Keyring, phrase: &Secret) -> Result<DataKey, VaultError> {
    let wrapped = keyring.recovery().ok_or(VaultError::NoRecovery)?;
    DataKey::unwrap(&wrapped.0, &*recovery_phrase::key(phrase)?, BY_PHRASE).ok_or(VaultError::WrongPhrase)
}

fn wrap(key: &DataKey, with: &[u8; 32], context: &[u8]) -> Result<Base64Bytes, VaultError> {
    key.wrap(with, context).map(Base64Bytes).map_err(|source| VaultError::Random { source })
}

fn wrap_new_key(
    key: &DataKey,
    method: &UnlockMethod,
    data_dir: &Path,
    new: &UnlockOptions,
) -> Result<WrappedKey, VaultError> {
    match method {
        UnlockMethod::KeyFile(path) => {
            let with = key_file::read_or_create(path, data_dir)?;
            Ok(WrappedKey::KeyFile { path: path.clone(), wrapped: wrap(key, &with, BY_KEY_FILE)? })
        }
        UnlockMethod::Passphrase => {
            passphrase::wrap_key(&new.new_passphrase()?, |with| wrap(key, with, BY_PASSPHRASE))
        }
        UnlockMethod::KeyStore => {
            let account = Uuid::new_v4().to_string();
            let random = DataKey::random().map_err(|source| VaultError::Random { source })?;
            let secret = Secret::new(URL_SAFE_NO_PAD.encode(random.as_bytes()));
            let store = &new.key_store;
            store.put(&account, &secret).map_err(|source| VaultError::KeyStore { source })?;
            // Read the secret back: if the key store does not return it, the data would be lost.
            let found = store.find(&account).map_err(|source| VaultError::KeyStore { source })?;
            if found.as_ref() != Some(&secret) {
                return Err(VaultError::NotInKeyStore { account });
            }
            let with = key_from_store(&secret);
            Ok(WrappedKey::KeyStore { account, wrapped: wrap(key, &with, BY_KEY_STORE)? })
        }
    }
}

fn wrap_by_phrase(key: &DataKey, phrase: &Secret) -> Result<WrappedKey, VaultError> {
    Ok(WrappedKey::Recovery { wrapped: wrap(key, &*recovery_phrase::key(phrase)?, BY_PHRASE)? })
}

fn key_from_store(secret: &Secret) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(blake3::derive_key("satchel vault v1: key store", secret.expose().as_bytes()))
}
