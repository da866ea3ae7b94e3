//! The native peers of an importer, which read whole files: `serde_json` into values and into types of the same
//! content, the `csv` crate for tables, `html5gum` for pages.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use anyhow::Result;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

#[derive(Deserialize)]
struct ChatGpt<'a> {
    #[serde(borrow)]
    title: Option<Cow<'a, str>>,
    create_time: Option<f64>,
    update_time: Option<f64>,
    #[serde(borrow)]
    mapping: Option<BTreeMap<Cow<'a, str>, Node<'a>>>,
    current_node: Option<Cow<'a, str>>,
    conversation_id: Option<Cow<'a, str>>,
    is_archived: Option<bool>,
    #[serde(borrow)]
    moderation_results: Option<&'a RawValue>,
    #[serde(borrow)]
    safe_urls: Option<&'a RawValue>,
    #[serde(borrow)]
    memory_scope: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Node<'a> {
    #[serde(borrow)]
    parent: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    author: Author<'a>,
    create_time: Option<f64>,
    #[serde(borrow)]
    content: Content<'a>,
    #[serde(borrow)]
    recipient: Option<Cow<'a, str>>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<Cow<'a, str>>,
    weight: Option<f64>,
    end_turn: Option<bool>,
}

#[derive(Deserialize)]
struct Author<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    content_type: Cow<'a, str>,
    #[serde(borrow, default)]
    parts: Vec<Part<'a>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    language: Option<Cow<'a, str>>,
    #[serde(borrow)]
    thoughts: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Part<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Other(BTreeMap<String, Value>),
    Nothing(Option<()>),
}

#[derive(Deserialize)]
struct Claude<'a> {
    #[serde(borrow)]
    uuid: Cow<'a, str>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    created_at: Cow<'a, str>,
    #[serde(borrow)]
    updated_at: Cow<'a, str>,
    #[serde(borrow)]
    account: Option<&'a RawValue>,
    #[serde(borrow)]
    chat_messages: Vec<ChatMessage<'a>>,
}

#[derive(Deserialize)]
struct ChatMessage<'a> {
    #[serde(borrow)]
    uuid: Cow<'a, str>,
    #[serde(borrow)]
    sender: Cow<'a, str>,
    #[serde(borrow)]
    created_at: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content: Vec<Block<'a>>,
    #[serde(borrow)]
    attachments: Option<&'a RawValue>,
    #[serde(borrow)]
    files: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    citations: Option<&'a RawValue>,
}

/// A native way to read all files of a folder; returns how much was read, so that the work is not optimised away.
pub(crate) type NativeReader = fn(&Path) -> Result<usize>;

/// Returns the native readers for the format of an importer, each with its name.
pub(crate) fn native_readers(provider: &str) -> Vec<(&'static str, NativeReader)> {
    let values: (&str, NativeReader) = ("serde_json::Value", values);
    match provider {
        "chatgpt" => vec![values, ("typed serde_json", typed_chatgpt)],
        "claude" => vec![values, ("typed serde_json", typed_claude)],
        "copilot" => vec![("csv", csv_cells)],
        _ => vec![values],
    }
}

fn typed_chatgpt(folder: &Path) -> Result<usize> {
    let bytes = std::fs::read(folder.join("conversations.json"))?;
    let all: Vec<ChatGpt<'_>> = serde_json::from_slice(&bytes)?;
    Ok(all.iter().map(chatgpt_bytes).sum())
}

fn typed_claude(folder: &Path) -> Result<usize> {
    let bytes = std::fs::read(folder.join("conversations.json"))?;
    let all: Vec<Claude<'_>> = serde_json::from_slice(&bytes)?;
    Ok(all.iter().map(claude_bytes).sum())
}

