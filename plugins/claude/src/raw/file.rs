//! Items of `attachments` and `files`.

use satchel_importer::{JsonError, Leftover, Parser};

use super::check_length;

/// A file that came with a message.
#[derive(Debug, Default)]
pub(crate) struct File<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) size: Option<u64>,
    /// An ending, a MIME type or a word; the provider is not strict.
    pub(crate) kind: Option<&'a str>,
    /// The text that the provider took out of the file.
    pub(crate) extracted: Option<&'a str>,
    pub(crate) uuid: Option<&'a str>,
    /// The whole of an item that is no object, as JSON text.
    pub(crate) odd: Option<&'a str>,
    pub(crate) rest: Leftover<'a>,
}

impl<'a> File<'a> {
    /// Reads the list that is next.
    pub(super) fn read_list(
        key: &'a str,
        json: &mut Parser<'a>,
        rest: &mut Leftover<'a>,
    ) -> Result<Vec<Self>, JsonError> {
        let mut files = Vec::new();
        if rest.array(key, json)? {
            while json.item()? {
                files.push(Self::read(json)?);
                check_length(files.len(), json)?;
            }
        }
        Ok(files)
    }

    fn read(json: &mut Parser<'a>) -> Result<Self, JsonError> {
        let mut it = Self::default();
        if !json.enter_object()? {
            it.odd = Some(json.raw_value()?);
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
            "file_name" | "name" => self.name = rest.words(key, json)?,
            "file_size" => self.size = rest.count(key, json)?,
            "file_type" | "type" => self.kind = rest.words(key, json)?,
            "extracted_content" | "content" => self.extracted = rest.text(key, json)?,
            "file_uuid" => self.uuid = rest.words(key, json)?,
            _ => rest.keep(key, json)?,
        }
        Ok(())
    }
}
