//! Whether the bytes of each blob still hash to its name.

use std::{fs, io, path::Path};

use sha2::{Digest, Sha256};

use crate::{blob::hex, error::StoreError, report::CheckReport};

pub(super) fn check(dir: &Path, report: &mut CheckReport) -> Result<(), StoreError> {
    let blobs = dir.join("blobs");
    for folder in entries(&blobs)? {
        if folder.file_name().is_some_and(|name| name == "tmp") || !folder.is_dir() {
            continue;
        }
        for path in entries(&folder)? {
            report.blobs += 1;
            match fs::File::open(&path).and_then(hash) {
                Ok(found) if Some(found.as_str()) == name(&path).as_deref() => {}
                Ok(found) => report.blob_problems.push(format!("{} holds {found}", path.display())),
                Err(error) => {
                    report.blob_problems.push(format!("{} cannot be read: {error}", path.display()));
                }
            }
        }
    }
    Ok(())
}

/// Names the blobs that stand; what is not named like one is none.
pub(crate) fn list(dir: &Path) -> Result<Vec<[u8; 32]>, StoreError> {
    let mut found = Vec::new();
    for folder in entries(&dir.join("blobs"))? {
        if folder.is_dir() {
            found.extend(entries(&folder)?.iter().filter_map(|path| sha256(&name(path)?)));
        }
    }
    Ok(found)
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

fn hash(mut file: fs::File) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match io::Read::read(&mut file, &mut buffer)? {
            0 => return Ok(hex(&hasher.finalize())),
            read => hasher.update(&buffer[..read]),
        }
    }
}

fn name(path: &Path) -> Option<String> {
    let folder = path.parent()?.file_name()?.to_str()?;
    Some(format!("{folder}{}", path.file_name()?.to_str()?))
}

fn entries(folder: &Path) -> Result<Vec<std::path::PathBuf>, StoreError> {
    let list = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        list => list.map_err(StoreError::io("list", folder))?,
    };
    let paths: io::Result<Vec<_>> = list.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(StoreError::io("list", folder))?;
    paths.sort();
    Ok(paths)
}
