//! Items of `attachments` and `files`.

use satchel_importer::{JsonError, Leftover, Parser};

use super::{check_length, id, keep};

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
            "file_name" | "name" => self.name = id(key, json, rest)?,
            "file_size" => {
                let number = rest.number(key, json)?;
                self.size = number.and_then(satchel_importer::json::Number::as_u64);
                if let (None, Some(number)) = (self.size, number) {
                    rest.add_json(key, number.as_str());
                }
            }
            "file_type" | "type" => self.kind = id(key, json, rest)?,
            "extracted_content" | "content" => self.extracted = rest.text(key, json)?,
            "file_uuid" => self.uuid = id(key, json, rest)?,
            _ => keep(key, json, rest)?,
        }
        Ok(())
    }
}
