//! A key file that opens a data directory: 32 random bytes as base64url, readable only by its owner.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

use super::{Secret, VaultError};
use crate::data_dir;

const BYTES: usize = 32;

/// Returns the key in a file.
pub(super) fn read(path: &Path) -> Result<Zeroizing<[u8; 32]>, VaultError> {
    let text = match Secret::from_file(path) {
        Err(VaultError::Read { path, source }) if source.kind() == io::ErrorKind::NotFound => {
            return Err(VaultError::NoKeyFile { path });
        }
        text => text?,
    };
    let bytes = URL_SAFE_NO_PAD.decode(text.expose().trim()).map(Zeroizing::new);
    match bytes {
        Ok(bytes) if bytes.len() == BYTES => {
            Ok(Zeroizing::new(blake3::derive_key("satchel vault v1: key file", &bytes)))
        }
        Ok(_) | Err(_) => Err(VaultError::InvalidKeyFile { path: path.to_owned() }),
    }
}

/// Returns the key in a file, creating the file if it does not exist. A created file is durable when this returns. The
/// file must be outside of the data directory, because a key next to the data that it opens protects nothing.
pub(super) fn read_or_create(path: &Path, data_dir: &Path) -> Result<Zeroizing<[u8; 32]>, VaultError> {
    let failed = |source| VaultError::Write { path: path.to_owned(), source };
    let folder = path.parent().ok_or_else(|| VaultError::NoKeyFile { path: path.to_owned() })?;
    if data_dir::is_inside(data_dir, path) {
        return Err(VaultError::KeyInside { path: path.to_owned() });
    }
    crate::make_parents(path).map_err(failed)?;
    let created = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = match created {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return read(path),
        created => created.map_err(failed)?,
    };
    let mut bytes = Zeroizing::new([0; BYTES]);
    getrandom::fill(bytes.as_mut_slice()).map_err(|error| failed(error.into()))?;
    let text = Zeroizing::new(format!("{}\n", URL_SAFE_NO_PAD.encode(bytes.as_slice())));
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
    read(path)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_file_is_created_once_and_refused_if_others_can_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let (path, data) = (dir.path().join("data.key"), dir.path().join("data"));
        let created = read_or_create(&path, &data).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(*read_or_create(&path, &data).unwrap(), *created);
        for mode in [0o640, 0o604, 0o660] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let refused = read(&path).unwrap_err();
            assert!(matches!(refused, VaultError::ReadableByOthers { .. }), "{refused}");
            assert!(refused.to_string().contains(&format!("{mode:03o}")), "{refused}");
        }
    }

    #[test]
    fn a_key_inside_the_data_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("data/keys")).unwrap();
        let path = dir.path().join("data/keys/data.key");
        let refused = read_or_create(&path, &dir.path().join("data"));
        assert!(matches!(refused, Err(VaultError::KeyInside { .. })));
        assert!(!path.exists());
    }

    #[test]
    fn the_folders_of_a_key_file_are_created_private() {
        let dir = tempfile::tempdir().unwrap();
        let (path, data) = (dir.path().join("new/folder/data.key"), dir.path().join("data"));
        let created = read_or_create(&path, &data).unwrap();
        assert_eq!(*read(&path).unwrap(), *created);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&dir.path().join("new")), mode(&dir.path().join("new/folder"))), (0o700, 0o700));
        // A link above a folder that does not exist yet leads into the data directory.
        fs::create_dir(&data).unwrap();
        std::os::unix::fs::symlink(&data, dir.path().join("link")).unwrap();
        let inside = read_or_create(&dir.path().join("link/keys/data.key"), &data);
        assert!(matches!(inside, Err(VaultError::KeyInside { .. })));
        assert!(!data.join("keys").exists());
    }

    #[test]
    fn another_file_is_not_a_key_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("note");
        assert!(matches!(read(&path), Err(VaultError::NoKeyFile { .. })));
        fs::write(&path, "tea").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(read(&path), Err(VaultError::InvalidKeyFile { .. })));
    }
}
