//! Finds files of MemU by their heads.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{Bundle, Detection, Element, ErrorKind, ImportError, JsonArray, sqlite};

use crate::{
    database::{self, Contents},
    generation::{self, Generation},
    layout,
    record_type::{Classification, RecordKeys, RecordType},
};

/// Bytes of a head that are read first, and if those do not decide. The host allows 16 MiB.
const HEAD_BYTES: [usize; 2] = [256 * 1024, 4 * 1024 * 1024];
/// Elements of a head that are looked at.
const MAX_ELEMENTS: u64 = 32;

/// One file of an export.
#[derive(Clone, Debug)]
pub(crate) struct ExportFile {
    pub(crate) path: String,
    /// The types of the records in its head.
    pub(crate) types: BTreeSet<RecordType>,
    /// The records are in members of a root object.
    pub(crate) wrapped: bool,
}

/// The files of one export.
#[derive(Debug, Default)]
pub(crate) struct Export {
    pub(crate) files: Vec<ExportFile>,
    certain: bool,
    users: BTreeSet<String>,
}

/// Every export among the files, for the host. Exports of other generations are included: the run says why they are
/// refused.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let found = survey(bundle)?;
    let read = found.exports.into_iter().map(Export::into_detection);
    let databases = found.databases.into_iter().map(|path| Detection {
        format: generation::DATABASE.to_owned(),
        confidence: 95,
        files: sqlite::files(bundle, &path),
        account: None,
    });
    let refused = found.refused.into_iter().map(|((_, generation), files)| Detection {
        format: generation.format().to_owned(),
        confidence: 80,
        files,
        account: None,
    });
    Ok(read.chain(databases).chain(refused).collect())
}

/// The exports among the files.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Ordered by folder.
    pub(crate) exports: Vec<Export>,
    /// Databases of version 1.
    pub(crate) databases: Vec<String>,
    /// Files of other generations, by their export's folder.
    refused: BTreeMap<(String, Generation), Vec<String>>,
}

/// Classifies every file by its head.
pub(crate) fn survey(bundle: &Bundle) -> Result<Survey, ImportError> {
    let mut exports: BTreeMap<&str, Export> = BTreeMap::new();
    let mut survey = Survey::default();
    for entry in bundle.entries().iter().filter(|entry| layout::may_hold_records(&entry.path)) {
        let root = layout::root(&entry.path);
        let head = read_head(bundle, &entry.path)?;
        match head.other {
            _ if !head.types.is_empty() => exports.entry(root).or_default().add(&entry.path, head),
            Some(generation) => {
                survey.refused.entry((root.to_owned(), generation)).or_default().push(entry.path.clone());
            }
            None => {}
        }
    }
    for entry in bundle.entries().iter().filter(|entry| layout::may_be_database(&entry.path)) {
        match database::sample(bundle, &entry.path)? {
            Some(Contents::Items) => survey.databases.push(entry.path.clone()),
            Some(Contents::RecallFiles) => {
                let refused = (layout::root(&entry.path).to_owned(), Generation::RecallFiles);
                survey.refused.entry(refused).or_default().extend(sqlite::files(bundle, &entry.path));
            }
            None => {}
        }
    }
    survey.exports = exports.into_values().collect();
    Ok(survey)
}

impl Export {
    fn add(&mut self, path: &str, head: Head) {
        self.certain |= head.certain;
        self.users.extend(head.users);
        self.files.push(ExportFile { path: path.to_owned(), types: head.types, wrapped: head.wrapped });
    }

    fn into_detection(self) -> Detection {
        let account = if self.users.len() == 1 { self.users.into_iter().next() } else { None };
        Detection {
            format: generation::LISTS.to_owned(),
            confidence: if self.certain { 95 } else { 60 },
            files: self.files.into_iter().map(|file| file.path).collect(),
            account,
        }
    }
}

/// What a file's head shows.
#[derive(Debug, Default)]
struct Head {
    types: BTreeSet<RecordType>,
    certain: bool,
    other: Option<Generation>,
    users: BTreeSet<String>,
    wrapped: bool,
    /// Members of the root object that may hold records.
    members: Vec<&'static str>,
}

impl Head {
    fn decided(&self) -> bool {
        !self.types.is_empty() || self.other.is_some()
    }

    fn sample(
        &mut self,
        bundle: &Bundle,
        path: &str,
        pointer: &str,
        bytes: usize,
    ) -> Result<(), ImportError> {
        let sampled = JsonArray::new(path).pointer(pointer).sample(bundle, bytes, |element| {
            self.add(&element, pointer.is_empty());
            element.index() + 1 < MAX_ELEMENTS
        });
        match sampled {
            // A malformed file is not ours.
            Err(error) if matches!(error.kind, ErrorKind::Io | ErrorKind::Cancelled) => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn add(&mut self, element: &Element<'_>, root: bool) {
        let keys = RecordKeys::read(&mut element.parser());
        match keys.classify() {
            Classification::Record { kind, certain } => {
                self.types.insert(kind);
                self.certain |= certain;
                self.users.extend(keys.user().map(ToOwned::to_owned));
            }
            Classification::Other(generation) => self.other = self.other.or(Some(generation)),
            Classification::Unknown if root && element.index() == 0 => {
                self.members = layout::record_members().filter(|name| keys.keys().contains(name)).collect();
            }
            Classification::Unknown => {}
        }
    }
}

/// Reads growing heads of a file until one decides.
fn read_head(bundle: &Bundle, path: &str) -> Result<Head, ImportError> {
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    let mut head = Head::default();
    for bytes in HEAD_BYTES {
        head = Head::default();
        head.sample(bundle, path, "", bytes)?;
        if !head.decided() {
            for member in std::mem::take(&mut head.members) {
                head.sample(bundle, path, &format!("/{member}"), bytes)?;
            }
            head.wrapped = head.decided();
        }
        if head.decided() || size <= bytes as u64 {
            break;
        }
    }
    Ok(head)
}
