//! Maps one message of the export to a record.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Citation, Content, Leftover, Message, Part, PartKind, Role, ToolInput, address::unsigned_json,
};

use super::{
    attachments, blocks,
    citations::{self, References},
    content::{self, AssetPointer, MappedContent},
    markers::{self, Marker},
    tools::{self, ObjectArguments},
};
use crate::{annotations::Annotations, assets::Assets, raw, scan};

/// Maps messages, with the files and annotations that they refer to.
#[derive(Clone, Copy)]
pub(crate) struct Mapper<'a> {
    pub(crate) assets: &'a Assets<'a>,
    pub(crate) annotations: &'a Annotations,
    pub(crate) arena: &'a Arena,
}

/// A mapped message.
pub(crate) struct MappedMessage<'a> {
    pub(crate) message: Message<'a>,
    /// Its content is a text without markers and links.
    pub(crate) plain: bool,
    pub(crate) warnings: Vec<&'static str>,
}

/// The warning for a message without a known role.
pub(crate) const UNKNOWN_ROLE: &str = "it does not say who speaks; it is kept as the system's";
const UNRESOLVED_MARKER: &str = "a mark in its text stands for words that the export does not hold; the mark is left out, and \
                        raw_metadata.original_text has the text with it";

impl<'a> Mapper<'a> {
    /// Maps the message of the node `key`, without its parent. `rest` is emptied.
    pub(crate) fn message(
        self,
        key: &'a str,
        raw: &raw::Message<'a>,
        rest: &mut Leftover<'a>,
    ) -> MappedMessage<'a> {
        let role = role(raw.role);
        if is_hidden(raw) {
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
        let mut warnings = Vec::new();
        if known_role(raw.role).is_none() {
            warnings.push(UNKNOWN_ROLE);
        }
        let plain = plain_text(raw, role);
        match plain {
            Some(text) => message.content = Some(Content::Text(Cow::Borrowed(text))),
            None => pointers = self.map_content(raw, rest, &mut message, &mut warnings),
        }
        if !pointers.is_empty() || raw.metadata.attachments.is_some() {
            let listed = raw.metadata.attachments;
            message.attachments = attachments::merge(pointers, listed, self.assets, self.arena);
        }
        if let Some(canvas) = raw.metadata.canvas {
            message.attachments.extend(attachments::canvas_document(canvas, self.assets, self.arena));
        }
        if let Some(feedback) = self.annotations.on_message(raw.id.unwrap_or(key)) {
            rest.add_json("feedback", &feedback);
        }
        message.unread = message.unread.or(rest.unread().map(Cow::Borrowed));
        message.raw_metadata = rest.take_json(self.arena).map(unsigned_json);
        MappedMessage { message, plain: plain.is_some(), warnings }
    }

    /// Maps the content into `message`; returns the files that it refers to.
    fn map_content(
        self,
        raw: &raw::Message<'a>,
        rest: &mut Leftover<'a>,
        message: &mut Message<'a>,
        warnings: &mut Vec<&'static str>,
    ) -> Vec<AssetPointer<'a>> {
        let tool = called_tool(raw, message.role);
        let arguments = tool.and_then(|name| tools::object_arguments(name, &raw.content, self.arena));
        let content = arguments.as_ref().map_or(&raw.content, |arguments| &arguments.content);
        let mut mapped = content::map(content, &raw.metadata, self.arena);
        message.is_thought = mapped.thought;
        let call = tool.filter(|_| !mapped.thought);
        message.tool_calls.extend(call.map(|name| tools::call(name, &mut mapped, self.arena)));
        if let (Some(call), Some(ObjectArguments { object, .. })) =
            (message.tool_calls.first_mut(), arguments)
        {
            call.input = Some(ToolInput::Object(object));
        }
        let answer = message.role == Role::Assistant && call.is_none();
        message.citations = cite(&mut mapped, &raw.metadata, rest, answer, warnings, self.arena);
        message.unread = mapped.rest.unread().map(Cow::Borrowed);
        if let Some(left) = mapped.rest.into_json() {
            rest.add_json("content", &left);
        }
        message.content = content_of(mapped.parts, mapped.multipart);
        mapped.pointers
    }
}

