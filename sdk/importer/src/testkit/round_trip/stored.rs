//! A stored conversation without anything that only the importer knows: its ids, its order, its locators.

use std::collections::{BTreeMap, BTreeSet};

use satchel_pam::{
    conversation::{Content, ContentKind, Part},
    ids,
    record::{ConversationRecord, MessageRecord},
};
use serde_json::{Map, Value};

use super::time_of;

/// A stored conversation.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    /// PAM `provider.conversation_id`.
    pub id: Option<String>,
    /// PAM `provider.account_id`.
    pub account: Option<String>,
    /// PAM `provider.export_format_version`.
    pub format: Option<String>,
    /// PAM `title`.
    pub title: Option<String>,
    /// Microseconds, if the export has the time.
    pub created: Option<i64>,
    /// Microseconds, if the export has the time.
    pub updated: Option<i64>,
    /// Index of the message that the person viewed last, if the provider records it.
    pub current: Option<usize>,
    /// PAM `tags`.
    pub tags: BTreeSet<String>,
    /// PAM `raw_metadata`.
    pub raw: Value,
    /// Parents before their children, siblings by time and then by Satchel's id, which does not depend on the export's order.
    pub messages: Vec<StoredMessage>,
}

/// A stored message.
#[derive(Clone, Debug, Default)]
pub struct StoredMessage {
    /// PAM `provider_message_id`.
    pub id: Option<String>,
    /// Index of its parent among the messages.
    pub parent: Option<usize>,
    /// PAM `role`.
    pub role: String,
    /// Microseconds, if the export has the time.
    pub time: Option<i64>,
    /// PAM `created_at`, in microseconds: its own time or one of a neighbour.
    pub created_at: i64,
    /// PAM `is_thought`.
    pub thought: bool,
    /// PAM `content`: the kind of each part, and its text or else its reference.
    pub parts: Vec<(String, String)>,
    /// PAM `model`.
    pub model: Option<String>,
    /// PAM `tool_calls`.
    pub calls: Vec<Value>,
    /// PAM `attachments`.
    pub attachments: Vec<Value>,
    /// PAM `raw_metadata`.
    pub raw: Value,
}

impl StoredMessage {
    /// The texts of all parts.
    pub fn texts(&self) -> Vec<String> {
        self.parts.iter().map(|(_, text)| text.clone()).collect()
    }

    /// A text in `raw_metadata`.
    pub fn metadata_text(&self, key: &str) -> Option<String> {
        self.raw.get(key).and_then(Value::as_str).map(ToOwned::to_owned)
    }

    /// Its number among its siblings, if their order is not that of their times.
    pub fn sibling_number(&self) -> Option<usize> {
        self.raw.get(crate::tree::SIBLING_NUMBER)?.as_u64().and_then(|number| usize::try_from(number).ok())
    }

    /// Its time in microseconds, or else the value of `key` in `raw_metadata`; compare with [`super::time_text`].
    pub fn time_text(&self, key: &str) -> Option<String> {
        time_text(self.time, self.raw.get(key))
    }
}

impl Stored {
    /// `time` in microseconds, or else the value of `key` in `raw_metadata`; compare with [`super::time_text`].
    pub fn time_text(&self, time: Option<i64>, key: &str) -> Option<String> {
        time_text(time, self.raw.get(key))
    }

    /// A text in `raw_metadata`.
    pub fn metadata_text(&self, key: &str) -> Option<String> {
        self.raw.get(key).and_then(Value::as_str).map(ToOwned::to_owned)
    }

    /// What is stored for a record.
    pub fn of_record(platform: &str, record: &ConversationRecord) -> Self {
        let places = store_order(platform, record);
        let index: BTreeMap<&str, usize> = places
            .iter()
            .enumerate()
            .map(|(at, place)| (record.messages[place.node].id.as_str(), at))
            .collect();
        let find = |key: &Option<String>| key.as_deref().and_then(|key| index.get(key)).copied();
        Self {
            id: record.provider_conversation_id.clone(),
            account: record.account.clone(),
            format: record.export_format_version.clone(),
            title: record.title.clone(),
            created: record.created_at,
            updated: record.updated_at,
            current: find(&record.current),
            tags: record.tags.iter().cloned().collect(),
            raw: metadata(record.raw_metadata.as_ref()),
            messages: places
                .iter()
                .map(|place| {
                    message(
                        &record.messages[place.node],
                        place.parent.as_deref().and_then(|up| index.get(up).copied()),
                        place.time,
                    )
                })
                .collect(),
        }
    }

    /// Reads a PAM document that Satchel wrote.
    pub fn of_document(document: &Value) -> Option<Self> {
        let mut raw = document.get("raw_metadata").cloned().unwrap_or_default();
        let time = |value: &Value| value.as_str().and_then(time_of);
        let (created, updated) = (&document["temporal"]["created_at"], &document["temporal"]["updated_at"]);
        // Satchel puts what it adds under this key.
        let mut notes = take(&mut raw, "satchel").unwrap_or_default();
        let dated = take(&mut notes, "created_at_source").is_none();
        let updated_note = take(&mut notes, "updated_at_source");
        let newest = take(&mut notes, "current_message_source").is_some();
        let current = take(&mut notes, "current_message").filter(|_| !newest);
        let messages = document.get("messages")?.as_array()?;
        let index: BTreeMap<&str, usize> = messages
            .iter()
            .enumerate()
            .filter_map(|(at, message)| Some((message["id"].as_str()?, at)))
            .collect();
        let find = |id: &Value| id.as_str().and_then(|id| index.get(id)).copied();
        Some(Self {
            id: text(&document["provider"]["conversation_id"]),
            account: text(&document["provider"]["account_id"]),
            format: text(&document["provider"]["export_format_version"]),
            title: text(&document["title"]),
            created: time(created).filter(|_| dated),
            updated: updated_note.as_ref().map_or_else(|| time(updated), time),
            current: current.as_ref().and_then(find),
            tags: list(&document["tags"]).iter().filter_map(text).collect(),
            raw,
            messages: messages
                .iter()
                .map(|message| document_message(message, find(&message["parent_id"])))
                .collect(),
        })
    }
}

