//! An export contains nothing that must not leave, and an export of a selection never passes for a full one.

mod canaries;
mod encrypted;
mod fixtures;
mod grpc;
mod identifiers;
mod keys;
mod kill;
mod markdown;
mod scheduled;
mod secrets;
mod selections;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, ensure};

/// Returns all files below a folder.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    ensure!(!files.is_empty(), "the folder has no files");
    Ok(files)
}

/// Returns the files below a folder whose bytes or name contain `text`, verbatim or as JSON writes it.
pub(crate) fn files_containing(folder: &Path, text: &str) -> Result<Vec<PathBuf>> {
    let escaped = serde_json::to_string(text)?;
    let forms = [text.as_bytes(), escaped.trim_matches('"').as_bytes()];
    let mut found = Vec::new();
    for path in files(folder)? {
        let bytes = fs::read(&path)?;
        let within = forms.iter().any(|form| bytes.windows(form.len()).any(|window| window == *form));
        if within || path.to_string_lossy().contains(text) {
            found.push(path);
        }
    }
    Ok(found)
}
