//! Reads one part of a message: what it is, and what is left of its fields.

use std::borrow::Cow;

use satchel_importer::{Arena, Attachment, Fields, JsonError, json::Value};

use crate::{
    fields::time_at,
    file,
    tool::{self, Tool},
};

/// Fields of parts that are known and kept as they are.
const KEPT: [&str; 30] = [
    "agent",
    "attempt",
    "auto",
    "command",
    "cost",
    "description",
    "error",
    "executed",
    "files",
    "hash",
    "ignored",
    "mime",
    "filename",
    "url",
    "metadata",
    "model",
    "name",
    "native",
    "overflow",
    "providerMetadata",
    "providerResultState",
    "providerState",
    "reason",
    "snapshot",
    "source",
    "state",
    "synthetic",
    "tail_start_id",
    "time",
    "tokens",
];
/// Fields in the metadata of a provider that only the provider can read.
const PRIVATE: [&str; 6] = [
    "signature",
    "redactedData",
    "reasoningEncryptedContent",
    "encrypted_content",
    "thoughtSignature",
    "reasoning_details",
];

/// Fields of a message or a part with the metadata of a provider or of several ones.
const PROVIDERS: [&str; 5] =
    ["metadata", "providerMetadata", "native", "providerState", "providerResultState"];

/// What a part is.
pub(crate) enum What<'a> {
    /// A text that the person or the model wrote.
    Text(&'a str),
    /// A text that the program wrote in the person's name.
    Synthetic(&'a str),
    Thought(&'a str),
    File(Attachment<'a>),
    Tool(Box<Tool<'a>>),
    /// The request to shorten the session.
    Compaction,
    /// Something about the message: where a step begins and ends, a state of the files, a repeated request.
    Note,
}

/// A part of a message.
pub(crate) struct MessagePart<'a> {
    pub(crate) what: What<'a>,
    pub(crate) id: Option<&'a str>,
    /// When it began, in microseconds.
    pub(crate) time: Option<i64>,
    /// Tokens of the output of a step.
    pub(crate) step_tokens: Option<u64>,
    /// The type, if it is not known.
    pub(crate) unknown: Option<&'a str>,
    /// A field of a text that is not known and true.
    pub(crate) unknown_mark: Option<&'a str>,
    /// An unknown field that holds natural language.
    pub(crate) unread: Option<&'a str>,
    /// Whether the bytes of a file cannot be decoded.
    pub(crate) unreadable: bool,
    /// What is left of it, as JSON text.
    pub(crate) rest: String,
}

impl<'a> MessagePart<'a> {
    /// Takes the fields of a part apart. `decode` says whether the bytes of files are needed.
    pub(crate) fn read(mut fields: Fields<'a>, decode: bool) -> Result<Self, JsonError> {
        let id = fields.id("id");
        let kind = fields.get("type").nonempty_text();
        let mut part = Self {
            what: What::Note,
            id,
            time: started(&fields)?,
            step_tokens: None,
            unknown: None,
            unknown_mark: None,
            unread: None,
            unreadable: false,
            rest: String::new(),
        };
        remove_private(&mut fields)?;
        part.what = match kind {
            Some("text") => text(&mut fields),
            Some("reasoning") => fields.take_text("text").map_or(What::Note, What::Thought),
            Some("file") => part.file(&mut fields, decode),
            Some("tool") => part.tool(tool::read(&mut fields, decode)?),
            Some("tool-invocation") => part.tool(tool::read_invocation(&mut fields)?),
            Some("subtask") => fields.take_text("prompt").map_or(What::Note, What::Text),
            Some("compaction") => What::Compaction,
            Some("step-finish") => {
                part.step_tokens = fields.object("tokens")?.get("output").as_u64();
                What::Note
            }
            Some("step-start" | "snapshot" | "patch" | "agent" | "retry" | "source-url") => What::Note,
            other => {
                part.unknown = Some(other.unwrap_or("none"));
                fields.take_text("text").map_or(What::Note, What::Text)
            }
        };
        part.finish(fields, kind);
        Ok(part)
    }

    fn file(&mut self, fields: &mut Fields<'a>, decode: bool) -> What<'a> {
        let read = file::take(fields, decode);
        self.unreadable = read.unreadable;
        read.attachment.map_or(What::Note, What::File)
    }

    fn tool(&mut self, tool: Tool<'a>) -> What<'a> {
        self.time = tool.started.or(self.time);
        self.unreadable = tool.unreadable;
        What::Tool(Box::new(tool))
    }

    /// Keeps what is left. Of a text nothing is worth a place but what says more about it.
    fn finish(&mut self, mut fields: Fields<'a>, kind: Option<&str>) {
        let mut known: Vec<&str> = vec!["id", "sessionID", "messageID", "type"];
        known.extend(KEPT);
        self.unread = fields.unread(&known);
        if kind == Some("text") {
            let mark = |(key, value): &(&'a str, Value<'a>)| value.is_true() && !known.contains(key);
            self.unknown_mark = fields.iter().find(mark).map(|(key, _)| key);
        }
        fields.take("sessionID");
        fields.take("messageID");
        if matches!(kind, Some("text" | "reasoning")) && !matches!(self.what, What::Note) {
            fields.take("type");
        }
        self.rest = fields.into_json();
    }
}

/// When a part began; version 2 of the program has another name for it.
fn started(fields: &Fields<'_>) -> Result<Option<i64>, JsonError> {
    let time = fields.object("time")?;
    Ok(time_at(&time, "start").or_else(|| time_at(&time, "ran")).or_else(|| time_at(&time, "created")))
}

/// An empty text is a note: the program writes the part before the first word has come.
fn text<'a>(fields: &mut Fields<'a>) -> What<'a> {
    let synthetic = fields.get("synthetic").is_true() || fields.get("ignored").is_true();
    match fields.take_text("text") {
        Some(text) if synthetic => What::Synthetic(text),
        Some(text) => What::Text(text),
        None => What::Note,
    }
}

/// Removes from the metadata of each provider what only the provider can read.
pub(crate) fn remove_private(fields: &mut Fields<'_>) -> Result<(), JsonError> {
    // The state of a tool is no metadata.
    let state = if fields.get("type").text() == Some("tool") { None } else { Some("state") };
    for key in PROVIDERS.into_iter().chain(state) {
        let Some(mut providers) = fields.take_object(key)? else { continue };
        providers.remove(&PRIVATE);
        let mut kept = Fields::none(fields.arena());
        for (provider, value) in providers.iter_all() {
            kept.push(provider, without_private(value, fields.arena())?);
        }
        fields.push_json(key, &kept.into_json());
    }
    Ok(())
}

/// A value without what only the provider can read. One that has nothing of it is not written anew.
fn without_private<'a>(value: Value<'a>, arena: &'a Arena) -> Result<Value<'a>, JsonError> {
    let Some(mut own) = Fields::of(value, arena)? else { return Ok(value) };
    let length = own.iter_all().len();
    own.remove(&PRIVATE);
    let unchanged = own.iter_all().len() == length;
    Ok(if unchanged { value } else { Value::Raw(arena.alloc_str(&own.into_json())) })
}

/// The texts of an error, and what is left of it.
pub(crate) fn error_text<'a>(
    error: Value<'a>,
    fields: &Fields<'a>,
) -> Result<(Cow<'a, str>, String), JsonError> {
    let Some(raw) = error.raw().filter(|raw| raw.starts_with('{')) else {
        return Ok((error.text().map_or_else(|| error.json(), Cow::Borrowed), "{}".to_owned()));
    };
    let mut error = Fields::parse(raw, fields.arena())?;
    let name = error.get("name").nonempty_text();
    let mut data = error.take_object("data")?;
    let message =
        data.as_mut().and_then(|data| data.take_text("message")).or_else(|| error.take_text("message"));
    if let Some(data) = data {
        error.push_json("data", &data.into_json());
    }
    Ok((message.or(name).unwrap_or("an error without a message").into(), error.into_json()))
}
