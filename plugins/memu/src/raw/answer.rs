//! The API's answer to a saved conversation.

use satchel_importer::{JsonError, Leftover, Parser};

/// What the API answers when a conversation was saved.
#[derive(Debug, Default)]
pub(crate) struct Answer<'a> {
    pub(crate) conversation: Option<&'a str>,
    pub(crate) session: Option<&'a str>,
    pub(crate) created: Option<i64>,
    /// How many messages were saved.
    pub(crate) count: Option<u64>,
    pub(crate) rest: Leftover<'a>,
}

impl<'a> Answer<'a> {
    /// Reads one element; none if it is no object.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            let rest = &mut it.rest;
            match key {
                "conversation_id" => it.conversation = rest.words(key, json)?,
                "session_id" => it.session = rest.words(key, json)?,
                "created_at" => it.created = rest.time(key, json)?,
                "message_count" => it.count = rest.keep_and_read(key, json)?.as_u64(),
                _ => rest.keep(key, json)?,
            }
        }
        json.end()?;
        Ok(Some(it))
    }
}
