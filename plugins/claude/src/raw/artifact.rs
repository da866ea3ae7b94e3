//! Artifacts that have a folder of their own: versions, and what people wrote about them.

use satchel_importer::{JsonError, Leftover, Parser};

use super::check_length;

/// An `artifact.json`.
#[derive(Debug, Default)]
pub(crate) struct Artifact<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) owner: Option<&'a str>,
    pub(crate) updated: Option<i64>,
    /// The id of the version that is shown.
    pub(crate) active: Option<&'a str>,
    pub(crate) versions: Vec<Version<'a>>,
    pub(crate) rest: Leftover<'a>,
}

/// One version.
#[derive(Debug, Default)]
pub(crate) struct Version<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) title: Option<&'a str>,
    pub(crate) description: Option<&'a str>,
    pub(crate) created: Option<i64>,
    pub(crate) rest: Leftover<'a>,
}

/// Comments that answer each other.
#[derive(Debug, Default)]
pub(crate) struct Thread<'a> {
    pub(crate) created: Option<i64>,
    pub(crate) comments: Vec<Comment<'a>>,
    pub(crate) rest: Leftover<'a>,
}

/// What a person wrote about an artifact.
#[derive(Debug, Default)]
pub(crate) struct Comment<'a> {
    pub(crate) text: Option<&'a str>,
    pub(crate) created: Option<i64>,
    pub(crate) rest: Leftover<'a>,
}

impl<'a> Artifact<'a> {
    /// Reads the object that is next; none if it is no object.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            let rest = &mut it.rest;
            match key {
                "id" => it.id = rest.words(key, json)?,
                "owner_account" => it.owner = rest.words(key, json)?,
                "updated_at" => it.updated = rest.time(key, json)?,
                "active_version" => it.active = rest.words(key, json)?,
                "versions" if rest.array(key, json)? => {
                    while json.item()? {
                        it.versions.push(Version::read(json)?);
                        check_length(it.versions.len(), json)?;
                    }
                }
                _ if json.pending() => rest.keep(key, json)?,
                _ => {}
            }
        }
        json.end()?;
        Ok(Some(it))
    }

    /// The newest time in it.
    pub(crate) fn newest(&self) -> Option<i64> {
        self.versions.iter().map(|version| version.created).chain([self.updated]).flatten().max()
    }
}

impl<'a> Version<'a> {
    fn read(json: &mut Parser<'a>) -> Result<Self, JsonError> {
        let mut it = Self::default();
        if !json.enter_object()? {
            it.rest.add_json("version", json.raw_value()?);
            return Ok(it);
        }
        while let Some(key) = json.key()? {
            match key {
                "id" => it.id = it.rest.words(key, json)?,
                "title" => it.title = it.rest.words(key, json)?,
                "description" => it.description = it.rest.words(key, json)?,
                "created_at" => it.created = it.rest.time(key, json)?,
                _ => it.rest.keep_unknown(key, json)?,
            }
        }
        Ok(it)
    }
}

impl<'a> Thread<'a> {
    /// Reads the object that is next; none if it is no object.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            match key {
                "created_at" => it.created = it.rest.time(key, json)?,
                "comments" if it.rest.array(key, json)? => {
                    while json.item()? {
                        it.comments.push(Comment::read(json)?);
                        check_length(it.comments.len(), json)?;
                    }
                }
                "comments" if !json.pending() => {}
                // What it is about: words of the page.
                "quoted_text" | "anchor" | "tab" => it.rest.keep(key, json)?,
                _ => it.rest.keep_unknown(key, json)?,
            }
        }
        Ok(Some(it))
    }
}

impl<'a> Comment<'a> {
    fn read(json: &mut Parser<'a>) -> Result<Self, JsonError> {
        let mut it = Self::default();
        if !json.enter_object()? {
            it.rest.add_json("comment", json.raw_value()?);
            return Ok(it);
        }
        while let Some(key) = json.key()? {
            match key {
                "body" | "text" => it.text = it.rest.words(key, json)?.or(it.text),
                "created_at" => it.created = it.rest.time(key, json)?,
                _ => it.rest.keep_unknown(key, json)?,
            }
        }
        Ok(it)
    }
}
