//! From one message of the provider to one of ours, and to one for each of its thoughts.

use std::{borrow::Cow, fmt::Display};

use satchel_importer::{
    Arena, Attachment, Citation, Content, Message, Part, PartKind, Role, address::unsigned_json, json::Value,
    same_text,
};

use super::{
    calls::{Calls, Trace},
    cited::{self, Finds},
    files,
    written::{self, Written},
};
use crate::raw::{self, Block};

/// What one message gives.
pub(super) struct Mapped<'a> {
    /// Thoughts, and what the person said meanwhile. Each answers the one before; the message answers the last.
    pub(super) before: Vec<Message<'a>>,
    pub(super) message: Message<'a>,
    /// What is known of each tool call of the message.
    pub(super) traces: Vec<Trace<'a>>,
    /// Documents that stand in its text.
    pub(super) written: Vec<Written<'a>>,
    pub(super) injected: Vec<Injected<'a>>,
    /// Its blocks have no words, so the flat text is read.
    pub(super) flat: bool,
}

/// The warning where the flat text speaks for blocks.
pub(super) const FLAT: &str = "its blocks have no words that can be read; its `text` is read instead";
/// What the flat text holds in the place of a block that its writer did not know.
const PLACEHOLDER: &str = "This block is not supported on your current device yet.";
/// The field of a thought that sums up what it does not say.
const SUMMARIES: &str = "summaries";
/// Types of blocks that hold something else than words.
const WORDLESS: [&str; 6] =
    ["token_budget", "tool_use", "tool_result", "image", "document", "injected_prompt_block"];

/// A prompt that the provider put in.
pub(crate) struct Injected<'a> {
    /// Its place in the content.
    pub(crate) block: usize,
    pub(crate) prompt: &'a str,
    pub(crate) source: Option<&'a str>,
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
    speech.role = raw.speaker().and_then(role).unwrap_or(Role::Assistant);
    for (key, speaker) in [("sender", raw.sender), ("role", raw.role)] {
        if let Some(unknown) = speaker.filter(|speaker| role(speaker).is_none()) {
            raw.rest.add_text(key, unknown);
        }
    }
    let (blank, mut unread) = (raw.blocks.is_empty(), raw.rest.unread());
    for (index, block) in std::mem::take(&mut raw.blocks).into_iter().enumerate() {
        // Words of a block whose type is not told are nobody's.
        let untyped = block.kind.is_empty() && (block.text.is_some() || block.thinking.is_some());
        unread = unread.or(block.rest.unread()).or(untyped.then_some("content"));
        speech.add(index, block, arena);
    }
    let unread = unread.or(speech.unread);
    let flat = speech.take_flat_text(blank, &mut raw);
    speech.attachments.append(&mut speech.finds.images);
    let files = files::attachments(raw.attachments, raw.files, speech.attachments);
    for (key, kept) in
        [("content", list(&speech.kept)), ("attachments", files.kept_attached), ("files", files.kept_named)]
    {
        if let Some(kept) = kept {
            raw.rest.add_json(key, &kept);
        }
    }
    speech.finds.append(&mut speech.citations);
    let quote = |text: &'a str| Citation { snippet: Some(text.into()), ..Citation::default() };
    speech.citations.extend(files.quotes.into_iter().map(quote));
    let content = content(speech.parts);
    if speech.hidden && content.is_none() && files.attachments.is_empty() && speech.calls.is_empty() {
        raw.rest.add_bool("hidden", true);
    }
    let (tool_calls, traces) = speech.calls.finish();
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
        unread: unread.map(Cow::Borrowed),
        raw_metadata: raw.rest.into_json().map(unsigned_json),
        ..Message::default()
    };
    let (before, written, injected) = (speech.before, speech.written, speech.injected);
    Mapped { before, message, traces, written, injected, flat }
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
    parts: Vec<Part<'a>>,
    /// The texts as they stood.
    texts: Vec<&'a str>,
    written: Vec<Written<'a>>,
    before: Vec<Message<'a>>,
    citations: Vec<Citation<'a>>,
    finds: Finds<'a>,
    calls: Calls<'a>,
    attachments: Vec<Attachment<'a>>,
    /// A block of the provider's own prompt was there.
    hidden: bool,
    /// A block that could hold words has none that can be read.
    silent: bool,
    /// A field whose words nobody read.
    unread: Option<&'static str>,
    injected: Vec<Injected<'a>>,
    /// What is left of each block, in order, as JSON text.
    kept: Vec<Cow<'a, str>>,
}

