//! A piece of a message, which becomes a message of its own.

use std::borrow::Cow;

use satchel_importer::{
    Content, Leftover, Message, Role,
    address::unsigned_json,
    json::{EMPTY_OBJECT, array_of},
};

/// What the person wrote, a text, a thought, a call, a result, or a note of the program.
pub(crate) struct Piece<'a> {
    pub(crate) kind: PieceKind,
    pub(crate) message: Message<'a>,
    pub(crate) texts: Vec<Cow<'a, str>>,
    pub(crate) rest: Leftover<'a>,
    /// What is left of the parts in it, as JSON texts.
    pub(crate) parts: Vec<String>,
    /// Whether the program does not show it.
    pub(crate) hidden: bool,
}

/// What a piece is. Neighbours of the same kind may be one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceKind {
    /// The texts and pictures of the person.
    Prompt,
    Text,
    Thought,
    Other,
}

impl<'a> Piece<'a> {
    pub(crate) fn new(kind: PieceKind, role: Role, time: Option<i64>) -> Self {
        let message =
            Message { role, created_at: time, is_thought: kind == PieceKind::Thought, ..Message::default() };
        Self { kind, message, texts: Vec::new(), rest: Leftover::default(), parts: Vec::new(), hidden: false }
    }

    /// The message with this id, as the answer to the message `parent`.
    pub(crate) fn finish(mut self, id: String, parent: Option<&str>) -> Message<'a> {
        if self.hidden {
            self.rest.add_bool("hidden", true);
        }
        let parts = list_of(&self.parts);
        if parts != "[]" {
            self.rest.add_json("parts", &parts);
        }
        let mut message = self.message;
        message.id = id.into();
        message.parent = parent.map(|parent| Cow::Owned(parent.to_owned()));
        message.content = Content::of_texts(self.texts);
        message.unread = self.rest.unread().map(Cow::Borrowed);
        message.raw_metadata = self.rest.into_json().map(unsigned_json);
        message
    }
}

/// Joins JSON texts to the text of a list. A list in which no item says anything is empty.
pub(crate) fn list_of(values: &[String]) -> String {
    if values.iter().all(|value| value == EMPTY_OBJECT) { "[]".to_owned() } else { array_of(values) }
}
