//! MemU's shapes, as lenient as files are: any field may be absent, null or of another type.
//!
//! One pass over the element; texts are slices of it or of its arena. What has no field here is kept in a [`Leftover`].

use satchel_importer::{JsonError, Leftover, Parser};

mod answer;
mod conversation;
mod list;
mod memory;

pub(crate) use answer::Answer;
pub(crate) use conversation::{Conversation, Insight, Listing, Message};
pub(crate) use list::{Entry, Form, List};
pub(crate) use memory::{Contents, Memory, Vector};

/// Takes a time and keeps it as it stands too: what is written back should be what was read.
fn time_and_text<'a>(
    key: &'a str,
    json: &mut Parser<'a>,
    rest: &mut Leftover<'a>,
) -> Result<Option<i64>, JsonError> {
    let raw = json.raw_value()?;
    rest.keep(key, &mut Parser::new(raw, json.arena()))?;
    Leftover::default().time(key, &mut Parser::new(raw, json.arena()))
}

/// Takes an id and keeps it too.
fn id_and_text<'a>(
    key: &'a str,
    json: &mut Parser<'a>,
    rest: &mut Leftover<'a>,
) -> Result<Option<&'a str>, JsonError> {
    Ok(rest.keep_and_read(key, json)?.words())
}
