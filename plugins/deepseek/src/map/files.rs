//! Files of a message; the export has their names, not their bytes.

use std::borrow::Cow;

use satchel_importer::{Arena, Attachment, AttachmentKind, JsonError, Leftover, Parser, json::Value};

/// Files of one message that become attachments; the metadata keeps all of them.
const MAX_FILES: usize = 5_000;

/// The attachments of a list of files, and what remains of the list as JSON text, if anything does.
pub(super) fn read<'a>(list: Value<'a>, arena: &'a Arena) -> (Vec<Attachment<'a>>, Option<Cow<'a, str>>) {
    let Some(raw) = list.raw() else {
        return (Vec::new(), (list != Value::Null).then(|| list.json()));
    };
    let (mut attachments, mut remaining) = (Vec::new(), Vec::new());
    let mut json = Parser::new(raw, arena);
    let mut read = || -> Result<bool, JsonError> {
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
    if !read().unwrap_or_default() {
        return (Vec::new(), Some(raw.into()));
    }
    let any = remaining.iter().any(|rest| rest != "{}");
    (attachments, any.then(|| format!("[{}]", remaining.join(",")).into()))
}

fn read_file<'a>(
    json: &mut Parser<'a>,
    room: bool,
) -> Result<(Option<Attachment<'a>>, Cow<'a, str>), JsonError> {
    if !room || !json.enter_object()? {
        return Ok((None, Value::read(json)?.json()));
    }
    let (mut id, mut file, mut name, mut size, mut rest) = (None, None, None, None, Leftover::default());
    while let Some(key) = json.key()? {
        match key {
            "id" => id = rest.nonempty_text(key, json)?,
            "file_id" => file = rest.nonempty_text(key, json)?,
            "file_name" => name = rest.nonempty_text(key, json)?,
            "file_size" => size = rest.count(key, json)?,
            _ => rest.keep(key, json)?,
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
