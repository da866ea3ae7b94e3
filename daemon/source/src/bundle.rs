//! A source as a flat list of named files, whether it is a folder, a ZIP, or has ZIPs inside either.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read, Seek as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use satchel_pam::hash::Sha256Digest;

use super::{
    Fault, Limits, Pulse, Source, SourceError, SourceStamp, Unread,
    archive::{Packed, SharedFile},
    below,
    builder::{Builder, zipped},
    entry::{self, Stoppable, Unpacked},
    fault::{Faults, Noting},
    handles::Reopened,
    inner::Spill,
    source, tree,
};
use crate::{
    CancelToken, Entry, Files,
    envelope::{MAGIC, OpenError},
};

/// The location of a file.
#[derive(Clone)]
pub(super) enum Place {
    /// A file of the machine, with its state when it was examined.
    Plain(PathBuf, SourceStamp),
    Packed(Packed, Arc<Unit>),
}

/// An archive that contains files.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// Its name in the source.
    pub(super) name: Arc<str>,
    /// The number of archives around its files, including itself.
    pub(super) nesting: usize,
}

/// Named files, read from where they are.
#[derive(Clone)]
pub struct Bundle {
    pub(super) entries: Vec<Entry>,
    pub(super) places: Arc<BTreeMap<String, Place>>,
    pub(super) unread: Vec<Unread>,
    /// Unread files that were already reported separately.
    pub(super) told: Vec<Unread>,
    /// The folder that no link may lead out of.
    pub(super) base: Arc<PathBuf>,
    pub(super) limits: Limits,
    pub(super) unpacked: Unpacked,
    /// Archives inside archives, unpacked.
    pub(super) spill: Spill,
    pub(super) faults: Faults,
    pub(super) cancel: CancelToken,
    pub(super) pulse: Pulse,
}

impl Bundle {
    pub(super) fn open(source: &Source, limits: &Limits, cancel: &CancelToken) -> Result<Self, SourceError> {
        let _asked = source.pulse.call();
        let mut builder = Builder::of(source, cancel.clone());
        if source.folder() {
            tree::walk(&source.path, limits, &mut builder)?;
            return Ok(builder.finish(limits));
        }
        let read = SourceError::read;
        let mut file = below::file(&source.base, &source.path).map_err(read(&source.path))?;
        if is_zip(&mut file).map_err(read(&source.path))? {
            let file = SharedFile::new(file).map_err(read(&source.path))?;
            builder.archive("", file, &source.path, limits, &source.unit())?;
        } else if is_sealed(&mut file).map_err(read(&source.path))? {
            let keys = source.keys.clone().unwrap_or_default();
            let failed = |error| SourceError::Sealed { path: source.path.clone(), source: error };
            let file = keys.open(file).map_err(failed)?;
            let file = SharedFile::sealed(file).map_err(|_| failed(OpenError::Damaged))?;
            builder.archive("", file, &source.path, limits, &source.unit())?;
        } else {
            builder.file(source.name.clone(), source.path.clone(), limits)?;
        }
        Ok(builder.finish(limits))
    }

    /// Returns a bundle with only the named files.
    #[must_use]
    pub fn subset(&self, names: &[String]) -> Self {
        let wanted: std::collections::BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let entries =
            self.entries.iter().filter(|entry| wanted.contains(entry.path.as_str())).cloned().collect();
        let told = self.told.iter().chain(&self.unread).cloned().collect();
        Self { entries, unpacked: Unpacked::default(), unread: Vec::new(), told, ..self.clone() }
    }

    /// Returns whether the operation was cancelled.
    pub fn stopped(&self) -> bool {
        self.cancel.cancelled()
    }

    /// Returns the files that could not be read.
    pub fn unread(&self) -> &[Unread] {
        &self.unread
    }

    /// Returns all files that could not be read, including those that were already reported separately.
    pub fn never_read(&self) -> impl Iterator<Item = &Unread> {
        self.told.iter().chain(&self.unread)
    }

    /// Returns and removes the files that could not be read to their end since the last call.
    pub fn take_faults(&self) -> Vec<Fault> {
        self.faults.take()
    }

    /// Returns a bundle without the files for which `gone` is true; it gets the name of the file and that of the
    /// archive that contains it.
    #[must_use]
    pub fn without(&self, gone: impl Fn(&str, Option<&str>) -> bool) -> Self {
        let kept = |entry: &&Entry| !gone(&entry.path, self.archive_of(&entry.path));
        Self { entries: self.entries.iter().filter(kept).cloned().collect(), ..self.clone() }
    }

    /// Returns the stated size of a file in bytes. An archive may state anything, but no more than the stated size is
    /// read.
    pub fn size_of(&self, path: &str) -> u64 {
        let at = self.entries.binary_search_by(|entry| entry.path.as_str().cmp(path));
        at.map_or(0, |at| self.entries[at].size)
    }

    /// Returns the archive that contains a file, if any.
    pub fn archive_of(&self, path: &str) -> Option<&str> {
        match self.places.get(path) {
            Some(Place::Packed(_, unit)) => Some(&unit.name),
            Some(Place::Plain(..)) | None => None,
        }
    }

    /// Marks the unread files for which `told` is true as reported, so that they are not reported again, and adds
    /// `more` unread files.
    #[must_use]
    pub fn having_told(mut self, told: impl Fn(&Unread) -> bool, more: Vec<Unread>) -> Self {
        self.told.extend(self.unread.extract_if(.., |unread| told(unread)));
        self.unread.extend(more);
        self
    }

