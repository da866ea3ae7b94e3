//! The entries of both lists. Any field may be absent, null or of another type.

use satchel_importer::{
    Arena, JsonError, Leftover, Parser,
    json::{Kind, time_of_text},
    pam::time::TimeNote,
};

use crate::turns;

/// One entry of the chat with My AI.
#[derive(Debug, Default)]
pub(crate) struct Entry<'a> {
    pub(crate) time: Option<i64>,
    /// `CHAT`, `SNAP`, …; in the chats with people `TEXT`, `MEDIA`, ….
    pub(crate) kind: Option<&'a str>,
    /// The words, or the name of a photo.
    pub(crate) content: Option<&'a str>,
    /// The person sent it. Only the chats with people say so.
    pub(crate) sent: Option<bool>,
    /// The user name of the sender, likewise.
    pub(crate) from: Option<&'a str>,
    /// The names of media, likewise.
    pub(crate) media: Option<&'a str>,
    /// `Content` is neither a text nor null; it is kept.
    odd_content: bool,
    /// The fields that have no place above.
    pub(crate) rest: Leftover<'a>,
}

/// One entry of the memory.
#[derive(Debug, Default)]
pub(crate) struct Memory<'a> {
    pub(crate) time: Option<i64>,
    /// One memory on each line.
    pub(crate) text: Option<&'a str>,
    pub(crate) rest: Leftover<'a>,
}

impl<'a> Entry<'a> {
    /// Reads an entry; the error is the reason why it is no message.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Result<Self, &'static str>, JsonError> {
        if json.null()? {
            return Ok(Err("it is null"));
        }
        if !json.enter_object()? {
            return Ok(Err("it has no named fields"));
        }
        let mut it = Self::default();
        let (mut created, mut exact) = (None, None);
        while let Some(key) = json.key()? {
            match key {
                "Timestamp" | "Created" => created = read_time(&mut it.rest, key, json)?,
                // It holds milliseconds.
                "Created(microseconds)" => exact = it.rest.time(key, json)?,
                "Type" | "Media Type" => it.kind = it.rest.nonempty_text(key, json)?,
                "Content" => {
                    it.odd_content = !matches!(json.kind()?, Kind::String | Kind::Null);
                    it.content = it.rest.nonempty_text(key, json)?;
                    if it.odd_content {
                        it.rest.mark_unread(key);
                    }
                }
                "IsSender" => it.sent = it.rest.bool(key, json)?,
                "From" => it.from = it.rest.nonempty_text(key, json)?,
                "Media IDs" => it.media = it.rest.nonempty_text(key, json)?,
                // Private.
                "IP Address" => json.skip_value()?,
                "IsSaved" | "Conversation Title" => it.rest.keep(key, json)?,
                _ => it.rest.keep_unknown(key, json)?,
            }
        }
        json.end()?;
        it.time = exact.or(created);
        let says = it.content.is_some() || it.media.is_some() || it.odd_content || it.rest.unread().is_some();
        let wordless = it.kind.is_some_and(|kind| !is_words(kind));
        Ok(if says || wordless { Ok(it) } else { Err("it has no content") })
    }

    /// What it shows of its author.
    pub(crate) fn turn_kind(&self) -> turns::Kind {
        let kind = self.kind.unwrap_or_default();
        if is_words(kind) {
            turns::Kind::Words
        } else if PHOTOS.contains(&kind) {
            turns::Kind::Photo
        } else {
            turns::Kind::Other
        }
    }

    /// Reads the text of an entry without reports, for a first pass.
    pub(crate) fn peek(text: &'a str, arena: &'a Arena) -> Option<Self> {
        Self::read(&mut Parser::new(text, arena)).ok()?.ok()
    }
}

/// Types of photos and videos.
const PHOTOS: [&str; 2] = ["SNAP", "MEDIA"];

/// Whether an entry of this type is words.
pub(crate) fn is_words(kind: &str) -> bool {
    matches!(kind, "CHAT" | "TEXT")
}

impl<'a> Memory<'a> {
    /// Reads an entry; none if it is not an object.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            match key {
                "Timestamp" => it.time = read_time(&mut it.rest, key, json)?,
                "Memory" => it.text = it.rest.nonempty_text(key, json)?,
                _ => it.rest.keep_unknown(key, json)?,
            }
        }
        json.end()?;
        Ok(Some(it))
    }
}

/// Reads a time such as `2024-01-31 12:00:00 UTC`; any other value than a time with an offset is kept.
fn read_time<'a>(
    rest: &mut Leftover<'a>,
    key: &'a str,
    json: &mut Parser<'a>,
) -> Result<Option<i64>, JsonError> {
    if json.kind()? != Kind::String {
        return rest.time(key, json);
    }
    let raw = json.raw_value()?;
    let text = Parser::new(raw, json.arena()).string()?;
    let time = match text.strip_suffix(" UTC") {
        Some(stem) => time_of_text(&format!("{stem}Z")),
        None => time_of_text(text),
    };
    if time.is_none_or(|(_, note)| note == Some(TimeNote::Naive)) {
        rest.add_json(key, raw);
    }
    Ok(time.map(|(micros, _)| micros))
}
