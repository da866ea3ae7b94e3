//! Attachments: texts that the provider extracted from files, and files of which the export holds only the name.

use std::borrow::Cow;

use satchel_importer::{Attachment, AttachmentKind, Source};

use crate::raw::{Block, File};

/// The host accepts 16 MiB of bytes in one attachment; a longer text stays in the metadata.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Start of the name of an attachment that quotes an earlier answer.
const QUOTE: &str = "excerpt_from_previous_claude_message";

/// The text as bytes of an attachment; none if it is empty or too long.
pub(super) fn bytes(text: &str) -> Option<&[u8]> {
    (!text.is_empty() && text.len() <= MAX_BYTES).then_some(text.as_bytes())
}

/// Bytes that the export holds.
pub(super) fn source(bytes: &[u8]) -> Source<'_> {
    Source::Bytes(bytes.into())
}

/// The files of one message.
pub(super) struct Files<'a> {
    pub(super) attachments: Vec<Attachment<'a>>,
    /// Quotes of earlier answers.
    pub(super) quotes: Vec<&'a str>,
    /// JSON text of the remaining fields of each item of `attachments`; none if there are none.
    pub(super) attachments_rest: Option<Cow<'a, str>>,
    /// The same for `files`.
    pub(super) files_rest: Option<Cow<'a, str>>,
}

/// Joins the `attachments`, the `files` and the files in the content of a message, each file once.
pub(super) fn join<'a>(
    attached: Vec<File<'a>>,
    named: Vec<File<'a>>,
    in_content: Vec<Attachment<'a>>,
) -> Files<'a> {
    let mut attachments = Vec::with_capacity(attached.len() + named.len() + in_content.len());
    let (mut attachments_rest, mut files_rest) = (Vec::new(), Vec::new());
    let quoted = attached.iter().filter(|file| file.name.is_some_and(|name| name.starts_with(QUOTE)));
    let quotes = quoted.filter_map(|file| file.extracted.filter(|text| !text.is_empty())).collect();
    for file in attached {
        let (attachment, rest) = with_text(file);
        attachments.extend(attachment);
        attachments_rest.push(rest);
    }
    for file in named {
        let (attachment, rest) = by_name(file);
        if let Some(attachment) = attachment {
            add(&mut attachments, attachment);
        }
        files_rest.push(rest);
    }
    for attachment in in_content {
        add(&mut attachments, attachment);
    }
    let (attachments_rest, files_rest) = (list(&attachments_rest), list(&files_rest));
    Files { attachments, quotes, attachments_rest, files_rest }
}

/// The file of a block of type `image` or `document`.
pub(super) fn from_block<'a>(block: &mut Block<'a>) -> Attachment<'a> {
    let kind = match block.kind {
        "image" => AttachmentKind::Image,
        _ => AttachmentKind::Document,
    };
    Attachment {
        kind,
        name: block.title.take().map(Cow::Borrowed),
        provider_id: block.file_uuid.take().map(Cow::Borrowed),
        ..Attachment::default()
    }
}

/// An item of `attachments`: its bytes are the text that the provider extracted.
fn with_text(mut file: File<'_>) -> (Option<Attachment<'_>>, Cow<'_, str>) {
    if let Some(invalid) = file.invalid {
        return (None, invalid.into());
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
        // Type and size are those of the extracted text, not of the original file.
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
    if let Some(invalid) = file.invalid {
        return (None, invalid.into());
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

/// Adds `attachment`; if the same file is there, adds only its missing fields.
fn add<'a>(attachments: &mut Vec<Attachment<'a>>, attachment: Attachment<'a>) {
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

/// The JSON text of a list; none if every item is empty.
fn list<'a>(items: &[Cow<'a, str>]) -> Option<Cow<'a, str>> {
    items.iter().any(|item| item != "{}").then(|| format!("[{}]", items.join(",")).into())
}
