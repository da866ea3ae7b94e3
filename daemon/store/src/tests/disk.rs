//! A file system that can make a call fail, lose bytes that were not fsynced, and tear writes.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::disk::{Disk, DiskFile};

/// A simulated disk. Clones share their content, as two processes would share a disk.
#[derive(Clone, Default)]
pub(super) struct CrashDisk(Arc<Mutex<Files>>);

/// The whole content of a disk.
#[derive(Clone, Default)]
pub(super) struct Files {
    content: BTreeMap<u64, FileContent>,
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    next: u64,
    /// Number of calls that change something or fsync.
    pub(super) calls: usize,
    /// The call that fails, and its error.
    pub(super) fail: Option<(usize, io::ErrorKind)>,
    /// From this call on all calls fail: the machine has lost power, or the process was killed.
    pub(super) dead_from: Option<usize>,
    /// Number of calls that read.
    pub(super) reads: usize,
    /// The read call that fails.
    pub(super) fail_read: Option<usize>,
    /// Bytes that are free; `None` means unlimited.
    pub(super) free: Option<u64>,
    /// This many more fsyncs of files succeed, then none.
    pub(super) syncs: Option<usize>,
}

#[derive(Clone, Default)]
struct FileContent {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// Writes since the last fsync. An fsync that fails forgets them: the system treats them as written, and the next fsync
    /// succeeds without them.
    pending: Vec<Write>,
}

#[derive(Clone)]
enum Write {
    At(u64, Vec<u8>),
    Length(u64),
}

/// The part of the unsynced writes that a power loss leaves.
#[derive(Clone, Copy, Debug)]
pub(super) enum Loss {
    /// The first bytes, up to this number, in the order of writing.
    Cut(usize),
    /// Sectors of this size; the bits of the seed decide whether each one is written or zero. The length is the full one.
    Torn(usize, u64),
    /// As torn, but missing sectors contain old bytes of other files, and each name that was not fsynced is as it is now or as it
    /// was.
    Garbage(usize, u64),
    /// Nothing is lost: the process was killed, and the system continues.
    Killed,
}

impl Files {
    /// Returns the number of bytes that were written and not fsynced.
    pub(super) fn unsynced(&self) -> usize {
        self.content.values().flat_map(|file| &file.pending).map(Write::len).sum()
    }

    /// Returns the content after a power loss.
    pub(super) fn after(mut self, loss: Loss) -> Self {
        (self.fail, self.syncs, self.dead_from, self.fail_read) = (None, None, None, None);
        if let Loss::Killed = loss {
            return self;
        }
        self.names = match loss {
            Loss::Garbage(_, seed) => self.names_by(seed),
            _ => self.durable_names.clone(),
        };
        self.durable_names = self.names.clone();
        let mut left = match loss {
            Loss::Cut(bytes) => bytes,
            _ => usize::MAX,
        };
        for file in self.content.values_mut() {
            let mut content = file.durable.clone();
            for write in std::mem::take(&mut file.pending) {
                match (write, loss) {
                    (Write::At(at, bytes), Loss::Cut(_)) => {
                        let keep = bytes.len().min(left);
                        left -= keep;
                        put(&mut content, at, &bytes[..keep]);
                    }
                    (Write::At(at, bytes), Loss::Torn(sector, seed)) => {
                        tear(&mut content, at, &bytes, sector, seed, 0);
                    }
                    (Write::At(at, bytes), Loss::Garbage(sector, seed)) => {
                        tear(&mut content, at, &bytes, sector, seed, 0xa7);
                    }
                    (Write::At(..), Loss::Killed) => {}
                    (Write::Length(length), _) if left > 0 => content.resize(length as usize, 0),
                    (Write::Length(_), _) => {}
                }
            }
            file.live.clone_from(&content);
            file.durable = content;
        }
        self
    }

    /// Returns the names; the bits of the seed decide whether each name that was not fsynced is as it is now or as it was.
    fn names_by(&self, seed: u64) -> BTreeMap<PathBuf, u64> {
        let all: BTreeSet<&PathBuf> = self.names.keys().chain(self.durable_names.keys()).collect();
        let chosen = all.into_iter().enumerate().filter_map(|(n, name)| {
            let now = seed.rotate_right(n as u32).is_multiple_of(2);
            let from = if now { &self.names } else { &self.durable_names };
            from.get(name).map(|number| (name.clone(), *number))
        });
        chosen.collect()
    }
}

impl Write {
    fn len(&self) -> usize {
        match self {
            Self::At(_, bytes) => bytes.len(),
            Self::Length(_) => 0,
        }
    }
}

impl CrashDisk {
    pub(super) fn lock(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn image(&self) -> Files {
        self.lock().clone()
    }

    pub(super) fn restore(&self, files: Files) {
        *self.lock() = files;
    }

    /// Counts a call and fails it if it is the chosen one.
    fn call(&self) -> io::Result<MutexGuard<'_, Files>> {
        let mut files = self.lock();
        files.calls += 1;
        if files.dead_from.is_some_and(|from| files.calls >= from) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        match files.fail {
            Some((call, kind)) if call == files.calls => Err(kind.into()),
            _ => Ok(files),
        }
    }
}

