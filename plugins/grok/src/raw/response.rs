//! Items of `responses`.

use satchel_importer::{
    JsonError, Leftover, Parser,
    json::{Object, Value, time_of_text},
};

/// One message of the person or of the model.
#[derive(Debug, Default)]
pub(crate) struct Response<'a> {
    /// Its index in the list.
    pub(crate) index: usize,
    pub(crate) id: Option<&'a str>,
    pub(crate) conversation: Option<&'a str>,
    pub(crate) sender: Option<&'a str>,
    pub(crate) message: Option<&'a str>,
    pub(crate) parent: Option<&'a str>,
    pub(crate) created: Option<i64>,
    /// What the person picked, which need not be a model's name.
    pub(crate) model: Option<&'a str>,
    /// The model that `metadata` names.
    pub(crate) resolved: Option<&'a str>,
    pub(crate) thinking: Option<&'a str>,
    pub(crate) thinking_started: Option<i64>,
    pub(crate) agents: Value<'a>,
    pub(crate) cards: Value<'a>,
    /// The values from here on are also kept in `rest`.
    pub(crate) steps: Value<'a>,
    pub(crate) found: Value<'a>,
    pub(crate) cited: Value<'a>,
    pub(crate) files: Value<'a>,
    pub(crate) images: Value<'a>,
    pub(crate) generated: Value<'a>,
    pub(crate) edited: Value<'a>,
    /// The prompt of an image, where the message has no text.
    pub(crate) query: Value<'a>,
    pub(crate) rest: Leftover<'a>,
}

impl<'a> Response<'a> {
    /// Reads one item, with or without its wrapper; none if it is not an object.
    pub(super) fn read(index: usize, json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self { index, ..Self::default() };
        while let Some(key) = json.key()? {
            if key == "response" && json.enter_object()? {
                while let Some(key) = json.key()? {
                    it.field(key, json)?;
                }
            } else {
                it.field(key, json)?;
            }
        }
        Ok(Some(it))
    }

    /// Whether it has neither an id nor a sender nor a text.
    pub(super) fn blank(&self) -> bool {
        self.id.is_none() && self.sender.is_none() && self.message.is_none()
    }

    fn field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            "_id" | "response_id" => self.id = rest.nonempty_text(key, json)?,
            "conversation_id" => self.conversation = rest.nonempty_text(key, json)?,
            "message" => self.message = rest.text(key, json)?,
            "sender" => self.sender = rest.nonempty_text(key, json)?,
            "create_time" => self.created = rest.time(key, json)?,
            "parent_response_id" => self.parent = rest.nonempty_text(key, json)?,
            "model" => self.model = rest.nonempty_text(key, json)?,
            "metadata" => self.read_metadata(key, json)?,
            "thinking_trace" => self.thinking = rest.nonempty_text(key, json)?,
            "thinking_start_time" => self.read_start(key, json)?,
            "agent_thinking_traces" => self.agents = Value::read(json)?,
            "card_attachments_json" => self.cards = Value::read(json)?,
            "steps" => self.steps = rest.keep_and_read(key, json)?,
            "web_search_results" => self.found = rest.keep_and_read(key, json)?,
            "cited_web_search_results" => self.cited = rest.keep_and_read(key, json)?,
            "file_attachments" => self.files = rest.keep_and_read(key, json)?,
            "image_attachments" => self.images = rest.keep_and_read(key, json)?,
            "generated_image_urls" => self.generated = rest.keep_and_read(key, json)?,
            "image_edit_uri" => self.edited = rest.keep_and_read(key, json)?,
            "query" => self.query = rest.keep_and_read(key, json)?,
            _ => rest.keep_unknown(key, json)?,
        }
        Ok(())
    }

    /// Reads the model: `request_metadata.resolved_model`, else `requestModelDetails.modelId`.
    fn read_metadata(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let arena = json.arena();
        if let Some(raw) = self.rest.keep_and_read(key, json)?.raw() {
            let metadata = Object::parse(raw, arena);
            let resolved = metadata.object("request_metadata", arena).text("resolved_model");
            self.resolved = resolved.or(metadata.object("requestModelDetails", arena).text("modelId"));
        }
        Ok(())
    }

    /// Reads when thinking began; `rest` keeps it as it stands, as it does the end.
    fn read_start(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let arena = json.arena();
        self.thinking_started = match self.rest.keep_and_read(key, json)? {
            Value::Null => None,
            Value::Text(text) => time_of_text(text).map(|(micros, _)| micros),
            Value::Raw(raw) => Leftover::default().time(key, &mut Parser::new(raw, arena))?,
        };
        Ok(())
    }
}
