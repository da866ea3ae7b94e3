//! From one message of the provider to one of ours, and to one for each of its thoughts.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Attachment, Citation, Content, Message, Part, Role, address::unsigned_json, same_text,
};

use super::{calls::Calls, cited, files};
use crate::raw::{self, Block};

/// The tool by which the model edits what it remembers.
const MEMORY_TOOL: &str = "memory_user_edits";

/// What one message gives.
pub(super) struct Mapped<'a> {
    /// Each answers the one before; the message answers the last.
    pub(super) thoughts: Vec<Message<'a>>,
    pub(super) message: Message<'a>,
    pub(super) memory_calls: Vec<MemoryCall<'a>>,
}

/// A call of the memory tool.
pub(crate) struct MemoryCall<'a> {
    /// Its place in the content.
    pub(crate) block: usize,
    /// JSON text.
    pub(crate) input: Option<&'a str>,
    pub(crate) answer: Answer<'a>,
}

/// What a tool said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer<'a> {
    None,
    Error,
    Good(Cow<'a, str>),
}

/// Our role of a sender's name.
pub(super) fn role(sender: &str) -> Option<Role> {
    match sender {
        "human" | "user" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        "system" => Some(Role::System),
        "tool" => Some(Role::Tool),
        _ => None,
    }
}

/// Maps one message.
pub(super) fn map<'a>(
    mut raw: raw::Message<'a>,
    id: Cow<'a, str>,
    parent: Option<Cow<'a, str>>,
    arena: &'a Arena,
) -> Mapped<'a> {
    let mut speech =
        Speech { id: id.clone(), uuid: raw.uuid, created: raw.created, parent, ..Speech::default() };
    speech.role = raw.sender.and_then(role).unwrap_or(Role::Assistant);
    if let Some(sender) = raw.sender.filter(|sender| role(sender).is_none()) {
        raw.rest.add_text("sender", sender);
    }
    let blank = raw.blocks.is_empty();
    for (index, block) in std::mem::take(&mut raw.blocks).into_iter().enumerate() {
        speech.add(index, block, arena);
    }
    speech.take_flat_text(blank, &mut raw);
    let files = files::attachments(raw.attachments, raw.files, speech.attachments);
    for (key, kept) in
        [("content", list(&speech.kept)), ("attachments", files.kept_attached), ("files", files.kept_named)]
    {
        if let Some(kept) = kept {
            raw.rest.add_json(key, &kept);
        }
    }
    let content = content(speech.parts);
    if speech.injected && content.is_none() && files.attachments.is_empty() && speech.calls.is_empty() {
        raw.rest.add_bool("hidden", true);
    }
    let (tool_calls, memory_calls) = speech.calls.finish();
    let message = Message {
        id,
        provider_message_id: raw.uuid.map(Cow::Borrowed),
        role: speech.role,
        content,
        created_at: raw.created,
        parent: speech.parent,
        model: raw.model.filter(|model| !model.is_empty()).map(Cow::Borrowed),
        attachments: files.attachments,
        citations: speech.citations,
        tool_calls,
        raw_metadata: raw.rest.into_json().map(unsigned_json),
        ..Message::default()
    };
    Mapped { thoughts: speech.thoughts, message, memory_calls }
}

/// What the blocks of a message come to.
#[derive(Default)]
struct Speech<'a> {
    id: Cow<'a, str>,
    uuid: Option<&'a str>,
    role: Role,
    created: Option<i64>,
    /// The message or thought that comes before.
    parent: Option<Cow<'a, str>>,
    parts: Vec<&'a str>,
    thoughts: Vec<Message<'a>>,
    citations: Vec<Citation<'a>>,
    calls: Calls<'a>,
    attachments: Vec<Attachment<'a>>,
    /// A block of the provider's own prompt was there.
    injected: bool,
    /// What is left of each block, in order, as JSON text.
    kept: Vec<Cow<'a, str>>,
}

impl<'a> Speech<'a> {
    fn add(&mut self, index: usize, mut block: Block<'a>, arena: &'a Arena) {
        if let Some(odd) = block.odd {
            self.kept.push(odd.into());
            return;
        }
        match block.kind {
            "token_budget" => return,
            "thinking" => return self.think(index, block, arena),
            "text" => self.cite(block.citations, arena),
            "tool_use" => {
                let memory = block.name == Some(MEMORY_TOOL);
                self.calls.ask(&mut block, memory.then_some(index), arena);
            }
            "tool_result" => self.calls.answer(&mut block, arena),
            "image" | "document" => self.attachments.push(files::from_block(&mut block)),
            "injected_prompt_block" => self.injected = true,
            _ => {}
        }
        // A voice note, and whatever else holds words.
        if !matches!(block.kind, "tool_use" | "tool_result" | "injected_prompt_block" | "image" | "document")
        {
            self.parts.extend(block.text.take().filter(|text| !text.is_empty()));
        }
        self.kept.push(block.put_back());
    }

    /// Makes a message of its own from a thought, so that nobody takes it for the answer.
    fn think(&mut self, index: usize, mut block: Block<'a>, arena: &'a Arena) {
        self.kept.push(Cow::Borrowed(r#"{"type":"thinking"}"#));
        let words = block.thinking.take().or_else(|| block.text.take()).filter(|text| !text.is_empty());
        let words =
            words.map(Cow::Borrowed).or_else(|| block.summaries.and_then(|raw| cited::summaries(raw, arena)));
        let Some(words) = words else {
            // Nothing was thought aloud; what is known of it stays where the block stood.
            self.kept.pop();
            self.kept.push(block.put_back());
            return;
        };
        if let Some(uuid) = self.uuid {
            block.rest.add_text("message_uuid", uuid);
        }
        let id: Cow<'a, str> = format!("{}:thinking:{index}", self.id).into();
        let parent = self.parent.replace(id.clone());
        self.thoughts.push(Message {
            id,
            role: self.role,
            content: Some(Content::Text(words)),
            created_at: self.created,
            parent,
            is_thought: true,
            raw_metadata: Some(unsigned_json(block.put_back())),
            ..Message::default()
        });
    }

    fn cite(&mut self, citations: Option<&'a str>, arena: &'a Arena) {
        if let Some(raw) = citations {
            cited::read(raw, &mut self.citations, arena);
        }
    }

    /// The flat copy is cut and full of placeholders: it speaks only where there are no blocks, and is kept where it
    /// says something else.
    fn take_flat_text(&mut self, blank: bool, raw: &mut raw::Message<'a>) {
        let Some(text) = raw.text.filter(|text| !text.is_empty()) else { return };
        if blank {
            self.parts.push(text);
        } else if !matches!(self.parts[..], [part] if same_text(part, text)) {
            raw.rest.add_text("text", text);
        }
    }
}

fn content(parts: Vec<&str>) -> Option<Content<'_>> {
    if let [text] = parts.as_slice() {
        return Some(Content::Text(Cow::Borrowed(text)));
    }
    let part = |text| Part { text: Some(Cow::Borrowed(text)), ..Part::default() };
    (!parts.is_empty()).then(|| Content::Multipart(parts.into_iter().map(part).collect()))
}

/// The JSON text of a list; none if every item is plain text, whose order the content shows.
fn list<'a>(items: &[Cow<'a, str>]) -> Option<Cow<'a, str>> {
    let told = items.iter().any(|item| item != raw::PLAIN_TEXT);
    told.then(|| format!("[{}]", items.join(",")).into())
}
