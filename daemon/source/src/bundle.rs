//! A source as a flat list of named files, whether it is a folder, a ZIP, or has ZIPs inside either.

use std::{
    collections::BTreeMap,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use satchel_pam::hash::Sha256Digest;

use super::{
    Heartbeat, Limits, ReadFault, SourceError, UnreadFile, beneath,
    entry::{self, CancellableReader, UnpackedBytes},
    fault::{FaultLog, FaultRecorder},
    identity::{self, SourceStamp},
    location::FileLocation,
    open_files::ReopenedFile,
    spill::SpillFile,
};
use crate::{CancelToken, FileEntry, FileSet};

/// Named files, read from where they are.
#[derive(Clone)]
pub struct Bundle {
    pub(super) entries: Vec<FileEntry>,
    pub(super) locations: Arc<BTreeMap<String, FileLocation>>,
    pub(super) unread: Vec<UnreadFile>,
    /// Unread files that were already reported separately.
    pub(super) reported: Vec<UnreadFile>,
    /// The folder that no link may lead out of.
    pub(super) base: Arc<PathBuf>,
    pub(super) limits: Limits,
    pub(super) unpacked: UnpackedBytes,
    /// Archives inside archives, unpacked.
    pub(super) spill: SpillFile,
    pub(super) faults: FaultLog,
    pub(super) cancel: CancelToken,
    pub(super) heartbeat: Heartbeat,
}

impl Bundle {
    /// Returns a bundle with only the named files.
    #[must_use]
    pub fn subset(&self, names: &[String]) -> Self {
        let wanted: std::collections::BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let entries =
            self.entries.iter().filter(|entry| wanted.contains(entry.path.as_str())).cloned().collect();
        let reported = self.reported.iter().chain(&self.unread).cloned().collect();
        Self { entries, unpacked: UnpackedBytes::default(), unread: Vec::new(), reported, ..self.clone() }
    }

    /// Returns whether the operation was cancelled.
    pub fn cancelled(&self) -> bool {
        self.cancel.cancelled()
    }

    /// Returns the files that could not be read.
    pub fn unread(&self) -> &[UnreadFile] {
        &self.unread
    }

    /// Returns all files that could not be read, including those that were already reported separately.
    pub fn all_unread(&self) -> impl Iterator<Item = &UnreadFile> {
        self.reported.iter().chain(&self.unread)
    }

    /// Returns and removes the files that could not be read to their end since the last call.
    pub fn take_faults(&self) -> Vec<ReadFault> {
        self.faults.take()
    }

    /// Returns a bundle without the files for which `removed` is true; it gets the name of the file and that of the
    /// archive that contains it.
    #[must_use]
    pub fn without(&self, removed: impl Fn(&str, Option<&str>) -> bool) -> Self {
        let stays = |entry: &&FileEntry| !removed(&entry.path, self.archive_of(&entry.path));
        Self { entries: self.entries.iter().filter(stays).cloned().collect(), ..self.clone() }
    }

    /// Returns the stated size of a file in bytes. An archive may state anything, but no more than the stated size is
    /// read.
    pub fn size_of(&self, path: &str) -> u64 {
        let at = self.entries.binary_search_by(|entry| entry.path.as_str().cmp(path));
        at.map_or(0, |at| self.entries[at].size)
    }

    /// Returns the archive that contains a file, if any.
    pub fn archive_of(&self, path: &str) -> Option<&str> {
        match self.locations.get(path) {
            Some(FileLocation::Packed(_, unit) | FileLocation::Unpacked(_, _, unit)) => Some(&unit.name),
            Some(FileLocation::Plain(..) | FileLocation::Appended(..) | FileLocation::Stored(_)) | None => {
                None
            }
        }
    }

    /// Marks the unread files for which `matches` is true as reported, so that they are not reported again, and adds
    /// `more` unread files.
    #[must_use]
    pub fn with_reported(mut self, matches: impl Fn(&UnreadFile) -> bool, more: Vec<UnreadFile>) -> Self {
        self.reported.extend(self.unread.extract_if(.., |unread| matches(unread)));
        self.unread.extend(more);
        self
    }

    /// Returns the number of bytes of all files, as their containers state them.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.size).fold(0, u64::saturating_add)
    }

    /// Fails if a file or an archive of a folder may have changed since it was examined.
    pub fn check_unchanged(&self) -> Result<(), SourceError> {
        let _call = self.heartbeat.begin_call();
        let mut last = None;
        for entry in &self.entries {
            let changed = match self.locations.get(&entry.path) {
                Some(FileLocation::Plain(path, stamp)) => {
                    let now = beneath::stat(&self.base, path).map_err(SourceError::read(path))?;
                    (SourceStamp::of(&now) != *stamp).then_some(path.as_path())
                }
                Some(FileLocation::Appended(path, stamp)) => {
                    let now = beneath::stat(&self.base, path).map_err(SourceError::read(path))?;
                    (!stamp.may_begin(&SourceStamp::of(&now))).then_some(path.as_path())
                }
                // The files of one archive are adjacent.
                Some(FileLocation::Packed(packed, unit) | FileLocation::Unpacked(_, packed, unit))
                    if last.replace(unit) != Some(unit) =>
                {
                    let file = packed.file.reopened_file();
                    let unchanged =
                        |file: &ReopenedFile| file.unchanged().map_err(SourceError::read(file.path()));
                    let changed = file.map(unchanged).transpose()? == Some(false);
                    file.filter(|_| changed).map(ReopenedFile::path)
                }
                Some(FileLocation::Packed(..) | FileLocation::Unpacked(..) | FileLocation::Stored(_))
                | None => None,
            };
            if let Some(path) = changed {
                return Err(SourceError::Changed { path: path.to_owned() });
            }
            self.heartbeat.beat();
        }
        Ok(())
    }

    /// Returns the SHA-256 over the names and hashes of all files, in the order of their names. Returns `None` if
    /// `progress`, which is called with numbers of bytes, returns false.
    pub fn checksum(
        &self,
        mut progress: impl FnMut(u64) -> bool,
    ) -> Result<Option<Sha256Digest>, SourceError> {
        let mut list = String::new();
        for entry in &self.entries {
            let hashed = self.open(&entry.path, 0);
            match hashed.and_then(|mut reader| identity::hash(&mut reader, &mut progress)) {
                Ok(Some(hash)) => list.push_str(&format!("{hash} {}\n", entry.path)),
                Ok(None) => return Ok(None),
                Err(error) if self.cancelled() => {
                    return Err(SourceError::read(Path::new(&entry.path))(error));
                }
                // The importer decides whether the file is needed. The repaired file has another hash, and so is
                // another source.
                Err(_) => list.push_str(&format!("unread {}\n", entry.path)),
            }
        }
        let hash = identity::hash(&mut list.as_bytes(), &mut |_| true)
            .map_err(SourceError::read(Path::new("the list")))?;
        Ok(hash)
    }
}

