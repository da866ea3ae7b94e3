//! MemU's records. Any field may be absent, null or of another type.
//!
//! Reading is one pass over the element; texts are slices of it or of its arena. Unknown fields go to a [`Leftover`].

use satchel_importer::{JsonError, Leftover, Parser};

mod conversation;
mod list;
mod memory;

pub(crate) use conversation::{Conversation, Insight, Listing, Message, SaveResponse};
pub(crate) use list::{Entry, Form, List};
pub(crate) use memory::{Contents, Memory, Vector};

/// Reads a time and keeps its text too, so that it can be written back unchanged.
fn time_and_text<'a>(
    key: &'a str,
    json: &mut Parser<'a>,
    rest: &mut Leftover<'a>,
) -> Result<Option<i64>, JsonError> {
    let raw = json.raw_value()?;
    rest.keep(key, &mut Parser::new(raw, json.arena()))?;
    Leftover::default().time(key, &mut Parser::new(raw, json.arena()))
}

/// Reads an id and keeps it too.
fn id_and_text<'a>(
    key: &'a str,
    json: &mut Parser<'a>,
    rest: &mut Leftover<'a>,
) -> Result<Option<&'a str>, JsonError> {
    Ok(rest.keep_and_read(key, json)?.nonempty_text())
}
