//! One message of the export as a record.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Citation, Content, Leftover, Message, Part, PartKind, Role, ToolInput, address::unsigned_json,
};

use super::{
    arguments, attachments, blocks,
    citations::{Collector, References},
    content::{self, Said},
    marks::{self, Mark},
    tools,
};
use crate::{assets::Assets, raw, remarks::Remarks, scan};

/// What a message becomes, with the files and the memory that it may point into.
#[derive(Clone, Copy)]
pub(crate) struct Mapper<'a> {
    pub(crate) assets: &'a Assets<'a>,
    pub(crate) remarks: &'a Remarks,
    pub(crate) arena: &'a Arena,
}

/// A message with what is to be known of it.
pub(crate) struct Mapped<'a> {
    pub(crate) message: Message<'a>,
    /// It is a plain text without anything to look at.
    pub(crate) plain: bool,
    /// What is odd about it.
    pub(crate) oddities: Vec<&'static str>,
}

/// Roles of authors that are known.
const ROLES: [&str; 5] = ["user", "assistant", "system", "tool", "function"];
/// Said of a message whose role is not known.
pub(crate) const SPEAKERLESS: &str = "it does not say who speaks; it is kept as the system's";
const WORDLESS: &str = "a mark in its text stands for words that the export does not hold; the mark is left out, and \
                        raw_metadata.original_text has the text with it";

impl<'a> Mapper<'a> {
    /// Maps the message of the node `key`; its parent is found later. `rest` is emptied.
    pub(crate) fn message(self, key: &'a str, raw: &raw::Message<'a>, rest: &mut Leftover<'a>) -> Mapped<'a> {
        let role = role(raw.role);
        if hidden(raw) {
            rest.add_bool("hidden", true);
        }
        let mut message = Message {
            id: Cow::Borrowed(key),
            provider_message_id: Some(Cow::Borrowed(raw.id.unwrap_or(key))),
            role,
            created_at: raw.time,
            model: raw.metadata.model.map(Cow::Borrowed),
            ..Message::default()
        };
        let mut pointers = Vec::new();
        let mut oddities = Vec::new();
        if !is_role(raw.role) {
            oddities.push(SPEAKERLESS);
        }
        let plain = plain_text(raw, role);
        match plain {
            Some(text) => message.content = Some(Content::Text(Cow::Borrowed(text))),
            None => pointers = self.say(raw, rest, &mut message, &mut oddities),
        }
        if !pointers.is_empty() || raw.metadata.attachments.is_some() {
            message.attachments =
                attachments::attachments(pointers, raw.metadata.attachments, self.assets, self.arena);
        }
        if let Some(canvas) = raw.metadata.canvas {
            message.attachments.extend(attachments::document(canvas, self.assets, self.arena));
        }
        if let Some(feedback) = self.remarks.on_message(raw.id.unwrap_or(key)) {
            rest.add_json("feedback", &feedback);
        }
        message.unread = message.unread.or(rest.unread().map(Cow::Borrowed));
        message.raw_metadata = rest.take_json(self.arena).map(unsigned_json);
        Mapped { message, plain: plain.is_some(), oddities }
    }

    /// Fills in what is said, by whatever type of content; returns the files that it points at.
    fn say(
        self,
        raw: &raw::Message<'a>,
        rest: &mut Leftover<'a>,
        message: &mut Message<'a>,
        oddities: &mut Vec<&'static str>,
    ) -> Vec<content::Pointer<'a>> {
        let to = called(raw, message.role);
        let given = to.and_then(|name| arguments::given(name, &raw.content, self.arena));
        let content = given.as_ref().map_or(&raw.content, |given| &given.content);
        let mut said = content::said(content, &raw.metadata, self.arena);
        message.is_thought = said.thought;
        let call = to.filter(|_| !said.thought);
        message.tool_calls.extend(call.map(|name| tools::call(name, &mut said, self.arena)));
        if let (Some(call), Some(given)) = (message.tool_calls.first_mut(), given) {
            call.input = Some(ToolInput::Object(given.object));
        }
        let answer = message.role == Role::Assistant && call.is_none();
        let cited = cite(&mut said, &raw.metadata, rest, answer, self.arena);
        if cited.wordless {
            oddities.push(WORDLESS);
        }
        message.citations = cited.citations;
        message.unread = said.rest.unread().map(Cow::Borrowed);
        if let Some(left) = said.rest.into_json() {
            rest.add_json("content", &left);
        }
        message.content = content_of(said.parts, said.multipart);
        said.pointers
    }
}

