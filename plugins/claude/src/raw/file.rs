//! Items of a message's `attachments` and `files`.

use satchel_importer::{JsonError, Leftover, Parser};

use super::read_items;

/// A file that came with a message.
#[derive(Debug, Default)]
pub(crate) struct File<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) size: Option<u64>,
    /// A file extension, a MIME type or another word.
    pub(crate) kind: Option<&'a str>,
    /// The text that the provider extracted from the file.
    pub(crate) extracted: Option<&'a str>,
    pub(crate) uuid: Option<&'a str>,
    /// JSON text of an item that is not an object.
    pub(crate) invalid: Option<&'a str>,
    pub(crate) rest: Leftover<'a>,
}

impl<'a> File<'a> {
    /// Reads the list that is next.
    pub(super) fn read_list(
        key: &'a str,
        json: &mut Parser<'a>,
        rest: &mut Leftover<'a>,
    ) -> Result<Vec<Self>, JsonError> {
        if rest.array(key, json)? { read_items(json, Self::read) } else { Ok(Vec::new()) }
    }

    fn read(json: &mut Parser<'a>) -> Result<Self, JsonError> {
        let mut it = Self::default();
        if !json.enter_object()? {
            it.invalid = Some(json.raw_value()?);
            return Ok(it);
        }
        while let Some(key) = json.key()? {
            it.field(key, json)?;
        }
        Ok(it)
    }

    fn field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            "file_name" | "name" => self.name = rest.nonempty_text(key, json)?,
            "file_size" => self.size = rest.count(key, json)?,
            "file_type" | "type" => self.kind = rest.nonempty_text(key, json)?,
            "extracted_content" | "content" => self.extracted = rest.text(key, json)?,
            "file_uuid" => self.uuid = rest.nonempty_text(key, json)?,
            _ => rest.keep(key, json)?,
        }
        Ok(())
    }
}
