//! Reads one line of a session file: a message, something about the session, or a step back.

use satchel_importer::{
    Element, Fields, ImportError,
    json::{Value, parse_items},
};

/// What a line says.
pub(crate) enum Line<'a> {
    Message(Fields<'a>),
    /// Fields of the session, and the messages of a checkpoint, which take the place of those before.
    Session {
        fields: Fields<'a>,
        messages: Option<Vec<Value<'a>>>,
    },
    /// The message with this id, and all behind it, were taken back.
    Rewind(&'a str),
}

impl<'a> Line<'a> {
    pub(crate) fn read(element: &Element<'a>) -> Result<Self, ImportError> {
        let mut json = element.parser();
        if !element.text().starts_with('{') {
            let reason = if element.text() == "null" { "it is null" } else { "it is not an object" };
            return Err(ImportError::malformed(reason));
        }
        let mut fields = Fields::read(&mut json)?;
        json.end()?;
        // The program looks at them in this order, too.
        if let Some(id) = fields.get("$rewindTo").text() {
            return Ok(Self::Rewind(id));
        }
        if is_message(&fields) {
            return Ok(Self::Message(fields));
        }
        if let Some(set) = fields.take_object("$set")? {
            for (key, value) in set.iter() {
                fields.push(key, value);
            }
        } else if !fields.has("sessionId") && !fields.has("projectHash") {
            return Err(ImportError::malformed("it is neither a message nor something about the session"));
        }
        let messages = fields.get("messages").raw().filter(|raw| raw.starts_with('['));
        let messages = messages.map(|raw| parse_items(raw, fields.arena())).transpose()?;
        if messages.is_some() {
            fields.take("messages");
        }
        Ok(Self::Session { fields, messages })
    }
}

/// Whether these are the fields of a message. All have an id, but one without it is read as well.
pub(crate) fn is_message(fields: &Fields<'_>) -> bool {
    let typed = || fields.get("type").text().is_some() && (fields.has("content") || fields.has("toolCalls"));
    fields.get("id").text().is_some() || typed()
}