/// The text of a message that is nothing but a text: most are.
fn plain_text<'a>(raw: &raw::Message<'a>, role: Role) -> Option<&'a str> {
    let text = raw.content.plain_text()?;
    let cites = raw.metadata.citations.is_some() || raw.metadata.references.is_some();
    let marked = role == Role::Assistant && scan::may_hold_marks(text);
    (!cites && !marked && called(raw, role).is_none()).then_some(text)
}

/// The tool that an assistant's message goes to.
fn called<'a>(raw: &raw::Message<'a>, role: Role) -> Option<&'a str> {
    raw.recipient.filter(|to| role == Role::Assistant && tools::is_tool(to))
}

/// Any role not known is kept with its name in the metadata; it is neither the person nor the model.
pub(crate) fn role(name: Option<&str>) -> Role {
    let name = name.unwrap_or_default();
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    if is("user") {
        Role::User
    } else if is("assistant") {
        Role::Assistant
    } else if is("tool") || is("function") {
        Role::Tool
    } else {
        Role::System
    }
}

/// Whether a role is there and known.
pub(crate) fn is_role(name: Option<&str>) -> bool {
    name.is_some_and(|name| ROLES.iter().any(|known| name.eq_ignore_ascii_case(known)))
}

/// What the person never saw: marked by the provider, instructions, and the lists of what is remembered.
fn hidden(raw: &raw::Message<'_>) -> bool {
    let context = matches!(raw.content.kind, Some("user_editable_context" | "model_editable_context"));
    // A role that is not known is no reason to hide what it said.
    let named = raw.role.is_some_and(|role| role.eq_ignore_ascii_case("system"));
    raw.metadata.hidden || context || (named && !raw.metadata.user_system)
}

/// The sources of an answer.
#[derive(Default)]
struct Cited<'a> {
    citations: Vec<Citation<'a>>,
    /// A mark in the text stood for words that nothing says.
    wordless: bool,
}

/// Takes the citation marks out of an answer's text and collects its sources.
fn cite<'a>(
    said: &mut Said<'a>,
    metadata: &raw::Metadata<'a>,
    rest: &mut Leftover<'a>,
    answer: bool,
    arena: &'a Arena,
) -> Cited<'a> {
    let listed = metadata.citations.is_some() || metadata.references.is_some();
    let marked =
        answer && said.parts.iter().any(|part| part.text.as_deref().is_some_and(scan::may_hold_marks));
    if !listed && !marked && said.citations.is_empty() {
        return Cited::default();
    }
    let references = References::read(metadata, arena);
    let mut found = Vec::new();
    if marked && let Some(original) = clean_parts(&mut said.parts, &references, &mut found, arena) {
        rest.add_json("original_text", &original);
    }
    let mut all = Collector::default();
    for citation in std::mem::take(&mut said.citations) {
        all.add(Some(citation));
    }
    all.read(metadata, &references, &found, arena);
    Cited { citations: all.finish(), wordless: found.iter().any(|mark| mark.wordless) }
}

/// Cleans the texts; if one changed, the texts as they stood, as JSON.
fn clean_parts<'a>(
    parts: &mut [Part<'a>],
    references: &References<'a>,
    found: &mut Vec<Mark<'a>>,
    arena: &'a Arena,
) -> Option<String> {
    let references = references.for_marks();
    let (mut originals, mut changed) = (Vec::new(), false);
    for part in parts.iter_mut().filter(|part| part.kind == PartKind::Text) {
        let Some(text) = part.text.take() else { continue };
        let text: &'a str = match text {
            Cow::Borrowed(text) => text,
            Cow::Owned(text) => arena.alloc_str(&text),
        };
        let clean = blocks::unwrap(marks::clean(text, &references, found));
        changed |= matches!(clean, Cow::Owned(_));
        originals.push(text);
        part.text = Some(clean);
    }
    let json = || match originals.as_slice() {
        [one] => serde_json::Value::from(*one).to_string(),
        all => serde_json::Value::from(all.to_vec()).to_string(),
    };
    changed.then(json)
}

/// One text is a text; anything else keeps its parts apart.
fn content_of(mut parts: Vec<Part<'_>>, multipart: bool) -> Option<Content<'_>> {
    if parts.is_empty() {
        return None;
    }
    let plain =
        parts.len() == 1 && !multipart && parts.first().is_some_and(|part| part.kind == PartKind::Text);
    if plain && let Some(text) = parts.pop().and_then(|part| part.text) {
        return Some(Content::Text(text));
    }
    Some(Content::Multipart(parts))
}
