//! Finds what MemU wrote among files, by what their heads hold.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{Bundle, Detection, Element, ErrorKind, ImportError, JsonArray};

use crate::{
    generation::{self, Generation},
    layout,
    shape::{Seen, Shape, Sight},
};

/// Bytes of a head that are looked at first, and where those do not decide. The host allows 16 MiB.
const HEADS: [usize; 2] = [256 * 1024, 4 * 1024 * 1024];
/// Elements after which a head has said what it can.
const MAX_ELEMENTS: u64 = 32;

/// One file of an export.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) path: String,
    /// The shapes of the records that its head shows.
    pub(crate) shapes: BTreeSet<Shape>,
    /// The records stand below members of a root object.
    pub(crate) wrapped: bool,
}

/// The files of one export.
#[derive(Debug, Default)]
pub(crate) struct Export {
    pub(crate) files: Vec<File>,
    sure: bool,
    users: BTreeSet<String>,
}

/// Every export among the files, for the host. Those of other generations are named too: the run says why they are not
/// read.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let found = survey(bundle)?;
    let read = found.exports.into_iter().map(Export::into_detection);
    let refused = found.refused.into_iter().map(|((_, generation), files)| Detection {
        format: generation.format().to_owned(),
        confidence: 80,
        files,
        account: None,
    });
    Ok(read.chain(refused).collect())
}

/// What stands among the files.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Ordered by folder.
    pub(crate) exports: Vec<Export>,
    /// Files of other generations, by their export's folder.
    refused: BTreeMap<(String, Generation), Vec<String>>,
}

/// Looks at every file.
pub(crate) fn survey(bundle: &Bundle) -> Result<Survey, ImportError> {
    let mut exports: BTreeMap<&str, Export> = BTreeMap::new();
    let mut survey = Survey::default();
    for entry in bundle.entries().iter().filter(|entry| layout::readable(&entry.path)) {
        let root = layout::root(&entry.path);
        let head = look(bundle, &entry.path)?;
        match head.other {
            _ if !head.shapes.is_empty() => exports.entry(root).or_default().add(&entry.path, head),
            Some(generation) => {
                survey.refused.entry((root.to_owned(), generation)).or_default().push(entry.path.clone());
            }
            None => {}
        }
    }
    survey.exports = exports.into_values().collect();
    Ok(survey)
}

impl Export {
    fn add(&mut self, path: &str, head: Head) {
        self.sure |= head.sure;
        self.users.extend(head.users);
        self.files.push(File { path: path.to_owned(), shapes: head.shapes, wrapped: head.wrapped });
    }

    fn into_detection(self) -> Detection {
        let account = if self.users.len() == 1 { self.users.into_iter().next() } else { None };
        Detection {
            format: generation::LISTS.to_owned(),
            confidence: if self.sure { 95 } else { 60 },
            files: self.files.into_iter().map(|file| file.path).collect(),
            account,
        }
    }
}

/// What a file's head shows.
#[derive(Debug, Default)]
struct Head {
    shapes: BTreeSet<Shape>,
    sure: bool,
    other: Option<Generation>,
    users: BTreeSet<String>,
    wrapped: bool,
    /// Members of the root object below which records may stand.
    tables: Vec<&'static str>,
}

impl Head {
    fn says_something(&self) -> bool {
        !self.shapes.is_empty() || self.other.is_some()
    }
}

/// Looks at growing heads of a file until they say something.
fn look(bundle: &Bundle, path: &str) -> Result<Head, ImportError> {
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    let mut head = Head::default();
    for bytes in HEADS {
        head = Head::default();
        head.sample(bundle, path, "", bytes)?;
        if !head.says_something() {
            for table in std::mem::take(&mut head.tables) {
                head.sample(bundle, path, &format!("/{table}"), bytes)?;
            }
            head.wrapped = head.says_something();
        }
        if head.says_something() || size <= bytes as u64 {
            break;
        }
    }
    Ok(head)
}

impl Head {
    fn sample(
        &mut self,
        bundle: &Bundle,
        path: &str,
        pointer: &str,
        bytes: usize,
    ) -> Result<(), ImportError> {
        let sampled = JsonArray::new(path).pointer(pointer).sample(bundle, bytes, |element| {
            self.see(&element, pointer.is_empty());
            element.index() + 1 < MAX_ELEMENTS
        });
        match sampled {
            // Whatever it holds, it is nothing that we know.
            Err(error) if matches!(error.kind, ErrorKind::Io | ErrorKind::Cancelled) => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn see(&mut self, element: &Element<'_>, root: bool) {
        let seen = Seen::read(&mut element.parser());
        match seen.sight() {
            Sight::Record { shape, sure } => {
                self.shapes.insert(shape);
                self.sure |= sure;
                self.users.extend(seen.user().map(ToOwned::to_owned));
            }
            Sight::Other(generation) => self.other = self.other.or(Some(generation)),
            Sight::Nothing if root && element.index() == 0 => {
                self.tables = layout::telling().filter(|name| seen.keys().contains(name)).collect();
            }
            Sight::Nothing => {}
        }
    }
}
