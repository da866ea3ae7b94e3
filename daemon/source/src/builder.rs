//! Collects the files of a source: those of a folder, those of an archive, and those of archives inside either.

use std::{
    collections::BTreeMap,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Bundle, Limits, Pulse, Source, SourceError, SourceStamp,
    archive::{self, Listed, SharedFile},
    below,
    bundle::{Place, Unit},
    entry::{Stoppable, Unpacked},
    fault::{self, Faults, exhausted},
    handles::Handles,
    inner::Spill,
};
use crate::{CancelToken, Entry, chain, names::shown, pam::MANIFEST};

/// The first bytes of a ZIP with entries, and of an empty one.
const ZIP_MAGIC: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];
/// Bytes at the start of a file that show its type.
const HEAD: u64 = 64;
/// The offset of the first entry's name in a ZIP.
const FIRST_NAME: usize = 30;
/// The start of the first entry's name in Office Open XML, and in open document formats and EPUB, which require it
/// there.
const DOCUMENTS: [&[u8]; 2] = [b"[Content_Types].xml", b"mimetype"];
/// The folder of a PAM bundle's attachments.
const ATTACHMENTS: &str = "attachments";
/// The memory store of a PAM bundle.
const STORE: &str = "memory-store.json";
/// Names of ZIPs that providers put inside a ZIP: one for each category of data.
const NESTED: [&str; 7] =
    ["conversations", "projects", "memories", "light_metadata", "design_chats", "frames", "feedback"];

/// A file that could not be read, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Its name in the source.
    pub name: String,
    /// The reason, for the user.
    pub reason: String,
    /// The kind of reason.
    pub why: Why,
}

/// The kind of reason why a file could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The file is left out; the others are read without it.
    LeftOut,
    /// An archive that cannot be opened: its contents are unknown.
    Damaged,
    /// A backup of a data directory.
    Backup,
    /// An unfinished download.
    Waiting,
}

/// A bundle under construction.
pub(super) struct Builder {
    pub(super) base: PathBuf,
    pub(super) places: BTreeMap<String, (u64, Place)>,
    pub(super) unread: Vec<Unread>,
    /// Unread files that were already reported separately.
    told: Vec<Unread>,
    /// Whether unfinished downloads are skipped.
    pub(super) waits: bool,
    spill: Spill,
    handles: Handles,
    faults: Faults,
    cancel: CancelToken,
    pulse: Pulse,
}

impl Builder {
    pub(super) fn of(source: &Source, cancel: CancelToken) -> Self {
        Self {
            base: source.base.clone(),
            places: BTreeMap::new(),
            unread: Vec::new(),
            told: Vec::new(),
            waits: source.waits,
            spill: Spill::default(),
            handles: Handles::default(),
            faults: Faults::default(),
            cancel,
            pulse: source.pulse.clone(),
        }
    }

    /// Continues with a bundle that was finished.
    pub(super) fn again(bundle: &Bundle) -> Self {
        let places = bundle.entries.iter().filter_map(|entry| {
            let place = bundle.places.get(&entry.path)?.clone();
            Some((entry.path.clone(), (entry.size, place)))
        });
        Self {
            base: bundle.base.as_ref().clone(),
            places: places.collect(),
            unread: bundle.unread.clone(),
            told: bundle.told.clone(),
            waits: false,
            spill: bundle.spill.clone(),
            handles: Handles::default(),
            faults: bundle.faults.clone(),
            cancel: bundle.cancel.clone(),
            pulse: bundle.pulse.clone(),
        }
    }

    /// Fails if the operation was cancelled.
    pub(super) fn go_on(&self, path: &Path) -> Result<(), SourceError> {
        self.pulse.beats();
        if self.cancel.cancelled() {
            return Err(SourceError::Stopped { path: path.to_owned() });
        }
        Ok(())
    }

    pub(super) fn unread(&mut self, name: String, reason: impl Into<String>) {
        self.unread.push(Unread { name, reason: reason.into(), why: Why::LeftOut });
    }

    pub(super) fn waiting(&mut self, name: String, reason: &str) {
        self.unread.push(Unread { name, reason: reason.to_owned(), why: Why::Waiting });
    }

    pub(super) fn unopened(&mut self, name: String, error: &SourceError) {
        let why = if matches!(error, SourceError::Backup { .. }) { Why::Backup } else { Why::Damaged };
        self.unread.push(Unread { name, reason: chain(error), why });
    }

    /// Adds a file of the machine under `name`. If it is a ZIP, it is opened and its files are added under `name/`.
    pub(super) fn file(&mut self, name: String, path: PathBuf, limits: &Limits) -> Result<(), SourceError> {
        let opened = below::file(&self.base, &path).and_then(|mut file| {
            let mut head = Vec::new();
            (&mut file).take(HEAD).read_to_end(&mut head)?;
            let stat = rustix::fs::fstat(&file)?;
            Ok((zipped(&head[..head.len().min(4)]) && !is_document(&head), SourceStamp::of(&stat)))
        });
        let (zipped, stamp) = match opened {
            Ok(opened) => opened,
            // The file may be fine: the same import will read it once other programs have closed some files.
            Err(source) if exhausted(&source) => return Err(SourceError::Read { path, source }),
            Err(error) => {
                self.unread(name, format!("it cannot be read: {error}"));
                return Ok(());
            }
        };
        if !zipped || self.is_attachment(&path) {
            return self.add(name, stamp.length(), Place::Plain(path, stamp), limits);
        }
        let unit = Arc::new(Unit { name: name.as_str().into(), nesting: 1 });
        let shared = SharedFile::reopened(self.handles.file(&self.base, &path, stamp));
        match self.archive(&format!("{name}/"), shared, &path, limits, &unit) {
            Err(SourceError::Read { path, source }) if exhausted(&source) => {
                return Err(SourceError::Read { path, source });
            }
            Err(error) => {
                self.go_on(&path)?;
                self.unopened(name, &error);
            }
            Ok(()) => {}
        }
        Ok(())
    }

