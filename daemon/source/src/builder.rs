//! Collects the files of a source: those of a folder, those of an archive, and those of archives inside either.

use std::{
    collections::BTreeMap,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Bundle, Heartbeat, Limits, SourceError, UnreadFile, UnreadKind, appended,
    archive::{self, ListedEntry, SharedFile, has_zip_magic},
    beneath, database,
    entry::{CancellableReader, UnpackedBytes},
    fault::{self, FaultLog, out_of_resources},
    identity::SourceStamp,
    location::{ContainingArchive, FileLocation},
    open_files::OpenFiles,
    spill::SpillFile,
};
use crate::{
    CancelToken, FileEntry, chain,
    names::{self, shown},
    pam::{MANIFEST, STORE},
};

/// Bytes at the start of a file that show its type.
const HEAD: u64 = 64;
/// The offset of the first entry's name in a ZIP.
const FIRST_NAME: usize = 30;
/// The start of the first entry's name in Office Open XML, and in open document formats and EPUB, which require it
/// there.
const ZIP_DOCUMENT_NAMES: [&[u8]; 2] = [b"[Content_Types].xml", b"mimetype"];
/// The folder of a PAM bundle's attachments.
const ATTACHMENTS: &str = "attachments";
/// Names of ZIPs that providers put inside a ZIP: one for each category of data.
const PROVIDER_ARCHIVES: [&str; 7] =
    ["conversations", "projects", "memories", "light_metadata", "design_chats", "frames", "feedback"];

/// A bundle under construction.
pub(super) struct BundleBuilder {
    pub(super) base: PathBuf,
    pub(super) locations: BTreeMap<String, (u64, FileLocation)>,
    pub(super) unread: Vec<UnreadFile>,
    /// Unread files that were already reported separately.
    reported: Vec<UnreadFile>,
    /// Whether unfinished downloads are skipped.
    pub(super) skip_downloads: bool,
    /// Whether programs append to the files with lines.
    appended: bool,
    spill: SpillFile,
    open_files: OpenFiles,
    faults: FaultLog,
    cancel: CancelToken,
    heartbeat: Heartbeat,
}

impl BundleBuilder {
    /// Creates an empty bundle of files below `base`.
    pub(super) fn new(
        base: &Path,
        skip_downloads: bool,
        (cancel, heartbeat): (&CancelToken, &Heartbeat),
    ) -> Self {
        Self {
            base: base.to_owned(),
            locations: BTreeMap::new(),
            unread: Vec::new(),
            reported: Vec::new(),
            skip_downloads,
            appended: false,
            spill: SpillFile::default(),
            open_files: OpenFiles::default(),
            faults: FaultLog::default(),
            cancel: cancel.clone(),
            heartbeat: heartbeat.clone(),
        }
    }

    /// Reads only the whole lines that files with lines have now, because programs append to them.
    pub(super) fn appended(self) -> Self {
        Self { appended: true, ..self }
    }

    /// Continues with a bundle that was finished.
    pub(super) fn resume(bundle: &Bundle) -> Self {
        let places = bundle.entries.iter().filter_map(|entry| {
            let place = bundle.locations.get(&entry.path)?.clone();
            Some((entry.path.clone(), (entry.size, place)))
        });
        Self {
            base: bundle.base.as_ref().clone(),
            locations: places.collect(),
            unread: bundle.unread.clone(),
            reported: bundle.reported.clone(),
            skip_downloads: false,
            appended: false,
            spill: bundle.spill.clone(),
            open_files: OpenFiles::default(),
            faults: bundle.faults.clone(),
            cancel: bundle.cancel.clone(),
            heartbeat: bundle.heartbeat.clone(),
        }
    }

    /// Fails if the operation was cancelled.
    pub(super) fn check_cancelled(&self, path: &Path) -> Result<(), SourceError> {
        self.heartbeat.beat();
        if self.cancel.cancelled() {
            return Err(SourceError::Cancelled { path: path.to_owned() });
        }
        Ok(())
    }

    pub(super) fn add_unread(&mut self, name: String, reason: impl Into<String>) {
        self.unread.push(UnreadFile { name, reason: reason.into(), kind: UnreadKind::Skipped });
    }

    pub(super) fn add_downloading(&mut self, name: String, reason: &str) {
        self.unread.push(UnreadFile { name, reason: reason.to_owned(), kind: UnreadKind::Downloading });
    }

    pub(super) fn add_unopened(&mut self, name: String, error: &SourceError) {
        let why = if matches!(error, SourceError::Backup { .. }) {
            UnreadKind::Backup
        } else {
            UnreadKind::Damaged
        };
        self.unread.push(UnreadFile { name, reason: chain(error), kind: why });
    }

