//! Maps one node to a message, and each of its thoughts to another.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Attachment, Content, Message, Role, ToolCall, ToolInput, address::unsigned_json, json::Value,
};

use super::{citations::Results, files};
use crate::raw::{self, Fragment, Node};

/// What remains of a fragment with nothing but a text.
const TEXT_ONLY: [&str; 2] = [r#"{"type":"REQUEST"}"#, r#"{"type":"RESPONSE"}"#];

/// Appends the messages of a node: question, thoughts, answer, each the parent of the next. Returns the node's key if its
/// role is not known.
pub(super) fn map<'a>(
    mut node: Node<'a>,
    parent: Option<&'a str>,
    arena: &'a Arena,
    messages: &mut Vec<Message<'a>>,
) -> Option<&'a str> {
    let mut raw = node.message.take()?;
    let mut parts = Parts::default();
    for (index, fragment) in std::mem::take(&mut raw.fragments).into_iter().enumerate() {
        parts.add(index, fragment, arena);
    }
    let (role, known) = role(&parts, &raw);
    parts.add_plain(role, &mut raw);
    let (mut attachments, remaining_files) = files::read(raw.files, arena);
    std::mem::take(&mut parts.files).into_iter().for_each(|file| add_file(&mut attachments, file));
    for (key, json) in [("fragments", parts.remaining_json()), ("files", remaining_files)] {
        if let Some(json) = json {
            raw.rest.add_json(key, &json);
        }
    }
    if let Some(rest) = node.rest.into_json() {
        raw.rest.add_json("node", &rest);
    }
    if let Some(role) = raw.role {
        raw.rest.add_text("role", role);
    }
    let mut chain =
        Chain { key: node.key, created: raw.created, parent: parent.map(Cow::Borrowed), messages };
    // A question or file in the node of an answer becomes a message of its own.
    if role == Role::Assistant && (!parts.questions.is_empty() || parts.has_sent_files) {
        chain.push_question(
            Content::of_texts(parts.questions.iter().copied()),
            std::mem::take(&mut attachments),
        );
    }
    for (name, text, rest) in std::mem::take(&mut parts.thoughts) {
        chain.push_thought(&name, text, rest);
    }
    let texts = if role == Role::User { &parts.questions } else { &parts.answers };
    let message = Message {
        id: node.key.into(),
        provider_message_id: Some(node.key.into()),
        role,
        content: Content::of_texts(texts.iter().copied()),
        created_at: raw.created,
        parent: chain.parent,
        model: raw.model.map(Cow::Borrowed),
        attachments,
        citations: parts.results.cited(&parts.answers),
        tool_calls: parts.calls,
        unread: raw.rest.unread().map(Cow::Borrowed),
        raw_metadata: raw.rest.into_json().map(unsigned_json),
        ..Message::default()
    };
    messages.push(message);
    (!known).then_some(node.key)
}

/// The first text of a message, for an id.
pub(super) fn first_text<'a>(message: &raw::Message<'a>) -> Option<&'a str> {
    message.content.or_else(|| message.fragments.iter().find_map(|fragment| fragment.content.text()))
}

/// Adds a file, or merges it with the same one.
fn add_file<'a>(attachments: &mut Vec<Attachment<'a>>, file: Attachment<'a>) {
    let same = |known: &&mut Attachment<'a>| {
        let named = known.name.is_none() || file.name.is_none() || known.name == file.name;
        named && file.provider_id.is_some() && known.provider_id == file.provider_id
    };
    match attachments.iter_mut().find(same) {
        Some(known) => {
            known.name = known.name.take().or(file.name);
            known.size_bytes = known.size_bytes.or(file.size_bytes);
        }
        None => attachments.push(file),
    }
}

/// Whether it has a text or file of the person.
pub(super) fn is_question(message: &raw::Message<'_>) -> bool {
    let is_user = |role: &str| role.eq_ignore_ascii_case("user") || role.eq_ignore_ascii_case("human");
    message.fragments.iter().any(|fragment| matches!(fragment.kind, "REQUEST" | "FILE"))
        || message.role.is_some_and(is_user)
}

/// The role, by the types of fragments or by `role` of older exports, and whether it is known.
fn role(parts: &Parts<'_>, raw: &raw::Message<'_>) -> (Role, bool) {
    if parts.any {
        let answered = !(parts.answers.is_empty() && parts.thoughts.is_empty() && parts.calls.is_empty());
        let role = if parts.requested && !answered { Role::User } else { Role::Assistant };
        return (role, parts.untyped == 0);
    }
    match raw.role.map(str::to_ascii_lowercase).as_deref() {
        Some("user" | "human") => (Role::User, true),
        Some("assistant") => (Role::Assistant, true),
        Some("system") => (Role::System, true),
        Some("tool") => (Role::Tool, true),
        Some(_) | None => (Role::Assistant, false),
    }
}

/// The contents of the fragments of a message.
#[derive(Default)]
struct Parts<'a> {
    questions: Vec<&'a str>,
    answers: Vec<&'a str>,
    /// Name, text and remaining fields, as JSON text, of each thought.
    thoughts: Vec<(String, &'a str, Option<Cow<'a, str>>)>,
    calls: Vec<ToolCall<'a>>,
    results: Results<'a>,
    /// There was a fragment.
    any: bool,
    /// The number of fragments with a text and no type.
    untyped: usize,
    /// There was a request, even one without text.
    requested: bool,
    files: Vec<Attachment<'a>>,
    /// The person sent files.
    has_sent_files: bool,
    /// What remains of each fragment, in order, as JSON text.
    remaining: Vec<Cow<'a, str>>,
}

