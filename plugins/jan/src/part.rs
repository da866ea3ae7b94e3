//! Reads one part of a content.

use satchel_importer::{
    Attachment, AttachmentKind, Fields, JsonError,
    json::{Value, array_of},
};

use crate::{
    file::{self, Files},
    tool::{self, Tool},
};

/// Fields that are known and kept as they are.
const KEPT: [&str; 11] = [
    "annotations",
    "detail",
    "image_url",
    "input",
    "input_audio",
    "name",
    "output",
    "size",
    "text",
    "tool_call_id",
    "type",
];
/// The types of early versions whose files are named by the annotations.
const WITH_FILES: [&str; 3] = ["image", "pdf", "docx"];

/// What a part is.
#[derive(Default)]
pub(crate) struct ReadPart<'a> {
    pub(crate) kind: Option<&'a str>,
    pub(crate) unknown: bool,
    pub(crate) text: Option<&'a str>,
    pub(crate) thought: bool,
    pub(crate) files: Vec<Attachment<'a>>,
    pub(crate) tool: Option<Tool<'a>>,
    /// A field that is not known and holds natural language.
    pub(crate) unread: Option<&'a str>,
    /// What is left of it, as JSON text.
    pub(crate) rest: String,
}

/// Takes a part apart. The first pass has no `files`.
pub(crate) fn read<'a>(mut part: Fields<'a>, files: Option<&Files<'_>>) -> Result<ReadPart<'a>, JsonError> {
    let kind = part.get("type").nonempty_text();
    let mut read = ReadPart { kind, ..ReadPart::default() };
    match kind {
        Some("text") => read.text(&mut part)?,
        Some("reasoning") => {
            read.text(&mut part)?;
            read.thought = true;
        }
        Some("image_url") => read.picture(&mut part, files)?,
        Some("input_audio") => read.files.extend(file::take_recording(&mut part, files)?),
        Some("tool_call") => read.tool = Some(tool::of_part(&mut part)?),
        Some(old) if WITH_FILES.contains(&old) => {
            read.annotations(&mut part, files)?;
            read.text(&mut part)?;
        }
        _ => {
            read.unknown = true;
            read.text(&mut part)?;
        }
    }
    read.unread = part.unread(&KEPT);
    if matches!(kind, Some("text" | "reasoning" | "image_url" | "input_audio" | "tool_call")) {
        part.take("type");
    }
    read.rest = part.into_json();
    Ok(read)
}

impl<'a> ReadPart<'a> {
    fn text(&mut self, part: &mut Fields<'a>) -> Result<(), JsonError> {
        self.text = part.take_text("text");
        if self.text.is_none()
            && let Some(mut own) = part.take_object("text")?
        {
            self.text = own.take_text("value");
            let rest = own.into_json();
            part.push_json("text", &rest);
        }
        Ok(())
    }

    /// Takes the files that the annotations of a text name.
    fn annotations(&mut self, part: &mut Fields<'a>, files: Option<&Files<'_>>) -> Result<(), JsonError> {
        let Some(mut own) = part.take_object("text")? else { return Ok(()) };
        let (name, mut others) = (own.get("name").nonempty_text(), Vec::new());
        for value in own.take_array("annotations")?.unwrap_or_default() {
            match value {
                Value::Text(address) if !address.is_empty() => {
                    self.files.push(file::at(address, name, files));
                }
                other => others.push(other.json().into_owned()),
            }
        }
        own.push_json("annotations", &array_of(&others));
        let rest = own.into_json();
        part.push_json("text", &rest);
        Ok(())
    }

    fn picture(&mut self, part: &mut Fields<'a>, files: Option<&Files<'_>>) -> Result<(), JsonError> {
        // Some servers take the address itself in place of the object.
        if let Some(address) = part.take_text("image_url") {
            self.add_picture(address, files);
            return Ok(());
        }
        let Some(mut own) = part.take_object("image_url")? else { return Ok(()) };
        if let Some(address) = own.take_text("url") {
            self.add_picture(address, files);
        }
        let rest = own.into_json();
        part.push_json("image_url", &rest);
        Ok(())
    }
    fn add_picture(&mut self, address: &'a str, files: Option<&Files<'_>>) {
        let mut picture = file::at(address, None, files);
        picture.kind = AttachmentKind::Image;
        self.files.push(picture);
    }
}
