//! `journal.damaged`: a record that damage was found in the journal. A start normally reads only the new end of the journal.
//! While this file exists, a start reads the whole journal, until nothing is wrong with it any more.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    disk::{Disk, read_small, replace},
    error::StoreError,
    report::Damage,
};

/// Maximum number of bytes that are read; files of this program have some thousand bytes.
const MAX_BYTES: u64 = 1 << 20;
/// Maximum number of places that are recorded. They are for people only; the program searches for damage itself.
const MAX_DAMAGE_LISTED: usize = 20;

/// The content of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DamageRecord {
    /// The last revision that is known to have been acknowledged.
    #[serde(default)]
    pub(crate) revision: u64,
    /// The damage that was found, for people.
    #[serde(default)]
    found: Vec<String>,
}

pub(crate) fn path(dir: &Path) -> PathBuf {
    dir.join("journal.damaged")
}

/// Reads the file. Returns `None` if the journal is not known to be damaged. A file that cannot be parsed still means that it
/// was.
pub(crate) fn read(disk: &dyn Disk, dir: &Path) -> Result<Option<DamageRecord>, StoreError> {
    let bytes = read_small(disk, &path(dir), MAX_BYTES)?;
    Ok(bytes.map(|bytes| serde_json::from_slice(&bytes).unwrap_or_default()))
}

/// Writes the file. If that fails, the next start or `doctor` finds the damage again.
pub(crate) fn write(disk: &dyn Disk, dir: &Path, revision: u64, damage: &[Damage]) {
    let before = read(disk, dir).ok().flatten().unwrap_or_default();
    let lost = damage.iter().flat_map(|place| &place.revisions).map(|range| *range.end()).max().unwrap_or(0);
    let revision = before.revision.max(revision).max(lost);
    let found = damage.iter().take(MAX_DAMAGE_LISTED).map(Damage::to_string).collect();
    let now = DamageRecord { revision, found };
    if now == before {
        return;
    }
    let written = serde_json::to_vec_pretty(&now).map_err(io::Error::from);
    if let Err(error) = written.and_then(|bytes| replace(disk, &path(dir), &bytes)) {
        tracing::warn!(dir = %dir.display(), %error, "cannot note that the journal is damaged");
    }
}

/// Removes the file, because the journal is whole again.
pub(crate) fn clear(disk: &dyn Disk, dir: &Path) -> Result<(), StoreError> {
    let path = path(dir);
    match disk.remove(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io("remove", path)(error)),
        _ => Ok(()),
    }
}
