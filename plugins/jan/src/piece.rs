//! A piece of a message, which becomes a message of its own.

use std::borrow::Cow;

use satchel_importer::{
    Attachment, Content, Leftover, Message, Role, ToolCall,
    address::unsigned_json,
    json::{EMPTY_OBJECT, array_of},
    tree::SIBLING_NUMBER,
};

/// Texts and files, a thought, a call, or a result.
#[derive(Debug)]
pub(crate) struct Piece<'a> {
    /// What follows the id of its message; the first piece has none.
    pub(crate) suffix: Option<String>,
    pub(crate) role: Role,
    pub(crate) thought: bool,
    pub(crate) texts: Vec<Cow<'a, str>>,
    pub(crate) calls: Vec<ToolCall<'a>>,
    pub(crate) files: Vec<Attachment<'a>>,
    /// What is left of the parts in it, as JSON texts.
    pub(crate) parts: Vec<String>,
    pub(crate) tokens: Option<u64>,
    pub(crate) rest: Leftover<'a>,
}

/// What the pieces of a message have in common.
pub(crate) struct Common<'c> {
    /// The id of the message.
    pub(crate) id: &'c str,
    /// Whether the program gave it.
    pub(crate) given: bool,
    /// Microseconds.
    pub(crate) time: Option<i64>,
    pub(crate) model: Option<&'c str>,
}

impl<'a> Piece<'a> {
    pub(crate) fn new(suffix: Option<String>, role: Role) -> Self {
        Self {
            suffix,
            role,
            thought: false,
            texts: Vec::new(),
            calls: Vec::new(),
            files: Vec::new(),
            parts: Vec::new(),
            tokens: None,
            rest: Leftover::default(),
        }
    }

    /// The id of the piece of the message `id`.
    pub(crate) fn id(&self, id: &str) -> String {
        self.suffix.as_ref().map_or_else(|| id.to_owned(), |suffix| format!("{id}:{suffix}"))
    }

    /// The message, as the answer to `parent`. `number` is its place among the versions, if their times do not tell it.
    pub(crate) fn finish(
        mut self,
        common: &Common<'_>,
        parent: Option<String>,
        number: Option<usize>,
    ) -> Message<'a> {
        if self.parts.iter().any(|part| part != EMPTY_OBJECT) {
            self.rest.add_json("parts", &array_of(&self.parts));
        }
        if let Some(number) = number {
            self.rest.add_json(SIBLING_NUMBER, &number.to_string());
        }
        let id = self.id(common.id);
        let given = common.given && self.suffix.is_none();
        let model = common.model.filter(|_| self.role == Role::Assistant);
        Message {
            provider_message_id: given.then(|| Cow::Owned(id.clone())),
            id: Cow::Owned(id),
            role: self.role,
            content: Content::of_texts(self.texts),
            created_at: common.time,
            parent: parent.map(Cow::Owned),
            model: model.map(|model| Cow::Owned(model.to_owned())),
            is_thought: self.thought,
            token_count: self.tokens,
            attachments: self.files,
            tool_calls: self.calls,
            unread: self.rest.unread().map(Cow::Borrowed),
            raw_metadata: self.rest.into_json().map(unsigned_json),
            ..Message::default()
        }
    }
}
