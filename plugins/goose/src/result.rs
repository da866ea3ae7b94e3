//! Reads what a tool answered.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Attachment, AttachmentKind, Fields, JsonError, Source,
    address::{is_uri, unsigned},
    json::{Value, ValueFields},
};

use crate::{bytes, piece::list_of};

/// Bytes of an address that is stored as one.
const MAX_ADDRESS: usize = 4096;

/// What a tool answered, also if it failed.
#[derive(Default)]
pub(crate) struct ToolResult<'a> {
    /// The id of the call.
    pub(crate) call: Option<&'a str>,
    pub(crate) texts: Vec<Cow<'a, str>>,
    pub(crate) attachments: Vec<Attachment<'a>>,
    /// Types of contents that are not known.
    pub(crate) unknown: Vec<&'a str>,
    pub(crate) unreadable: bool,
}

/// Takes the result out of the fields of a part.
pub(crate) fn take<'a>(part: &mut Fields<'a>, decode: bool) -> Result<ToolResult<'a>, JsonError> {
    let mut read = ToolResult { call: part.take_id("id"), ..ToolResult::default() };
    let Some(mut result) = part.take_object("toolResult")? else { return Ok(read) };
    result.remove_text("status", "success");
    if let Some(text) = result.take_text("error") {
        read.texts.push(text.into());
    }
    if let Some(mut value) = result.take_object("value")? {
        if let Some(contents) = value.take_array_fields("content")? {
            let rest = read.add_all(contents, decode)?;
            value.push_json("content", &rest);
        }
        result.push_json("value", &value.into_json());
    } else if let Some(contents) = result.take_array_fields("value")? {
        let rest = read.add_all(contents, decode)?;
        result.push_json("value", &rest);
    } else if let Some(text) = result.take_text("value") {
        read.texts.push(text.into());
    }
    part.push_json("toolResult", &result.into_json());
    Ok(read)
}

impl<'a> ToolResult<'a> {
    /// Adds the contents, and returns what is left of them as the text of a list.
    fn add_all(&mut self, contents: Vec<ValueFields<'a>>, decode: bool) -> Result<String, JsonError> {
        let (mut seen, mut rest) = (BTreeSet::new(), Vec::new());
        for content in contents {
            match (content.value, content.fields?) {
                (_, Some(mut fields)) => {
                    self.add(&mut fields, &mut seen, decode)?;
                    rest.push(fields.into_json());
                }
                (Value::Text(text), _) => {
                    self.add_text(text, &mut seen);
                    rest.push("{}".to_owned());
                }
                (other, _) => rest.push(other.json().into_owned()),
            }
        }
        Ok(list_of(&rest))
    }

    fn add(
        &mut self,
        fields: &mut Fields<'a>,
        seen: &mut BTreeSet<&'a str>,
        decode: bool,
    ) -> Result<(), JsonError> {
        let kind = fields.take_text("type");
        match kind {
            Some("text") => {}
            Some("image" | "audio") => {
                let (mime, data) = (fields.take_text("mimeType"), fields.take_text("data"));
                self.add_file(bytes::attachment(mime, None, data, decode));
            }
            Some("resource") => {
                if let Some(mut resource) = fields.take_object("resource")? {
                    self.add_resource(&mut resource, seen, decode);
                    fields.push_json("resource", &resource.into_json());
                }
            }
            Some("resource_link" | "resourceLink") => self.add_link(fields),
            other => {
                self.unknown.push(other.unwrap_or("none"));
                fields.push_json("type", &Value::Text(other.unwrap_or("none")).json());
            }
        }
        if let Some(text) = fields.take_text("text") {
            self.add_text(text, seen);
        }
        Ok(())
    }

    /// Adds a text. Tools answer some texts twice: once for the model, and once for the person.
    fn add_text(&mut self, text: &'a str, seen: &mut BTreeSet<&'a str>) {
        if !text.is_empty() && seen.insert(text) {
            self.texts.push(text.into());
        }
    }

    fn add_file(&mut self, (attachment, unreadable): (Attachment<'a>, bool)) {
        self.unreadable |= unreadable;
        self.attachments.push(attachment);
    }

    /// Adds a resource: a text, or a file.
    fn add_resource(&mut self, resource: &mut Fields<'a>, seen: &mut BTreeSet<&'a str>, decode: bool) {
        if let Some(text) = resource.take_text("text") {
            self.add_text(text, seen);
        }
        if let Some(blob) = resource.take_text("blob") {
            let (mime, name) = (resource.take_text("mimeType"), resource.get("uri").nonempty_text());
            self.add_file(bytes::attachment(mime, name, Some(blob), decode));
        }
    }

    /// Adds a file that is only named.
    fn add_link(&mut self, fields: &mut Fields<'a>) {
        let (mime, name) = (fields.take_text("mimeType"), fields.take_text("name"));
        let address = fields.get("uri").nonempty_text();
        let address = address.filter(|address| is_uri(address) && address.len() <= MAX_ADDRESS);
        if address.is_some() {
            fields.take("uri");
        }
        self.attachments.push(Attachment {
            kind: AttachmentKind::of(mime, name),
            name: name.map(Into::into),
            mime_type: mime.map(Into::into),
            source: address.map(|address| Source::Uri(unsigned(address))),
            ..Attachment::default()
        });
    }
}
