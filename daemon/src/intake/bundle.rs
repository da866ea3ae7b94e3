//! One source as a flat list of named files, whatever it lies in: folder, ZIP, or ZIPs inside either.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read, Seek as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use satchel_host::{CancelToken, Entry, Files};
use satchel_pam::hash::Sha256Digest;

use super::{
    IntakeError, Limits, Pulse, Source, SourceStamp,
    archive::{self, Listed, Packed, SharedFile},
    below,
    entry::{self, Stoppable, Unpacked},
    source, tree,
};
use crate::envelope::{MAGIC, OpenError};

/// The first bytes of a ZIP with entries, and of an empty one.
const ZIP_MAGIC: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];
/// ZIPs inside a ZIP that providers make: one for each category of data.
const NESTED: [&str; 7] =
    ["conversations", "projects", "memories", "light_metadata", "design_chats", "frames", "feedback"];

/// A file that could not be taken in, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Its name in the source.
    pub name: String,
    /// Why.
    pub reason: String,
    /// Whether it is an archive, so that what it held is unknown.
    pub archive: bool,
}

#[derive(Clone)]
enum Place {
    /// A file of the machine, as it was when it was looked at.
    Plain(PathBuf, SourceStamp),
    Packed(Packed),
}

/// Named files, read where they lie.
#[derive(Clone)]
pub struct Bundle {
    entries: Vec<Entry>,
    places: Arc<BTreeMap<String, Place>>,
    unread: Vec<Unread>,
    /// The folder that no link may lead out of.
    base: Arc<PathBuf>,
    limits: Limits,
    unpacked: Unpacked,
    cancel: CancelToken,
    pulse: Pulse,
}

impl Bundle {
    pub(super) fn open(source: &Source, limits: &Limits, cancel: &CancelToken) -> Result<Self, IntakeError> {
        let (base, cancel, pulse) = (source.base.clone(), cancel.clone(), source.pulse.clone());
        let _asked = source.pulse.call();
        let mut builder = Builder { base, places: BTreeMap::new(), unread: Vec::new(), cancel, pulse };
        if source.folder() {
            tree::walk(&source.path, limits, &mut builder)?;
            return Ok(builder.finish(limits));
        }
        let read = IntakeError::read;
        let mut file = below::file(&source.base, &source.path).map_err(read(&source.path))?;
        if is_zip(&mut file).map_err(read(&source.path))? {
            let file = SharedFile::new(file).map_err(read(&source.path))?;
            builder.archive("", file, &source.path, limits, true)?;
        } else if is_sealed(&mut file).map_err(read(&source.path))? {
            let keys = source.keys.clone().unwrap_or_default();
            let failed = |error| IntakeError::Sealed { path: source.path.clone(), source: error };
            let file = keys.open(file).map_err(failed)?;
            let file = SharedFile::sealed(file).map_err(|_| failed(OpenError::Damaged))?;
            // Archives inside it stay closed: they would have to be unpacked to the disk.
            builder.archive("", file, &source.path, limits, false)?;
        } else {
            builder.file(source.name.clone(), source.path.clone(), limits)?;
        }
        Ok(builder.finish(limits))
    }

    /// Only the files named.
    #[must_use]
    pub fn subset(&self, names: &[String]) -> Self {
        let wanted: std::collections::BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let entries =
            self.entries.iter().filter(|entry| wanted.contains(entry.path.as_str())).cloned().collect();
        Self { entries, unpacked: Unpacked::default(), unread: Vec::new(), ..self.clone() }
    }

    /// Whether nobody wants it any more.
    pub fn stopped(&self) -> bool {
        self.cancel.cancelled()
    }

    /// What could not be taken in.
    pub fn unread(&self) -> &[Unread] {
        &self.unread
    }

