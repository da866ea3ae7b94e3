//! One message as the export has it.

use satchel_importer::{
    JsonError, Leftover, Parser,
    json::{Kind, Object, Value},
    tree::node_id,
};

/// The names of the number of tokens that a model wrote: of `OpenAI`'s two interfaces and of Ollama.
const TOKENS: [&str; 3] = ["completion_tokens", "output_tokens", "eval_count"];

/// One message.
#[derive(Debug, Default)]
pub(crate) struct Message<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) parent: Option<&'a str>,
    pub(crate) children: Vec<&'a str>,
    pub(crate) role: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
    pub(crate) created: Option<i64>,
    /// A text, or a list of parts.
    pub(crate) content: Value<'a>,
    /// The items of an answer.
    pub(crate) output: Value<'a>,
    /// Reasoning beside the content, which some servers of models give.
    pub(crate) reasoning: Vec<(&'a str, &'a str)>,
    pub(crate) files: Value<'a>,
    /// `sources`, and `citations` of older versions.
    pub(crate) sources: Vec<(&'a str, Value<'a>)>,
    /// The text of an error.
    pub(crate) error: Option<&'a str>,
    /// One answer made of those of several models.
    pub(crate) merged: Value<'a>,
    pub(crate) tokens: Option<u64>,
    pub(crate) rest: Leftover<'a>,
}

impl<'a> Message<'a> {
    /// Reads one message; none, and nothing taken, if it is not an object.
    pub(super) fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            it.read_field(key, json)?;
        }
        Ok(Some(it))
    }

    fn read_field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            "id" => self.id = rest.nonempty_text(key, json)?,
            "parentId" => self.parent = rest.nonempty_text(key, json)?.map(node_id),
            "childrenIds" => self.read_children(key, json)?,
            "role" => self.role = rest.nonempty_text(key, json)?,
            "model" => self.model = rest.nonempty_text(key, json)?,
            "timestamp" => self.created = rest.time(key, json)?,
            "content" => self.content = Value::read(json)?,
            "output" => self.output = Value::read(json)?,
            "reasoning_content" | "reasoning" | "thinking" => {
                let text = rest.nonempty_text(key, json)?;
                self.reasoning.extend(text.map(|text| (key, text)));
            }
            "files" => self.files = Value::read(json)?,
            "sources" | "citations" => {
                let list = Value::read(json)?;
                self.sources.push((key, list));
            }
            "merged" => self.merged = Value::read(json)?,
            "error" => {
                let value = rest.keep_and_read(key, json)?;
                let inside = value.raw().map(|raw| Object::parse(raw, json.arena()));
                self.error = value.nonempty_text().or_else(|| inside?.text("content"));
            }
            "usage" | "info" => {
                let value = rest.keep_and_read(key, json)?;
                let counts = value.raw().map(|raw| Object::parse(raw, json.arena())).unwrap_or_default();
                let found = TOKENS.iter().find_map(|key| counts.get(key).as_u64());
                self.tokens = self.tokens.or(found);
            }
            _ => self.read_other(key, json)?,
        }
        Ok(())
    }

    /// Fields that are kept or dropped.
    fn read_other(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            // Numbers with which Ollama went on; they mean nothing to anybody else.
            "context" if json.kind()? == Kind::Array => {
                let raw = json.raw_value()?;
                if !raw.bytes().all(|byte| byte.is_ascii_digit() || b"[], \n\r\t-".contains(&byte)) {
                    rest.add_json(key, raw);
                }
            }
            // A copy of the end of the text, for the voice.
            "lastSentence" if json.kind()? == Kind::String => json.skip_value()?,
            "models" | "modelName" | "modelIdx" | "userContext" | "done" | "completedAt" | "annotation"
            | "rating" | "feedbackId" | "followUps" | "status" | "statusHistory" | "originalContent"
            | "code_executions" | "codeExecutions" | "embeds" | "favorite" | "arena" | "selectedModelId"
            | "user" | "images" | "meta" | "contextSummary" => rest.keep(key, json)?,
            _ => rest.keep_unknown(key, json)?,
        }
        Ok(())
    }

    fn read_children(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        self.children.clear();
        if self.rest.array(key, json)? {
            while json.item()? {
                if json.kind()? == Kind::String {
                    self.children.push(json.string()?);
                }
            }
        }
        Ok(())
    }

    /// Whether it is what remains of a message that the program failed to store.
    pub(super) fn is_stub(&self) -> bool {
        let empty = [self.content, self.output, self.files, self.merged].iter().all(|it| *it == Value::Null);
        self.role.is_none() && empty && self.reasoning.is_empty() && self.rest.unread().is_none()
    }

    /// Keeps the `id` if the message has another key.
    pub(super) fn keep_other_id(&mut self, key: &str) {
        if let Some(id) = self.id.filter(|id| *id != key) {
            self.rest.add_text("id", id);
        }
    }
}
