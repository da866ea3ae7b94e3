//! Reads one part of a message: what it is, and what is left of its fields.

use std::borrow::Cow;

use satchel_importer::{Attachment, Fields, JsonError, ToolCall, json::Value};

use crate::{
    bytes, call,
    private::{compact, remove_of_provider},
    result::{self, ToolResult},
};

/// Fields of parts that are known and kept as they are.
const KEPT: [&str; 12] = [
    "_meta",
    "actionType",
    "annotations",
    "arguments",
    "data",
    "id",
    "metadata",
    "notificationType",
    "toolCall",
    "toolName",
    "toolResult",
    "type",
];

/// Fields of annotations that are known.
const ANNOTATIONS: [&str; 4] = ["audience", "priority", "lastModified", "timestamp"];

/// What a part is.
pub(crate) enum What<'a> {
    Text(&'a str),
    Thought(&'a str),
    File(Attachment<'a>),
    Call(Box<ToolCall<'a>>),
    Result(Box<ToolResult<'a>>),
    /// What the program or a tool told the person or asked for.
    Notice(Option<&'a str>),
    /// What the person answered to the question of a tool.
    Answer(Cow<'a, str>),
    /// Nothing that is worth a message.
    Note,
}

/// A part of a message.
pub(crate) struct Block<'a> {
    pub(crate) what: What<'a>,
    /// What identifies the part among others of its message.
    pub(crate) key: [&'a str; 2],
    /// Whether it is only for the model.
    pub(crate) hidden: bool,
    /// Types that are not known.
    pub(crate) unknown: Vec<&'a str>,
    /// A field of a text or a picture that is not known.
    pub(crate) unknown_field: Option<&'a str>,
    /// An unknown field that holds natural language.
    pub(crate) unread: Option<&'a str>,
    /// Whether the bytes of a file cannot be decoded.
    pub(crate) unreadable: bool,
    /// What is left of it, as JSON text.
    pub(crate) rest: String,
}

impl<'a> Block<'a> {
    /// A text without any fields.
    pub(crate) fn of_text(text: &'a str) -> Self {
        Self {
            what: if text.is_empty() { What::Note } else { What::Text(text) },
            key: ["text", text],
            hidden: false,
            unknown: Vec::new(),
            unknown_field: None,
            unread: None,
            unreadable: false,
            rest: "{}".to_owned(),
        }
    }

    /// Takes the fields of a part apart. `decode` says whether the bytes of files are needed.
    pub(crate) fn read(mut fields: Fields<'a>, decode: bool) -> Result<Self, JsonError> {
        let kind = fields.get("type").nonempty_text();
        let mut block = Self::of_text("");
        block.key = key_of(&fields, kind)?;
        let annotations = fields.object("annotations")?;
        block.hidden = for_the_model_only(annotations.get("audience"));
        let unknown = annotations.unknown(&ANNOTATIONS);
        remove_private(&mut fields, kind)?;
        block.what = match kind {
            Some("text") => fields.take_text("text").map_or(What::Note, What::Text),
            Some("thinking") => fields.take_text("thinking").map_or(What::Note, What::Thought),
            // The name that thoughts of some models had.
            Some("reasoning") => fields.take_text("text").map_or(What::Note, What::Thought),
            Some("image") => block.file(&mut fields, decode),
            Some("toolRequest" | "frontendToolRequest") => What::Call(Box::new(call::take(&mut fields)?)),
            Some("toolResponse") => block.result(result::take(&mut fields, decode)?),
            Some("toolConfirmationRequest") => What::Notice(fields.take_text("prompt")),
            Some("actionRequired") => action(&mut fields)?,
            Some(
                "systemNotification"
                | "contextLengthExceeded"
                | "summarizationRequested"
                | "conversationCompacted",
            ) => What::Notice(fields.take_text("msg")),
            Some("redactedThinking") => What::Note,
            other => {
                block.unknown.push(other.unwrap_or("none"));
                let text = ["text", "msg", "message"].into_iter().find_map(|key| fields.take_text(key));
                text.map_or(What::Note, What::Text)
            }
        };
        block.finish(fields, kind);
        block.unknown_field = block.unknown_field.or(unknown);
        Ok(block)
    }

    fn file(&mut self, fields: &mut Fields<'a>, decode: bool) -> What<'a> {
        let (mime, data) = (fields.take_text("mimeType"), fields.take_text("data"));
        let (attachment, unreadable) = bytes::attachment(mime, None, data, decode);
        self.unreadable = unreadable;
        What::File(attachment)
    }

    fn result(&mut self, mut read: ToolResult<'a>) -> What<'a> {
        self.unreadable = read.unreadable;
        self.unknown.append(&mut read.unknown);
        What::Result(Box::new(read))
    }

    /// Keeps what is left. The type of a part is not, where the piece shows it.
    fn finish(&mut self, mut fields: Fields<'a>, kind: Option<&str>) {
        self.unread = fields.unread(&KEPT);
        if matches!(self.what, What::Text(_) | What::File(_)) {
            self.unknown_field = fields.unknown(&KEPT);
        }
        let shown = match self.what {
            What::Text(_) => kind == Some("text"),
            What::Note => matches!(kind, Some("text" | "thinking" | "reasoning")),
            What::Thought(_) | What::File(_) | What::Result(_) => true,
            What::Call(_) => kind == Some("toolRequest"),
            What::Notice(_) | What::Answer(_) => false,
        };
        if shown {
            fields.take("type");
        }
        self.rest = fields.into_json();
    }
}

/// The type of the part with its text, the id of its call, or the beginning of its file.
fn key_of<'a>(fields: &Fields<'a>, kind: Option<&'a str>) -> Result<[&'a str; 2], JsonError> {
    let data = fields.object("data")?;
    let text = |key| fields.get(key).nonempty_text();
    let own = ["text", "thinking", "id", "msg", "data"].into_iter().find_map(text);
    let own = own.or_else(|| data.get("id").nonempty_text());
    Ok([kind.unwrap_or_default(), own.unwrap_or_default()])
}

/// Whether the annotations of the part name the model as the only one who is to see it.
fn for_the_model_only(audience: Value<'_>) -> bool {
    audience.raw().is_some_and(|raw| raw.contains("\"assistant\"") && !raw.contains("\"user\""))
}

fn remove_private(fields: &mut Fields<'_>, kind: Option<&str>) -> Result<(), JsonError> {
    remove_of_provider(fields)?;
    if kind == Some("redactedThinking") {
        fields.take("data");
    }
    Ok(())
}

/// What a part says for which the program waited: a question, or the answer to it.
fn action<'a>(fields: &mut Fields<'a>) -> Result<What<'a>, JsonError> {
    let Some(mut data) = fields.take_object("data")? else { return Ok(What::Notice(None)) };
    let what = match data.get("actionType").text() {
        Some("elicitationResponse") => match take_either(&mut data, ["user_data", "userData"]) {
            Value::Null => What::Notice(None),
            Value::Text(text) => What::Answer(text.into()),
            Value::Raw(raw) => What::Answer(compact(raw, fields.arena())?.into()),
        },
        _ => What::Notice(data.take_text("message").or_else(|| data.take_text("prompt"))),
    };
    fields.push_json("data", &data.into_json());
    Ok(what)
}

fn take_either<'a>(fields: &mut Fields<'a>, keys: [&str; 2]) -> Value<'a> {
    let key = keys.into_iter().find(|key| fields.has(key)).unwrap_or_default();
    fields.take(key)
}