    /// Returns whether a file is among the attachments of a PAM bundle. Attachments are never opened: they are
    /// arbitrary files, and an office document is a ZIP too.
    fn is_attachment(&self, path: &Path) -> bool {
        let beside = |root: &Path, name: &str| below::stat(&self.base, &root.join(name)).is_ok();
        let of_bundle = |root: &Path| beside(root, STORE) || beside(root, MANIFEST);
        let mut folders = path.ancestors().skip(1).filter(|folder| folder.ends_with(ATTACHMENTS));
        folders.any(|folder| folder.parent().is_some_and(of_bundle))
    }

    /// Adds the files of the archive `unit` under `prefix`, and those of the archives in it that providers create.
    pub(super) fn archive(
        &mut self,
        prefix: &str,
        file: SharedFile,
        path: &Path,
        limits: &Limits,
        unit: &Arc<Unit>,
    ) -> Result<(), SourceError> {
        // Archives inside an encrypted one stay closed, because they would have to be unpacked to the disk.
        let opens = unit.nesting == 1 && !file.is_sealed();
        let (cancel, pulse) = (self.cancel.clone(), self.pulse.clone());
        let reader = Stoppable { bytes: file.clone(), cancel, pulse };
        for line in archive::list(file, reader, path, limits)? {
            match line {
                Listed::Unread { name, reason } => self.unread(format!("{prefix}{name}"), reason),
                Listed::File { name, packed } => {
                    let (name, known) = (format!("{prefix}{name}"), opens && category(&name));
                    let (size, place) = (packed.unpacked, Place::Packed(packed, Arc::clone(unit)));
                    self.add(name.clone(), size, place, limits)?;
                    if known {
                        self.inner(&name, limits)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Opens the archive `name`, which was added as a file of another archive; its files replace it.
    pub(super) fn inner(&mut self, name: &str, limits: &Limits) -> Result<(), SourceError> {
        let Some((_, Place::Packed(packed, outer))) = self.places.get(name).cloned() else { return Ok(()) };
        self.places.remove(name);
        let spilled = self.spill.take_in(&packed, limits, (&self.cancel, &self.pulse));
        self.go_on(Path::new(name))?;
        let spilled = match spilled {
            Err(source) if exhausted(&source) => {
                return Err(SourceError::Read { path: PathBuf::from(name), source });
            }
            spilled => spilled,
        };
        let unit = Arc::new(Unit { name: name.into(), nesting: outer.nesting + 1 });
        let added = spilled
            .map_err(|error| unspilled(name, &error))
            .and_then(|file| self.archive(&format!("{name}/"), file, Path::new(name), limits, &unit));
        if let Err(error) = added {
            self.go_on(Path::new(name))?;
            self.unopened(name.to_owned(), &error);
        }
        Ok(())
    }

    fn add(&mut self, name: String, size: u64, place: Place, limits: &Limits) -> Result<(), SourceError> {
        if self.places.len() >= limits.entries {
            return Err(SourceError::TooManyFiles { path: PathBuf::from(name), limit: limits.entries });
        }
        self.places.insert(name, (size, place));
        Ok(())
    }

    pub(super) fn finish(self, limits: &Limits) -> Bundle {
        let entries =
            self.places.iter().map(|(name, (size, _))| Entry { path: name.clone(), size: *size }).collect();
        let places = self.places.into_iter().map(|(name, (_, place))| (name, place)).collect();
        Bundle {
            entries,
            places: Arc::new(places),
            unread: self.unread,
            told: self.told,
            base: Arc::new(self.base),
            limits: limits.clone(),
            unpacked: Unpacked::default(),
            spill: self.spill,
            faults: self.faults,
            cancel: self.cancel,
            pulse: self.pulse,
        }
    }
}

/// Returns the error for an inner archive that could not be unpacked.
fn unspilled(name: &str, error: &io::Error) -> SourceError {
    let sentence = fault::sentence(name, Some(name), error);
    SourceError::Inner {
        sentence: sentence.unwrap_or_else(|| format!("{} is not opened: {error}", shown(name.as_ref()))),
    }
}

/// Returns whether these are the first bytes of a ZIP.
pub(super) fn zipped(head: &[u8]) -> bool {
    ZIP_MAGIC.contains(&head)
}

/// Returns whether these are the first bytes of a document that is stored as a ZIP: an office document or an e-book.
fn is_document(head: &[u8]) -> bool {
    head.get(FIRST_NAME..).is_some_and(|name| DOCUMENTS.iter().any(|first| name.starts_with(first)))
}

/// Returns whether a ZIP inside a ZIP is one that providers create: `conversations-000.zip`, `Conversations__1.zip`.
fn category(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    file.strip_suffix(".zip").is_some_and(|stem| {
        NESTED.iter().any(|known| stem.strip_prefix(known).is_some_and(|rest| rest.starts_with(['-', '_'])))
    })
}