    /// Adds a file of the machine under `name`. If it is a ZIP, it is opened and its files are added under `name/`.
    pub(super) fn add_file(
        &mut self,
        name: String,
        path: PathBuf,
        limits: &Limits,
    ) -> Result<(), SourceError> {
        let opened = beneath::open_file(&self.base, &path).and_then(|mut file| {
            let mut head = Vec::new();
            (&mut file).take(HEAD).read_to_end(&mut head)?;
            let stat = rustix::fs::fstat(&file)?;
            Ok((HeadKind::of(&head), SourceStamp::of(&stat)))
        });
        let (kind, stamp) = match opened {
            Ok(opened) => opened,
            // The file may be fine: the same import will read it once other programs have closed some files.
            Err(source) if out_of_resources(&source) => return Err(SourceError::Read { path, source }),
            Err(error) => {
                self.add_unread(name, format!("it cannot be read: {error}"));
                return Ok(());
            }
        };
        if self.appended && path.file_name().is_some_and(names::has_lines) {
            return self.add_appended(name, path, stamp, limits);
        }
        if kind == HeadKind::DatabaseLog {
            // A program may append to it, and what it appends is of later transactions.
            return self.add(name, stamp.length(), FileLocation::Appended(path, stamp), limits);
        }
        if kind == HeadKind::Other || self.is_attachment(&path) {
            return self.add(name, stamp.length(), FileLocation::Plain(path, stamp), limits);
        }
        let unit = Arc::new(ContainingArchive { name: name.as_str().into(), nesting: 1 });
        let shared = SharedFile::reopened(self.open_files.file(&self.base, &path, stamp));
        match self.add_archive(&format!("{name}/"), shared, &path, limits, &unit) {
            Err(SourceError::Read { path, source }) if out_of_resources(&source) => {
                return Err(SourceError::Read { path, source });
            }
            Err(error) => {
                self.check_cancelled(&path)?;
                self.add_unopened(name, &error);
            }
            Ok(()) => {}
        }
        Ok(())
    }

