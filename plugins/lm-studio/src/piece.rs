//! A piece of a version, which becomes a message of its own.

use std::borrow::Cow;

use satchel_importer::{
    Attachment, Citation, Content, Leftover, Message, Role, ToolCall,
    address::unsigned_json,
    json::{EMPTY_OBJECT, array_of},
    tree::SIBLING_NUMBER,
};

/// How a piece gets its id.
#[derive(Debug)]
pub(crate) enum IdSource<'a> {
    /// The id of its version: the first piece.
    Version,
    /// The id of its step.
    Step(&'a str),
    /// What follows the id of its step.
    PartOf(&'a str, usize),
    /// What follows the id of its version, because its step has no id.
    Numbered(usize, usize),
}

/// Texts and files, a thought, a call, or a result.
#[derive(Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) name: IdSource<'a>,
    pub(crate) role: Role,
    /// Microseconds.
    pub(crate) time: Option<i64>,
    pub(crate) model: Option<&'a str>,
    pub(crate) thought: bool,
    pub(crate) tokens: Option<u64>,
    pub(crate) texts: Vec<Cow<'a, str>>,
    /// Whether its texts are pieces of one text, as a model writes it.
    pub(crate) streamed: bool,
    pub(crate) calls: Vec<ToolCall<'a>>,
    pub(crate) files: Vec<Attachment<'a>>,
    pub(crate) citations: Vec<Citation<'a>>,
    /// What is left of the steps in it, as JSON texts.
    pub(crate) steps: Vec<String>,
    /// What is left of the parts in it, as JSON texts.
    pub(crate) parts: Vec<String>,
    pub(crate) rest: Leftover<'a>,
}

impl<'a> Piece<'a> {
    pub(crate) fn new(name: IdSource<'a>, role: Role, time: Option<i64>) -> Self {
        Self {
            name,
            role,
            time,
            model: None,
            thought: false,
            tokens: None,
            texts: Vec::new(),
            streamed: true,
            calls: Vec::new(),
            files: Vec::new(),
            citations: Vec::new(),
            steps: Vec::new(),
            parts: Vec::new(),
            rest: Leftover::default(),
        }
    }

    /// All of its text.
    pub(crate) fn text(&self) -> String {
        self.texts.concat()
    }

    /// The message with this id, as the answer to `parent`. `number` is its place among the versions, if their times do not tell it.
    pub(crate) fn finish(
        mut self,
        id: String,
        parent: Option<String>,
        number: Option<usize>,
        provider_id: bool,
    ) -> Message<'a> {
        for (key, list) in [("steps", &self.steps), ("parts", &self.parts)] {
            if list.iter().any(|json| json != EMPTY_OBJECT) {
                self.rest.add_json(key, &array_of(list));
            }
        }
        if let Some(number) = number {
            self.rest.add_json(SIBLING_NUMBER, &number.to_string());
        }
        let content = self.content();
        Message {
            provider_message_id: provider_id.then(|| Cow::Owned(id.clone())),
            id: Cow::Owned(id),
            role: self.role,
            content,
            created_at: self.time,
            parent: parent.map(Cow::Owned),
            model: self.model.filter(|_| self.role == Role::Assistant).map(Cow::Borrowed),
            is_thought: self.thought,
            token_count: self.tokens,
            attachments: self.files,
            citations: self.citations,
            tool_calls: self.calls,
            unread: self.rest.unread().map(Cow::Borrowed),
            raw_metadata: self.rest.into_json().map(unsigned_json),
        }
    }

    fn content(&mut self) -> Option<Content<'a>> {
        let texts = std::mem::take(&mut self.texts);
        if self.streamed && texts.len() > 1 {
            return Some(Content::Text(texts.concat().into()));
        }
        Content::of_texts(texts)
    }
}