impl<'a> Parts<'a> {
    fn add(&mut self, index: usize, mut fragment: Fragment<'a>, arena: &'a Arena) {
        self.any |= fragment.invalid.is_none();
        self.add_files(&mut fragment, arena);
        match fragment.kind {
            "REQUEST" | "FILE" => {
                self.requested = true;
                self.questions.extend(take_text(&mut fragment));
            }
            "THINK" => {
                if let Some(text) = take_text(&mut fragment) {
                    let rest = std::mem::take(&mut fragment.rest).into_json();
                    self.thoughts.push((format!("think:{index}"), text, rest));
                }
            }
            kind if kind == "SEARCH" || kind.starts_with("TOOL") || kind.starts_with("READ") => {
                self.add_call(&mut fragment, arena);
            }
            // The answer, and any other fragment with a text.
            kind => {
                let text = take_text(&mut fragment);
                self.untyped += usize::from(kind.is_empty() && text.is_some());
                self.answers.extend(text);
            }
        }
        self.remaining.push(fragment.remaining_json());
    }

    /// Takes the files of a fragment; fields that an attachment does not have stay with it.
    fn add_files(&mut self, fragment: &mut Fragment<'a>, arena: &'a Arena) {
        let (files, remaining) = files::read(std::mem::take(&mut fragment.files), arena);
        self.has_sent_files |= !files.is_empty() && matches!(fragment.kind, "REQUEST" | "FILE");
        self.files.extend(files);
        if let Some(remaining) = remaining {
            fragment.rest.add_json("files", &remaining);
        }
    }

    fn add_call(&mut self, fragment: &mut Fragment<'a>, arena: &'a Arena) {
        self.results.add(fragment.results, arena);
        let input = match std::mem::take(&mut fragment.content) {
            Value::Null => None,
            Value::Text(text) => Some(ToolInput::Text(text.into())),
            Value::Raw(raw) => Some(ToolInput::of_json(raw, arena)),
        };
        let output = match std::mem::take(&mut fragment.results) {
            Value::Null => None,
            Value::Text(output) | Value::Raw(output) => Some(unsigned_json(output.into())),
        };
        self.calls.push(ToolCall { id: None, name: fragment.kind.into(), input, output });
    }

    fn blank(&self) -> bool {
        self.questions.is_empty() && self.answers.is_empty()
    }

    /// Adds the text and the reasoning of older exports. Next to fragments they are copies, which are kept only if they
    /// differ.
    fn add_plain(&mut self, role: Role, raw: &mut raw::Message<'a>) {
        let blank = self.blank();
        if let Some(text) = raw.reasoning {
            if !text.trim().is_empty() && !self.any {
                self.thoughts.push(("think".to_owned(), text, None));
            } else if self.thoughts.iter().all(|(_, thought, _)| *thought != text) {
                raw.rest.add_text("reasoning_content", text);
            }
        }
        let Some(text) = raw.content.filter(|text| !text.is_empty()) else { return };
        let texts = if role == Role::User { &mut self.questions } else { &mut self.answers };
        if blank {
            texts.push(text);
        } else if *texts != [text] {
            raw.rest.add_text("content", text);
        }
    }

    /// What remains of the fragments as JSON text; none if there was only one, with nothing but a text.
    fn remaining_json(&self) -> Option<Cow<'a, str>> {
        let plain = match self.remaining.as_slice() {
            [] => true,
            [one] => TEXT_ONLY.contains(&one.as_ref()) && !self.blank(),
            _ => false,
        };
        (!plain).then(|| format!("[{}]", self.remaining.join(",")).into())
    }
}

/// Takes the text of a fragment, if it is not empty.
fn take_text<'a>(fragment: &mut Fragment<'a>) -> Option<&'a str> {
    let text = fragment.content.nonempty_text()?;
    fragment.content = Value::Null;
    Some(text)
}

/// The messages of one node, each the parent of the next.
struct Chain<'a, 'm> {
    key: &'a str,
    created: Option<i64>,
    parent: Option<Cow<'a, str>>,
    messages: &'m mut Vec<Message<'a>>,
}

impl<'a> Chain<'a, '_> {
    fn push_question(&mut self, content: Option<Content<'a>>, attachments: Vec<Attachment<'a>>) {
        let message = Message { role: Role::User, content, attachments, ..Message::default() };
        self.push("request", message);
    }

    fn push_thought(&mut self, name: &str, text: &'a str, rest: Option<Cow<'a, str>>) {
        let message = Message {
            role: Role::Assistant,
            content: Some(Content::Text(text.into())),
            is_thought: true,
            raw_metadata: rest.map(unsigned_json),
            ..Message::default()
        };
        self.push(name, message);
    }

    fn push(&mut self, name: &str, message: Message<'a>) {
        let id: Cow<'a, str> = format!("{}:{name}", self.key).into();
        let parent = self.parent.replace(id.clone());
        self.messages.push(Message { id, parent, created_at: self.created, ..message });
    }
}
