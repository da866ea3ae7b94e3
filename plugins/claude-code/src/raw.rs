//! The lines of a session. Any field may be absent, null or of another type.

use satchel_importer::{JsonError, Leftover, Parser, json::Value};

mod block;
mod message;

pub(crate) use block::{Block, BlockKind, block_heads, blocks};
pub(crate) use message::Message;

/// Fields that most lines repeat. A message keeps them only where they differ from those of its session.
pub(crate) const REPEATED: [&str; 9] =
    ["cwd", "gitBranch", "version", "entrypoint", "userType", "sessionId", "slug", "agentId", "sessionKind"];

/// Other known fields that may hold text: states of the program, which are kept.
const KNOWN: [&str; 14] = [
    "hookInfos",
    "hookErrors",
    "hookAdditionalContext",
    "stopReason",
    "compactMetadata",
    "microcompactMetadata",
    "error",
    "cause",
    "apiError",
    "todos",
    "thinkingMetadata",
    "planContent",
    "mcpMeta",
    "toolDenialKind",
];

/// One line.
#[derive(Debug, Default)]
pub(crate) struct Line<'a> {
    /// Its `type`.
    pub(crate) kind: Option<&'a str>,
    pub(crate) uuid: Option<&'a str>,
    pub(crate) time: Option<i64>,
    pub(crate) message: Option<Message<'a>>,
    /// JSON text.
    pub(crate) attachment: Option<&'a str>,
    /// The text of a line of the program itself.
    pub(crate) content: Value<'a>,
    /// What a tool answered, in a form of its own for each tool.
    pub(crate) tool_result: Value<'a>,
    pub(crate) operation: Option<&'a str>,
    /// The values of [`REPEATED`].
    pub(crate) repeated: [Option<&'a str>; REPEATED.len()],
    /// It is hidden from the person.
    pub(crate) hidden: bool,
    pub(crate) rest: Leftover<'a>,
}

impl<'a> Line<'a> {
    /// Reads one line; none if it is not an object.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            it.field(key, json)?;
        }
        json.end()?;
        Ok(Some(it))
    }

    fn field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            "type" => self.kind = rest.nonempty_text(key, json)?,
            "uuid" => self.uuid = rest.nonempty_text(key, json)?,
            "timestamp" => self.time = rest.time(key, json)?,
            "message" => match Message::read(json)? {
                Ok(message) => self.message = Some(message),
                Err(other) => rest.keep_unexpected(key, other),
            },
            "attachment" => match Value::read(json)? {
                Value::Raw(raw) if raw.starts_with('{') => self.attachment = Some(raw),
                other => rest.keep_unexpected(key, other),
            },
            "content" => self.content = Value::read(json)?,
            "toolUseResult" => self.tool_result = Value::read(json)?,
            "operation" => self.operation = rest.keep_and_read(key, json)?.text(),
            "isMeta" | "isCompactSummary" | "isVisibleInTranscriptOnly" => {
                self.hidden |= rest.keep_and_read(key, json)?.is_true();
            }
            // The outline has read them.
            "parentUuid" | "logicalParentUuid" => json.skip_value()?,
            "isSidechain" => {
                if Value::read(json)?.is_true() {
                    rest.add_bool(key, true);
                }
            }
            _ => match REPEATED.iter().position(|known| *known == key) {
                Some(at) => self.repeated[at] = rest.nonempty_text(key, json)?,
                None if KNOWN.contains(&key) => rest.keep(key, json)?,
                None => rest.keep_unknown(key, json)?,
            },
        }
        Ok(())
    }
}

/// What [`Leftover`] does not do itself.
pub(crate) trait KeepUnexpected<'a> {
    /// Keeps a value of a type that was not expected.
    fn keep_unexpected(&mut self, key: &'a str, value: Value<'a>);
}

impl<'a> KeepUnexpected<'a> for Leftover<'a> {
    fn keep_unexpected(&mut self, key: &'a str, value: Value<'a>) {
        match value {
            Value::Null => {}
            Value::Text(text) => {
                self.note_unknown(key, value);
                self.add_text(key, text);
            }
            Value::Raw(raw) => {
                self.note_unknown(key, value);
                self.add_json(key, raw);
            }
        }
    }
}