impl<'a> Speech<'a> {
    fn add(&mut self, index: usize, mut block: Block<'a>, arena: &'a Arena) {
        if let Some(odd) = block.odd {
            self.silent = true;
            self.kept.push(odd.into());
            return;
        }
        match block.kind {
            "token_budget" => return,
            "thinking" => return self.think(index, block, arena),
            "user_interjection" if block.text.is_some() => return self.interject(index, block),
            "text" => self.cite(block.citations, arena),
            "tool_use" => self.calls.ask(&mut block, index, arena),
            "tool_result" => {
                if let Some(rich) = self.calls.answer(&mut block, index, arena) {
                    self.finds.read(rich, arena);
                }
            }
            "image" | "document" => self.attachments.push(files::from_block(&mut block)),
            "injected_prompt_block" => {
                self.hidden = true;
                let source = block.injection_source;
                self.injected.extend(block.prompt.map(|prompt| Injected { block: index, prompt, source }));
            }
            _ => {}
        }
        // A voice note, and whatever else holds words.
        if !WORDLESS.contains(&block.kind) {
            self.silent |= block.text.is_none_or(|text| text.trim().is_empty());
            self.say(index, &mut block);
        }
        self.kept.push(block.put_back());
    }

    /// Takes the words of a block. Where there is markup in them, the block keeps them too.
    fn say(&mut self, index: usize, block: &mut Block<'a>) {
        let Some(text) = block.text.take_if(|text| !text.is_empty() && !self.take_apart(index, text)) else {
            return;
        };
        if block.kind != "text" {
            // Other blocks may hold words or none, so theirs are named by the number of their part.
            block.rest.add_json("text", &self.parts.len().to_string());
        }
        self.texts.push(text);
        self.parts.push(Part { text: Some(text.into()), ..Part::default() });
    }

    /// Takes documents and thoughts out of an answer's text; false if there are none.
    fn take_apart(&mut self, index: usize, text: &'a str) -> bool {
        let answer = self.role == Role::Assistant;
        let Some(marked) = answer.then(|| written::split(text, index)).flatten() else { return false };
        self.texts.push(text);
        self.parts.extend(marked.parts);
        self.written.extend(marked.documents);
        for (number, thought) in marked.thoughts.into_iter().enumerate() {
            self.precede("thinking", format!("{index}.{number}"), thought.into(), Block::default());
            self.think_last();
        }
        true
    }

