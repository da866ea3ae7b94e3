//! Maps one message of the provider to one of ours, and each of its thoughts to another.

use std::{borrow::Cow, fmt::Display};

use satchel_importer::{
    Arena, Attachment, Citation, Content, Message, Part, PartKind, Role, address::unsigned_json, json::Value,
    same_text,
};

use super::{
    calls::{CallTrace, Calls},
    citations::{self, ResultItems},
    files,
    markup::{self, InlineDocument},
};
use crate::{
    memory::injected::InjectedPrompt,
    raw::{self, Block},
};

/// The result of mapping one message.
pub(super) struct Mapped<'a> {
    /// Thoughts and interjections. Each answers the one before; the message answers the last.
    pub(super) before: Vec<Message<'a>>,
    pub(super) message: Message<'a>,
    /// One for each tool call of the message.
    pub(super) traces: Vec<CallTrace<'a>>,
    /// Documents in its text.
    pub(super) documents: Vec<InlineDocument<'a>>,
    pub(super) injected: Vec<InjectedPrompt<'a>>,
    /// The flat text was read instead of its blocks, which hold no text.
    pub(super) flat: bool,
}

/// The warning if the flat text replaces the blocks.
pub(super) const FLAT: &str = "its blocks have no words that can be read; its `text` is read instead";
/// What the flat text holds in place of a block of an unsupported type.
const PLACEHOLDER: &str = "This block is not supported on your current device yet.";
/// The type of a thought.
const THINKING: &str = "thinking";
/// The field of a thought that holds summaries of its text.
const SUMMARIES: &str = "summaries";
/// Types of blocks that hold no text of the message.
const NON_TEXT: [&str; 6] =
    ["token_budget", "tool_use", "tool_result", "image", "document", "injected_prompt_block"];

/// Our role for a sender.
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
    let mut builder =
        Builder { id: id.clone(), uuid: raw.uuid, created: raw.created, parent, ..Builder::default() };
    builder.role = raw.speaker().and_then(role).unwrap_or(Role::Assistant);
    for (key, speaker) in [("sender", raw.sender), ("role", raw.role)] {
        if let Some(unknown) = speaker.filter(|speaker| role(speaker).is_none()) {
            raw.rest.add_text(key, unknown);
        }
    }
    let (blank, mut unread) = (raw.blocks.is_empty(), raw.rest.unread());
    for (index, block) in std::mem::take(&mut raw.blocks).into_iter().enumerate() {
        // A text in a block without a type may be anything.
        let untyped = block.kind.is_empty() && (block.text.is_some() || block.thinking.is_some());
        unread = unread.or(block.rest.unread()).or(untyped.then_some("content"));
        builder.add_block(index, block, arena);
    }
    let unread = unread.or(builder.unread);
    let flat = builder.add_flat_text(blank, &mut raw);
    builder.attachments.append(&mut builder.result_items.images);
    let files = files::join(raw.attachments, raw.files, builder.attachments);
    for (key, rest) in [
        ("content", list(&builder.rest)),
        ("attachments", files.attachments_rest),
        ("files", files.files_rest),
    ] {
        if let Some(rest) = rest {
            raw.rest.add_json(key, &rest);
        }
    }
    builder.result_items.append_pages(&mut builder.citations);
    let quote = |text: &'a str| Citation { snippet: Some(text.into()), ..Citation::default() };
    builder.citations.extend(files.quotes.into_iter().map(quote));
    let content = content(builder.parts);
    let injected = builder.injected;
    if builder.prompted && content.is_none() && files.attachments.is_empty() && builder.calls.is_empty() {
        raw.rest.add_bool("hidden", true);
    }
    let (tool_calls, traces) = builder.calls.finish();
    let message = Message {
        id,
        provider_message_id: raw.uuid.map(Cow::Borrowed),
        role: builder.role,
        content,
        created_at: raw.created,
        parent: builder.parent,
        model: raw.model.filter(|model| !model.is_empty()).map(Cow::Borrowed),
        attachments: files.attachments,
        citations: builder.citations,
        tool_calls,
        unread: unread.map(Cow::Borrowed),
        raw_metadata: raw.rest.into_json().map(unsigned_json),
        ..Message::default()
    };
    Mapped { before: builder.before, message, traces, documents: builder.documents, injected, flat }
}

