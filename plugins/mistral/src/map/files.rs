//! Files of a message: uploads, generated files, and documents of the canvas.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Attachment, AttachmentKind, Leftover, Source, address,
    json::{Object, Value},
};

use super::object;
use crate::{layout::Folders, raw::without};

/// The host accepts 16 MiB of bytes in one attachment; a longer text stays in the metadata.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// An attachment, and the path of its file if the export has it.
type Attached<'a> = (Attachment<'a>, Option<&'a str>);

/// Adds the items of `files`; returns what remains of them as JSON text.
pub(super) fn files<'a>(
    items: &[Value<'a>],
    attachments: &mut Vec<Attached<'a>>,
    folders: &Folders<'a>,
    arena: &'a Arena,
) -> Option<String> {
    let mut remaining = Vec::with_capacity(items.len());
    for item in items {
        let fields = object(*item, arena);
        let Some(name) = fields.text("name") else {
            remaining.push(item.json());
            continue;
        };
        let kind = kind(fields.get("type").text(), name);
        attachments.push(attachment(name, kind, None, folders));
        remaining.push(without(&fields, &["name"]).into_json().unwrap_or("{}".into()));
    }
    remaining_json(&remaining)
}

/// Reads a chunk that refers to a generated file.
pub(super) fn reference<'a>(
    fields: &Object<'a>,
    folders: &Folders<'a>,
) -> (Option<Attached<'a>>, Leftover<'a>) {
    let Some(name) = fields.text("fileReference") else { return (None, without(fields, &[])) };
    let url = fields.text("fileUrl").filter(|url| address::is_uri(url));
    let mut taken = vec!["fileReference"];
    taken.extend(url.is_some().then_some("fileUrl"));
    let attached = attachment(name, AttachmentKind::of(None, Some(name)), url, folders);
    if attached.1.is_some() {
        // The bytes are in the export, so the address stays in the metadata.
        taken.retain(|key| *key != "fileUrl");
    }
    (Some(attached), without(fields, &taken))
}

/// Adds the items of `canvas`, whose text is the document; returns what remains of them as JSON text.
pub(super) fn canvases<'a>(
    items: &[Value<'a>],
    attachments: &mut Vec<Attached<'a>>,
    arena: &'a Arena,
) -> Option<String> {
    let mut remaining = Vec::with_capacity(items.len());
    for item in items {
        let fields = object(*item, arena);
        let Some(text) = fields.text("content").filter(|text| text.len() <= MAX_BYTES) else {
            remaining.push(item.json());
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
        // Only texts were taken above.
        taken.retain(|key| fields.get(key).text().is_some());
        remaining.push(without(&fields, &taken).into_json().unwrap_or("{}".into()));
    }
    remaining_json(&remaining)
}

/// The attachment of a file by its name.
fn attachment<'a>(
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

fn kind(type_name: Option<&str>, name: &str) -> AttachmentKind {
    match type_name {
        Some("image") => AttachmentKind::Image,
        Some("audio") => AttachmentKind::Audio,
        Some("video") => AttachmentKind::Video,
        Some("text" | "document") => AttachmentKind::Document,
        _ => AttachmentKind::of(None, Some(name)),
    }
}

/// The JSON text of a list; none if all items are empty objects.
fn remaining_json(items: &[Cow<'_, str>]) -> Option<String> {
    items.iter().any(|item| item != "{}").then(|| format!("[{}]", items.join(",")))
}
