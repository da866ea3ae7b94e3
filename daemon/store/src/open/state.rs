//! `db.state`: the state in which the engine was left, and whether it can be trusted.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    disk::{Disk, read_small, replace},
    engine::folder::{EngineFolder, FileFingerprint},
    error::StoreError,
};

/// Maximum number of bytes that are read; files of this program have some hundred bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The content of `db.state`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DatabaseState {
    #[serde(rename = "state")]
    pub(crate) shutdown: ShutdownState,
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
    fn new(shutdown: ShutdownState, store: Uuid, boot: Option<String>) -> Self {
        Self {
            shutdown,
            store: Some(store),
            boot,
            revision: 0,
            digest: String::new(),
            files: Vec::new(),
            crc32c: None,
        }
    }

    /// Returns the line, whose checksum covers everything else in it.
    fn into_line(mut self) -> io::Result<Vec<u8>> {
        self.crc32c = Some(0);
        self.crc32c = Some(crc32c::crc32c(&serde_json::to_vec(&self)?));
        let mut bytes = serde_json::to_vec(&self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Parses a line. Returns `None` if it is not as it was written.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let state: Self = serde_json::from_slice(bytes).ok()?;
        let Some(found) = state.crc32c else { return Some(state) };
        let written = serde_json::to_vec(&Self { crc32c: Some(0), ..state.clone() }).ok()?;
        (crc32c::crc32c(&written) == found).then_some(state)
    }

    /// Returns the last revision of the journal with this id if a clean stop recorded it, otherwise 0.
    pub(crate) fn acknowledged(&self, store: Uuid) -> u64 {
        if self.shutdown == ShutdownState::Clean && self.store == Some(store) { self.revision } else { 0 }
    }
}

/// Reads the state. An unreadable file counts as [`ShutdownState::Suspect`].
pub(crate) fn read(disk: &dyn Disk, path: &Path) -> Result<Option<DatabaseState>, StoreError> {
    let suspect = || DatabaseState::new(ShutdownState::Suspect, Uuid::nil(), None);
    let bytes = read_small(disk, path, MAX_BYTES)?;
    Ok(bytes.map(|bytes| DatabaseState::parse(&bytes).unwrap_or_else(suspect)))
}

/// Decides according to the table in FORMAT.md, 2.6.
pub(crate) fn decide_trust(
    state: Option<&DatabaseState>,
    boot: Option<&str>,
    db: &dyn EngineFolder,
    journal_is_new: bool,
) -> EngineTrust {
    match state {
        _ if journal_is_new => EngineTrust::Fresh,
        None => EngineTrust::Untrusted("there is no note of how the database was left".to_owned()),
        Some(DatabaseState { shutdown: ShutdownState::Suspect, .. }) => {
            EngineTrust::Untrusted("the database failed before, or the note on it is damaged".to_owned())
        }
        Some(DatabaseState { shutdown: ShutdownState::Open, boot: then, .. }) => {
            if then.is_some() && then.as_deref() == boot {
                EngineTrust::Trusted
            } else {
                EngineTrust::Untrusted("the machine stopped while the store was open".to_owned())
            }
        }
        Some(DatabaseState { shutdown: ShutdownState::Clean, files, .. }) => match db.fingerprints() {
            Ok(now) if files_unchanged(files, &now) => EngineTrust::Trusted,
            Ok(_) => EngineTrust::Untrusted("the database's files are not as they were left".to_owned()),
            Err(error) => EngineTrust::Untrusted(format!("the database's files cannot be read: {error}")),
        },
    }
}

fn files_unchanged(then: &[FileFingerprint], now: &[FileFingerprint]) -> bool {
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
    pub(crate) db: Arc<dyn EngineFolder>,
    pub(crate) path: PathBuf,
    pub(crate) store: Uuid,
    pub(crate) boot: Option<String>,
    /// Guards the state that will be written; `None` leaves the file as it is.
    pub(crate) final_state: Mutex<Option<DatabaseState>>,
}

impl StateFile {
    /// Writes a state now.
    pub(crate) fn write(&self, shutdown: ShutdownState) -> Result<(), StoreError> {
        let state = DatabaseState::new(shutdown, self.store, self.boot.clone());
        self.put(&state).map_err(StoreError::io("write", &self.path))
    }

    /// Sets the state that is written when the engine is closed.
    pub(crate) fn set_final(&self, shutdown: ShutdownState, revision: u64, digest: String) {
        let state =
            DatabaseState { revision, digest, ..DatabaseState::new(shutdown, self.store, self.boot.clone()) };
        *self.final_state.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    }

    fn put(&self, state: &DatabaseState) -> io::Result<()> {
        replace(self.disk.as_ref(), &self.path, &state.clone().into_line()?)?;
        satchel_failpoints::reached("db.state written");
        Ok(())
    }

    fn close(&self, mut state: DatabaseState) -> io::Result<()> {
        if state.shutdown == ShutdownState::Clean {
            if !self.db.released()? {
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, "the database is still written to"));
            }
            self.db.sync()?;
            state.files = self.db.fingerprints()?;
        }
        self.put(&state)
    }
}

impl Drop for StateFile {
    fn drop(&mut self) {
        let final_state = self.final_state.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(error)) = final_state.map(|state| self.close(state)) {
            // Without this file the next start rebuilds the database, which is slower but loses nothing.
            tracing::warn!(path = %self.path.display(), %error, "cannot note how the database was left");
        }
    }
}