    /// Returns the number of bytes of all files, as their containers state them.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.size).fold(0, u64::saturating_add)
    }

    /// Fails if a file or an archive of a folder may have changed since it was examined.
    pub fn unchanged(&self) -> Result<(), SourceError> {
        let _asked = self.pulse.call();
        let mut last = None;
        for entry in &self.entries {
            let changed = match self.places.get(&entry.path) {
                Some(Place::Plain(path, stamp)) => {
                    let now = below::stat(&self.base, path).map_err(SourceError::read(path))?;
                    (SourceStamp::of(&now) != *stamp).then_some(path.as_path())
                }
                // The files of one archive are adjacent.
                Some(Place::Packed(packed, unit)) if last.replace(unit) != Some(unit) => {
                    let file = packed.file.of_folder();
                    let unchanged =
                        |file: &Reopened| file.unchanged().map_err(SourceError::read(file.path()));
                    let changed = file.map(unchanged).transpose()? == Some(false);
                    file.filter(|_| changed).map(Reopened::path)
                }
                Some(Place::Packed(..)) | None => None,
            };
            if let Some(path) = changed {
                return Err(SourceError::Changed { path: path.to_owned() });
            }
            self.pulse.beats();
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
            match hashed.and_then(|mut reader| source::hash(&mut reader, &mut progress)) {
                Ok(Some(hash)) => list.push_str(&format!("{hash} {}\n", entry.path)),
                Ok(None) => return Ok(None),
                Err(error) if self.stopped() => return Err(SourceError::read(Path::new(&entry.path))(error)),
                // The importer decides whether the file is needed. The repaired file has another hash, and so is
                // another source.
                Err(_) => list.push_str(&format!("unread {}\n", entry.path)),
            }
        }
        let hash = source::hash(&mut list.as_bytes(), &mut |_| true)
            .map_err(SourceError::read(Path::new("the list")))?;
        Ok(hash)
    }
}

impl Files for Bundle {
    fn list(&self) -> &[Entry] {
        &self.entries
    }

    fn open(&self, path: &str, offset: u64) -> io::Result<Box<dyn Read + Send>> {
        let asked = self.pulse.call();
        let (opened, archive) = match self.places.get(path) {
            Some(Place::Plain(place, _)) => {
                (below::file(&self.base, place).and_then(|file| entry::plain(file, offset)), None)
            }
            Some(Place::Packed(packed, unit)) => {
                (entry::packed(packed, &self.limits, &self.unpacked), Some(Arc::clone(&unit.name)))
            }
            None => {
                let problem = format!("the export holds no file {path:?}");
                return Err(io::Error::new(io::ErrorKind::NotFound, problem));
            }
        };
        drop(asked);
        let bytes = opened.inspect_err(|error| self.faults.note(path, archive.as_deref(), error))?;
        let before = if archive.is_some() { offset } else { 0 };
        let bytes = Stoppable { bytes, cancel: self.cancel.clone(), pulse: self.pulse.clone() };
        let mut reader = Noting { bytes, faults: self.faults.clone(), file: path.to_owned(), archive };
        entry::skip(&mut reader, before)?;
        Ok(Box::new(reader))
    }
}

fn is_zip(file: &mut File) -> io::Result<bool> {
    let mut head = Vec::new();
    file.take(4).read_to_end(&mut head)?;
    Ok(zipped(&head))
}

/// Returns whether the file is encrypted, and rewinds it to its first byte.
fn is_sealed(file: &mut File) -> io::Result<bool> {
    let mut head = Vec::new();
    file.rewind()?;
    file.take(MAGIC.len() as u64).read_to_end(&mut head)?;
    file.rewind()?;
    Ok(head == MAGIC)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use zip::{ZipWriter, write::SimpleFileOptions};

    use super::*;

    fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in entries {
            writer.start_file(*name, SimpleFileOptions::default()).expect("a file is begun");
            writer.write_all(bytes).expect("a file is written");
        }
        writer.finish().expect("the archive is finished").into_inner()
    }

    #[test]
    fn archives_of_a_provider_inside_an_archive_are_opened_and_others_are_files() {
        let inner = zip(&[("conversations.json", b"[]")]);
        let outer = zip(&[
            ("Conversations__1.zip", &inner),
            ("export/memories-000.zip", &zip(&[("memories/a.json", b"{}")])),
            ("export/frames-000.zip", b"PK\x03\x04 and then nothing"),
            ("export/holiday.zip", &inner),
            ("user.json", b"{}"),
        ]);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("export.zip");
        std::fs::write(&path, outer).expect("the archive is written");
        let limits = Limits::default();
        let bundle = Source::at(&path).and_then(|source| source.open(&limits)).expect("it opens");
        let names: Vec<&str> = bundle.list().iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(
            names,
            [
                "Conversations__1.zip/conversations.json",
                "export/holiday.zip",
                "export/memories-000.zip/memories/a.json",
                "user.json"
            ]
        );
        let mut text = String::new();
        let mut reader = bundle.open(names[0], 0).expect("an inner file opens");
        reader.read_to_string(&mut text).expect("an inner file is read");
        assert_eq!(text, "[]");
        let unread: Vec<&str> = bundle.unread().iter().map(|unread| unread.name.as_str()).collect();
        assert_eq!(unread, ["export/frames-000.zip"], "a broken one is named");
    }
}
