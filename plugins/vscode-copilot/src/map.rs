//! Maps one request to messages: what the person wrote, and what answered it.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Content, Fields, ImportError, Leftover, Message, Role,
    address::unsigned_json,
    json::{Object, Value},
    natural_key,
};

use crate::fields::{FIELD_READER, take_id};

mod about;
mod answer;
mod attachments;
mod calls;
mod fences;
mod notices;
mod prompt;
mod results;
mod rounds;
mod thought;
mod tree;

pub(crate) use tree::Ids;

/// The messages of one request.
#[derive(Debug, Default)]
pub(crate) struct Exchange<'a> {
    pub(crate) messages: Vec<Message<'a>>,
    /// Whether the person took the request back. The program removes it when another one is sent.
    pub(crate) undone: bool,
    /// The newest time in it, in microseconds.
    pub(crate) newest: Option<i64>,
    /// What the person wrote.
    pub(crate) words: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
    /// The types of parts that are no messages, one for each part.
    pub(crate) left_out: Vec<&'a str>,
    pub(crate) warnings: Vec<Warning>,
}

/// A warning about a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Warning {
    /// About a type; one for each file is enough.
    Once(String),
    /// About something that is lost.
    Each(&'static str),
}

/// A message without its id and its parent.
#[derive(Debug, Default)]
struct Draft<'a> {
    message: Message<'a>,
    rest: Leftover<'a>,
}

impl<'a> Draft<'a> {
    fn new(role: Role) -> Self {
        Self { message: Message { role, ..Message::default() }, rest: Leftover::default() }
    }

    fn set_text(&mut self, text: impl Into<Cow<'a, str>>) {
        self.message.content = Some(Content::Text(text.into()));
    }

    fn finish(self, id: String, parent: Option<String>) -> Message<'a> {
        Message {
            id: id.into(),
            parent: parent.map(Cow::Owned),
            unread: self.rest.unread().map(Cow::Borrowed),
            raw_metadata: self.rest.into_json().map(unsigned_json),
            ..self.message
        }
    }
}

/// The place of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place<'p> {
    /// The request before it.
    pub(crate) request: Option<&'p str>,
    /// The message that it follows.
    pub(crate) parent: Option<&'p str>,
}

/// Maps the fields of a request.
pub(crate) fn exchange<'a>(
    mut fields: Fields<'a>,
    place: Place<'_>,
    ids: &mut Ids,
) -> Result<Exchange<'a>, ImportError> {
    let mut found = Exchange { undone: is_undone(&fields), ..Exchange::default() };
    let answer = fields.split_off(&answer::FIELDS);
    let sent = crate::fields::time(fields.get("timestamp"));
    if fields.get("message") == Value::Null && answer.iter().next().is_none() {
        return Err(ImportError::malformed("it has neither a message nor an answer"));
    }
    let (own, key) = prompt_key(&mut fields, place.request);
    let id = ids.unique(key.clone());
    let prompt = prompt::map(fields, &mut found)?;
    let mut message = prompt.finish(id.clone(), place.parent.map(ToOwned::to_owned));
    message.provider_message_id = own.filter(|_| id == key).map(Cow::Borrowed);
    found.messages.push(message);
    found.newest = found.newest.max(sent);
    answer::map(answer, &id, sent, ids, &mut found)?;
    Ok(found)
}

/// The id of a request, and the key of its message: the id, or else one made of the time, the text and the request before, which do not
/// change.
fn prompt_key<'a>(fields: &mut Fields<'a>, before: Option<&str>) -> (Option<&'a str>, String) {
    if let Some(id) = take_id(fields, "requestId") {
        return (Some(id), tree::escaped(id).into_owned());
    }
    let (time, message) = (fields.get("timestamp").json(), fields.get("message"));
    let text = prompt::text_of(message, fields.arena());
    (None, natural_key(&[Some("request"), Some(&time), text, before]))
}

/// The fields of a request.
pub(crate) fn fields<'a>(raw: &'a str, arena: &'a Arena) -> Result<Fields<'a>, ImportError> {
    if !raw.starts_with('{') {
        return Err(ImportError::malformed("it is not an object"));
    }
    Ok(FIELD_READER.parse(raw, arena)?)
}

/// Whether the person took the request back. One that was taken back in part stays.
pub(crate) fn is_undone(fields: &Fields<'_>) -> bool {
    let removal = fields.get("shouldBeRemovedOnSend");
    let in_part = match removal {
        Value::Raw(raw) => Object::parse(raw, fields.arena()).get("afterUndoStop") != Value::Null,
        Value::Text(_) | Value::Null => false,
    };
    fields.get("isHidden").is_true() || (removal != Value::Null && removal != Value::Raw("false") && !in_part)
}

/// The text of markdown: a text, or an object with one in `value`.
fn markdown<'a>(value: Value<'a>, arena: &'a Arena) -> Option<&'a str> {
    match value {
        Value::Text(text) => Some(text),
        Value::Raw(_) => FIELD_READER.of(value, arena).ok().flatten()?.get("value").text(),
        Value::Null => None,
    }
}
