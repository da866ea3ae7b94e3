//! `db.state`: the state in which the engine was left, and whether it can be trusted.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    disk::{Disk, replace},
    engine::house::{EngineFolder, FileFingerprint},
    error::StoreError,
};

/// Maximum number of bytes that are read; files of this program have some hundred bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The content of `db.state`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DatabaseState {
    #[serde(rename = "state")]
    pub(crate) left: ShutdownState,
    /// The store id of the journal that the engine was built from.
    #[serde(default)]
    pub(crate) store: Option<Uuid>,
    #[serde(default)]
    pub(crate) boot: Option<String>,
    #[serde(default)]
    pub(crate) revision: u64,
    #[serde(default)]
    pub(crate) digest: String,
    #[serde(default)]
    pub(crate) files: Vec<FileFingerprint>,
    /// CRC-32C of the line with a zero here; `None` in files of earlier programs.
    #[serde(default)]
    pub(crate) crc32c: Option<u32>,
}

/// The state in which the engine was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ShutdownState {
    /// In use: it is open now, or its process was killed.
    Open,
    /// Flushed, fsynced and closed.
    Clean,
    /// Unknown, or left after an error of the engine.
    Suspect,
}

/// Whether the existing engine is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EngineTrust {
    Trusted,
    /// There is no engine yet, and nothing to report about that.
    Fresh,
    Untrusted(String),
}

impl DatabaseState {
    fn new(left: ShutdownState, store: Uuid, boot: Option<String>) -> Self {
        Self {
            left,
            store: Some(store),
            boot,
            revision: 0,
            digest: String::new(),
            files: Vec::new(),
            crc32c: None,
        }
    }

    /// Returns the line, whose checksum covers everything else in it.
    fn sealed(mut self) -> io::Result<Vec<u8>> {
        self.crc32c = Some(0);
        self.crc32c = Some(crc32c::crc32c(&serde_json::to_vec(&self)?));
        let mut bytes = serde_json::to_vec(&self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Parses a line. Returns `None` if it is not as it was written.
    fn unsealed(bytes: &[u8]) -> Option<Self> {
        let state: Self = serde_json::from_slice(bytes).ok()?;
        let Some(found) = state.crc32c else { return Some(state) };
        let written = serde_json::to_vec(&Self { crc32c: Some(0), ..state.clone() }).ok()?;
        (crc32c::crc32c(&written) == found).then_some(state)
    }

    /// Returns the last revision of the journal with this id if a clean stop recorded it, otherwise 0.
    pub(crate) fn acknowledged(&self, store: Uuid) -> u64 {
        if self.left == ShutdownState::Clean && self.store == Some(store) { self.revision } else { 0 }
    }
}

/// Reads the state. An unreadable file counts as [`ShutdownState::Suspect`].
pub(crate) fn read(disk: &dyn Disk, path: &Path) -> Result<Option<DatabaseState>, StoreError> {
    let file = match disk.open(path, false) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(StoreError::Io { action: "open", path: path.to_owned(), source }),
    };
    let load = || -> io::Result<Vec<u8>> {
        let length = file.length()?.min(MAX_BYTES);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        let filled = file.read_at(0, &mut bytes)?;
        bytes.truncate(filled);
        Ok(bytes)
    };
    let bytes = load().map_err(StoreError::io("read", path))?;
    Ok(Some(
        DatabaseState::unsealed(&bytes)
            .unwrap_or_else(|| DatabaseState::new(ShutdownState::Suspect, Uuid::nil(), None)),
    ))
}

/// Decides according to the table in FORMAT.md, 2.6.
pub(crate) fn judge(
    state: Option<&DatabaseState>,
    boot: Option<&str>,
    house: &dyn EngineFolder,
    journal_is_new: bool,
) -> EngineTrust {
    match state {
        _ if journal_is_new => EngineTrust::Fresh,
        None => EngineTrust::Untrusted("there is no note of how the database was left".to_owned()),
        Some(DatabaseState { left: ShutdownState::Suspect, .. }) => {
            EngineTrust::Untrusted("the database failed before, or the note on it is damaged".to_owned())
        }
        Some(DatabaseState { left: ShutdownState::Open, boot: then, .. }) => {
            if then.is_some() && then.as_deref() == boot {
                EngineTrust::Trusted
            } else {
                EngineTrust::Untrusted("the machine stopped while the store was open".to_owned())
            }
        }
        Some(DatabaseState { left: ShutdownState::Clean, files, .. }) => match house.marks() {
            Ok(now) if fits(files, &now) => EngineTrust::Trusted,
            Ok(_) => EngineTrust::Untrusted("the database's files are not as they were left".to_owned()),
            Err(error) => EngineTrust::Untrusted(format!("the database's files cannot be read: {error}")),
        },
    }
}

fn fits(then: &[FileFingerprint], now: &[FileFingerprint]) -> bool {
    then.len() == now.len()
        && then.iter().zip(now).all(|(then, now)| {
            then.name == now.name
                && then.length == now.length
                && (then.crc32c.is_none() || now.crc32c.is_none() || then.crc32c == now.crc32c)
        })
}

/// Writes the final state after the engine was closed. In the store's fields it comes after the engine, so that it is dropped
/// later.
pub(crate) struct StateFile {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) house: Arc<dyn EngineFolder>,
    pub(crate) path: PathBuf,
    pub(crate) store: Uuid,
    pub(crate) boot: Option<String>,
    /// Guards the state that will be written; `None` leaves the file as it is.
    pub(crate) last: Mutex<Option<DatabaseState>>,
}

impl StateFile {
    /// Writes a state now.
    pub(crate) fn write(&self, left: ShutdownState) -> Result<(), StoreError> {
        let state = DatabaseState::new(left, self.store, self.boot.clone());
        self.put(&state).map_err(StoreError::io("write", &self.path))
    }

    /// Sets the state that is written when the engine is closed.
    pub(crate) fn leave(&self, left: ShutdownState, revision: u64, digest: String) {
        let state =
            DatabaseState { revision, digest, ..DatabaseState::new(left, self.store, self.boot.clone()) };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    }

    fn put(&self, state: &DatabaseState) -> io::Result<()> {
        replace(self.disk.as_ref(), &self.path, &state.clone().sealed()?)?;
        satchel_failpoints::reached("database note written");
        Ok(())
    }

    fn close(&self, mut state: DatabaseState) -> io::Result<()> {
        if state.left == ShutdownState::Clean {
            if !self.house.released()? {
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, "the database is still written to"));
            }
            self.house.sync()?;
            state.files = self.house.marks()?;
        }
        self.put(&state)
    }
}

impl Drop for StateFile {
    fn drop(&mut self) {
        let last = self.last.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(error)) = last.map(|state| self.close(state)) {
            // Without this file the next start rebuilds the database, which is slower but loses nothing.
            tracing::warn!(path = %self.path.display(), %error, "cannot note how the database was left");
        }
    }
}
