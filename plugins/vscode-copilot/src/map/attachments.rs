//! Files and pictures: those that the person attached, and those in results of tools.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Attachment, AttachmentKind, Fields, JsonError, Parser, Source,
    address::{is_uri, unsigned},
    bytes::{MAX_FILE, from_base64},
    json::{Object, Value},
};

use super::{Draft, Exchange, Warning};
use crate::{fields::FIELD_READER, uri};

/// Bytes of an address.
const MAX_ADDRESS: usize = 4096;
/// Files of one message that become attachments; the metadata keeps all of them.
const MAX_FILES: usize = 1_000;
/// Reports a picture that is lost.
const UNREADABLE: &str = "a picture in it cannot be decoded or is larger than 16 MiB; it is kept as it is";

/// Takes the context of a request. Each entry with an address or with bytes becomes an attachment; the entries are kept without the bytes.
pub(super) fn take<'a>(
    fields: &mut Fields<'a>,
    draft: &mut Draft<'a>,
    found: &mut Exchange<'a>,
) -> Result<(), JsonError> {
    const KEY: &str = "variableData";
    let Some(mut data) = fields.take_object(KEY)? else { return Ok(()) };
    let mut kept = Vec::new();
    for entry in data.take_array("variables")?.unwrap_or_default() {
        let Some(mut entry_fields) = FIELD_READER.of(entry, fields.arena())? else {
            kept.push(entry.json());
            continue;
        };
        if draft.message.attachments.len() < MAX_FILES {
            draft.message.attachments.extend(attachment(&mut entry_fields, found));
        }
        kept.extend(entry_fields.into_rest(&[]).into_json());
    }
    let mut rest = data.into_rest(&[]);
    if let Some(field) = rest.unread() {
        draft.rest.mark_unread(field);
    }
    if !kept.is_empty() {
        rest.add_json("variables", &format!("[{}]", kept.join(",")));
    }
    if let Some(json) = rest.into_json() {
        draft.rest.add_json(KEY, &json);
    }
    Ok(())
}

/// The attachment of an entry.
fn attachment<'a>(entry: &mut Fields<'a>, found: &mut Exchange<'a>) -> Option<Attachment<'a>> {
    let arena = entry.arena();
    let name = entry.get("name").nonempty_text();
    let mime = entry.get("mimeType").nonempty_text();
    let value = entry.get("value");
    if entry.get("kind") == Value::Text("image") {
        let address = value.text().filter(|text| is_uri(text) && text.len() <= MAX_ADDRESS);
        let bytes = if address.is_some() { None } else { bytes_of(value, arena) };
        if bytes.is_some() {
            entry.take("value");
        } else if address.is_none() && uri::of(value, arena).is_none() {
            found.warnings.push(Warning::Each(UNREADABLE));
        }
        let source = bytes.map(|bytes| Source::Bytes(bytes.into())).or_else(|| source(value, arena));
        return Some(Attachment { kind: AttachmentKind::Image, ..named(name, mime, source) });
    }
    let source = source(value, arena).or_else(|| source(entry.get("uri"), arena))?;
    Some(Attachment { kind: AttachmentKind::of(mime, name), ..named(name, mime, Some(source)) })
}

fn named<'a>(name: Option<&'a str>, mime: Option<&'a str>, source: Option<Source<'a>>) -> Attachment<'a> {
    let size_bytes = match &source {
        Some(Source::Bytes(bytes)) => Some(bytes.len() as u64),
        Some(Source::Path(_) | Source::Uri(_)) | None => None,
    };
    Attachment {
        name: name.map(Cow::Borrowed),
        mime_type: mime.map(Cow::Borrowed),
        size_bytes,
        source,
        ..Attachment::default()
    }
}

/// The address in a value.
fn source<'a>(value: Value<'a>, arena: &'a Arena) -> Option<Source<'a>> {
    let address = uri::of(value, arena).filter(|address| is_uri(address) && address.len() <= MAX_ADDRESS)?;
    Some(Source::Uri(Cow::Owned(unsigned(&address).into_owned())))
}

