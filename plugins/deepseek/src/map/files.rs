//! Files that came with a message; the export has their names, not their bytes.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Attachment, AttachmentKind, JsonError, Leftover, Parser,
    json::{Kind, Value},
};

use crate::raw::written;

/// Files of one message that become attachments; all of them are kept.
const MAX_FILES: usize = 5_000;

/// The attachments of a list of files, and what is left of the list as JSON text; none if nothing is.
pub(super) fn read<'a>(list: Value<'a>, arena: &'a Arena) -> (Vec<Attachment<'a>>, Option<Cow<'a, str>>) {
    let Some(raw) = list.raw() else {
        return (Vec::new(), (list != Value::Null).then(|| written(list)));
    };
    let (mut attachments, mut kept) = (Vec::new(), Vec::new());
    let mut json = Parser::new(raw, arena);
    let mut read = || -> Result<bool, JsonError> {
        if !json.enter_array()? {
            return Ok(false);
        }
        while json.item()? {
            let (attachment, rest) = file(&mut json, attachments.len() < MAX_FILES)?;
            attachments.extend(attachment);
            kept.push(rest);
        }
        Ok(true)
    };
    // The value was walked when it was taken, so there is no error.
    if !read().unwrap_or_default() {
        return (Vec::new(), Some(raw.into()));
    }
    let left = kept.iter().any(|rest| rest != "{}");
    (attachments, left.then(|| format!("[{}]", kept.join(",")).into()))
}

fn file<'a>(json: &mut Parser<'a>, room: bool) -> Result<(Option<Attachment<'a>>, Cow<'a, str>), JsonError> {
    if json.kind()? != Kind::Object || !room {
        return Ok((None, written(Value::read(json)?)));
    }
    let (mut id, mut file, mut name, mut size, mut rest) = (None, None, None, None, Leftover::default());
    if json.enter_object()? {
        while let Some(key) = json.key()? {
            match key {
                "id" => id = rest.words(key, json)?,
                "file_id" => file = rest.words(key, json)?,
                "file_name" => name = rest.words(key, json)?,
                "file_size" => size = rest.count(key, json)?,
                _ => rest.keep(key, json)?,
            }
        }
    }
    if let Some(other) = file.filter(|file| id.is_some_and(|id| id != *file)) {
        rest.add_text("file_id", other);
    }
    let id = id.or(file);
    let attachment = (id.is_some() || name.is_some()).then(|| Attachment {
        kind: AttachmentKind::of(None, name),
        name: name.map(Cow::Borrowed),
        size_bytes: size,
        provider_id: id.map(Cow::Borrowed),
        ..Attachment::default()
    });
    if let (None, Some(size)) = (&attachment, size) {
        rest.add_json("file_size", &size.to_string());
    }
    Ok((attachment, rest.into_json().unwrap_or("{}".into())))
}