impl FileSet for Bundle {
    fn list(&self) -> &[FileEntry] {
        &self.entries
    }

    fn open(&self, path: &str, offset: u64) -> io::Result<Box<dyn Read + Send>> {
        let call = self.heartbeat.begin_call();
        let (opened, archive) = match self.locations.get(path) {
            Some(FileLocation::Plain(place, _)) => {
                (beneath::open_file(&self.base, place).and_then(|file| entry::open_plain(file, offset)), None)
            }
            Some(FileLocation::Appended(place, stamp)) => {
                let opened = beneath::open_file(&self.base, place);
                (opened.and_then(|file| entry::open_start(file, offset, stamp.length())), None)
            }
            Some(FileLocation::Stored(file) | FileLocation::Unpacked(file, ..)) => {
                (Ok(Box::new(file.at(offset)) as Box<dyn Read + Send>), None)
            }
            Some(FileLocation::Packed(packed, unit)) => {
                (entry::open_packed(packed, &self.limits, &self.unpacked), Some(Arc::clone(&unit.name)))
            }
            None => {
                let problem = format!("the export holds no file {path:?}");
                return Err(io::Error::new(io::ErrorKind::NotFound, problem));
            }
        };
        drop(call);
        let bytes = opened.inspect_err(|error| self.faults.record(path, archive.as_deref(), error))?;
        let before = if archive.is_some() { offset } else { 0 };
        let bytes =
            CancellableReader { bytes, cancel: self.cancel.clone(), heartbeat: self.heartbeat.clone() };
        let mut reader = FaultRecorder { bytes, faults: self.faults.clone(), file: path.to_owned(), archive };
        entry::skip(&mut reader, before)?;
        Ok(Box::new(reader))
    }
}