impl CrashDisk {
    /// Counts a call that reads and fails it if it is the chosen one.
    fn read_call(&self) -> io::Result<MutexGuard<'_, Files>> {
        let mut files = self.lock();
        files.reads += 1;
        if files.fail_read == Some(files.reads) { Err(io::ErrorKind::Other.into()) } else { Ok(files) }
    }
}

impl Disk for CrashDisk {
    fn free(&self, _: &Path) -> u64 {
        self.lock().free.unwrap_or(u64::MAX)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut files = self.call()?;
        if files.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        files.next += 1;
        let number = files.next;
        files.content.insert(number, FileContent::default());
        files.names.insert(path.to_owned(), number);
        Ok(Arc::new(CrashFile(self.clone(), number)))
    }

    fn open(&self, path: &Path, _: bool) -> io::Result<Arc<dyn DiskFile>> {
        let number = self.read_call()?.names.get(path).copied();
        number.map_or(Err(io::ErrorKind::NotFound.into()), |number| {
            Ok(Arc::new(CrashFile(self.clone(), number)) as Arc<dyn DiskFile>)
        })
    }

    fn create_folders(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn names(&self, path: &Path) -> io::Result<Vec<String>> {
        let files = self.read_call()?;
        let inside = files.names.keys().filter(|name| name.parent() == Some(path));
        Ok(inside.filter_map(|name| Some(name.file_name()?.to_string_lossy().into_owned())).collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = self.call()?;
        let number = files.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.names.insert(to.to_owned(), number);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut files = self.call()?;
        files.names.remove(path).map(|_| ()).ok_or(io::ErrorKind::NotFound.into())
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        let mut files = self.call()?;
        files.durable_names.retain(|name, _| name.parent() != Some(path));
        let now: Vec<_> = files
            .names
            .iter()
            .filter(|(name, _)| name.parent() == Some(path))
            .map(|(a, b)| (a.clone(), *b))
            .collect();
        files.durable_names.extend(now);
        Ok(())
    }
}

struct CrashFile(CrashDisk, u64);

impl CrashFile {
    fn change<T>(&self, change: impl FnOnce(&mut FileContent) -> T) -> io::Result<T> {
        let mut files = self.0.call()?;
        files.content.get_mut(&self.1).map(change).ok_or(io::ErrorKind::NotFound.into())
    }
}

impl DiskFile for CrashFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let failed = self.change(|file| {
            put(&mut file.live, offset, bytes);
            file.pending.push(Write::At(offset, bytes.to_vec()));
        });
        let dead = failed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        let already = self.0.lock().calls;
        let first = self.0.lock().dead_from.is_none_or(|from| from == already);
        if failed.is_err()
            && (!dead || first)
            && let Some(file) = self.0.lock().content.get_mut(&self.1)
        {
            // A full disk accepts a part of the bytes before it refuses.
            let half = &bytes[..bytes.len() / 2];
            put(&mut file.live, offset, half);
            file.pending.push(Write::At(offset, half.to_vec()));
        }
        failed
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let files = self.0.read_call()?;
        let file = files.content.get(&self.1).ok_or(io::ErrorKind::NotFound)?;
        let rest = file.live.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn sync(&self) -> io::Result<()> {
        match &mut self.0.lock().syncs {
            Some(0) => return Err(io::ErrorKind::Other.into()),
            Some(left) => *left -= 1,
            None => {}
        }
        let synced = self.change(|file| {
            for write in std::mem::take(&mut file.pending) {
                match write {
                    Write::At(at, bytes) => put(&mut file.durable, at, &bytes),
                    Write::Length(length) => file.durable.resize(length as usize, 0),
                }
            }
        });
        let failed = synced.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe);
        if failed && let Some(file) = self.0.lock().content.get_mut(&self.1) {
            file.pending.clear();
        }
        synced
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.change(|file| {
            file.live.resize(length as usize, 0);
            file.pending.push(Write::Length(length));
        })
    }

    fn length(&self) -> io::Result<u64> {
        let files = self.0.read_call()?;
        files.content.get(&self.1).map(|file| file.live.len() as u64).ok_or(io::ErrorKind::NotFound.into())
    }
}

fn put(content: &mut Vec<u8>, at: u64, bytes: &[u8]) {
    let at = at as usize;
    if content.len() < at + bytes.len() {
        content.resize(at + bytes.len(), 0);
    }
    content[at..at + bytes.len()].copy_from_slice(bytes);
}

fn tear(content: &mut Vec<u8>, at: u64, bytes: &[u8], sector: usize, seed: u64, filler: u8) {
    let end = at as usize + bytes.len();
    if content.len() < end {
        content.resize(end, filler);
    }
    for (n, byte) in bytes.iter().enumerate() {
        let place = at as usize + n;
        if seed.rotate_left((place / sector) as u32).count_ones().is_multiple_of(2) {
            content[place] = *byte;
        }
    }
}
