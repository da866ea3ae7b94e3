//! One node as a message, and what the rest of the conversation needs to know of it.

use std::borrow::Cow;

use satchel_importer::{Arena, Citation, Content, Message, Part, PartKind, Role};

use super::{
    attachments,
    citations::{Collector, References},
    content::{self, Said},
    marks, redact, tools,
    tree::Tree,
};
use crate::{
    assets::Assets,
    raw::{self, Object},
};

/// The messages of one conversation, with what was read beside them.
pub(crate) struct Mapped<'a> {
    messages: Vec<Message<'a>>,
    pub(crate) facts: Vec<Facts<'a>>,
    /// Index of the node → index of the message.
    by_node: Vec<Option<usize>>,
}

/// What memories and tool calls need of a message.
pub(crate) struct Facts<'a> {
    pub(crate) key: &'a str,
    pub(crate) time: Option<i64>,
    /// The tool that speaks.
    pub(crate) tool: Option<&'a str>,
    pub(crate) content: raw::Content<'a>,
    pub(crate) metadata: raw::Metadata<'a>,
    /// `about_user_message` and `about_model_message` of the metadata.
    pub(crate) clean_copy: Option<[Option<&'a str>; 2]>,
    /// A tool confirmed what this call wrote to the saved memories.
    pub(crate) remembered: bool,
}

impl<'a> Mapped<'a> {
    pub(crate) fn with_capacity(nodes: usize) -> Self {
        let (messages, facts) = (Vec::with_capacity(nodes), Vec::with_capacity(nodes));
        Self { messages, facts, by_node: Vec::with_capacity(nodes) }
    }

    /// A node without a message.
    pub(crate) fn push_nothing(&mut self) {
        self.by_node.push(None);
    }

    pub(crate) fn push(
        &mut self,
        key: &'a str,
        parent: Option<&'a str>,
        raw: raw::Message<'a>,
        assets: &'a Assets,
        arena: &'a Arena,
    ) {
        self.by_node.push(Some(self.messages.len()));
        let (message, facts) = message(key, parent, raw, assets, arena);
        self.messages.push(message);
        self.facts.push(facts);
    }

    pub(crate) fn key_at(&self, node: usize) -> Option<&'a str> {
        self.at(node).and_then(|at| self.facts.get(at)).map(|facts| facts.key)
    }

    /// Adds the answers of tools to the calls that they answer.
    pub(crate) fn join_outputs(&mut self, tree: &Tree<'a>) {
        if !self.facts.iter().any(|facts| facts.tool.is_some()) {
            return;
        }
        for node in 0..self.by_node.len() {
            let Some(answer) = self.at(node).filter(|at| self.role(*at) == Some(Role::Tool)) else {
                continue;
            };
            let name = self.facts.get(answer).and_then(|facts| facts.tool);
            if let Some(call) = tools::call_above(node, tree, |node| self.call_at(node), name) {
                self.join(call, answer);
            }
        }
    }

    fn join(&mut self, call: usize, answer: usize) {
        let Some(text) =
            self.messages.get(answer).and_then(|message| tools::text_of(message.content.as_ref()))
        else {
            return;
        };
        let confirmed = tools::confirms_memory(self.facts.get(answer).and_then(|facts| facts.tool), &text);
        let Some(target) = self.messages.get_mut(call).and_then(|message| message.tool_calls.first_mut())
        else {
            return;
        };
        if let Some(facts) = self.facts.get_mut(call) {
            facts.remembered |= confirmed && target.name == tools::MEMORY;
        }
        match &mut target.output {
            Some(output) => {
                let output = output.to_mut();
                output.push('\n');
                output.push_str(&text);
            }
            None => target.output = Some(text),
        }
    }

    fn at(&self, node: usize) -> Option<usize> {
        self.by_node.get(node).copied().flatten()
    }

    fn role(&self, at: usize) -> Option<Role> {
        self.messages.get(at).map(|message| message.role)
    }

    fn call_at(&self, node: usize) -> tools::Step<'_> {
        let Some(at) = self.at(node) else { return tools::Step::Stop };
        match self.messages.get(at) {
            Some(message) if message.role == Role::Tool => tools::Step::Tool,
            Some(Message { tool_calls, .. }) => {
                tool_calls.first().map_or(tools::Step::Stop, |call| tools::Step::Call(at, &call.name))
            }
            None => tools::Step::Stop,
        }
    }

    /// What the call of the message `at` asked.
    pub(crate) fn asked(&self, at: usize) -> Option<&str> {
        tools::input_text(self.messages.get(at)?.tool_calls.first()?)
    }

    pub(crate) fn into_messages(self) -> Vec<Message<'a>> {
        self.messages
    }
}

