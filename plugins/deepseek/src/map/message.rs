//! From one node of the provider to a message of ours, and to one for each of its thoughts.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Attachment, Content, Message, Part, Role, ToolCall, ToolInput, address::unsigned_json, json::Value,
};

use super::{citations::Results, files};
use crate::raw::{self, Fragment, Node};

/// A fragment of which nothing but the text is known.
const SAID: [&str; 2] = [r#"{"type":"REQUEST"}"#, r#"{"type":"RESPONSE"}"#];

/// Appends what a node says: its question, its thoughts, its answer, each under the one before. Gives the node's key if
/// it does not say who speaks.
pub(super) fn map<'a>(
    mut node: Node<'a>,
    parent: Option<&'a str>,
    arena: &'a Arena,
    messages: &mut Vec<Message<'a>>,
) -> Option<&'a str> {
    let mut raw = node.message.take()?;
    let mut spoken = Spoken::default();
    for (index, fragment) in std::mem::take(&mut raw.fragments).into_iter().enumerate() {
        spoken.take(index, fragment, arena);
    }
    let (role, known) = role(&spoken, &raw);
    let blank = spoken.blank();
    spoken.take_plain(blank, role, &mut raw);
    let (mut attachments, kept_files) = files::read(raw.files, arena);
    std::mem::take(&mut spoken.files).into_iter().for_each(|file| unite(&mut attachments, file));
    for (key, kept) in [("fragments", spoken.kept()), ("files", kept_files)] {
        if let Some(kept) = kept {
            raw.rest.add_json(key, &kept);
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
    // What the person asked and sent in the node of the answer is a message of its own.
    if role == Role::Assistant && (!spoken.asked.is_empty() || spoken.sent) {
        chain.ask(content(&spoken.asked), std::mem::take(&mut attachments));
    }
    for (name, words, rest) in std::mem::take(&mut spoken.thoughts) {
        chain.think(&name, words, rest);
    }
    let said = if role == Role::User { &spoken.asked } else { &spoken.said };
    let message = Message {
        id: node.key.into(),
        provider_message_id: Some(node.key.into()),
        role,
        content: content(said),
        created_at: raw.created,
        parent: chain.parent,
        model: raw.model.map(Cow::Borrowed),
        attachments,
        citations: spoken.results.cited(&spoken.said),
        tool_calls: spoken.calls,
        unread: raw.rest.unread().map(Cow::Borrowed),
        raw_metadata: raw.rest.into_json().map(unsigned_json),
        ..Message::default()
    };
    messages.push(message);
    (!known).then_some(node.key)
}

/// The first words of a message, for a key.
pub(super) fn first_words<'a>(message: &raw::Message<'a>) -> Option<&'a str> {
    message.content.or_else(|| message.fragments.iter().find_map(|fragment| fragment.content.text()))
}

/// Adds a file that may be listed already.
fn unite<'a>(attachments: &mut Vec<Attachment<'a>>, file: Attachment<'a>) {
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

/// Whether the person says or sends something in it.
pub(super) fn asks(message: &raw::Message<'_>) -> bool {
    let is_user = |role: &str| role.eq_ignore_ascii_case("user") || role.eq_ignore_ascii_case("human");
    message.fragments.iter().any(|fragment| matches!(fragment.kind, "REQUEST" | "FILE"))
        || message.role.is_some_and(is_user)
}

/// Who speaks, by the kinds of fragments or by the role that older exports name; and whether that is known.
fn role(spoken: &Spoken<'_>, raw: &raw::Message<'_>) -> (Role, bool) {
    if spoken.any {
        let answered = !(spoken.said.is_empty() && spoken.thoughts.is_empty() && spoken.calls.is_empty());
        let asked = !spoken.asked.is_empty() || spoken.requested;
        return (if asked && !answered { Role::User } else { Role::Assistant }, spoken.untyped == 0);
    }
    match raw.role.map(str::to_ascii_lowercase).as_deref() {
        Some("user" | "human") => (Role::User, true),
        Some("assistant") => (Role::Assistant, true),
        Some("system") => (Role::System, true),
        Some("tool") => (Role::Tool, true),
        Some(_) | None => (Role::Assistant, false),
    }
}

/// What the fragments of a message come to.
#[derive(Default)]
struct Spoken<'a> {
    asked: Vec<&'a str>,
    said: Vec<&'a str>,
    /// Name, words, and what is left of each thought as JSON text.
    thoughts: Vec<(String, &'a str, Option<Cow<'a, str>>)>,
    calls: Vec<ToolCall<'a>>,
    results: Results<'a>,
    /// There was a fragment.
    any: bool,
    /// How many fragments have words of which no type says whose they are.
    untyped: usize,
    /// There was a request, even one without words.
    requested: bool,
    /// Files that the person sent.
    files: Vec<Attachment<'a>>,
    sent: bool,
    /// What is left of each fragment, in order, as JSON text.
    left: Vec<Cow<'a, str>>,
}

