//! The key that seals compiled code: random, one per user, never stored in a data directory.

use std::{
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

use super::private::{self, ensure_private_folder};

const BYTES: usize = 32;
/// The context string from which keys for this purpose are derived.
const PURPOSE: &str = "satchel compiled importers v1";

/// A key that seals entries of this cache and nothing else.
pub(super) struct MacKey([u8; BYTES]);

impl MacKey {
    fn of(secret: &[u8; BYTES]) -> Self {
        Self(blake3::derive_key(PURPOSE, secret))
    }

    pub(super) fn bytes(&self) -> &[u8; BYTES] {
        &self.0
    }
}

/// Reads the key, or creates one. A key that others may know, or that is damaged, is replaced; code sealed with the old
/// key is then compiled again.
pub(super) fn load_or_create(path: &Path) -> io::Result<MacKey> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    ensure_private_folder(folder)?;
    match read(path)? {
        Some(secret) => Ok(MacKey::of(&secret)),
        None => create(folder, path),
    }
}

/// Reads the secret from the file. Returns `None` if there is no secret that can be trusted.
fn read(path: &Path) -> io::Result<Option<[u8; BYTES]>> {
    let file = match private::open_regular_file(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let about = file.metadata()?;
    let closed = about.permissions().mode().trailing_zeros() >= 6;
    if !closed || about.uid() != rustix::process::geteuid().as_raw() {
        return Ok(None);
    }
    let mut secret = Vec::new();
    file.take(BYTES as u64 + 1).read_to_end(&mut secret)?;
    Ok(<[u8; BYTES]>::try_from(secret).ok())
}

fn create(folder: &Path, path: &Path) -> io::Result<MacKey> {
    let mut secret = [0; BYTES];
    getrandom::fill(&mut secret)?;
    let mut file = tempfile::Builder::new().prefix(".new-key-").tempfile_in(folder)?;
    file.write_all(&secret)?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(MacKey::of(&secret)),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
            // Another process created the key first.
            if let Some(known) = read(path)? {
                return Ok(MacKey::of(&known));
            }
            error.file.persist(path).map_err(|error| error.error)?;
            Ok(MacKey::of(&secret))
        }
        Err(error) => Err(error.error),
    }
}
