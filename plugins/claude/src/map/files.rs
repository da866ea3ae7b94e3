//! Attachments: texts that the provider took out of files, and files of which only the name is in the export.

use std::borrow::Cow;

use satchel_importer::{Attachment, AttachmentKind, Source};

use crate::raw::{Block, File};

/// The host takes 16 MiB of bytes with one attachment; a longer text stays in the metadata.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// What Claude calls the text of an earlier answer to which a person replies.
const QUOTE: &str = "excerpt_from_previous_claude_message";

/// A text as the bytes of an attachment; none if it is empty or too long.
pub(super) fn bytes(text: &str) -> Option<&[u8]> {
    (!text.is_empty() && text.len() <= MAX_BYTES).then_some(text.as_bytes())
}

/// Bytes that are here.
pub(super) fn source(bytes: &[u8]) -> Source<'_> {
    Source::Bytes(bytes.into())
}

/// The files of one message.
pub(super) struct Files<'a> {
    pub(super) attachments: Vec<Attachment<'a>>,
    /// What the message quotes.
    pub(super) quotes: Vec<&'a str>,
    /// What is left of each item of `attachments`, as JSON text; none if nothing is.
    pub(super) kept_attached: Option<Cow<'a, str>>,
    /// The same of `files`.
    pub(super) kept_named: Option<Cow<'a, str>>,
}

/// Joins the two lists of a message and the files that stood in its content, each file once.
pub(super) fn attachments<'a>(
    attached: Vec<File<'a>>,
    named: Vec<File<'a>>,
    shown: Vec<Attachment<'a>>,
) -> Files<'a> {
    let mut attachments = Vec::with_capacity(attached.len() + named.len() + shown.len());
    let (mut kept_attached, mut kept_named) = (Vec::new(), Vec::new());
    let quoted = attached.iter().filter(|file| file.name.is_some_and(|name| name.starts_with(QUOTE)));
    let quotes = quoted.filter_map(|file| file.extracted.filter(|text| !text.is_empty())).collect();
    for file in attached {
        let (attachment, rest) = with_text(file);
        attachments.extend(attachment);
        kept_attached.push(rest);
    }
    for file in named {
        let (attachment, rest) = by_name(file);
        if let Some(attachment) = attachment {
            join(&mut attachments, attachment);
        }
        kept_named.push(rest);
    }
    for attachment in shown {
        join(&mut attachments, attachment);
    }
    Files { attachments, quotes, kept_attached: list(&kept_attached), kept_named: list(&kept_named) }
}

/// A block that shows a file.
pub(super) fn from_block<'a>(block: &mut Block<'a>) -> Attachment<'a> {
    let name = block.title.take();
    let kind = match block.kind {
        "image" => AttachmentKind::Image,
        _ => AttachmentKind::Document,
    };
    Attachment {
        kind,
        name: name.map(Cow::Borrowed),
        provider_id: block.file_uuid.take().map(Cow::Borrowed),
        ..Attachment::default()
    }
}

/// An item of `attachments`: its bytes are the text that the provider took out.
fn with_text(mut file: File<'_>) -> (Option<Attachment<'_>>, Cow<'_, str>) {
    if let Some(odd) = file.odd {
        return (None, odd.into());
    }
    let text = file.extracted.filter(|text| !text.is_empty());
    let bytes = text.and_then(bytes);
    if let (Some(text), None) = (text, bytes) {
        file.rest.add_text("extracted_content", text);
    }
    let mut attachment = Attachment {
        kind: AttachmentKind::Document,
        name: file.name.map(Cow::Borrowed),
        size_bytes: file.size,
        provider_id: file.uuid.map(Cow::Borrowed),
        ..Attachment::default()
    };
    let mime = file.kind.filter(|kind| kind.contains('/'));
    if let Some(bytes) = bytes {
        // Type and size are those of the bytes that are here, not of the file they were taken from.
        let length = bytes.len() as u64;
        if let Some(size) = file.size.filter(|size| *size != length) {
            file.rest.add_json("file_size", &size.to_string());
        }
        attachment.size_bytes = Some(length);
        attachment.mime_type =
            Some(mime.filter(|mime| mime.starts_with("text/")).unwrap_or("text/plain").into());
        attachment.source = Some(source(bytes));
    } else {
        attachment.mime_type = mime.map(Cow::Borrowed);
    }
    if let Some(kind) = file.kind.filter(|kind| attachment.mime_type.as_deref() != Some(*kind)) {
        file.rest.add_text("file_type", kind);
    }
    (Some(attachment), file.rest.into_json().unwrap_or("{}".into()))
}

/// An item of `files`: its bytes are not in the export.
fn by_name(mut file: File<'_>) -> (Option<Attachment<'_>>, Cow<'_, str>) {
    if let Some(odd) = file.odd {
        return (None, odd.into());
    }
    if let Some(kind) = file.kind {
        file.rest.add_text("file_type", kind);
    }
    if let Some(text) = file.extracted {
        file.rest.add_text("extracted_content", text);
    }
    let attachment = Attachment {
        kind: AttachmentKind::of(None, file.name),
        name: file.name.map(Cow::Borrowed),
        size_bytes: file.size,
        provider_id: file.uuid.map(Cow::Borrowed),
        ..Attachment::default()
    };
    let known = file.name.is_some() || file.uuid.is_some();
    (known.then_some(attachment), file.rest.into_json().unwrap_or("{}".into()))
}

/// Adds `attachment` unless the same file is there; then only what was not known of it.
fn join<'a>(attachments: &mut Vec<Attachment<'a>>, attachment: Attachment<'a>) {
    let same = |known: &&mut Attachment<'a>| match (&known.provider_id, &attachment.provider_id) {
        (Some(known), Some(id)) => known == id,
        _ => known.name.is_some() && known.name == attachment.name,
    };
    match attachments.iter_mut().find(same) {
        Some(known) => {
            known.name = known.name.take().or(attachment.name);
            known.provider_id = known.provider_id.take().or(attachment.provider_id);
            known.size_bytes = known.size_bytes.or(attachment.size_bytes);
        }
        None => attachments.push(attachment),
    }
}

/// The JSON text of a list; none if nothing is left of any item.
fn list<'a>(items: &[Cow<'a, str>]) -> Option<Cow<'a, str>> {
    items.iter().any(|item| item != "{}").then(|| format!("[{}]", items.join(",")).into())
}
