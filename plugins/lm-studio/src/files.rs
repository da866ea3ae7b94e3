//! The files of the person that messages name.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use satchel_importer::{
    Arena, Attachment, AttachmentKind, Bundle, Fields, JsonError, Parser, Source, json::Value, sniff,
    warnings::shortened,
};

use crate::{fields::FIELD_READER, layout};

/// Bytes of a file that describes a file of the person: it has a small picture of it.
const MAX_DESCRIPTION: u64 = 4 * 1024 * 1024;
/// Bytes of a name. No file system has longer ones.
const MAX_NAME: usize = 1024;
/// Files that are missing and counted.
pub(crate) const MAX_MISSING: usize = 10_000;
/// The types of files that are MIME types; the others are words of the program.
const MIME_TYPES: [&str; 2] = ["text/plain", "application/pdf"];

/// A file of the person.
#[derive(Clone, Debug, Default)]
struct UserFile {
    /// Its name before the program copied it.
    original: Option<String>,
    mime: Option<&'static str>,
}

/// Finds the files of one chat.
pub(crate) struct Files<'b> {
    bundle: &'b Bundle,
    root: Option<&'b str>,
    /// The paths that messages have named.
    used: &'b RefCell<BTreeSet<String>>,
    /// The files that were found: a chat can name one many times.
    known: RefCell<BTreeMap<String, UserFile>>,
    /// The files that are not there, and the descriptions that cannot be read.
    missing: RefCell<BTreeSet<String>>,
    unreadable: RefCell<BTreeSet<String>>,
}

impl<'b> Files<'b> {
    pub(crate) fn new(
        bundle: &'b Bundle,
        root: Option<&'b str>,
        used: &'b RefCell<BTreeSet<String>>,
    ) -> Self {
        let (known, missing, unreadable) = (RefCell::default(), RefCell::default(), RefCell::default());
        Self { bundle, root, used, known, missing, unreadable }
    }

    /// How many files are missing, and their first name.
    pub(crate) fn missing(&self) -> Option<(usize, String)> {
        let missing = self.missing.borrow();
        missing.first().map(|first| (missing.len(), first.clone()))
    }

    /// The descriptions that cannot be read.
    pub(crate) fn unreadable(&self) -> BTreeSet<String> {
        self.unreadable.take()
    }

    /// The file with this identifier and its path; none if it is not there.
    fn find(&self, identifier: &str) -> Option<(String, UserFile)> {
        let path = self.root.map(|root| layout::file(root, identifier));
        let Some(path) = path.filter(|path| self.bundle.entry(path).is_some()) else {
            let mut missing = self.missing.borrow_mut();
            if missing.len() < MAX_MISSING {
                missing.insert(shortened(identifier));
            }
            return None;
        };
        let mut known = self.known.borrow_mut();
        let found = known.entry(path.clone()).or_insert_with(|| self.read(&path));
        Some((path, found.clone()))
    }

    fn read(&self, path: &str) -> UserFile {
        self.used.borrow_mut().insert(path.to_owned());
        UserFile { original: self.original_name(path), mime: sniff::mime(self.bundle, path) }
    }

    /// The name that the person gave to the file at `path`.
    fn original_name(&self, path: &str) -> Option<String> {
        let description = layout::description(path);
        self.bundle.entry(&description)?;
        self.used.borrow_mut().insert(description.clone());
        let bytes = self.bundle.read(&description, MAX_DESCRIPTION).ok();
        let name = bytes.and_then(|bytes| name_in(&bytes).ok());
        let name = name.filter(|name| name.as_ref().is_none_or(|name| name.len() <= MAX_NAME));
        if name.is_none() {
            self.unreadable.borrow_mut().insert(description);
        }
        name.flatten()
    }
}

fn name_in(bytes: &[u8]) -> Result<Option<String>, JsonError> {
    let (text, arena) = (String::from_utf8_lossy(bytes), Arena::new());
    let fields = FIELD_READER.read(&mut Parser::new(&text, &arena))?;
    Ok(fields.get("originalName").nonempty_text().map(ToOwned::to_owned))
}

/// Takes a file out of the fields of a part. The first pass has no `files`, because only the second one needs them.
pub(crate) fn take<'a>(part: &mut Fields<'a>, files: Option<&Files<'_>>) -> Option<Attachment<'a>> {
    let identifier = part.take_text("fileIdentifier").or_else(|| part.take_text("identifier"));
    let name = part.take_text("name");
    identifier.or(name)?;
    let kind = part.get("fileType").nonempty_text();
    let size = part.get("sizeBytes").as_u64();
    if size.is_some() {
        part.take("sizeBytes");
    }
    let found = files.zip(identifier).and_then(|(files, identifier)| files.find(identifier));
    let (path, file) = found.unzip();
    let UserFile { original, mime: sniffed } = file.unwrap_or_default();
    if name.is_some() && original.is_some() && original.as_deref() != name {
        // The name beside the file counts, so this one has no other place.
        part.push("name", name.map_or(Value::Null, Value::Text));
    }
    let mime = kind.filter(|kind| MIME_TYPES.contains(kind)).or(sniffed);
    let shown = original.as_deref().or(name).or(identifier);
    Some(Attachment {
        kind: if kind == Some("image") { AttachmentKind::Image } else { AttachmentKind::of(mime, shown) },
        name: original.map(Into::into).or_else(|| name.or(identifier).map(Into::into)),
        mime_type: mime.map(Into::into),
        size_bytes: size,
        provider_id: identifier.map(Into::into),
        source: path.map(|path| Source::Path(path.into())),
        ..Attachment::default()
    })
}
