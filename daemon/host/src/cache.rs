//! Compiled code that is kept between starts, and used again only if this user's key says that this program wrote it.
//!
//! wasmtime runs what its own cache holds as native code, without a check. So its cache is a private folder of this process,
//! empty at first, and only entries whose MAC holds are put there. The entries themselves lie in a folder that all processes of a
//! user share. The key lies elsewhere: whoever can write entries, as with a copied or restored folder, cannot seal them.
//!
//! **Invariant:** bytes that no process of this user compiled are never given to wasmtime;
//! `a_damaged_or_forged_entry_is_compiled_anew` holds it.

mod entry;
mod key;
mod private;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, SystemTime},
};

pub(crate) use self::{
    entry::{Code, Identity},
    private::Scratch,
};
use self::{key::MacKey, private::own_folder};

/// Entries that are kept: the importers of several versions of the program. The oldest go.
const MAX_ENTRIES: usize = 64;
/// Longest entry that is read, in bytes; a compiled importer is smaller than a hundredth.
const MAX_ENTRY_BYTES: u64 = 128 << 20;
/// How the names of unfinished entries begin.
const UNFINISHED: &str = ".new-";
/// After which an unfinished entry is one that a killed process left.
const STALE: Duration = Duration::from_hours(24);
/// How the names of entries end.
const SUFFIX: &str = ".code";

/// Where compiled code and the key that seals it are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeCache {
    /// A folder of this user, for entries only; it is made if it is not there. Not in a data directory, which may come from
    /// elsewhere.
    pub folder: PathBuf,
    /// The key, in another folder of this user; it is made if it is not there.
    pub key_file: PathBuf,
}

/// What a host made of its cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheUse {
    /// None was named.
    Off,
    /// It cannot be used, so everything is compiled at each start.
    Unusable {
        /// Why.
        reason: String,
    },
    /// It is used.
    On {
        /// Where it lies.
        folder: PathBuf,
        /// Entries that were damaged or that another key sealed, and were compiled anew.
        rejected: usize,
    },
}

/// A cache whose folder and key were checked.
pub(crate) struct OpenCache {
    folder: PathBuf,
    key: MacKey,
    scratch: Scratch,
    rejected: AtomicUsize,
}

impl OpenCache {
    /// Opens the cache; an error means that it must not be used.
    pub(crate) fn open(options: &CodeCache) -> io::Result<Self> {
        own_folder(&options.folder)?;
        let key = key::load_or_create(&options.key_file)?;
        let scratch = Scratch::create(&options.folder)?;
        let (folder, rejected) = (options.folder.clone(), AtomicUsize::new(0));
        Ok(Self { folder, key, scratch, rejected })
    }

    /// What wasmtime takes for its cache.
    pub(crate) fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    pub(crate) fn state(&self) -> CacheUse {
        CacheUse::On { folder: self.folder.clone(), rejected: self.rejected.load(Ordering::Relaxed) }
    }

    /// The code of `identity`, if an entry is there and its MAC holds.
    pub(crate) fn get(&self, identity: &Identity) -> Option<Code> {
        let path = self.path(identity);
        let sealed = match read(&path) {
            Ok(sealed) => sealed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => return self.reject(&path, &error.to_string()),
        };
        match entry::open(&self.key, identity, &sealed) {
            Some(code) => Some(code),
            None => self.reject(&path, "it is damaged, or this user's key did not seal it"),
        }
    }

    fn reject(&self, path: &Path, problem: &str) -> Option<Code> {
        self.rejected.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(?path, problem, "a cached importer is not used; it is compiled anew");
        None
    }

    /// Keeps `code`. Without room or permission nothing is kept, and the next start compiles again.
    pub(crate) fn put(&self, identity: &Identity, code: &Code) {
        let kept = write(&self.folder, &self.path(identity), &entry::seal(&self.key, identity, code));
        if let Err(error) = kept.and_then(|()| self.trim()) {
            tracing::debug!(%error, folder = ?self.folder, "compiled code is not kept");
        }
    }

    fn path(&self, identity: &Identity) -> PathBuf {
        self.folder.join(format!("{}{SUFFIX}", identity.to_hex()))
    }

    /// Removes the oldest entries beyond [`MAX_ENTRIES`], and what killed processes left unfinished.
    fn trim(&self) -> io::Result<()> {
        let mut entries = Vec::new();
        for found in fs::read_dir(&self.folder)? {
            let found = found?;
            let name = found.file_name().to_string_lossy().into_owned();
            let modified = found.metadata()?.modified()?;
            if name.ends_with(SUFFIX) {
                entries.push((modified, found.path()));
            } else if name.starts_with(UNFINISHED) && older(modified, STALE) {
                fs::remove_file(found.path())?;
            }
        }
        entries.sort();
        let surplus = entries.len().saturating_sub(MAX_ENTRIES);
        entries.iter().take(surplus).try_for_each(|(_, path)| fs::remove_file(path))
    }
}

fn older(modified: SystemTime, than: Duration) -> bool {
    modified.elapsed().is_ok_and(|age| age > than)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = private::open_plain(path)?;
    if file.metadata()?.len() > MAX_ENTRY_BYTES {
        return Err(io::Error::other("it is too long for compiled code"));
    }
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(file, MAX_ENTRY_BYTES), &mut bytes)?;
    Ok(bytes)
}

/// Puts an entry in its place in one step. It need not be durable: half an entry has no valid MAC.
fn write(folder: &Path, path: &Path, sealed: &[u8]) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
    io::Write::write_all(&mut file, sealed)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
