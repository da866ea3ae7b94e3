//! What the first pass reads of a line.

use std::borrow::Cow;

use satchel_importer::{
    Element, JsonError, Leftover, Parser,
    json::{Kind, Object, Value},
    pam::prose,
};

use crate::raw::{BlockKind, REPEATED, block_heads};

/// The type of lines about texts that the person typed while the model worked.
pub(super) const QUEUE: &str = "queue-operation";
/// Types of lines that show a state of the program while it works. Most are frequent and repeat what other lines say.
const STATES: [&str; 8] = [
    "progress",
    "file-history-snapshot",
    "file-history-delta",
    "attribution-snapshot",
    "content-replacement",
    "speculation-accept",
    "prompt_snapshot",
    "saved_hook_context",
];

/// Known types of lines without a message.
const ASIDES: [&str; 14] = [
    "summary",
    "custom-title",
    "ai-title",
    "agent-name",
    "last-prompt",
    "tag",
    "mode",
    "permission-mode",
    "pr-link",
    "worktree-state",
    "cost-state",
    "frame-link",
    "task-summary",
    "agent-setting",
];

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Message,
    State,
    Queue,
    Aside,
}

/// Some fields of a line.
#[expect(clippy::struct_excessive_bools, reason = "facts about a line, each independent of the others")]
#[derive(Debug, Default)]
pub(super) struct Head<'a> {
    pub(super) kind: Option<&'a str>,
    pub(super) uuid: Option<&'a str>,
    pub(super) parent: Option<&'a str>,
    /// The line before a compaction, which begins a new tree.
    pub(super) logical_parent: Option<&'a str>,
    /// It has the field that names a parent, even if there is none.
    pub(super) names_parent: bool,
    pub(super) sidechain: bool,
    pub(super) time: Option<i64>,
    pub(super) operation: Option<&'a str>,
    /// The text of a queue operation.
    pub(super) queued: Option<Cow<'a, str>>,
    pub(super) message_id: Option<&'a str>,
    pub(super) model: Option<&'a str>,
    /// The texts of a line that the person may have said.
    pub(super) said: Vec<&'a str>,
    /// It belongs to what its parent began: an answer of a tool, an attachment, a line of the program.
    pub(super) continues: bool,
    /// Its message is complete.
    pub(super) ends: bool,
    /// It is of an unknown type and holds text.
    pub(super) unread: bool,
    /// The program wrote it, not the person, or hides it.
    pub(super) generated: bool,
    pub(super) title: Option<&'a str>,
    /// The line that a summary is about.
    pub(super) leaf: Option<&'a str>,
    pub(super) repeated: [Option<&'a str>; REPEATED.len()],
    holds: Contents,
}

/// Where the contents of a line are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Contents {
    #[default]
    Nowhere,
    Message,
    Attachment,
}

impl<'a> Head<'a> {
    /// Reads one line; none if it is not an object.
    pub(super) fn read(element: &Element<'a>) -> Result<Option<Self>, JsonError> {
        let mut json = Parser::new(element.text(), element.arena());
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            it.field(key, &mut json)?;
        }
        json.end()?;
        if it.kind.is_some_and(|kind| kind != "user" && kind != "attachment") {
            it.said.clear();
        }
        it.continues |= matches!(it.kind, Some("attachment" | "system"));
        it.unread &= !it.kind.is_some_and(|kind| ASIDES.contains(&kind));
        Ok(Some(it))
    }

    fn field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        match key {
            "type" => self.kind = text(json)?,
            "uuid" => self.uuid = text(json)?,
            "parentUuid" => {
                self.names_parent = true;
                self.parent = text(json)?;
            }
            "logicalParentUuid" => self.logical_parent = text(json)?,
            "isSidechain" => self.sidechain = Value::read(json)?.is_true(),
            "isMeta" | "isCompactSummary" | "isVisibleInTranscriptOnly" => {
                self.generated |= Value::read(json)?.is_true();
            }
            "timestamp" => self.time = Leftover::default().time(key, json)?,
            "operation" => self.operation = text(json)?,
            "content" => self.queued(json)?,
            "message" if json.kind()? == Kind::Object => {
                self.holds = Contents::Message;
                self.message(json)?;
            }
            "attachment" if json.kind()? == Kind::Object => {
                self.holds = Contents::Attachment;
                let attachment = Object::parse(json.raw_value()?, json.arena());
                if attachment.text("type") == Some("queued_command") {
                    self.said = match attachment.get("prompt") {
                        Value::Text(text) => vec![text],
                        Value::Raw(raw) => texts(&mut Parser::new(raw, json.arena()))?.0,
                        Value::Null => Vec::new(),
                    };
                }
            }
            "origin" if json.kind()? == Kind::Object => {
                let origin = Object::parse(json.raw_value()?, json.arena());
                self.generated |= origin.text("kind").is_some_and(|kind| kind != "human");
            }
            "customTitle" | "aiTitle" | "agentName" | "summary" if json.kind()? == Kind::String => {
                // Lines with messages have an `agentName`, too; it is no title there.
                self.title = text(json)?;
            }
            "leafUuid" => self.leaf = text(json)?,
            _ => {
                let value = Value::read(json)?;
                if let Some(at) = REPEATED.iter().position(|known| *known == key) {
                    self.repeated[at] = value.nonempty_text();
                } else {
                    self.unread |= value.text().is_some_and(prose::is_prose);
                }
            }
        }
        Ok(())
    }

    /// Reads the text of a queue operation: a text, or a list of blocks.
    fn queued(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let (texts, _) = texts(json)?;
        self.queued = match texts.as_slice() {
            [] => None,
            [text] => Some(Cow::Borrowed(*text)),
            texts => Some(texts.join("\n").into()),
        };
        Ok(())
    }

    fn message(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        json.enter_object()?;
        let mut role = None;
        while let Some(key) = json.key()? {
            match key {
                "id" => self.message_id = text(json)?,
                "model" => self.model = text(json)?,
                "role" => role = text(json)?,
                "stop_reason" => self.ends = text(json)?.is_some(),
                // The contents of answers are not needed.
                "content" if self.kind != Some("assistant") && role != Some("assistant") => {
                    self.content(json)?;
                }
                _ => json.skip_value()?,
            }
        }
        if role == Some("assistant") {
            self.said.clear();
        }
        Ok(())
    }

    fn content(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let (texts, answers) = texts(json)?;
        self.continues = answers && texts.is_empty();
        if !answers {
            self.said = texts;
        }
        Ok(())
    }

    /// What the line is, by its type or else by what it has.
    pub(super) fn what(&self) -> What {
        match self.kind {
            Some("user" | "assistant" | "system") => What::Message,
            Some(QUEUE) => What::Queue,
            Some(kind) if STATES.contains(&kind) => What::State,
            _ if self.holds != Contents::Nowhere || self.uuid.is_some() => What::Message,
            _ => What::Aside,
        }
    }
}

/// The texts of blocks, and whether there are answers of tools among them.
fn texts<'a>(json: &mut Parser<'a>) -> Result<(Vec<&'a str>, bool), JsonError> {
    let Ok(blocks) = block_heads(json)? else { return Ok((Vec::new(), false)) };
    let answers = blocks.iter().any(|block| block.what() == BlockKind::Result);
    let texts = blocks.iter().filter_map(|block| block.text.filter(|text| !text.trim().is_empty()));
    Ok((texts.collect(), answers))
}

/// A text that is not empty; null and values of other types are none.
fn text<'a>(json: &mut Parser<'a>) -> Result<Option<&'a str>, JsonError> {
    Ok(Value::read(json)?.nonempty_text())
}
