//! Artifacts with a folder of their own: versions and comments.

use satchel_importer::{JsonError, Leftover, Parser};

use super::read_items;

/// An `artifact.json`.
#[derive(Debug, Default)]
pub(crate) struct Artifact<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) owner: Option<&'a str>,
    pub(crate) updated: Option<i64>,
    /// The id of the version that the provider shows.
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

/// Comments that reply to each other.
#[derive(Debug, Default)]
pub(crate) struct Thread<'a> {
    pub(crate) created: Option<i64>,
    pub(crate) comments: Vec<Comment<'a>>,
    pub(crate) rest: Leftover<'a>,
}

/// A person's comment on an artifact.
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
                "id" => it.id = rest.nonempty_text(key, json)?,
                "owner_account" => it.owner = rest.nonempty_text(key, json)?,
                "updated_at" => it.updated = rest.time(key, json)?,
                "active_version" => it.active = rest.nonempty_text(key, json)?,
                "versions" if rest.array(key, json)? => it.versions.extend(read_items(json, Version::read)?),
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
                "id" => it.id = it.rest.nonempty_text(key, json)?,
                "title" => it.title = it.rest.nonempty_text(key, json)?,
                "description" => it.description = it.rest.nonempty_text(key, json)?,
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
                    it.comments.extend(read_items(json, Comment::read)?);
                }
                "comments" if !json.pending() => {}
                // The part of the page that it is about.
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
                "body" | "text" => it.text = it.rest.nonempty_text(key, json)?.or(it.text),
                "created_at" => it.created = it.rest.time(key, json)?,
                _ => it.rest.keep_unknown(key, json)?,
            }
        }
        Ok(it)
    }
}
