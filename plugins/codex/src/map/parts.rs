//! The parts of a content: texts and images.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Attachment, AttachmentKind, Fields, JsonError, Leftover, Source, address, bytes::from_base64,
    json::Value,
};

use super::{UnplacedMessage, Warning};
use crate::{fields::FIELD_READER, turn::digest};

/// Bytes of an address.
const MAX_ADDRESS: usize = 4096;
/// What encrypted texts begin with. Others are plain, whatever the type of their part says.
const ENCRYPTED: &str = "gAAAA";
/// Fields with the address of a file.
const ADDRESSES: [(&str, AttachmentKind); 2] =
    [("image_url", AttachmentKind::Image), ("audio_url", AttachmentKind::Audio)];
/// Reports a file that is lost.
const UNREADABLE: &str = "a file in it cannot be decoded or is larger than 16 MiB; it is left out";
/// Fields of parts that are known and kept.
const KEPT: [&str; 4] = ["annotations", "detail", "logprobs", "text_elements"];
/// Parts that only name something. They are kept, and are no reason for a message.
const NAMES: [&str; 3] = ["local_image", "mention", "skill"];

/// What a content holds.
#[derive(Default)]
pub(super) struct Parts<'a> {
    pub(super) texts: Vec<Cow<'a, str>>,
    pub(super) attachments: Vec<Attachment<'a>>,
    /// Digests of the addresses of the files.
    files: Vec<u64>,
    /// The number of parts in the file.
    pub(super) count: usize,
    /// What remains of the parts, as JSON text.
    remaining: Vec<Cow<'a, str>>,
    /// The parts that are not known.
    unknown: Vec<Value<'a>>,
    unreadable: bool,
    decode: bool,
}

impl<'a> Parts<'a> {
    /// Reads a text, a list of parts, or one part.
    pub(super) fn read(value: Value<'a>, arena: &'a Arena, decode: bool) -> Result<Self, JsonError> {
        let mut parts = Self { decode, ..Self::default() };
        match value {
            Value::Raw(raw) if raw.starts_with('[') => {
                for item in FIELD_READER.item_fields(raw, arena)? {
                    match item.fields? {
                        Some(fields) => parts.add_object(fields, item.value)?,
                        None => parts.add(item.value, arena)?,
                    }
                }
            }
            value => parts.add(value, arena)?,
        }
        Ok(parts)
    }

    /// Moves everything to the message; what remains is kept under `key`.
    pub(super) fn move_to(self, unplaced: &mut UnplacedMessage<'a>, key: &'a str) {
        unplaced.texts.extend(self.texts);
        unplaced.message.attachments.extend(self.attachments);
        unplaced.files.extend(self.files);
        if !self.remaining.is_empty() {
            unplaced.rest.add_json(key, &format!("[{}]", self.remaining.join(",")));
        }
        unplaced.has_unknown_parts |= !self.unknown.is_empty();
        self.unknown.iter().for_each(|value| unplaced.rest.note_unknown(key, *value));
        if self.unreadable {
            unplaced.warning = Some(Warning::Each(UNREADABLE));
        }
    }

    fn add(&mut self, part: Value<'a>, arena: &'a Arena) -> Result<(), JsonError> {
        match part {
            Value::Null => {}
            Value::Text(text) => self.add_text(text),
            Value::Raw(raw) if raw.starts_with('{') => {
                self.add_object(FIELD_READER.parse(raw, arena)?, part)?;
            }
            Value::Raw(_) => self.keep_unknown(part),
        }
        Ok(())
    }

    fn add_object(&mut self, mut fields: Fields<'a>, part: Value<'a>) -> Result<(), JsonError> {
        let kind = fields.get("type").text().unwrap_or_default();
        let text = match fields.get("text").text() {
            Some(_) => fields.take("text").text(),
            None if kind == "encrypted_content" => {
                fields.take("encrypted_content").text().filter(|text| !text.starts_with(ENCRYPTED))
            }
            None if NAMES.contains(&kind) => {
                self.count += 1;
                self.remaining.push(part.json());
                return Ok(());
            }
            None if self.add_file(&mut fields)? => None,
            None => {
                self.keep_unknown(part);
                return Ok(());
            }
        };
        if let Some(text) = text {
            self.add_text(text);
        }
        self.keep_rest(fields);
        Ok(())
    }

