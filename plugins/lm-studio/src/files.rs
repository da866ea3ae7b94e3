//! The files of the person that messages name.

use std::{cell::RefCell, collections::BTreeSet};

use satchel_importer::{Arena, Attachment, AttachmentKind, Bundle, JsonError, Source, json::Value, sniff};

use crate::{fields::Fields, layout};

/// Bytes of a file that describes a file of the person: it has a small picture of it.
const MAX_DESCRIPTION: u64 = 4 * 1024 * 1024;
/// The types of files that are MIME types; the others are words of the program.
const MIME_TYPES: [&str; 2] = ["text/plain", "application/pdf"];

/// Finds the files of the chats in one folder.
pub(crate) struct Files<'b> {
    bundle: &'b Bundle,
    root: Option<&'b str>,
    /// The paths that messages have named.
    used: &'b RefCell<BTreeSet<String>>,
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
        Self { bundle, root, used, missing: RefCell::default(), unreadable: RefCell::default() }
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

    /// The path of a file with this identifier, if it is there.
    fn find(&self, identifier: &str) -> Option<String> {
        let path = layout::file(self.root?, identifier);
        self.bundle.entry(&path)?;
        Some(path)
    }

    /// The name that the person gave to the file at `path`.
    fn original_name(&self, path: &str) -> Option<String> {
        let description = layout::description(path);
        self.bundle.entry(&description)?;
        self.used.borrow_mut().insert(description.clone());
        let name =
            self.bundle.read(&description, MAX_DESCRIPTION).ok().and_then(|bytes| name_in(&bytes).ok());
        if name.is_none() {
            self.unreadable.borrow_mut().insert(description);
        }
        name.flatten()
    }
}

fn name_in(bytes: &[u8]) -> Result<Option<String>, JsonError> {
    let (text, arena) = (String::from_utf8_lossy(bytes), Arena::new());
    let fields = Fields::parse(&text, &arena)?;
    Ok(fields.get("originalName").nonempty_text().map(ToOwned::to_owned))
}

/// Takes a file out of the fields of a part. The first pass has no `files`, because only the second one needs them.
pub(crate) fn take<'a>(part: &mut Fields<'a>, files: Option<&Files<'_>>) -> Option<Attachment<'a>> {
    let identifier = part.take_text("fileIdentifier").or_else(|| part.take_text("identifier"));
    let name = part.take_text("name");
    let kind = part.get("fileType").nonempty_text();
    let size = part.get("sizeBytes").as_u64();
    if size.is_some() {
        part.take("sizeBytes");
    }
    identifier.or(name)?;
    let path = files.zip(identifier).and_then(|(files, identifier)| {
        let found = files.find(identifier);
        match &found {
            Some(path) => files.used.borrow_mut().insert(path.clone()),
            None => files.missing.borrow_mut().insert(identifier.to_owned()),
        };
        found.map(|path| (files, path))
    });
    let original = path.as_ref().and_then(|(files, path)| files.original_name(path));
    if name.is_some() && original.is_some() && original.as_deref() != name {
        // The name beside the file counts, so this one has no other place.
        part.push("name", name.map_or(Value::Null, Value::Text));
    }
    let sniffed = path.as_ref().and_then(|(files, path)| sniff::mime(files.bundle, path));
    let mime = kind.filter(|kind| MIME_TYPES.contains(kind)).or(sniffed);
    let shown = original.as_deref().or(name).or(identifier);
    Some(Attachment {
        kind: if kind == Some("image") { AttachmentKind::Image } else { AttachmentKind::of(mime, shown) },
        name: original.map(Into::into).or_else(|| name.or(identifier).map(Into::into)),
        mime_type: mime.map(Into::into),
        size_bytes: size,
        provider_id: identifier.map(Into::into),
        source: path.map(|(_, path)| Source::Path(path.into())),
        ..Attachment::default()
    })
}
