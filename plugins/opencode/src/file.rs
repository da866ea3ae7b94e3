//! Turns a part with a file into an attachment.

use std::borrow::Cow;

use satchel_importer::{
    Attachment, AttachmentKind, Fields, Source,
    address::{is_uri, unsigned},
    bytes::from_data_address,
};

/// Bytes of an address that is stored as one.
const MAX_ADDRESS: usize = 4096;

/// The attachment of a file, or none if the part says nothing about one.
pub(crate) struct ReadFile<'a> {
    pub(crate) attachment: Option<Attachment<'a>>,
    /// Whether its bytes cannot be decoded.
    pub(crate) unreadable: bool,
}

/// Takes what describes the file out of `part`. The bytes are only decoded if `decode_bytes` says so.
pub(crate) fn take<'a>(part: &mut Fields<'a>, decode_bytes: bool) -> ReadFile<'a> {
    let name = part.take_text("filename");
    // The first versions had another name for it.
    let mime = part.take_text("mime").or_else(|| part.take_text("mediaType"));
    let mut read = ReadFile { attachment: None, unreadable: false };
    let url = part.get("url").nonempty_text();
    let source = match url {
        Some(url) if url.starts_with("data:") => {
            part.take("url");
            let bytes = decode_bytes.then(|| from_data_address(url));
            read.unreadable = bytes == Some(None);
            bytes.flatten().map(|bytes| Source::Bytes(Cow::Owned(bytes)))
        }
        Some(url) if is_uri(url) && url.len() <= MAX_ADDRESS => {
            part.take("url");
            Some(Source::Uri(unsigned(url)))
        }
        _ => None,
    };
    if name.is_some() || mime.is_some() || url.is_some() {
        read.attachment = Some(Attachment {
            kind: AttachmentKind::of(mime, name),
            name: name.map(Cow::Borrowed),
            mime_type: mime.map(Cow::Borrowed),
            source,
            ..Attachment::default()
        });
    }
    read
}