    /// Makes a message of its own from a thought, so that nobody takes it for the answer.
    fn think(&mut self, index: usize, mut block: Block<'a>, arena: &'a Arena) {
        self.kept.push(Cow::Borrowed(r#"{"type":"thinking"}"#));
        let words = block.thinking.take().or_else(|| block.text.take()).filter(|text| !text.is_empty());
        let words =
            words.map(Cow::Borrowed).or_else(|| block.summaries.and_then(|raw| cited::summaries(raw, arena)));
        let Some(words) = words else {
            self.silent = true;
            if let Some(raw) = block.summaries {
                block.rest.note_unknown(SUMMARIES, Value::Raw(raw));
                self.unread = self.unread.or(block.rest.unread().and(Some(SUMMARIES)));
            }
            // Nothing was thought aloud; what is known of it stays where the block stood.
            self.kept.pop();
            self.kept.push(block.put_back());
            return;
        };
        if block.hidden {
            block.rest.add_bool("hidden", true);
        }
        self.precede("thinking", index, words, block);
        self.think_last();
    }

    fn think_last(&mut self) {
        if let Some(thought) = self.before.last_mut() {
            thought.role = self.role;
            thought.is_thought = true;
        }
    }

    /// Makes a message of its own from what the person said while the model was at work.
    fn interject(&mut self, index: usize, mut block: Block<'a>) {
        self.kept.push(Cow::Borrowed(r#"{"type":"user_interjection"}"#));
        let words = block.text.take().unwrap_or_default();
        self.precede("interjection", index, words.into(), block);
    }

    /// Puts a message of the person in front of this one.
    fn precede(&mut self, what: &str, index: impl Display, words: Cow<'a, str>, mut block: Block<'a>) {
        if let Some(uuid) = self.uuid {
            block.rest.add_text("message_uuid", uuid);
        }
        let id: Cow<'a, str> = format!("{}:{what}:{index}", self.id).into();
        let parent = self.parent.replace(id.clone());
        self.before.push(Message {
            id,
            role: Role::User,
            content: Some(Content::Text(words)),
            created_at: self.created,
            parent,
            raw_metadata: Some(unsigned_json(block.put_back())),
            ..Message::default()
        });
    }

    fn cite(&mut self, citations: Option<&'a str>, arena: &'a Arena) {
        if let Some(raw) = citations {
            cited::read(raw, &mut self.citations, arena);
        }
    }

    /// The flat copy is cut and full of placeholders: it speaks only where there are no blocks, or none with words; true for those.
    /// It is kept where it says something else.
    fn take_flat_text(&mut self, blank: bool, raw: &mut raw::Message<'a>) -> bool {
        let Some(text) = raw.text.filter(|text| !text.is_empty()) else { return false };
        if blank {
            self.say_flat(text, raw);
            return false;
        }
        let words = if self.silent && self.parts.is_empty() { self.missing_words(text) } else { None };
        if let Some(words) = words {
            if words != text {
                raw.rest.add_text("text", text);
            }
            self.say_flat(words, raw);
            return true;
        }
        if !matches!(self.texts[..], [part] if same_text(part, text)) {
            raw.rest.add_text("text", text);
        }
        false
    }

    fn say_flat(&mut self, text: &'a str, raw: &mut raw::Message<'a>) {
        if self.take_apart(0, text) {
            raw.rest.add_text("text", text);
        } else {
            self.parts.push(Part { text: Some(text.into()), ..Part::default() });
        }
    }

    /// What the flat text says that no block does.
    fn missing_words(&self, text: &'a str) -> Option<&'a str> {
        let words = without_placeholders(text);
        let thought = |before: &Message<'_>| match &before.content {
            Some(Content::Text(thought)) => same_text(thought, words),
            _ => false,
        };
        (!words.is_empty() && !self.before.iter().any(thought)).then_some(words)
    }
}

/// A flat text without the placeholders before and behind its words; those between them stay where they stood.
fn without_placeholders(text: &str) -> &str {
    const FENCE: &str = "```";
    let mut words = text.trim();
    loop {
        let front = words.strip_prefix(FENCE).map_or(words, str::trim_start);
        let front = front.strip_prefix(PLACEHOLDER).map(str::trim_start);
        let front = front.map(|rest| rest.strip_prefix(FENCE).unwrap_or(rest).trim_start());
        let back = words.strip_suffix(FENCE).map_or(words, str::trim_end);
        let back = back.strip_suffix(PLACEHOLDER).map(str::trim_end);
        let back = back.map(|rest| rest.strip_suffix(FENCE).unwrap_or(rest).trim_end());
        match front.or(back) {
            Some(shorter) => words = shorter,
            None => return words,
        }
    }
}

fn content(mut parts: Vec<Part<'_>>) -> Option<Content<'_>> {
    if parts.len() == 1
        && parts.first().is_some_and(|part| part.kind == PartKind::Text && part.mime_type.is_none())
    {
        return parts.pop()?.text.map(Content::Text);
    }
    (!parts.is_empty()).then_some(Content::Multipart(parts))
}

/// The JSON text of a list; none if every item is plain text, whose order the content shows.
fn list<'a>(items: &[Cow<'a, str>]) -> Option<Cow<'a, str>> {
    let told = items.iter().any(|item| item != raw::PLAIN_TEXT && item != raw::NO_TEXT);
    told.then(|| format!("[{}]", items.join(",")).into())
}
