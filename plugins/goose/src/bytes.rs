//! Decodes files that are written as Base64.

use satchel_importer::{Attachment, AttachmentKind, Source, bytes::from_base64};

/// The attachment that `data` describes. The flag says whether its bytes cannot be decoded, or are too many.
/// They are only decoded if `decode` says so.
pub(crate) fn attachment<'a>(
    mime: Option<&'a str>,
    name: Option<&'a str>,
    data: Option<&'a str>,
    decode: bool,
) -> (Attachment<'a>, bool) {
    let bytes = data.filter(|_| decode).map(decoded);
    let unreadable = bytes == Some(None);
    let bytes = bytes.flatten();
    let attachment = Attachment {
        kind: AttachmentKind::of(mime, name),
        name: name.map(Into::into),
        mime_type: mime.map(Into::into),
        size_bytes: bytes.as_ref().map(|bytes| bytes.len() as u64),
        source: bytes.map(|bytes| Source::Bytes(bytes.into())),
        ..Attachment::default()
    };
    (attachment, unreadable)
}

fn decoded(data: &str) -> Option<Vec<u8>> {
    // The interface of the desktop application once put whole data addresses here.
    let data = data
        .strip_prefix("data:")
        .and_then(|address| address.split_once(";base64,"))
        .map_or(data, |(_, data)| data);
    from_base64(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_and_addresses_with_it_are_decoded() {
        assert_eq!(decoded("R0lG"), Some(b"GIF".to_vec()));
        assert_eq!(decoded("data:image/gif;base64,R0lG\n"), Some(b"GIF".to_vec()));
        for other in ["", "?!", "data:image/gif;base64,", "R0l"] {
            assert_eq!(decoded(other), None, "{other}");
        }
    }

    #[test]
    fn bytes_are_only_decoded_when_they_are_needed() {
        let (file, unreadable) = attachment(Some("image/gif"), None, Some("?!"), false);
        assert!(file.source.is_none() && !unreadable);
        assert!(attachment(Some("image/gif"), None, Some("?!"), true).1);
    }
}