/// Parses every file of JSON or JSON Lines into trees of values. A page has no such peer, so it is only tokenized. Other files, such as
/// the one with the name of a project's folder, are small.
fn values(folder: &Path) -> Result<usize> {
    let mut seen = 0;
    for file in files(folder)? {
        let bytes = std::fs::read(&file)?;
        seen += match file.extension().and_then(OsStr::to_str) {
            Some("html") => html5gum::Tokenizer::new(std::str::from_utf8(&bytes)?).flatten().count(),
            Some("json" | "jsonl") => {
                // One value, or one in each line.
                let values = serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>();
                let counts =
                    values.map(|value| Ok(std::hint::black_box(&value?).as_array().map_or(1, Vec::len)));
                counts.sum::<Result<usize>>()?
            }
            _ => 0,
        };
    }
    Ok(seen)
}

/// Reads every cell of every table.
fn csv_cells(folder: &Path) -> Result<usize> {
    let mut seen = 0;
    for file in files(folder)? {
        for record in csv::Reader::from_path(&file)?.into_records() {
            seen += record?.iter().map(str::len).sum::<usize>();
        }
    }
    Ok(seen)
}

/// Returns all files below `folder`.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    Ok(found)
}

fn text(value: Option<&Cow<'_, str>>) -> usize {
    value.map_or(0, |text| text.len())
}

fn raw(value: Option<&RawValue>) -> usize {
    value.map_or(0, |raw| raw.get().len())
}

fn chatgpt_bytes(one: &ChatGpt<'_>) -> usize {
    let ChatGpt {
        title,
        create_time,
        update_time,
        mapping,
        current_node,
        conversation_id,
        is_archived,
        moderation_results,
        safe_urls,
        memory_scope,
    } = one;
    let times = usize::from(create_time.is_some())
        + usize::from(update_time.is_some())
        + usize::from(is_archived.is_some());
    let nodes = mapping
        .iter()
        .flat_map(BTreeMap::values)
        .map(|node| text(node.parent.as_ref()) + node.message.as_ref().map_or(0, message_bytes));
    let rest = raw(*moderation_results) + raw(*safe_urls) + raw(*memory_scope);
    text(title.as_ref())
        + text(current_node.as_ref())
        + text(conversation_id.as_ref())
        + times
        + rest
        + nodes.sum::<usize>()
}

fn message_bytes(message: &Message<'_>) -> usize {
    let Message { id, author, create_time, content, recipient, metadata, status, weight, end_turn } = message;
    let flags =
        usize::from(create_time.is_some()) + usize::from(weight.is_some()) + usize::from(end_turn.is_some());
    let Content { content_type, parts, text: body, language, thoughts } = content;
    let parts: usize = parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.len(),
            Part::Other(object) => object.len(),
            Part::Nothing(nothing) => usize::from(nothing.is_some()),
        })
        .sum();
    flags
        + text(id.as_ref())
        + author.role.len()
        + text(author.name.as_ref())
        + text(recipient.as_ref())
        + text(status.as_ref())
        + raw(*metadata)
        + content_type.len()
        + parts
        + text(body.as_ref())
        + text(language.as_ref())
        + raw(*thoughts)
}

fn claude_bytes(one: &Claude<'_>) -> usize {
    let Claude { uuid, name, created_at, updated_at, account, chat_messages } = one;
    let messages = chat_messages.iter().map(|message| {
        let ChatMessage { uuid, sender, created_at, text: flat, content, attachments, files } = message;
        let blocks = content.iter().map(|block| {
            let Block { kind, text: body, thinking, id, name, input, content, citations } = block;
            kind.len()
                + text(body.as_ref())
                + text(thinking.as_ref())
                + text(id.as_ref())
                + text(name.as_ref())
                + raw(*input)
                + raw(*content)
                + raw(*citations)
        });
        uuid.len()
            + sender.len()
            + created_at.len()
            + text(flat.as_ref())
            + raw(*attachments)
            + raw(*files)
            + blocks.sum::<usize>()
    });
    uuid.len()
        + text(name.as_ref())
        + created_at.len()
        + updated_at.len()
        + raw(*account)
        + messages.sum::<usize>()
}