fn message<'a>(
    key: &'a str,
    parent: Option<&'a str>,
    mut raw: raw::Message<'a>,
    assets: &'a Assets,
    arena: &'a Arena,
) -> (Message<'a>, Facts<'a>) {
    let role = role(raw.role);
    let mut said = content::said(&raw.content, &raw.metadata, arena);
    let call = raw.recipient.filter(|to| role == Role::Assistant && !said.thought && tools::is_tool(to));
    let tool_calls = call.map(|name| tools::call(name, &mut said, arena)).into_iter().collect();
    let citations = cite(&mut said, &mut raw, role == Role::Assistant && call.is_none(), arena);
    if hidden(&raw) {
        raw.rest.add_bool("hidden", true);
    }
    let attachments =
        attachments::attachments(std::mem::take(&mut said.pointers), raw.metadata.attachments, assets, arena);
    if let Some(rest) = said.rest.into_json() {
        raw.rest.add_json("content", rest);
    }
    let message = Message {
        id: Cow::Borrowed(key),
        provider_message_id: Some(Cow::Borrowed(raw.id.unwrap_or(key))),
        role,
        content: content_of(said.parts, said.multipart),
        created_at: raw.time,
        parent: parent.map(Cow::Borrowed),
        model: raw.metadata.model.map(Cow::Borrowed),
        is_thought: said.thought,
        attachments,
        citations,
        tool_calls,
        raw_metadata: raw.rest.into_json().map(redact::json),
        ..Message::default()
    };
    let tool = raw.name.filter(|_| role == Role::Tool);
    let clean_copy = raw.metadata.user_context.map(|context| {
        let context = Object::parse(context, arena);
        [context.text("about_user_message"), context.text("about_model_message")]
    });
    let Message { created_at: time, .. } = message;
    let (content, metadata) = (raw.content, raw.metadata);
    (message, Facts { key, time, tool, content, metadata, clean_copy, remembered: false })
}

/// Any role not known is kept with its name in the metadata; it is neither the person nor the model.
fn role(name: Option<&str>) -> Role {
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

/// What the person never saw: marked by the provider, instructions, and the lists of what is remembered.
fn hidden(raw: &raw::Message<'_>) -> bool {
    let context = matches!(raw.content.kind, Some("user_editable_context" | "model_editable_context"));
    // A role that is not known is no reason to hide what it said.
    let named = raw.role.is_some_and(|role| role.eq_ignore_ascii_case("system"));
    raw.metadata.hidden || context || (named && !raw.metadata.user_system)
}

/// Takes the citation marks out of an answer's text and collects its sources.
fn cite<'a>(
    said: &mut Said<'a>,
    raw: &mut raw::Message<'a>,
    answer: bool,
    arena: &'a Arena,
) -> Vec<Citation<'a>> {
    let mut cited = Vec::new();
    let metadata = &raw.metadata;
    let listed = metadata.citations.is_some() || metadata.references.is_some();
    let marked = answer && said.parts.iter().any(|part| part.text.as_deref().is_some_and(marks::possible));
    if !listed && !marked && said.citations.is_empty() {
        return Vec::new();
    }
    let references = References::read(metadata, arena);
    if marked {
        let original = clean_parts(&mut said.parts, &references, &mut cited, arena);
        if let Some(original) = original {
            raw.rest.add_json("original_text", original);
        }
    }
    let mut all = Collector::default();
    for citation in std::mem::take(&mut said.citations) {
        all.add(Some(citation));
    }
    all.read(&raw.metadata, &references, &cited, arena);
    all.finish()
}

/// Cleans the texts; if one changed, the texts as they stood, as JSON.
fn clean_parts<'a>(
    parts: &mut [Part<'a>],
    references: &References<'a>,
    cited: &mut Vec<marks::SourceId<'a>>,
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
        let clean = marks::clean(text, &references, cited);
        changed |= matches!(clean, Cow::Owned(_));
        originals.push(text);
        part.text = Some(clean);
    }
    let json = match originals.as_slice() {
        [one] => serde_json::Value::from(*one),
        all => serde_json::Value::from(all.to_vec()),
    };
    changed.then(|| json.to_string())
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
