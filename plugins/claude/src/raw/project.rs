//! Projects: instructions and documents that their conversations share.

use satchel_importer::{
    JsonError, Leftover, Parser,
    json::{Object, objects},
};

use super::check_length;

/// One project.
#[derive(Debug, Default)]
pub(crate) struct Project<'a> {
    pub(crate) uuid: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) description: Option<&'a str>,
    /// The instructions for Claude.
    pub(crate) prompt: Option<&'a str>,
    pub(crate) created: Option<i64>,
    pub(crate) updated: Option<i64>,
    pub(crate) creator: Option<&'a str>,
    pub(crate) creator_name: Option<&'a str>,
    /// A sample that the provider made.
    pub(crate) starter: bool,
    pub(crate) documents: Vec<Document<'a>>,
    pub(crate) rest: Leftover<'a>,
}

/// A text that belongs to a project.
#[derive(Debug, Default)]
pub(crate) struct Document<'a> {
    /// Its index in the list.
    pub(crate) index: usize,
    pub(crate) uuid: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) content: Option<&'a str>,
    pub(crate) created: Option<i64>,
    pub(crate) rest: Leftover<'a>,
}

impl<'a> Project<'a> {
    /// Reads one element; none if it is no object.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            it.field(key, json)?;
        }
        json.end()?;
        Ok(Some(it))
    }

    /// The newest time in it.
    pub(crate) fn newest(&self) -> Option<i64> {
        let documents = self.documents.iter().map(|document| document.created);
        documents.chain([self.created, self.updated]).flatten().max()
    }

    /// The first unknown field that holds natural language.
    pub(crate) fn unread(&self) -> Option<&'a str> {
        self.rest.unread().or_else(|| self.documents.iter().find_map(|document| document.rest.unread()))
    }

    fn field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            "uuid" => self.uuid = rest.nonempty_text(key, json)?,
            "name" => self.name = rest.text(key, json)?,
            "description" => self.description = rest.text(key, json)?,
            "prompt_template" => self.prompt = rest.text(key, json)?,
            // A project that only becomes a memory has no other place for this and for its creator.
            "created_at" => {
                let (raw, arena) = (json.raw_value()?, json.arena());
                self.created = Leftover::default().time(key, &mut Parser::new(raw, arena))?;
                rest.keep(key, &mut Parser::new(raw, arena))?;
            }
            "updated_at" => self.updated = rest.time(key, json)?,
            "is_starter_project" => self.starter = rest.keep_and_read(key, json)?.is_true(),
            "creator" => self.read_creator(json)?,
            "docs" if rest.array(key, json)? => {
                while json.item()? {
                    let document = Document::read(self.documents.len(), json)?;
                    self.documents.push(document);
                    check_length(self.documents.len(), json)?;
                }
            }
            "docs" if !json.pending() => {}
            _ => {
                let raw = json.raw_value()?;
                // A list of records may be that of the documents under a new name.
                if !objects(raw, json.arena()).is_empty() {
                    rest.mark_unread(key);
                }
                rest.keep_unknown(key, &mut Parser::new(raw, json.arena()))?;
            }
        }
        Ok(())
    }

    fn read_creator(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let raw = json.raw_value()?;
        self.rest.keep("creator", &mut Parser::new(raw, json.arena()))?;
        let creator = Object::parse(raw, json.arena());
        self.creator = creator.text("uuid");
        self.creator_name = creator.text("full_name");
        Ok(())
    }
}

impl<'a> Document<'a> {
    fn read(index: usize, json: &mut Parser<'a>) -> Result<Self, JsonError> {
        let mut it = Self { index, ..Self::default() };
        if !json.enter_object()? {
            it.rest.add_json("document", json.raw_value()?);
            return Ok(it);
        }
        while let Some(key) = json.key()? {
            match key {
                "uuid" => it.uuid = it.rest.nonempty_text(key, json)?,
                "filename" | "file_name" => it.name = it.rest.nonempty_text(key, json)?,
                "content" => it.content = it.rest.text(key, json)?,
                "created_at" => it.created = it.rest.time(key, json)?,
                _ => it.rest.keep_unknown(key, json)?,
            }
        }
        Ok(it)
    }
}
