//! Files of a message: those that the person gave, those that the assistant made, and documents written together.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Attachment, AttachmentKind, Leftover, Source, address,
    json::{Object, Value},
};

use super::{list, object};
use crate::{layout::Folders, raw::without};

/// The host takes 16 MiB of bytes with one attachment; a longer text stays in the metadata.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// An attachment, and the path of its file if the export has it.
type Attached<'a> = (Attachment<'a>, Option<&'a str>);

/// Adds the items of `files`; gives what is left of them as JSON text.
pub(super) fn files<'a>(
    items: &[Value<'a>],
    attachments: &mut Vec<Attached<'a>>,
    folders: &Folders<'a>,
    arena: &'a Arena,
) -> Option<String> {
    let mut kept = Vec::with_capacity(items.len());
    for item in items {
        let fields = object(*item, arena);
        let Some(name) = fields.text("name") else {
            kept.push(item.json());
            continue;
        };
        let word = fields.get("type").text();
        attachments.push(named(name, kind(word, name), None, folders));
        kept.push(without(&fields, &["name"]).into_json().unwrap_or("{}".into()));
    }
    telling(&kept)
}

/// A chunk that names a file which the assistant made.
pub(super) fn referenced<'a>(
    fields: &Object<'a>,
    folders: &Folders<'a>,
) -> (Option<Attached<'a>>, Leftover<'a>) {
    let Some(name) = fields.text("fileReference") else { return (None, without(fields, &[])) };
    let url = fields.text("fileUrl").filter(|url| address::is_uri(url));
    let mut taken = vec!["fileReference"];
    taken.extend(url.is_some().then_some("fileUrl"));
    let attached = named(name, AttachmentKind::of(None, Some(name)), url, folders);
    if attached.1.is_some() {
        // The bytes are here; where else they were is told beside.
        taken.retain(|key| *key != "fileUrl");
    }
    (Some(attached), without(fields, &taken))
}

/// Adds the items of `canvas`, whose text is the document; gives what is left of them as JSON text.
pub(super) fn canvases<'a>(
    items: &[Value<'a>],
    attachments: &mut Vec<Attached<'a>>,
    arena: &'a Arena,
) -> Option<String> {
    let mut kept = Vec::with_capacity(items.len());
    for item in items {
        let fields = object(*item, arena);
        let Some(text) = fields.text("content").filter(|text| text.len() <= MAX_BYTES) else {
            kept.push(item.json());
            continue;
        };
        let (title, kind) = (fields.text("title"), fields.text("type"));
        let mime = kind.filter(|kind| kind.starts_with("text/"));
        let attachment = Attachment {
            kind: AttachmentKind::Document,
            name: title.map(Cow::Borrowed),
            mime_type: Some(mime.unwrap_or("text/plain").into()),
            size_bytes: Some(text.len() as u64),
            provider_id: fields.text("id").map(Cow::Borrowed),
            source: Some(Source::Bytes(text.as_bytes().into())),
            ..Attachment::default()
        };
        attachments.push((attachment, None));
        let mut taken = vec!["content", "title", "id"];
        taken.extend(mime.is_some().then_some("type"));
        // Fields that are no texts were not taken above.
        taken.retain(|key| fields.get(key).text().is_some());
        kept.push(without(&fields, &taken).into_json().unwrap_or("{}".into()));
    }
    telling(&kept)
}

fn named<'a>(
    name: &'a str,
    kind: AttachmentKind,
    url: Option<&'a str>,
    folders: &Folders<'a>,
) -> Attached<'a> {
    let entry = folders.find(name);
    let path = entry.map(|entry| entry.path.as_str());
    let source =
        path.map(|path| Source::Path(path.into())).or(url.map(|url| Source::Uri(address::unsigned(url))));
    let attachment = Attachment {
        kind,
        name: Some(name.into()),
        size_bytes: entry.map(|entry| entry.size),
        source,
        ..Attachment::default()
    };
    (attachment, path)
}

fn kind(word: Option<&str>, name: &str) -> AttachmentKind {
    match word {
        Some("image") => AttachmentKind::Image,
        Some("audio") => AttachmentKind::Audio,
        Some("video") => AttachmentKind::Video,
        Some("text" | "document") => AttachmentKind::Document,
        _ => AttachmentKind::of(None, Some(name)),
    }
}

/// The list of what is left; none if nothing is left of any item.
fn telling(kept: &[Cow<'_, str>]) -> Option<String> {
    kept.iter().any(|item| item != "{}").then(|| list(kept)).flatten()
}
