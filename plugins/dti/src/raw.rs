//! The structures of the format. Any field may be absent, null or of another type.

use satchel_importer::{Element, JsonError, Leftover, Parser, json::Kind};

use crate::contact::contains_contact;

/// `details`: the service, the time and the pages of the history.
#[derive(Debug, Default)]
pub(crate) struct Details<'a> {
    /// The time of the export.
    pub(crate) created: Option<i64>,
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
    /// There is a further page.
    pub(crate) more_pages: bool,
    /// Everything else; also `createdBy`, `modality` and the address of the next page.
    pub(crate) rest: Leftover<'a>,
}

/// One of `identifiers`: somebody who sends messages.
#[derive(Debug, Default)]
pub(crate) struct Identifier<'a> {
    pub(crate) name: Option<&'a str>,
    /// `email` is the only one of the schema.
    pub(crate) kind: Option<&'a str>,
    pub(crate) identifier: Option<&'a str>,
    /// A field `email` has a mail address, which is not kept.
    pub(crate) contact: bool,
    /// The fields that have no place above.
    pub(crate) rest: Leftover<'a>,
}

/// One of `messages`.
#[derive(Debug, Default)]
pub(crate) struct Message<'a> {
    pub(crate) sent: Option<i64>,
    pub(crate) sender: Option<&'a str>,
    pub(crate) text: Option<&'a str>,
    /// `text` is neither a text nor null; it is kept.
    odd_text: bool,
    /// The fields that have no place above, such as `channel`.
    pub(crate) rest: Leftover<'a>,
}

impl<'a> Details<'a> {
    /// Reads the details; none if they are not an object.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            let rest = &mut it.rest;
            match key {
                "startTime" => it.start = read_time(rest, key, json)?,
                "endTime" => it.end = read_time(rest, key, json)?,
                // The time of the export. If it were kept, each export would look like a change of the conversation.
                "createdAt" => {
                    let raw = json.raw_value()?;
                    let parser = &mut Parser::new(raw, json.arena());
                    it.created = read_time(&mut Leftover::default(), key, parser)?;
                    if it.created.is_none() {
                        rest.keep(key, &mut Parser::new(raw, json.arena()))?;
                    }
                }
                // Its query has tokens, and differs in each export.
                "nextPage" => {
                    if let Some(address) = rest.nonempty_text(key, json)? {
                        it.more_pages = true;
                        rest.add_text(key, address.split(['?', '#']).next().unwrap_or_default());
                    }
                }
                "createdBy" | "modality" => rest.keep(key, json)?,
                _ => rest.keep_unknown(key, json)?,
            }
        }
        json.end()?;
        Ok(Some(it))
    }
}

impl<'a> Identifier<'a> {
    /// Reads an item; the error is the reason why it identifies nobody.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Result<Self, &'static str>, JsonError> {
        if !json.enter_object()? {
            return Ok(Err("it is not an object"));
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            let rest = &mut it.rest;
            match key {
                "name" => it.name = rest.nonempty_text(key, json)?,
                "type" => it.kind = rest.nonempty_text(key, json)?,
                "identifier" => it.identifier = rest.nonempty_text(key, json)?,
                _ => {
                    let raw = json.raw_value()?;
                    let mut value = Parser::new(raw, json.arena());
                    let text = if value.kind()? == Kind::String { value.string()? } else { raw };
                    if contains_contact(text) {
                        it.contact |= key == "email";
                    } else {
                        rest.keep_unknown(key, &mut Parser::new(raw, json.arena()))?;
                    }
                }
            }
        }
        json.end()?;
        let named = it.name.is_some() || it.identifier.is_some();
        Ok(if named { Ok(it) } else { Err("it has neither a name nor an identifier") })
    }
}

impl<'a> Message<'a> {
    /// Reads an element; the error is the reason why it is no message.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Result<Self, &'static str>, JsonError> {
        if json.null()? {
            return Ok(Err("it is null"));
        }
        if !json.enter_object()? {
            return Ok(Err("it is not an object"));
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            match key {
                "text" => {
                    it.odd_text = !matches!(json.kind()?, Kind::String | Kind::Null);
                    it.text = it.rest.nonempty_text(key, json)?;
                    if it.odd_text {
                        it.rest.mark_unread(key);
                    }
                }
                "sentAt" => it.sent = read_time(&mut it.rest, key, json)?,
                "sender" => {
                    let raw = json.raw_value()?;
                    let parser = &mut Parser::new(raw, json.arena());
                    if parser.kind()? == Kind::String || !contains_contact(raw) {
                        it.sender = it.rest.nonempty_text(key, parser)?;
                    }
                }
                "channel" => it.rest.keep(key, json)?,
                _ => it.rest.keep_unknown(key, json)?,
            }
        }
        json.end()?;
        let has_content = it.text.is_some() || it.odd_text || it.rest.unread().is_some();
        Ok(if has_content { Ok(it) } else { Err("it has no text") })
    }

    /// Reads the element of a list without reports, for a first pass.
    pub(crate) fn peek(element: &Element<'a>) -> Option<Self> {
        Self::read(&mut Parser::new(element.text(), element.arena())).ok()?.ok()
    }
}

/// Reads a time. Exporters write the beginning of 1970 for a time that they do not have; it is kept verbatim.
fn read_time<'a>(
    rest: &mut Leftover<'a>,
    key: &'a str,
    json: &mut Parser<'a>,
) -> Result<Option<i64>, JsonError> {
    let raw = json.raw_value()?;
    let time = rest.time(key, &mut Parser::new(raw, json.arena()))?;
    if time == Some(0) {
        rest.add_json(key, raw);
    }
    Ok(time.filter(|time| *time != 0))
}