    /// Bytes of all files, as their containers state them.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.size).fold(0, u64::saturating_add)
    }

    /// Fails if a file of a folder may hold other bytes than when it was looked at. Those of an archive are checked as they are
    /// read.
    pub fn unchanged(&self) -> Result<(), IntakeError> {
        let _asked = self.pulse.call();
        for entry in &self.entries {
            let Some(Place::Plain(path, stamp)) = self.places.get(&entry.path) else { continue };
            let now = below::stat(&self.base, path).map_err(IntakeError::read(path))?;
            if SourceStamp::of(&now) != *stamp {
                return Err(IntakeError::Changed { path: path.clone() });
            }
            self.pulse.beats();
        }
        Ok(())
    }

    /// The SHA-256 over the names and hashes of all files, in the order of their names; none if `progress`, which is
    /// told of bytes, answers false.
    pub fn checksum(
        &self,
        mut progress: impl FnMut(u64) -> bool,
    ) -> Result<Option<Sha256Digest>, IntakeError> {
        let mut list = String::new();
        for entry in &self.entries {
            let mut reader = self.open(&entry.path, 0).map_err(IntakeError::read(Path::new(&entry.path)))?;
            let hash = source::hash(&mut reader, &mut progress)
                .map_err(IntakeError::read(Path::new(&entry.path)))?;
            let Some(hash) = hash else { return Ok(None) };
            list.push_str(&format!("{hash} {}\n", entry.path));
        }
        let hash = source::hash(&mut list.as_bytes(), &mut |_| true)
            .map_err(IntakeError::read(Path::new("the list")))?;
        Ok(hash)
    }
}

impl Files for Bundle {
    fn list(&self) -> &[Entry] {
        &self.entries
    }

    fn open(&self, path: &str, offset: u64) -> io::Result<Box<dyn Read + Send>> {
        let asked = self.pulse.call();
        let (bytes, before) = match self.places.get(path) {
            Some(Place::Plain(place, _)) => (entry::plain(below::file(&self.base, place)?, offset)?, 0),
            Some(Place::Packed(packed)) => (entry::packed(packed, &self.limits, &self.unpacked)?, offset),
            None => {
                let problem = format!("the export holds no file {path:?}");
                return Err(io::Error::new(io::ErrorKind::NotFound, problem));
            }
        };
        drop(asked);
        let mut reader = Stoppable { bytes, cancel: self.cancel.clone(), pulse: self.pulse.clone() };
        entry::skip(&mut reader, before)?;
        Ok(Box::new(reader))
    }
}

pub(super) struct Builder {
    pub(super) base: PathBuf,
    places: BTreeMap<String, (u64, Place)>,
    unread: Vec<Unread>,
    cancel: CancelToken,
    pulse: Pulse,
}

impl Builder {
    /// Fails once nobody wants the bundle any more.
    pub(super) fn go_on(&self, path: &Path) -> Result<(), IntakeError> {
        self.pulse.beats();
        if self.cancel.cancelled() {
            return Err(IntakeError::Stopped { path: path.to_owned() });
        }
        Ok(())
    }

    pub(super) fn unread(&mut self, name: String, reason: impl Into<String>) {
        self.unread.push(Unread { name, reason: reason.into(), archive: false });
    }

    fn unopened(&mut self, name: String, error: &IntakeError) {
        self.unread.push(Unread { name, reason: error.to_string(), archive: true });
    }

