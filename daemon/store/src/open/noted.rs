//! `journal.damaged`: that the journal was found damaged once. A start looks at its new end only; as long as this file is there, it
//! reads all of the journal, until nothing is wrong with it any more.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    disk::{Disk, replace},
    error::StoreError,
    report::Damage,
};

/// Longest file that is read; ours are some thousand bytes.
const MAX_BYTES: u64 = 1 << 20;
/// Places that are written down; people read them, the program looks for itself.
const PLACES: usize = 20;

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Noted {
    /// The last revision that is known to have been acknowledged.
    #[serde(default)]
    pub(crate) revision: u64,
    /// What was found, for people.
    #[serde(default)]
    found: Vec<String>,
}

pub(crate) fn path(dir: &Path) -> PathBuf {
    dir.join("journal.damaged")
}

/// Reads it; none: the journal is not known to be damaged. One that does not read says that it was.
pub(crate) fn read(disk: &dyn Disk, dir: &Path) -> Result<Option<Noted>, StoreError> {
    let path = path(dir);
    let file = match disk.open(&path, false) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::io("open", path)(error)),
    };
    let load = || -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(file.length()?.min(MAX_BYTES)).unwrap_or(0)];
        let filled = file.read_at(0, &mut bytes)?;
        bytes.truncate(filled);
        Ok(bytes)
    };
    let bytes = load().map_err(StoreError::io("read", path))?;
    Ok(Some(serde_json::from_slice(&bytes).unwrap_or_default()))
}

/// Writes it. Where that is refused, the next start finds out anew, or `doctor` does.
pub(crate) fn write(disk: &dyn Disk, dir: &Path, revision: u64, damage: &[Damage]) {
    let before = read(disk, dir).ok().flatten().unwrap_or_default();
    let lost = damage.iter().flat_map(|place| &place.revisions).map(|range| *range.end()).max().unwrap_or(0);
    let revision = before.revision.max(revision).max(lost);
    let found = damage.iter().take(PLACES).map(Damage::to_string).collect();
    let now = Noted { revision, found };
    if now == before {
        return;
    }
    let written = serde_json::to_vec_pretty(&now).map_err(io::Error::from);
    if let Err(error) = written.and_then(|bytes| replace(disk, &path(dir), &bytes)) {
        tracing::warn!(dir = %dir.display(), %error, "cannot note that the journal is damaged");
    }
}

/// The journal is whole again.
pub(crate) fn clear(disk: &dyn Disk, dir: &Path) -> Result<(), StoreError> {
    let path = path(dir);
    match disk.remove(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io("remove", path)(error)),
        _ => Ok(()),
    }
}
