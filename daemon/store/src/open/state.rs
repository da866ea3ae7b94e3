//! `db.state`: how the engine was left, and whether it can be trusted.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    disk::{Disk, replace},
    engine::house::{FileMark, House},
    error::StoreError,
};

/// Longest state file that is read; ours are some hundred bytes.
const MAX_BYTES: u64 = 1 << 20;

/// What `db.state` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    #[serde(rename = "state")]
    pub(crate) left: Left,
    /// The journal that the engine follows.
    #[serde(default)]
    pub(crate) store: Option<Uuid>,
    #[serde(default)]
    pub(crate) boot: Option<String>,
    #[serde(default)]
    pub(crate) revision: u64,
    #[serde(default)]
    pub(crate) digest: String,
    #[serde(default)]
    pub(crate) files: Vec<FileMark>,
    /// CRC-32C of the line with a zero here; none in notes of programs before it.
    #[serde(default)]
    pub(crate) crc32c: Option<u32>,
}

/// How the engine was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Left {
    /// In use; still in use or killed.
    Open,
    /// Flushed, fsynced, closed.
    Clean,
    /// After an error of the engine, or nobody knows.
    Suspect,
}

/// Whether to use what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    Trusted,
    /// There was none: nothing to say about it.
    Fresh,
    Untrusted(String),
}

impl State {
    fn new(left: Left, store: Uuid, boot: Option<String>) -> Self {
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

    /// The line, whose checksum covers all else in it.
    fn sealed(mut self) -> io::Result<Vec<u8>> {
        self.crc32c = Some(0);
        self.crc32c = Some(crc32c::crc32c(&serde_json::to_vec(&self)?));
        let mut bytes = serde_json::to_vec(&self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Reads a line; `None` if it does not say what was written.
    fn unsealed(bytes: &[u8]) -> Option<Self> {
        let state: Self = serde_json::from_slice(bytes).ok()?;
        let Some(found) = state.crc32c else { return Some(state) };
        let written = serde_json::to_vec(&Self { crc32c: Some(0), ..state.clone() }).ok()?;
        (crc32c::crc32c(&written) == found).then_some(state)
    }

    /// The last revision of the journal with this id, if its end was fsynced and written down.
    pub(crate) fn acknowledged(&self, store: Uuid) -> u64 {
        if self.left == Left::Clean && self.store == Some(store) { self.revision } else { 0 }
    }
}

/// Reads the state; one that does not read is [`Left::Suspect`].
pub(crate) fn read(disk: &dyn Disk, path: &Path) -> Result<Option<State>, StoreError> {
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
    Ok(Some(State::unsealed(&bytes).unwrap_or_else(|| State::new(Left::Suspect, Uuid::nil(), None))))
}

/// Decides by the table in FORMAT.md, 2.6.
pub(crate) fn judge(
    state: Option<&State>,
    boot: Option<&str>,
    house: &dyn House,
    journal_is_new: bool,
) -> Trust {
    match state {
        _ if journal_is_new => Trust::Fresh,
        None => Trust::Untrusted("there is no note of how the database was left".to_owned()),
        Some(State { left: Left::Suspect, .. }) => {
            Trust::Untrusted("the database failed before, or the note on it is damaged".to_owned())
        }
        Some(State { left: Left::Open, boot: then, .. }) => {
            if then.is_some() && then.as_deref() == boot {
                Trust::Trusted
            } else {
                Trust::Untrusted("the machine stopped while the store was open".to_owned())
            }
        }
        Some(State { left: Left::Clean, files, .. }) => match house.marks() {
            Ok(now) if fits(files, &now) => Trust::Trusted,
            Ok(_) => Trust::Untrusted("the database's files are not as they were left".to_owned()),
            Err(error) => Trust::Untrusted(format!("the database's files cannot be read: {error}")),
        },
    }
}

fn fits(then: &[FileMark], now: &[FileMark]) -> bool {
    then.len() == now.len()
        && then.iter().zip(now).all(|(then, now)| {
            then.name == now.name
                && then.length == now.length
                && (then.crc32c.is_none() || now.crc32c.is_none() || then.crc32c == now.crc32c)
        })
}

/// Writes the last state when the engine has been closed: it stands after the engine in the store's fields.
pub(crate) struct Closing {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) house: Arc<dyn House>,
    pub(crate) path: PathBuf,
    pub(crate) store: Uuid,
    pub(crate) boot: Option<String>,
    /// Guards what will be written; none leaves the file as it is.
    pub(crate) last: Mutex<Option<State>>,
}

impl Closing {
    /// Writes a state now.
    pub(crate) fn write(&self, left: Left) -> Result<(), StoreError> {
        let state = State::new(left, self.store, self.boot.clone());
        self.put(&state).map_err(StoreError::io("write", &self.path))
    }

    /// Chooses what is written when the engine is closed.
    pub(crate) fn leave(&self, left: Left, revision: u64, digest: String) {
        let state = State { revision, digest, ..State::new(left, self.store, self.boot.clone()) };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    }

    fn put(&self, state: &State) -> io::Result<()> {
        replace(self.disk.as_ref(), &self.path, &state.clone().sealed()?)?;
        satchel_failpoints::reached("database note written");
        Ok(())
    }

    fn close(&self, mut state: State) -> io::Result<()> {
        if state.left == Left::Clean {
            if !self.house.released()? {
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, "the database is still written to"));
            }
            self.house.sync()?;
            state.files = self.house.marks()?;
        }
        self.put(&state)
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        let last = self.last.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(error)) = last.map(|state| self.close(state)) {
            // Without the note the next start rebuilds the database: slower, nothing lost.
            tracing::warn!(path = %self.path.display(), %error, "cannot note how the database was left");
        }
    }
}
