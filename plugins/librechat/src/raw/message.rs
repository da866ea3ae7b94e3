//! One message as the export has it.

use satchel_importer::{
    JsonError, Leftover, Parser,
    json::{Kind, Value},
};

/// The fields that are kept as they are.
const KEPT: [&str; 36] = [
    "__v",
    "_id",
    "addedConvo",
    "alwaysAppliedSkills",
    "bg",
    "clientId",
    "clientTimestamp",
    "contextMeta",
    "conversationSignature",
    "current",
    "endpoint",
    "expiredAt",
    "feedback",
    "finish_reason",
    "generation",
    "iconURL",
    "invocationId",
    "isTemporary",
    "langfuseDestinationIds",
    "langfuseSampled",
    "manualSkills",
    "metadata",
    "overrideParentMessageId",
    "promptTokens",
    "quotes",
    "responseMessageId",
    "searchResult",
    "sender",
    "submitting",
    "summary",
    "summaryTokenCount",
    "tenantId",
    "thread_id",
    "title",
    "updatedAt",
    "user",
];

/// The id that messages without a parent name as their parent.
pub(crate) const NO_PARENT: &str = "00000000-0000-0000-0000-000000000000";

/// One message.
#[derive(Debug, Default)]
pub(crate) struct Message<'a> {
    pub(crate) id: Option<&'a str>,
    /// The id of the parent that it names.
    pub(crate) parent: Option<&'a str>,
    /// Whether it says that it has no parent.
    pub(crate) first: bool,
    pub(crate) conversation: Option<&'a str>,
    pub(crate) by_user: Option<bool>,
    pub(crate) sender: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
    pub(crate) created: Option<i64>,
    pub(crate) tokens: Option<u64>,
    /// The whole text; empty if it is in the content.
    pub(crate) text: Value<'a>,
    /// A list of parts.
    pub(crate) content: Value<'a>,
    pub(crate) files: Value<'a>,
    pub(crate) attachments: Value<'a>,
    /// Calls of plugins in old versions: `plugin` and `plugins`.
    pub(crate) plugins: Vec<(&'a str, Value<'a>)>,
    pub(crate) rest: Leftover<'a>,
}

impl<'a> Message<'a> {
    /// Reads one message; none if it is not an object.
    pub(super) fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        let mut it = Self::default();
        Ok(it.read_fields(json)?.then_some(it))
    }

    /// Reads the fields of an object; false if it is none.
    pub(super) fn read_fields(&mut self, json: &mut Parser<'a>) -> Result<bool, JsonError> {
        if !json.enter_object()? {
            return Ok(false);
        }
        while let Some(key) = json.key()? {
            self.read_field(key, json)?;
        }
        json.end()?;
        Ok(true)
    }

    fn read_field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            "messageId" => self.id = rest.nonempty_text(key, json)?,
            "parentMessageId" => {
                let parent = rest.nonempty_text(key, json)?;
                self.first = parent == Some(NO_PARENT);
                self.parent = parent.filter(|_| !self.first);
            }
            "conversationId" => self.conversation = rest.nonempty_text(key, json)?,
            "isCreatedByUser" => self.by_user = rest.bool(key, json)?,
            "model" => self.model = rest.nonempty_text(key, json)?,
            "createdAt" => self.created = rest.time(key, json)?,
            "tokenCount" => self.tokens = rest.count(key, json)?,
            "text" => self.text = Value::read(json)?,
            "content" => self.content = Value::read(json)?,
            "files" => self.files = Value::read(json)?,
            "attachments" => self.attachments = Value::read(json)?,
            "plugin" | "plugins" => {
                let value = Value::read(json)?;
                self.plugins.push((key, value));
            }
            "sender" => self.sender = rest.keep_and_read(key, json)?.nonempty_text(),
            // Most messages say that none of these is true.
            "error" | "unfinished" | "isEdited" | "cancelled" => {
                if let Some(true) = rest.bool(key, json)? {
                    rest.add_bool(key, true);
                }
            }
            // The place in the tree says the same.
            "depth" | "siblingIndex" if json.kind()? == Kind::Number => json.skip_value()?,
            "children" if json.kind()? == Kind::Array => {
                let list = json.raw_value()?;
                if list != "[]" {
                    // Its key was written with escapes, so the messages were not found.
                    rest.note_unknown(key, Value::Raw(list));
                    rest.add_json(key, list);
                }
            }
            _ if KEPT.contains(&key) => rest.keep(key, json)?,
            _ => rest.keep_unknown(key, json)?,
        }
        Ok(())
    }

    /// Whether it says nothing at all.
    pub(super) fn is_blank(&self) -> bool {
        let values = [self.text, self.content, self.files, self.attachments];
        let empty = values.iter().all(|value| matches!(value, Value::Null | Value::Text("")));
        self.id.is_none() && self.by_user.is_none() && empty && self.rest.unread().is_none()
    }
}