/// A picture in the result of a tool.
pub(super) fn of_base64<'a>(text: &str, mime: Option<&'a str>) -> Option<Attachment<'a>> {
    let source = Source::Bytes(from_base64(text)?.into());
    Some(Attachment { kind: AttachmentKind::of(mime, None), ..named(None, mime, Some(source)) })
}

/// A picture whose bytes are in `value`, in any form.
pub(super) fn of_bytes<'a>(
    value: Value<'a>,
    mime: Option<&'a str>,
    arena: &'a Arena,
) -> Option<Attachment<'a>> {
    let mime = mime.filter(|mime| mime.starts_with("image/"))?;
    let source = Source::Bytes(bytes_of(value, arena)?.into());
    Some(Attachment { kind: AttachmentKind::Image, ..named(None, Some(mime), Some(source)) })
}

/// A picture at an address, or in it.
pub(super) fn of_address(address: &str) -> Option<Attachment<'_>> {
    let data = address.strip_prefix("data:").and_then(|data| data.split_once(','));
    let (mime, source) = match data {
        Some((kind, bytes)) => (kind.split(';').next(), Source::Bytes(from_base64(bytes)?.into())),
        None if is_uri(address) && address.len() <= MAX_ADDRESS => {
            (None, Source::Uri(Cow::Owned(unsigned(address).into_owned())))
        }
        None => return None,
    };
    let mime = mime.filter(|mime| !mime.is_empty());
    Some(Attachment { kind: AttachmentKind::Image, ..named(None, mime, Some(source)) })
}

/// Bytes as VS Code writes them: base64 in an object or a data address, a list of numbers, or an object with one member for each byte.
fn bytes_of<'a>(value: Value<'a>, arena: &'a Arena) -> Option<Vec<u8>> {
    let raw = match value {
        Value::Text(text) => {
            let data = text.strip_prefix("data:").and_then(|data| data.split_once(','));
            return from_base64(data.map_or(text, |(_, data)| data));
        }
        Value::Raw(raw) => raw,
        Value::Null => return None,
    };
    let numbers = numbers(raw, arena).ok().flatten();
    numbers.or_else(|| {
        let fields = Object::parse(raw, arena);
        match (fields.get("$base64"), fields.get("data")) {
            (Value::Text(base64), _) => from_base64(base64),
            (_, Value::Raw(list)) => self::numbers(list, arena).ok().flatten(),
            (_, Value::Null | Value::Text(_)) => None,
        }
    })
}

/// The bytes in a list of numbers, or in an object whose members are numbers in order. Pictures have a hundred thousand.
fn numbers<'a>(raw: &'a str, arena: &'a Arena) -> Result<Option<Vec<u8>>, JsonError> {
    let (mut json, mut bytes) = (Parser::new(raw, arena), Vec::new());
    let list = json.enter_array()?;
    if !list && !json.enter_object()? {
        return Ok(None);
    }
    while bytes.len() < MAX_FILE {
        let more = if list { json.item()?.then_some("") } else { json.key()? };
        let Some(key) = more else { return Ok(Some(bytes).filter(|bytes| !bytes.is_empty())) };
        let in_order = list || key.parse() == Ok(bytes.len());
        match json.raw_value()?.parse() {
            Ok(byte) if in_order => bytes.push(byte),
            Ok(_) | Err(_) => return Ok(None),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_in_every_form() {
        let arena = Arena::new();
        for value in [
            Value::Raw(r#"{"$base64":"AAEC"}"#),
            Value::Raw("[0,1,2]"),
            Value::Raw(r#"{"0":0,"1":1,"2":2}"#),
            Value::Raw(r#"{"type":"Buffer","data":[0,1,2]}"#),
            Value::Text("data:image/png;base64,AAEC"),
        ] {
            assert_eq!(bytes_of(value, &arena), Some(vec![0, 1, 2]), "{value:?}");
        }
        for value in [Value::Raw("[300]"), Value::Raw("{}"), Value::Raw(r#"{"1":0,"0":1}"#), Value::Text("?")]
        {
            assert_eq!(bytes_of(value, &arena), None, "{value:?}");
        }
    }
}