    /// Adds the whole lines of a file to which a program appends.
    fn add_appended(
        &mut self,
        name: String,
        path: PathBuf,
        stamp: SourceStamp,
        limits: &Limits,
    ) -> Result<(), SourceError> {
        let opened = beneath::open_file(&self.base, &path);
        let whole = opened.and_then(|file| appended::whole_lines(&file, stamp.length()));
        let whole = match whole {
            // It has been cut since its length was read.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(SourceError::Changed { path });
            }
            whole => whole.map_err(SourceError::read(&path))?,
        };
        if whole < stamp.length() {
            let left = stamp.length() - whole;
            self.add_unread(
                name.clone(),
                format!("its last line is not complete; its {left} bytes are left out"),
            );
        }
        self.add(name, whole, FileLocation::Appended(path, stamp.shortened(whole)), limits)
    }

    /// Adds a file that is not a file of the machine.
    pub(super) fn add_stored(
        &mut self,
        name: String,
        file: SharedFile,
        limits: &Limits,
    ) -> Result<(), SourceError> {
        self.add(name, file.length(), FileLocation::Stored(file), limits)
    }

    /// Returns whether a file is among the attachments of a PAM bundle. Attachments are never opened: they are
    /// arbitrary files, and an office document is a ZIP too.
    fn is_attachment(&self, path: &Path) -> bool {
        let exists = |root: &Path, name: &str| beneath::stat(&self.base, &root.join(name)).is_ok();
        let of_bundle = |root: &Path| exists(root, STORE) || exists(root, MANIFEST);
        let mut folders = path.ancestors().skip(1).filter(|folder| folder.ends_with(ATTACHMENTS));
        folders.any(|folder| folder.parent().is_some_and(of_bundle))
    }

    /// Adds the files of the archive `unit` under `prefix`, and those of the archives in it that providers create.
    pub(super) fn add_archive(
        &mut self,
        prefix: &str,
        file: SharedFile,
        path: &Path,
        limits: &Limits,
        unit: &Arc<ContainingArchive>,
    ) -> Result<(), SourceError> {
        // Archives inside an encrypted one stay closed, because they would have to be unpacked to the disk.
        let unpacks = !file.is_encrypted();
        let opens = unit.nesting == 1 && unpacks;
        let (cancel, heartbeat) = (self.cancel.clone(), self.heartbeat.clone());
        let reader = CancellableReader { bytes: file.clone(), cancel, heartbeat };
        for line in archive::list(file, reader, path, limits)? {
            match line {
                ListedEntry::Unread { name, reason } => self.add_unread(format!("{prefix}{name}"), reason),
                ListedEntry::File { name, packed } => {
                    let (name, known) = (format!("{prefix}{name}"), opens && provider_archive(&name));
                    let database = unpacks && names::is_database(name.as_ref());
                    let (size, place) =
                        (packed.unpacked_bytes, FileLocation::Packed(packed, Arc::clone(unit)));
                    self.add(name.clone(), size, place, limits)?;
                    if known {
                        self.open_nested(&name, limits)?;
                    } else if database {
                        self.unpack_database(&name, limits)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Opens the archive `name`, which was added as a file of another archive; its files replace it.
    pub(super) fn open_nested(&mut self, name: &str, limits: &Limits) -> Result<(), SourceError> {
        let Some((_, FileLocation::Packed(packed, outer))) = self.locations.get(name).cloned() else {
            return Ok(());
        };
        self.locations.remove(name);
        let spilled = self.spill.append(&packed, limits, (&self.cancel, &self.heartbeat));
        self.check_cancelled(Path::new(name))?;
        let spilled = match spilled {
            Err(source) if out_of_resources(&source) => {
                return Err(SourceError::Read { path: PathBuf::from(name), source });
            }
            spilled => spilled,
        };
        let unit = Arc::new(ContainingArchive { name: name.into(), nesting: outer.nesting + 1 });
        let added = spilled
            .map_err(|error| unpack_failure(name, &error))
            .and_then(|file| self.add_archive(&format!("{name}/"), file, Path::new(name), limits, &unit));
        if let Err(error) = added {
            self.check_cancelled(Path::new(name))?;
            self.add_unopened(name.to_owned(), &error);
        }
        Ok(())
    }

    /// Unpacks a database in an archive. Compressed bytes can only be read from their start, which would take hours.
    fn unpack_database(&mut self, name: &str, limits: &Limits) -> Result<(), SourceError> {
        let Some((size, FileLocation::Packed(packed, unit))) = self.locations.get(name).cloned() else {
            return Ok(());
        };
        let unpacked = self.spill.append(&packed, limits, (&self.cancel, &self.heartbeat));
        self.check_cancelled(Path::new(name))?;
        match unpacked {
            Ok(file) => {
                self.locations.insert(name.to_owned(), (size, FileLocation::Unpacked(file, packed, unit)));
                Ok(())
            }
            Err(source) if out_of_resources(&source) => {
                Err(SourceError::Read { path: PathBuf::from(name), source })
            }
            // The importer finds what is wrong with it, if one reads it.
            Err(_) => Ok(()),
        }
    }

    fn add(
        &mut self,
        name: String,
        size: u64,
        place: FileLocation,
        limits: &Limits,
    ) -> Result<(), SourceError> {
        if self.locations.len() >= limits.entries {
            return Err(SourceError::TooManyFiles { path: PathBuf::from(name), limit: limits.entries });
        }
        self.locations.insert(name, (size, place));
        Ok(())
    }

    pub(super) fn finish(self, limits: &Limits) -> Bundle {
        let entries = self
            .locations
            .iter()
            .map(|(name, (size, _))| FileEntry { path: name.clone(), size: *size })
            .collect();
        let places = self.locations.into_iter().map(|(name, (_, place))| (name, place)).collect();
        Bundle {
            entries,
            locations: Arc::new(places),
            unread: self.unread,
            reported: self.reported,
            base: Arc::new(self.base),
            limits: limits.clone(),
            unpacked: UnpackedBytes::default(),
            spill: self.spill,
            faults: self.faults,
            cancel: self.cancel,
            heartbeat: self.heartbeat,
        }
    }
}

/// Returns the error for an inner archive that could not be unpacked.
fn unpack_failure(name: &str, error: &io::Error) -> SourceError {
    let sentence = fault::describe(name, Some(name), error);
    SourceError::NestedArchive {
        sentence: sentence.unwrap_or_else(|| format!("{} is not opened: {error}", shown(name.as_ref()))),
    }
}

/// What the first bytes of a file say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HeadKind {
    /// A ZIP that is opened.
    Zip,
    /// The log of a database of SQLite, with the newest changes.
    DatabaseLog,
    /// Anything else.
    Other,
}

impl HeadKind {
    fn of(head: &[u8]) -> Self {
        if has_zip_magic(&head[..head.len().min(4)]) && !is_zip_document(head) {
            Self::Zip
        } else if database::is_log(head) {
            Self::DatabaseLog
        } else {
            Self::Other
        }
    }
}

/// Returns whether these are the first bytes of a document that is stored as a ZIP: an office document or an e-book.
fn is_zip_document(head: &[u8]) -> bool {
    head.get(FIRST_NAME..).is_some_and(|name| ZIP_DOCUMENT_NAMES.iter().any(|first| name.starts_with(first)))
}

/// Returns whether a ZIP inside a ZIP is one that providers create: `conversations-000.zip`, `Conversations__1.zip`.
fn provider_archive(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    file.strip_suffix(".zip").is_some_and(|stem| {
        PROVIDER_ARCHIVES
            .iter()
            .any(|known| stem.strip_prefix(known).is_some_and(|rest| rest.starts_with(['-', '_'])))
    })
}
