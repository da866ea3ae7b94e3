//! Files of a message. The export has their names and ids; pictures and recordings may be inside it.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Attachment, AttachmentKind, Leftover, Source,
    address::{is_uri, unsigned},
    bytes::from_base64,
    json::{Value, items},
};

use super::{
    memory::{self, Change},
    object::Parts,
    parts::Pieces,
};
use crate::base64;

/// Files of one message that become attachments; the metadata keeps all of them.
const MAX_FILES: usize = 1_000;
/// Fields of files that are kept and may contain natural language.
pub(super) const KEPT: [&str; 14] = [
    "caption",
    "context",
    "error",
    "file_search",
    "filepath",
    "llmDeliveryPath",
    "memory",
    "message",
    "metadata",
    "preview",
    "prompt",
    "text",
    "ui_resources",
    "web_search",
];

/// Adds the files and sources in the list `key` and keeps what remains of it in `rest`. Returns the changes of memories in the list.
pub(super) fn read<'a>(
    key: &'a str,
    list: Value<'a>,
    pieces: &mut Pieces<'a>,
    rest: &mut Leftover<'a>,
    arena: &'a Arena,
) -> Vec<Change<'a>> {
    let Some(raw) = list.raw().filter(|raw| raw.starts_with('[')) else {
        if !matches!(list, Value::Null | Value::Text("")) {
            rest.note_unknown(key, list);
            rest.add_json(key, &list.json());
        }
        return Vec::new();
    };
    let mut changes = Vec::new();
    let mut left: Vec<Cow<'a, str>> = Vec::new();
    for item in items(raw, arena) {
        match Parts::of(item, arena) {
            Some(mut file) => {
                changes.extend(memory::read(&file, arena));
                pieces.citations.read(&file, arena);
                if pieces.attachments.len() < MAX_FILES {
                    pieces.attachments.extend(attachment(&mut file));
                }
                left.push(file.left(&KEPT, rest).unwrap_or("{}".into()));
            }
            None => left.push(item.json()),
        }
    }
    if left.iter().any(|left| left != "{}") {
        rest.add_json(key, &format!("[{}]", left.join(",")));
    }
    changes
}

/// The attachment that an object describes, if it describes a file.
pub(super) fn attachment<'a>(file: &mut Parts<'a>) -> Option<Attachment<'a>> {
    let path = file.get("filepath").nonempty_text();
    let names = ["file_id", "filename"].iter().any(|key| file.get(key).nonempty_text().is_some());
    if !names && path.is_none() {
        return None;
    }
    let mut it = Attachment {
        provider_id: file.text("file_id").map(Cow::Borrowed),
        name: file.text("filename").map(Cow::Borrowed),
        size_bytes: file.count("bytes"),
        ..Attachment::default()
    };
    // Of the sources that a tool found, the type is the name of the tool.
    if file.get("type").text().is_some_and(|mime| mime.contains('/')) {
        it.mime_type = file.text("type").map(Cow::Borrowed);
    }
    if let Some(found) = path.and_then(at_address) {
        it.source = found.source;
        it.mime_type = it.mime_type.or(found.mime_type);
        if let Some(Source::Bytes(_)) = it.source {
            file.take("filepath");
        }
    }
    it.kind = AttachmentKind::of(it.mime_type.as_deref(), it.name.as_deref().or(path));
    Some(it)
}

/// The file that is inside a `data:` address, or that is a page. Addresses on the person's own server mean nothing elsewhere.
pub(super) fn at_address(address: &str) -> Option<Attachment<'_>> {
    if let Some((mime, bytes)) = base64::of_address(address) {
        return Some(Attachment {
            kind: AttachmentKind::of(Some(mime), None),
            mime_type: Some(mime.into()),
            source: Some(Source::Bytes(bytes.into())),
            ..Attachment::default()
        });
    }
    let web = ["https://", "http://"].iter().any(|scheme| address.starts_with(scheme)) && is_uri(address);
    web.then(|| Attachment {
        kind: AttachmentKind::of(None, Some(address)),
        source: Some(Source::Uri(unsigned(address))),
        ..Attachment::default()
    })
}

/// A recording inside a message.
pub(super) fn recording<'a>(data: &str, format: Option<&'a str>) -> Option<Attachment<'a>> {
    let bytes = from_base64(data)?;
    let plain = format.filter(|format| format.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    Some(Attachment {
        kind: AttachmentKind::Audio,
        mime_type: plain.map(|format| format!("audio/{format}").into()),
        source: Some(Source::Bytes(bytes.into())),
        ..Attachment::default()
    })
}
