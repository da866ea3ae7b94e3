//! Checks that the bytes of each blob still hash to its name.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use satchel_seal::Seal;

use crate::{
    blob::{BlobReader, file_name},
    codec::hex,
    disk::{Disk, OsDisk},
    error::StoreError,
    report::CheckReport,
    sha256::Sha256,
    store::Store,
};

pub(super) fn check(store: &Store, report: &mut CheckReport) -> Result<(), StoreError> {
    for path in files(store.dir())? {
        report.blobs += 1;
        let hashed = read(store.reader().disk().as_ref(), &path, store.seal()).and_then(hash);
        let name = |found: &[u8; 32]| Some(hex(&file_name(found, store.seal())));
        match hashed {
            Ok(found) if name(&found) == self::name(&path) => {}
            Ok(found) => report.blob_problems.push(format!("{} holds {}", path.display(), hex(&found))),
            Err(error) => {
                report.blob_problems.push(format!("{} cannot be read: {error}", path.display()));
            }
        }
    }
    Ok(())
}

/// Lists the existing blobs by the hash of their bytes. Files whose names are not those of blobs are ignored. For a sealed blob
/// the hash comes from its header; if the header does not open, the name of its file is used, which is the hash of nothing.
pub(crate) fn list(dir: &Path, seal: Option<&Seal>) -> Result<Vec<[u8; 32]>, StoreError> {
    let mut found = Vec::new();
    for path in files(dir)? {
        let Some(name) = name(&path).and_then(|name| sha256(&name)) else { continue };
        if seal.is_none() {
            found.push(name);
        } else {
            let recorded = read(&OsDisk, &path, seal).ok().and_then(|blob| blob.recorded_sha256());
            found.push(recorded.unwrap_or(name));
        }
    }
    Ok(found)
}

/// Returns the files of all blobs, sorted.
pub(crate) fn files(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut all = Vec::new();
    for folder in paths_in(&dir.join("blobs"))? {
        if folder.file_name().is_some_and(|name| name != "tmp") && folder.is_dir() {
            all.extend(paths_in(&folder)?);
        }
    }
    Ok(all)
}

/// Opens the file of a blob under its own name.
pub(crate) fn read(disk: &dyn Disk, path: &Path, seal: Option<&Seal>) -> io::Result<BlobReader> {
    let file = disk.open(path, false)?;
    let name = name(path).and_then(|name| sha256(&name));
    BlobReader::open(file, &name.unwrap_or_default(), seal)
}

fn sha256(hex: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if hex.len() != 64 || !hex.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit)) {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

fn hash(mut bytes: BlobReader) -> io::Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match bytes.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            read => hasher.update(&buffer[..read]),
        }
    }
}

fn name(path: &Path) -> Option<String> {
    let folder = path.parent()?.file_name()?.to_str()?;
    Some(format!("{folder}{}", path.file_name()?.to_str()?))
}

fn paths_in(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let list = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        list => list.map_err(StoreError::io("list", folder))?,
    };
    let paths: io::Result<Vec<_>> = list.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(StoreError::io("list", folder))?;
    paths.sort();
    Ok(paths)
}