/// Collects what the blocks of a message hold.
#[derive(Default)]
struct Builder<'a> {
    id: Cow<'a, str>,
    uuid: Option<&'a str>,
    role: Role,
    created: Option<i64>,
    /// The preceding message or thought.
    parent: Option<Cow<'a, str>>,
    parts: Vec<Part<'a>>,
    /// The texts with their markup.
    texts: Vec<&'a str>,
    documents: Vec<InlineDocument<'a>>,
    before: Vec<Message<'a>>,
    citations: Vec<Citation<'a>>,
    result_items: ResultItems<'a>,
    calls: Calls<'a>,
    attachments: Vec<Attachment<'a>>,
    /// It holds a prompt that the provider put in.
    prompted: bool,
    /// A block that may hold text holds none that can be read.
    unreadable: bool,
    /// An unknown field with natural language.
    unread: Option<&'static str>,
    injected: Vec<InjectedPrompt<'a>>,
    /// JSON text of the remaining fields of each block, in order.
    rest: Vec<Cow<'a, str>>,
}

impl<'a> Builder<'a> {
    fn add_block(&mut self, index: usize, mut block: Block<'a>, arena: &'a Arena) {
        if let Some(invalid) = block.invalid {
            self.unreadable = true;
            self.rest.push(invalid.into());
            return;
        }
        match block.kind {
            "token_budget" => return,
            THINKING => return self.add_thought(index, block, arena),
            "user_interjection" if block.text.is_some() => return self.add_interjection(index, block),
            "text" => {
                if let Some(raw) = block.citations {
                    citations::read(raw, &mut self.citations, arena);
                }
            }
            "tool_use" => self.calls.add_call(&mut block, index, arena),
            "tool_result" => {
                if let Some(rich) = self.calls.add_result(&mut block, index, arena) {
                    self.result_items.read(rich, arena);
                }
            }
            "image" | "document" => self.attachments.push(files::from_block(&mut block)),
            "injected_prompt_block" => {
                self.prompted = true;
                let source = block.injection_source;
                let prompt = block.prompt.map(|prompt| InjectedPrompt { block: index, prompt, source });
                self.injected.extend(prompt);
            }
            _ => {}
        }
        // Voice notes and unknown types may hold text, too.
        if !NON_TEXT.contains(&block.kind) {
            self.unreadable |= block.text.is_none_or(|text| text.trim().is_empty());
            self.add_text(index, &mut block);
        }
        self.rest.push(block.into_json());
    }

    /// Takes the text of a block. A text with markup stays in the block, too.
    fn add_text(&mut self, index: usize, block: &mut Block<'a>) {
        let Some(text) = block.text.take_if(|text| !text.is_empty() && !self.split_markup(index, text))
        else {
            return;
        };
        if block.kind != "text" {
            // Such a block may hold no text, so the number of its part is stored.
            block.rest.add_json("text", &self.parts.len().to_string());
        }
        self.texts.push(text);
        self.parts.push(Part { text: Some(text.into()), ..Part::default() });
    }

    /// Splits documents and thoughts from an answer's text; false if there are none.
    fn split_markup(&mut self, index: usize, text: &'a str) -> bool {
        let answer = self.role == Role::Assistant;
        let Some(split) = answer.then(|| markup::split(text, index)).flatten() else { return false };
        self.texts.push(text);
        self.parts.extend(split.parts);
        self.documents.extend(split.documents);
        for (number, thought) in split.thoughts.into_iter().enumerate() {
            self.add_before(THINKING, format!("{index}.{number}"), thought.into(), Block::default());
        }
        true
    }

