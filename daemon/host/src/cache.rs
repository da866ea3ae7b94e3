//! A cache of compiled plugins that persists between starts; an entry is used only if this user's key authenticates it.
//!
//! wasmtime runs the contents of its own cache as native code, without a check. wasmtime's cache is therefore a private
//! folder of this process. It starts empty, and only entries with a valid MAC are copied into it. The entries
//! themselves are in a folder that all processes of a user share. The key is stored elsewhere: whoever can write
//! entries, for example by a copied or restored folder, cannot seal them.
//!
//! **Invariant:** wasmtime never receives bytes that were not compiled by a process of this user. The test
//! `a_damaged_or_forged_entry_is_recompiled` checks this.

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
    entry::{CodeIdentity, CompiledCode},
    private::ScratchFolder,
};
use self::{key::MacKey, private::ensure_private_folder};

/// Number of entries to keep, enough for the importers of several versions of the program. The oldest are removed
/// first.
const MAX_ENTRIES: usize = 64;
/// Largest entry that is read, in bytes. A compiled importer has less than a hundredth of this size.
const MAX_ENTRY_BYTES: u64 = 128 << 20;
/// File name prefix of unfinished entries.
const UNFINISHED: &str = ".new-";
/// Age at which an unfinished entry is regarded as left behind by a killed process.
const UNFINISHED_MAX_AGE: Duration = Duration::from_hours(24);
/// File name suffix of entries.
const SUFFIX: &str = ".code";

/// Location of the compiled code and of the key that seals it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeCache {
    /// A folder of this user that holds entries only; created if missing. It must not be inside a data directory, which
    /// may come from another machine.
    pub folder: PathBuf,
    /// The key file, in another folder of this user; created if missing.
    pub key_file: PathBuf,
}

/// Whether the host uses its code cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheStatus {
    /// No cache was configured.
    Off,
    /// The cache cannot be used, so every plugin is compiled at each start.
    Unusable {
        /// The reason.
        reason: String,
    },
    /// The cache is in use.
    On {
        /// The cache folder.
        folder: PathBuf,
        /// Number of entries that were damaged or sealed by another key, and were therefore compiled again.
        rejected: usize,
    },
}

/// A code cache whose folder and key were checked.
pub(crate) struct OpenCache {
    folder: PathBuf,
    key: MacKey,
    scratch: ScratchFolder,
    rejected: AtomicUsize,
}

impl OpenCache {
    /// Opens the cache. An error means that the cache must not be used.
    pub(crate) fn open(options: &CodeCache) -> io::Result<Self> {
        ensure_private_folder(&options.folder)?;
        let key = key::load_or_create(&options.key_file)?;
        let scratch = ScratchFolder::create(&options.folder)?;
        let (folder, rejected) = (options.folder.clone(), AtomicUsize::new(0));
        Ok(Self { folder, key, scratch, rejected })
    }

    /// Returns the folder that wasmtime uses as its cache.
    pub(crate) fn scratch(&self) -> &ScratchFolder {
        &self.scratch
    }

    pub(crate) fn status(&self) -> CacheStatus {
        CacheStatus::On { folder: self.folder.clone(), rejected: self.rejected.load(Ordering::Relaxed) }
    }

    /// Returns the code of `identity` if there is an entry with a valid MAC.
    pub(crate) fn get(&self, identity: &CodeIdentity) -> Option<CompiledCode> {
        let path = self.path(identity);
        let sealed = match read(&path) {
            Ok(sealed) => sealed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => return self.reject(&path, &error.to_string()),
        };
        match entry::open(&self.key, identity, &sealed) {
            Some(code) => Some(code),
            None => self.reject(&path, "it is damaged or not sealed with this user's key"),
        }
    }

    fn reject(&self, path: &Path, problem: &str) -> Option<CompiledCode> {
        self.rejected.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(?path, problem, "a cached importer is not used; it is compiled again");
        None
    }

    /// Stores `code`. If the disk is full or permission is missing, nothing is stored and the next start compiles
    /// again.
    pub(crate) fn put(&self, identity: &CodeIdentity, code: &CompiledCode) {
        let written = write(&self.folder, &self.path(identity), &entry::seal(&self.key, identity, code));
        if let Err(error) = written.and_then(|()| self.trim()) {
            tracing::debug!(%error, folder = ?self.folder, "compiled code is not cached");
        }
    }

    fn path(&self, identity: &CodeIdentity) -> PathBuf {
        self.folder.join(format!("{}{SUFFIX}", identity.to_hex()))
    }

    /// Removes the oldest entries beyond [`MAX_ENTRIES`] and unfinished entries of killed processes.
    fn trim(&self) -> io::Result<()> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let modified = entry.metadata()?.modified()?;
            if name.ends_with(SUFFIX) {
                entries.push((modified, entry.path()));
            } else if name.starts_with(UNFINISHED) && older(modified, UNFINISHED_MAX_AGE) {
                fs::remove_file(entry.path())?;
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
    let file = private::open_regular_file(path)?;
    if file.metadata()?.len() > MAX_ENTRY_BYTES {
        return Err(io::Error::other("it is too large for compiled code"));
    }
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(file, MAX_ENTRY_BYTES), &mut bytes)?;
    Ok(bytes)
}

/// Writes an entry and renames it into place. It need not be durable: a partly written entry has no valid MAC.
fn write(folder: &Path, path: &Path, sealed: &[u8]) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
    io::Write::write_all(&mut file, sealed)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
