//! Files of a message. Pictures may be inside the export; of other files it has names and ids.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Attachment, AttachmentKind, JsonError, Leftover, Parser, Source,
    address::{is_uri, unsigned},
    json::{Object, Value},
};

use crate::base64::decode;

/// Files of one message that become attachments; the metadata keeps all of them.
const MAX_FILES: usize = 1_000;
const KEY: &str = "files";

/// The attachments of a list of files. What remains of the list is kept in `rest`.
pub(super) fn read<'a>(list: Value<'a>, rest: &mut Leftover<'a>, arena: &'a Arena) -> Vec<Attachment<'a>> {
    let (mut attachments, mut remaining) = (Vec::new(), Vec::new());
    let mut read = |raw: &'a str| -> Result<bool, JsonError> {
        let mut json = Parser::new(raw, arena);
        if !json.enter_array()? {
            return Ok(false);
        }
        while json.item()? {
            let (attachment, rest) = read_file(&mut json, attachments.len() < MAX_FILES)?;
            attachments.extend(attachment);
            remaining.push(rest);
        }
        Ok(true)
    };
    // The value was checked when it was read.
    let listed = list.raw().is_some_and(|raw| read(raw).unwrap_or_default());
    if !listed && list != Value::Null {
        rest.add_json(KEY, &list.json());
    } else if remaining.iter().any(|rest| rest != "{}") {
        rest.add_json(KEY, &format!("[{}]", remaining.join(",")));
    }
    attachments
}

/// A picture in a list of parts: `{"image_url": {"url": …}}` or `{"image_url": …}`.
pub(super) fn picture_of_part<'a>(part: &Object<'a>, arena: &'a Arena) -> Option<Attachment<'a>> {
    let inside = part.object("image_url", arena);
    let address = part.text("image_url").or_else(|| inside.text("url"))?;
    let picture = picture(address)?;
    let plain = |(key, _): (&str, Value<'_>)| matches!(key, "type" | "image_url");
    (part.fields().all(plain) && inside.fields().count() <= 1).then_some(picture)
}

/// The attachment of a file, and its other fields as JSON text.
fn read_file<'a>(
    json: &mut Parser<'a>,
    room: bool,
) -> Result<(Option<Attachment<'a>>, Cow<'a, str>), JsonError> {
    if !room || !json.enter_object()? {
        return Ok((None, Value::read(json)?.json()));
    }
    let mut it = Attachment::default();
    let (mut kind, mut inside, mut rest) = (None, Object::default(), Leftover::default());
    let (mut picture, mut stored) = (None, None);
    while let Some(key) = json.key()? {
        match key {
            "id" => it.provider_id = rest.nonempty_text(key, json)?.map(Cow::Borrowed),
            "name" => it.name = rest.nonempty_text(key, json)?.map(Cow::Borrowed),
            "size" => it.size_bytes = rest.count(key, json)?,
            "content_type" => it.mime_type = rest.nonempty_text(key, json)?.map(Cow::Borrowed),
            "url" => {
                let url = rest.nonempty_text(key, json)?;
                picture = url.and_then(self::picture);
                if let Some(url) = url.filter(|_| picture.is_none()) {
                    rest.add_text(key, url);
                    it.source = address(url).map(Source::Uri);
                    stored = stored_id(url);
                }
            }
            "type" => kind = rest.keep_and_read(key, json)?.text(),
            "file" => {
                let raw = rest.keep_and_read(key, json)?.raw();
                inside = raw.map(|raw| Object::parse(raw, json.arena())).unwrap_or_default();
            }
            _ => rest.keep(key, json)?,
        }
    }
    add_stored(&mut it, &inside, json.arena());
    it.provider_id = it.provider_id.or(stored.map(Cow::Borrowed));
    if let Some(picture) = picture {
        (it.source, it.mime_type) = (picture.source, it.mime_type.or(picture.mime_type));
    }
    it.kind = match kind {
        Some("image") => AttachmentKind::Image,
        _ => AttachmentKind::of(it.mime_type.as_deref(), it.name.as_deref()),
    };
    let known = it.name.is_some() || it.provider_id.is_some() || it.source.is_some() || kind == Some("image");
    if let (false, Some(size)) = (known, it.size_bytes) {
        rest.add_json("size", &size.to_string());
    }
    Ok((known.then_some(it), rest.into_json().unwrap_or("{}".into())))
}

/// Adds what the program's own record of the file says; the record itself is kept.
fn add_stored<'a>(it: &mut Attachment<'a>, file: &Object<'a>, arena: &'a Arena) {
    let meta = file.object("meta", arena);
    let name = file.text("filename").or_else(|| meta.text("name"));
    it.name = it.name.take().or(name.map(Cow::Borrowed));
    it.provider_id = it.provider_id.take().or(file.text("id").map(Cow::Borrowed));
    it.mime_type = it.mime_type.take().or(meta.text("content_type").map(Cow::Borrowed));
    it.size_bytes = it.size_bytes.or(meta.get("size").as_u64());
}

/// The id of a file in the program's own address of it: `/api/v1/files/<id>/content`, or the id alone.
fn stored_id(url: &str) -> Option<&str> {
    let path = url.split_once("/api/v1/files/").map_or(url, |(_, path)| path);
    let id = path.strip_suffix("/content").unwrap_or(path);
    (!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')).then_some(id)
}

/// A picture at an address that has the picture inside, or that is a page.
fn picture(url: &str) -> Option<Attachment<'_>> {
    let of_bytes = decode(url).map(|(mime, bytes)| Attachment {
        kind: AttachmentKind::Image,
        mime_type: Some(mime.into()),
        source: Some(Source::Bytes(bytes.into())),
        ..Attachment::default()
    });
    of_bytes.or_else(|| {
        let source = Source::Uri(address(url)?);
        Some(Attachment { kind: AttachmentKind::Image, source: Some(source), ..Attachment::default() })
    })
}

/// An address of the web; those of the program itself mean nothing outside it.
fn address(url: &str) -> Option<Cow<'_, str>> {
    let web = (url.starts_with("https://") || url.starts_with("http://")) && is_uri(url);
    web.then(|| unsigned(url))
}