    /// Turns a thought into a separate message, so that it is not read as the answer.
    fn add_thought(&mut self, index: usize, mut block: Block<'a>, arena: &'a Arena) {
        let text = block.thinking.take().or_else(|| block.text.take()).filter(|text| !text.is_empty());
        let summaries = || citations::summaries(block.summaries?, arena);
        let Some(text) = text.map(Cow::Borrowed).or_else(summaries) else {
            self.unreadable = true;
            if let Some(raw) = block.summaries {
                block.rest.note_unknown(SUMMARIES, Value::Raw(raw));
                self.unread = self.unread.or(block.rest.unread().and(Some(SUMMARIES)));
            }
            self.rest.push(block.into_json());
            return;
        };
        self.rest.push(Cow::Borrowed(r#"{"type":"thinking"}"#));
        if block.hidden {
            block.rest.add_bool("hidden", true);
        }
        self.add_before(THINKING, index, text, block);
    }

    /// Turns a text that the person sent while the model was working into a separate message.
    fn add_interjection(&mut self, index: usize, mut block: Block<'a>) {
        self.rest.push(Cow::Borrowed(r#"{"type":"user_interjection"}"#));
        let text = block.text.take().unwrap_or_default();
        self.add_before("interjection", index, text.into(), block);
    }

    /// Puts a message in front of this one.
    fn add_before(&mut self, kind: &str, index: impl Display, text: Cow<'a, str>, mut block: Block<'a>) {
        if let Some(uuid) = self.uuid {
            block.rest.add_text("message_uuid", uuid);
        }
        let id: Cow<'a, str> = format!("{}:{kind}:{index}", self.id).into();
        let parent = self.parent.replace(id.clone());
        let is_thought = kind == THINKING;
        self.before.push(Message {
            id,
            role: if is_thought { self.role } else { Role::User },
            content: Some(Content::Text(text)),
            created_at: self.created,
            parent,
            is_thought,
            raw_metadata: Some(unsigned_json(block.into_json())),
            ..Message::default()
        });
    }

    /// Reads the flat text if there are no blocks, or none with text; true in the second case. The flat text is cut and full
    /// of placeholders, so the blocks count first. It is kept if it differs from them.
    fn add_flat_text(&mut self, blank: bool, raw: &mut raw::Message<'a>) -> bool {
        let Some(text) = raw.text.filter(|text| !text.is_empty()) else { return false };
        if blank {
            self.use_flat_text(text, raw);
            return false;
        }
        let missing = if self.unreadable && self.parts.is_empty() { self.missing_text(text) } else { None };
        if let Some(missing) = missing {
            if missing != text {
                raw.rest.add_text("text", text);
            }
            self.use_flat_text(missing, raw);
            return true;
        }
        if !matches!(self.texts[..], [part] if same_text(part, text)) {
            raw.rest.add_text("text", text);
        }
        false
    }

    fn use_flat_text(&mut self, text: &'a str, raw: &mut raw::Message<'a>) {
        if self.split_markup(0, text) {
            raw.rest.add_text("text", text);
        } else {
            self.parts.push(Part { text: Some(text.into()), ..Part::default() });
        }
    }

    /// The part of the flat text that no block holds.
    fn missing_text(&self, text: &'a str) -> Option<&'a str> {
        let text = trim_placeholders(text);
        let same = |before: &Message<'_>| match &before.content {
            Some(Content::Text(other)) => same_text(other, text),
            _ => false,
        };
        (!text.is_empty() && !self.before.iter().any(same)).then_some(text)
    }
}

/// Removes the placeholders at the start and the end of a flat text; those inside stay.
fn trim_placeholders(text: &str) -> &str {
    const FENCE: &str = "```";
    let mut text = text.trim();
    loop {
        let front = text.strip_prefix(FENCE).map_or(text, str::trim_start);
        let front = front.strip_prefix(PLACEHOLDER).map(str::trim_start);
        let front = front.map(|rest| rest.strip_prefix(FENCE).unwrap_or(rest).trim_start());
        let back = text.strip_suffix(FENCE).map_or(text, str::trim_end);
        let back = back.strip_suffix(PLACEHOLDER).map(str::trim_end);
        let back = back.map(|rest| rest.strip_suffix(FENCE).unwrap_or(rest).trim_end());
        match front.or(back) {
            Some(shorter) => text = shorter,
            None => return text,
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
    let has_fields = items.iter().any(|item| item != raw::PLAIN_TEXT && item != raw::EMPTY_TEXT);
    has_fields.then(|| format!("[{}]", items.join(",")).into())
}
