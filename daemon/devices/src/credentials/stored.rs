//! The files of credentials: `servers/<name>.json`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize as _, Zeroizing};

use super::{ClientKey, Credentials};
use crate::{error::DevicesError, files, policy::Selection};

const FOLDER: &str = "servers";
const EXTENSION: &str = "json";
const FORMAT: u32 = 1;
const MAX_NAME_BYTES: usize = 64;
/// Largest file that is read, in bytes. Ours have about 3,000.
const MAX_FILE_BYTES: u64 = 256 << 10;
const REMEDY: &str = "restore it from a backup, or remove it and pair this device again";
const ED25519_KEY: &str = "remove it with `satchel servers remove` and pair this device again";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: u32,
    name: String,
    addresses: Vec<String>,
    /// For people who read the file; it follows from the authority.
    fingerprint: String,
    /// For people who read the file; it follows from the key.
    device_id: String,
    authority: String,
    certificate: String,
    private_key: String,
    #[serde(default, skip_serializing_if = "Selection::is_empty")]
    selection: Selection,
}

impl Drop for Stored {
    fn drop(&mut self) {
        self.private_key.zeroize();
    }
}

pub(super) fn save(credentials: &Credentials, dir: &Path) -> Result<(), DevicesError> {
    let stored = Stored {
        format: FORMAT,
        name: credentials.name.clone(),
        addresses: credentials.addresses.clone(),
        fingerprint: credentials.fingerprint()?.to_string(),
        device_id: credentials.device_id()?.to_string(),
        authority: STANDARD.encode(&credentials.authority),
        certificate: STANDARD.encode(&credentials.certificate),
        private_key: STANDARD.encode(&*credentials.key.0),
        selection: credentials.selection.clone(),
    };
    let folder = dir.join(FOLDER);
    files::create_private_folder(&folder).map_err(DevicesError::io(&folder))?;
    let path = path_of(dir, &credentials.name)?;
    let json = serde_json::to_vec_pretty(&stored).map_err(|error| DevicesError::io(&path)(error.into()))?;
    files::write_durably(&path, &Zeroizing::new(json)).map_err(DevicesError::io(&path))
}

pub(super) fn load(dir: &Path, name: &str) -> Result<Credentials, DevicesError> {
    let path = path_of(dir, name)?;
    let bytes = files::read_limited(&path, MAX_FILE_BYTES).map_err(DevicesError::io(&path))?;
    let bytes = Zeroizing::new(bytes.ok_or_else(|| DevicesError::NoCredentials { name: name.to_owned() })?);
    let damaged = |reason: String| DevicesError::Damaged { path: path.clone(), reason, remedy: REMEDY };
    let mut stored: Stored = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    if stored.format > FORMAT {
        return Err(DevicesError::Newer { path, found: stored.format, known: FORMAT });
    }
    let decoded = |text: &str| STANDARD.decode(text).map_err(|error| damaged(error.to_string()));
    let wrong = |error: DevicesError| match error {
        DevicesError::Ed25519Key => {
            DevicesError::Damaged { path: path.clone(), reason: error.to_string(), remedy: ED25519_KEY }
        }
        _ => damaged(error.to_string()),
    };
    let key = ClientKey::from_pkcs8(Zeroizing::new(decoded(&stored.private_key)?)).map_err(wrong)?;
    let (authority, certificate) = (decoded(&stored.authority)?, decoded(&stored.certificate)?);
    let addresses = std::mem::take(&mut stored.addresses);
    let credentials = Credentials::new(name, addresses, authority, certificate, key).map_err(wrong)?;
    Ok(Credentials { selection: std::mem::take(&mut stored.selection), ..credentials })
}

pub(super) fn list(dir: &Path) -> Result<Vec<String>, DevicesError> {
    let folder = dir.join(FOLDER);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(DevicesError::io(&folder))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let path = entry.map_err(DevicesError::io(&folder))?.path();
        let name = path.file_stem().and_then(|stem| stem.to_str());
        let json = path.extension().is_some_and(|extension| extension == EXTENSION);
        names.extend(name.filter(|name| json && check_name(name).is_ok()).map(str::to_owned));
    }
    names.sort_unstable();
    Ok(names)
}

pub(super) fn remove(dir: &Path, name: &str) -> Result<(), DevicesError> {
    let path = path_of(dir, name)?;
    match fs::remove_file(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(DevicesError::NoCredentials { name: name.to_owned() })
        }
        removed => {
            removed.and_then(|()| files::sync_folder(&dir.join(FOLDER))).map_err(DevicesError::io(&path))
        }
    }
}

/// Checks a name that becomes the name of a file.
pub(super) fn check_name(name: &str) -> Result<(), DevicesError> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.starts_with('.') || !name.bytes().all(plain) {
        let problem =
            "needs 1 to 64 of the characters a-z, 0-9, \"-\", \"_\" and \".\", and does not begin with \".\"";
        return Err(DevicesError::Name { name: name.chars().take(MAX_NAME_BYTES).collect(), problem });
    }
    Ok(())
}

fn path_of(dir: &Path, name: &str) -> Result<PathBuf, DevicesError> {
    check_name(name)?;
    Ok(dir.join(FOLDER).join(format!("{name}.{EXTENSION}")))
}
