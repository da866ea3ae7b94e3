//! The pictures, recordings and documents of messages.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    collections::BTreeSet,
};

use satchel_importer::{
    Attachment, AttachmentKind, Bundle, Fields, JsonError, Source,
    address::{is_uri, unsigned},
    bytes::{from_base64, from_data_address},
    names, sniff,
    warnings::shortened,
};

/// Bytes of an address that is stored as one.
const MAX_ADDRESS: usize = 4096;
/// Files that are missing and counted.
pub(crate) const MAX_MISSING: usize = 10_000;
/// Where the list of documents in a prompt begins and ends.
const LIST: (&str, &str) = ("[ATTACHED_FILES]", "[/ATTACHED_FILES]");

/// Finds the files of one thread. The first pass has none.
pub(crate) struct Files<'b> {
    bundle: &'b Bundle,
    /// The folder of the thread, with its last `/`.
    folder: &'b str,
    /// The paths that messages have named.
    pub(crate) used: RefCell<BTreeSet<String>>,
    /// The files that are not there.
    pub(crate) missing: RefCell<BTreeSet<String>>,
    /// How many files cannot be decoded.
    pub(crate) unreadable: Cell<usize>,
}

impl<'b> Files<'b> {
    pub(crate) fn new(bundle: &'b Bundle, folder: &'b str) -> Self {
        Self {
            bundle,
            folder,
            used: RefCell::default(),
            missing: RefCell::default(),
            unreadable: Cell::default(),
        }
    }

    /// The attachment for an address: the bytes in it, a file of the thread, or a page.
    fn open<'a>(&self, address: &'a str, name: Option<&'a str>) -> Attachment<'a> {
        let mut file = Attachment { name: name.map(Cow::Borrowed), ..Attachment::default() };
        if let Some(described) = address.strip_prefix("data:") {
            let mime = described.split([';', ',']).next().filter(|mime| mime.contains('/'));
            file.mime_type = mime.map(Cow::Borrowed);
            file.source = from_data_address(address).map(|bytes| Source::Bytes(Cow::Owned(bytes)));
            self.unreadable.set(self.unreadable.get() + usize::from(file.source.is_none()));
        } else if is_uri(address) && !address.starts_with("file:") {
            let short = address.len() <= MAX_ADDRESS;
            self.unreadable.set(self.unreadable.get() + usize::from(!short));
            file.source = short.then(|| Source::Uri(unsigned(address)));
        } else {
            self.find(address, &mut file);
        }
        let shown = file.name.as_deref().or(Some(address).filter(|_| !address.starts_with("data:")));
        file.kind = AttachmentKind::of(file.mime_type.as_deref(), shown);
        file
    }

    /// Finds a file that is named by its path in the thread.
    fn find<'a>(&self, path: &'a str, file: &mut Attachment<'a>) {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        file.name = file.name.take().or(Some(Cow::Borrowed(name)));
        let own = format!("{}files/{name}", self.folder);
        if self.bundle.entry(&own).is_some() {
            file.mime_type = sniff::mime(self.bundle, &own).map(Cow::Borrowed);
            self.used.borrow_mut().insert(own.clone());
            file.source = Some(Source::Path(own.into()));
        } else {
            let mut missing = self.missing.borrow_mut();
            if missing.len() < MAX_MISSING {
                missing.insert(shortened(name));
            }
        }
    }
}

/// The file at an address. The first pass needs no more than that there is one.
pub(crate) fn at<'a>(address: &'a str, name: Option<&'a str>, files: Option<&Files<'_>>) -> Attachment<'a> {
    files.map(|files| files.open(address, name)).unwrap_or_default()
}

/// Takes a recording out of a part.
pub(crate) fn take_recording<'a>(
    part: &mut Fields<'a>,
    files: Option<&Files<'_>>,
) -> Result<Option<Attachment<'a>>, JsonError> {
    let Some(mut audio) = part.take_object("input_audio")? else { return Ok(None) };
    let data = audio.take_text("data");
    let mut file = Attachment { kind: AttachmentKind::Audio, ..Attachment::default() };
    if let (Some(files), Some(data)) = (files, data) {
        let bytes = from_base64(data);
        files.unreadable.set(files.unreadable.get() + usize::from(bytes.is_none()));
        file.source = bytes.map(|bytes| Source::Bytes(Cow::Owned(bytes)));
    }
    let format = audio.get("format").nonempty_text();
    file.mime_type = format.map(|format| Cow::Owned(format!("audio/{format}")));
    let rest = audio.into_json();
    part.push_json("input_audio", &rest);
    Ok(Some(file))
}

/// The documents that the program lists at the end of a prompt. Their bytes are in its index.
pub(crate) fn listed(text: &str) -> Vec<Attachment<'_>> {
    let Some((_, behind)) = text.split_once(LIST.0) else { return Vec::new() };
    let Some((list, _)) = behind.split_once(LIST.1) else { return Vec::new() };
    let line = |line| {
        let rest = str::trim(line).strip_prefix("- file_id: ")?;
        let (id, named) = rest.split_once(", name: ")?;
        // A name may have commas; what follows it does not.
        let end = [", type: ", ", size: ", ", chunks: ", ", mode: "]
            .iter()
            .filter_map(|key| named.rfind(key))
            .min();
        let name = named.get(..end.unwrap_or(named.len()))?;
        Some(Attachment {
            kind: AttachmentKind::of(None, Some(names::split(name).1)),
            name: Some(Cow::Borrowed(name)),
            provider_id: Some(Cow::Borrowed(id)),
            ..Attachment::default()
        })
    };
    list.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn documents_in_a_prompt_are_found() {
        let text = "Read it.\n\n[ATTACHED_FILES]\n- file_id: d-1, name: a, b.pdf, type: pdf, size: 9, mode: inline\n\
            - file_id: d-2, name: c.txt\n[/ATTACHED_FILES]";
        let names: Vec<_> = listed(text).into_iter().filter_map(|file| file.name).collect();
        assert_eq!(names, ["a, b.pdf", "c.txt"]);
        for other in
            ["Read it.", "[ATTACHED_FILES]\n- file_id: x, name: y", "[ATTACHED_FILES]\nx\n[/ATTACHED_FILES]"]
        {
            assert!(listed(other).is_empty(), "{other}");
        }
    }
}