    /// Adds a file of the machine under `name`; a ZIP is opened and its files stand under `name/`.
    pub(super) fn file(&mut self, name: String, path: PathBuf, limits: &Limits) -> Result<(), IntakeError> {
        let opened = below::file(&self.base, &path).and_then(|mut file| {
            let zipped = is_zip(&mut file)?;
            let stat = rustix::fs::fstat(&file)?;
            Ok((file, zipped, SourceStamp::of(&stat)))
        });
        let (file, zipped, stamp) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.unread(name, format!("it cannot be read: {error}"));
                return Ok(());
            }
        };
        if !zipped {
            return self.add(name, stamp.length(), Place::Plain(path, stamp), limits);
        }
        let shared = SharedFile::new(file).map_err(IntakeError::read(&path));
        if let Err(error) =
            shared.and_then(|file| self.archive(&format!("{name}/"), file, &path, limits, true))
        {
            self.unopened(name, &error);
        }
        Ok(())
    }

    /// Adds the files of an archive under `prefix`, and those of ZIPs inside it, one level deep.
    fn archive(
        &mut self,
        prefix: &str,
        file: SharedFile,
        path: &Path,
        limits: &Limits,
        outermost: bool,
    ) -> Result<(), IntakeError> {
        let (cancel, pulse) = (self.cancel.clone(), self.pulse.clone());
        let reader = Stoppable { bytes: file.clone(), cancel, pulse };
        for line in archive::list(file, reader, path, limits)? {
            match line {
                Listed::Unread { name, reason } => self.unread(format!("{prefix}{name}"), reason),
                Listed::File { name, packed } if outermost && category(&name) => {
                    let inner = format!("{prefix}{name}");
                    let spilled = spill(&packed, limits, (&self.cancel, &self.pulse));
                    self.go_on(path)?;
                    let opened = spilled.map_err(IntakeError::read(Path::new(&inner)));
                    let added = opened.and_then(|file| {
                        self.archive(&format!("{inner}/"), file, Path::new(&inner), limits, false)
                    });
                    if let Err(error) = added {
                        self.unopened(inner, &error);
                    }
                }
                Listed::File { name, packed } => {
                    self.add(format!("{prefix}{name}"), packed.unpacked, Place::Packed(packed), limits)?;
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, name: String, size: u64, place: Place, limits: &Limits) -> Result<(), IntakeError> {
        if self.places.len() >= limits.entries {
            return Err(IntakeError::TooManyFiles { path: PathBuf::from(name), limit: limits.entries });
        }
        self.places.insert(name, (size, place));
        Ok(())
    }

    fn finish(self, limits: &Limits) -> Bundle {
        let entries =
            self.places.iter().map(|(name, (size, _))| Entry { path: name.clone(), size: *size }).collect();
        let places = self.places.into_iter().map(|(name, (_, place))| (name, place)).collect();
        Bundle {
            entries,
            places: Arc::new(places),
            unread: self.unread,
            base: Arc::new(self.base),
            limits: limits.clone(),
            unpacked: Unpacked::default(),
            cancel: self.cancel,
            pulse: self.pulse,
        }
    }
}

fn is_zip(file: &mut File) -> io::Result<bool> {
    let mut head = Vec::new();
    file.take(4).read_to_end(&mut head)?;
    Ok(ZIP_MAGIC.contains(&head.as_slice()))
}

/// Whether it is encrypted; its first byte comes next then.
fn is_sealed(file: &mut File) -> io::Result<bool> {
    let mut head = Vec::new();
    file.rewind()?;
    file.take(MAGIC.len() as u64).read_to_end(&mut head)?;
    file.rewind()?;
    Ok(head == MAGIC)
}

/// Whether a ZIP inside a ZIP is one that a provider makes: `conversations-000.zip`, `Conversations__1.zip`.
fn category(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    file.strip_suffix(".zip").is_some_and(|stem| {
        NESTED.iter().any(|known| stem.strip_prefix(known).is_some_and(|rest| rest.starts_with(['-', '_'])))
    })
}

/// Unpacks an inner archive to a file without a name, for its directory stands at its end.
fn spill(
    packed: &Packed,
    limits: &Limits,
    (cancel, pulse): (&CancelToken, &Pulse),
) -> io::Result<SharedFile> {
    let mut file = tempfile::tempfile()?;
    let bytes = entry::packed(packed, limits, &Unpacked::default())?;
    let (cancel, pulse) = (cancel.clone(), pulse.clone());
    io::copy(&mut Stoppable { bytes, cancel, pulse: pulse.clone() }, &mut file)?;
    pulse.beats();
    SharedFile::new(file)
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