fn time_text(time: Option<i64>, verbatim: Option<&Value>) -> Option<String> {
    time.map(|time| time.to_string()).or_else(|| match verbatim? {
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    })
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(ToOwned::to_owned)
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn take(raw: &mut Value, key: &str) -> Option<Value> {
    raw.as_object_mut()?.remove(key)
}

fn metadata(raw: Option<&satchel_pam::raw::RawObject>) -> Value {
    raw.and_then(|raw| serde_json::from_str(raw.as_str()).ok()).unwrap_or_else(|| Map::new().into())
}

fn message(record: &MessageRecord, parent: Option<usize>, created_at: i64) -> StoredMessage {
    let items = |value: serde_json::Result<Value>| value.as_ref().map(list).unwrap_or_default();
    let attachments: Vec<_> = record.attachments.iter().map(|file| &file.attachment).collect();
    StoredMessage {
        id: record.provider_message_id.clone(),
        parent,
        role: record.role.as_str().to_owned(),
        time: record.created_at,
        created_at,
        thought: record.is_thought,
        parts: record.content.as_ref().map(parts).unwrap_or_default(),
        model: record.model.clone(),
        calls: items(serde_json::to_value(&record.tool_calls)),
        attachments: items(serde_json::to_value(attachments)),
        raw: metadata(record.raw_metadata.as_ref()),
    }
}

fn document_message(message: &Value, parent: Option<usize>) -> StoredMessage {
    let mut raw = message.get("raw_metadata").cloned().unwrap_or_default();
    let mut notes = take(&mut raw, "satchel").unwrap_or_default();
    let dated = take(&mut notes, "created_at_source").is_none();
    let created_at = message["created_at"].as_str().and_then(time_of).unwrap_or_default();
    let content: Option<Content> = serde_json::from_value(message["content"].clone()).ok();
    StoredMessage {
        id: text(&message["provider_message_id"]),
        parent,
        role: text(&message["role"]).unwrap_or_default(),
        time: dated.then_some(created_at),
        created_at,
        thought: message["is_thought"] == true,
        parts: content.as_ref().map(parts).unwrap_or_default(),
        model: text(&message["model"]),
        calls: list(&message["tool_calls"]),
        attachments: list(&message["attachments"]),
        raw,
    }
}

fn parts(content: &Content) -> Vec<(String, String)> {
    let part = |part: &Part| {
        let text = part.text.clone().or_else(|| part.reference.clone()).unwrap_or_default();
        (part.kind.as_str().to_owned(), text)
    };
    match content.kind {
        ContentKind::Text => vec![("text".to_owned(), content.text.clone().unwrap_or_default())],
        ContentKind::Multipart => content.parts.iter().map(part).collect(),
    }
}

/// A message in the order of the store.
struct OrderedNode {
    node: usize,
    parent: Option<String>,
    time: i64,
}

/// The messages in the order of the store: parents first, siblings by time and then by Satchel's id.
fn store_order(platform: &str, record: &ConversationRecord) -> Vec<OrderedNode> {
    let messages = &record.messages;
    let conversation = ids::conversation_id(platform, None, &record.id);
    let index: BTreeMap<&str, usize> =
        messages.iter().enumerate().map(|(at, message)| (message.id.as_str(), at)).collect();
    let parents: Vec<Option<usize>> =
        messages.iter().map(|message| index.get(message.parent.as_deref()?).copied()).collect();
    let times = times(messages, &parents);
    let below = |above: Option<usize>| {
        let mut nodes: Vec<usize> = (0..messages.len()).filter(|at| parents[*at] == above).collect();
        nodes.sort_by_key(|at| (times[*at], ids::message_id(conversation, &messages[*at].id)));
        nodes
    };
    let mut stack = below(None);
    stack.reverse();
    let mut placed = Vec::with_capacity(messages.len());
    while let Some(node) = stack.pop() {
        let parent = parents[node].map(|above| messages[above].id.clone());
        placed.push(OrderedNode { node, parent, time: times[node] });
        stack.extend(below(Some(node)).into_iter().rev());
    }
    placed
}

/// The time of each message: its own, else that of the nearest dated ancestor, else the earliest below it.
fn times(messages: &[MessageRecord], parents: &[Option<usize>]) -> Vec<i64> {
    let mut times: Vec<Option<i64>> = messages.iter().map(|message| message.created_at).collect();
    let mut below = times.clone();
    for _ in messages {
        for (at, parent) in parents.iter().enumerate() {
            let (Some(parent), Some(time)) = (*parent, below[at]) else { continue };
            if messages[parent].created_at.is_none() {
                below[parent] = Some(below[parent].map_or(time, |known| known.min(time)));
            }
        }
    }
    for (at, _) in messages.iter().enumerate().filter(|(_, message)| message.created_at.is_none()) {
        let above = std::iter::successors(parents[at], |above| parents[*above]);
        let dated = above.take(messages.len()).find_map(|above| messages[above].created_at.or(below[above]));
        times[at] = dated.or(below[at]);
    }
    times.into_iter().map(Option::unwrap_or_default).collect()
}