/// The text of a message that needs no mapping, as most do.
fn plain_text<'a>(raw: &raw::Message<'a>, role: Role) -> Option<&'a str> {
    let text = raw.content.plain_text()?;
    let cites = raw.metadata.citations.is_some() || raw.metadata.references.is_some();
    let marked = role == Role::Assistant && scan::may_contain_markers(text);
    (!cites && !marked && called_tool(raw, role).is_none()).then_some(text)
}

/// The tool to which an assistant's message is sent.
fn called_tool<'a>(raw: &raw::Message<'a>, role: Role) -> Option<&'a str> {
    raw.recipient.filter(|to| role == Role::Assistant && tools::is_tool(to))
}

/// The role with this name in any case, if it is known.
pub(crate) fn known_role(name: Option<&str>) -> Option<Role> {
    let is = |known| name.is_some_and(|name| name.eq_ignore_ascii_case(known));
    ROLES.into_iter().find(|(known, _)| is(known)).map(|(_, role)| role)
}

/// An unknown role is neither the person nor the model; its name is kept in the metadata.
pub(crate) fn role(name: Option<&str>) -> Role {
    known_role(name).unwrap_or(Role::System)
}

const ROLES: [(&str, Role); 5] = [
    ("user", Role::User),
    ("assistant", Role::Assistant),
    ("tool", Role::Tool),
    ("function", Role::Tool),
    ("system", Role::System),
];

/// Whether the page hides a message: it is marked so, an instruction, or a list of memories.
fn is_hidden(raw: &raw::Message<'_>) -> bool {
    let context = matches!(raw.content.kind, Some("user_editable_context" | "model_editable_context"));
    // Not `role`, which maps unknown roles to the system too.
    let system = raw.role.is_some_and(|role| role.eq_ignore_ascii_case("system"));
    raw.metadata.hidden || context || (system && !raw.metadata.user_system)
}

/// Replaces the citation markers in an answer's text and collects its sources.
fn cite<'a>(
    content: &mut MappedContent<'a>,
    metadata: &raw::Metadata<'a>,
    rest: &mut Leftover<'a>,
    answer: bool,
    warnings: &mut Vec<&'static str>,
    arena: &'a Arena,
) -> Vec<Citation<'a>> {
    let listed = metadata.citations.is_some() || metadata.references.is_some();
    let marked = |part: &Part<'_>| part.text.as_deref().is_some_and(scan::may_contain_markers);
    let marked = answer && content.parts.iter().any(marked);
    if !listed && !marked && content.citations.is_empty() {
        return Vec::new();
    }
    let references = References::read(metadata, arena);
    let mut found = Vec::new();
    if marked && let Some(original) = replace_markers(&mut content.parts, &references, &mut found, arena) {
        rest.add_json("original_text", &original);
    }
    if found.iter().any(|marker| marker.unresolved) {
        warnings.push(UNRESOLVED_MARKER);
    }
    citations::collect(std::mem::take(&mut content.citations), metadata, &references, &found, arena)
}

/// Replaces the markers and blocks in the texts. If one changed, returns the original texts as JSON.
fn replace_markers<'a>(
    parts: &mut [Part<'a>],
    references: &References<'a>,
    found: &mut Vec<Marker<'a>>,
    arena: &'a Arena,
) -> Option<String> {
    let references = references.for_markers();
    let (mut originals, mut changed) = (Vec::new(), false);
    for part in parts.iter_mut().filter(|part| part.kind == PartKind::Text) {
        let Some(text) = part.text.take() else { continue };
        let text: &'a str = match text {
            Cow::Borrowed(text) => text,
            Cow::Owned(text) => arena.alloc_str(&text),
        };
        let replaced = blocks::render(markers::replace(text, &references, found));
        changed |= matches!(replaced, Cow::Owned(_));
        originals.push(text);
        part.text = Some(replaced);
    }
    let json = || match originals.as_slice() {
        [one] => serde_json::Value::from(*one).to_string(),
        all => serde_json::Value::from(all.to_vec()).to_string(),
    };
    changed.then(json)
}

/// A single text becomes [`Content::Text`] unless `multipart`, anything else [`Content::Multipart`].
pub(crate) fn content_of(mut parts: Vec<Part<'_>>, multipart: bool) -> Option<Content<'_>> {
    let single = matches!(parts.as_slice(), [part] if part.kind == PartKind::Text && part.text.is_some());
    if single && !multipart {
        return parts.pop()?.text.map(Content::Text);
    }
    (!parts.is_empty()).then_some(Content::Multipart(parts))
}