    fn add_text(&mut self, text: &'a str) {
        self.count += 1;
        if !text.is_empty() {
            self.texts.push(Cow::Borrowed(text));
        }
    }

    /// Adds an image or a recording by its address; false if the part has none.
    fn add_file(&mut self, fields: &mut Fields<'a>) -> Result<bool, JsonError> {
        let Some((key, kind)) = ADDRESSES.into_iter().find(|(key, _)| fields.get(key) != Value::Null) else {
            return Ok(false);
        };
        let nested = fields.get(key).raw().map(|raw| FIELD_READER.parse(raw, fields.arena())).transpose()?;
        let url = nested.as_ref().map_or(fields.get(key), |nested| nested.get("url")).nonempty_text();
        let Some(attachment) = url.and_then(|url| self.file(url, kind)) else { return Ok(false) };
        self.count += 1;
        self.attachments.push(attachment);
        fields.take(key);
        Ok(true)
    }

    /// The file at an address; none if it is not an address.
    pub(super) fn file(&mut self, url: &'a str, kind: AttachmentKind) -> Option<Attachment<'a>> {
        let mut attachment = Attachment { kind, ..Attachment::default() };
        match url.strip_prefix("data:") {
            Some(data) => {
                let (head, bytes) = data.split_once(',').unwrap_or((data, ""));
                let mime = head.split(';').next().filter(|mime| mime.contains('/'));
                attachment.mime_type = mime.map(Cow::Borrowed);
                self.set_bytes(&mut attachment, bytes);
            }
            None if url.len() <= MAX_ADDRESS && address::is_uri(url) => {
                attachment.source = Some(Source::Uri(address::unsigned(url)));
            }
            None => return None,
        }
        self.files.push(digest(url));
        Some(attachment)
    }

    /// Decodes the bytes of an image.
    pub(super) fn set_bytes(&mut self, attachment: &mut Attachment<'a>, base64: &str) {
        if !self.decode {
            return;
        }
        match from_base64(base64) {
            Some(bytes) => {
                attachment.size_bytes = Some(bytes.len() as u64);
                attachment.source = Some(Source::Bytes(bytes.into()));
            }
            None => self.unreadable = true,
        }
    }

    fn keep_unknown(&mut self, part: Value<'a>) {
        self.count += 1;
        self.remaining.push(part.json());
        self.unknown.push(part);
    }

    /// Keeps the fields of a part beside its text and its type.
    fn keep_rest(&mut self, mut fields: Fields<'a>) {
        fields.take("type");
        let mut rest = Leftover::default();
        for (key, value) in fields.iter() {
            rest.add_value(key, value);
            if !KEPT.contains(&key) {
                self.unknown.push(value);
            }
        }
        self.remaining.extend(rest.into_json());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(raw: &str, check: impl Fn(&Parts<'_>)) {
        let arena = Arena::new();
        let value = Value::Raw(arena.alloc_str(raw));
        check(&Parts::read(value, &arena, true).expect("it is JSON"));
    }

    #[test]
    fn images_are_decoded_or_named_by_their_address() {
        let raw = r#"[{"type":"input_image","image_url":"data:image/png;base64,AAEC","detail":"high"},
            {"type":"input_image","image_url":{"url":"https://example.org/a.png?sig=x"}}]"#;
        read(raw, |parts| {
            let bytes = &parts.attachments[0];
            let uri = &parts.attachments[1];
            assert_eq!(bytes.source, Some(Source::Bytes(vec![0, 1, 2].into())));
            assert_eq!(bytes.mime_type.as_deref(), Some("image/png"));
            assert_eq!(uri.source, Some(Source::Uri("https://example.org/a.png".into())));
            assert_eq!(parts.remaining, [r#"{"detail":"high"}"#]);
        });
    }

    #[test]
    fn images_that_are_not_base64_are_reported() {
        read(
            r#"[{"type":"input_image","image_url":"data:image/png;base64,AA Script completed"}]"#,
            |parts| {
                assert!(parts.unreadable && parts.attachments.len() == 1);
            },
        );
    }

    #[test]
    fn encrypted_texts_are_left_out_and_plain_ones_are_read() {
        let raw = r#"[{"type":"encrypted_content","encrypted_content":"gAAAAAbc"},
            {"type":"encrypted_content","encrypted_content":"run the tests"}]"#;
        read(raw, |parts| assert_eq!(parts.texts, ["run the tests"]));
    }
}