impl<'a> Spoken<'a> {
    fn take(&mut self, index: usize, mut fragment: Fragment<'a>, arena: &'a Arena) {
        self.any |= fragment.odd.is_none();
        self.take_files(&mut fragment, arena);
        match fragment.kind {
            "REQUEST" | "FILE" => {
                self.requested = true;
                self.asked.extend(words(&mut fragment));
            }
            "THINK" => {
                if let Some(words) = words(&mut fragment) {
                    let rest = std::mem::take(&mut fragment.rest).into_json();
                    self.thoughts.push((format!("think:{index}"), words, rest));
                }
            }
            kind if kind == "SEARCH" || kind.starts_with("TOOL") || kind.starts_with("READ") => {
                self.call(&mut fragment, arena);
            }
            // The answer, and whatever else holds words.
            kind => {
                let words = words(&mut fragment);
                self.untyped += usize::from(kind.is_empty() && words.is_some());
                self.said.extend(words);
            }
        }
        self.left.push(fragment.put_back());
    }

    /// Files of a fragment; only what has no place in an attachment stays with it.
    fn take_files(&mut self, fragment: &mut Fragment<'a>, arena: &'a Arena) {
        let (files, left) = files::read(std::mem::take(&mut fragment.files), arena);
        self.sent |= !files.is_empty() && matches!(fragment.kind, "REQUEST" | "FILE");
        self.files.extend(files);
        if let Some(left) = left {
            fragment.rest.add_json("files", &left);
        }
    }

    fn call(&mut self, fragment: &mut Fragment<'a>, arena: &'a Arena) {
        self.results.note(fragment.results, arena);
        let input = match std::mem::take(&mut fragment.content) {
            Value::Null => None,
            Value::Text(text) => Some(ToolInput::Text(text.into())),
            Value::Raw(raw) => Some(ToolInput::of_json(raw, arena)),
        };
        let output = match std::mem::take(&mut fragment.results) {
            Value::Null => None,
            Value::Text(said) | Value::Raw(said) => Some(unsigned_json(said.into())),
        };
        self.calls.push(ToolCall { id: None, name: fragment.kind.into(), input, output });
    }

    fn blank(&self) -> bool {
        self.asked.is_empty() && self.said.is_empty()
    }

    /// The text and the reasoning of older exports; beside fragments they are copies, kept where they say something else.
    fn take_plain(&mut self, blank: bool, role: Role, raw: &mut raw::Message<'a>) {
        if let Some(words) = raw.reasoning {
            let known = self.thoughts.iter().any(|(_, thought, _)| *thought == words);
            if words.trim().is_empty() || self.any {
                if !known {
                    raw.rest.add_text("reasoning_content", words);
                }
            } else {
                self.thoughts.push(("think".to_owned(), words, None));
            }
        }
        let Some(words) = raw.content.filter(|words| !words.is_empty()) else { return };
        let texts = if role == Role::User { &mut self.asked } else { &mut self.said };
        if blank {
            texts.push(words);
        } else if *texts != [words] {
            raw.rest.add_text("content", words);
        }
    }

    /// The list of fragments without what was taken; none if it was one text.
    fn kept(&self) -> Option<Cow<'a, str>> {
        let plain = match self.left.as_slice() {
            [] => true,
            [one] => SAID.contains(&one.as_ref()) && !self.blank(),
            _ => false,
        };
        (!plain).then(|| format!("[{}]", self.left.join(",")).into())
    }
}

/// Takes the text of a fragment, if it says something.
fn words<'a>(fragment: &mut Fragment<'a>) -> Option<&'a str> {
    let words = fragment.content.words()?;
    fragment.content = Value::Null;
    Some(words)
}

/// The messages of one node, each under the one before.
struct Chain<'a, 'm> {
    key: &'a str,
    created: Option<i64>,
    parent: Option<Cow<'a, str>>,
    messages: &'m mut Vec<Message<'a>>,
}

impl<'a> Chain<'a, '_> {
    fn ask(&mut self, content: Option<Content<'a>>, attachments: Vec<Attachment<'a>>) {
        let message = Message { role: Role::User, content, attachments, ..Message::default() };
        self.push("request", message);
    }

    fn think(&mut self, name: &str, words: &'a str, rest: Option<Cow<'a, str>>) {
        let message = Message {
            role: Role::Assistant,
            content: Some(Content::Text(words.into())),
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

fn content<'a>(texts: &[&'a str]) -> Option<Content<'a>> {
    if let [text] = texts {
        return Some(Content::Text(Cow::Borrowed(text)));
    }
    let part = |text: &&'a str| Part { text: Some(Cow::Borrowed(*text)), ..Part::default() };
    (!texts.is_empty()).then(|| Content::Multipart(texts.iter().map(part).collect()))
}
