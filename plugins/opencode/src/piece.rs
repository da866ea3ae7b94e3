//! A piece of a message, which becomes a message of its own.

use std::borrow::Cow;

use satchel_importer::{Content, Leftover, Message, Role, address::unsigned_json, json::array_of};

/// A text, a thought, a call, a result or an error.
pub(crate) struct Piece<'a> {
    pub(crate) id: Cow<'a, str>,
    /// The id that the program has for it.
    pub(crate) own_id: bool,
    pub(crate) message: Message<'a>,
    pub(crate) texts: Vec<Cow<'a, str>>,
    pub(crate) rest: Leftover<'a>,
    /// What is left of the parts in it, as JSON texts.
    pub(crate) parts: Vec<String>,
    /// Whether the program does not show it.
    pub(crate) hidden: bool,
}

impl<'a> Piece<'a> {
    pub(crate) fn new(id: Cow<'a, str>, role: Role, time: Option<i64>) -> Self {
        Self {
            id,
            own_id: true,
            message: Message { role, created_at: time, ..Message::default() },
            texts: Vec::new(),
            rest: Leftover::default(),
            parts: Vec::new(),
            hidden: false,
        }
    }

    /// The message, as the answer to the message `parent`.
    pub(crate) fn finish(mut self, parent: Option<&str>) -> Message<'a> {
        if self.hidden {
            self.rest.add_bool("hidden", true);
        }
        if self.parts.iter().any(|part| part != "{}") {
            self.rest.add_json("parts", &array_of(&self.parts));
        }
        let mut message = self.message;
        message.provider_message_id = self.own_id.then(|| self.id.clone());
        message.id = self.id;
        message.parent = parent.map(|parent| Cow::Owned(parent.to_owned()));
        message.content = Content::of_texts(self.texts);
        message.unread = self.rest.unread().map(Cow::Borrowed);
        message.raw_metadata = self.rest.into_json().map(unsigned_json);
        message
    }
}
