//! A conversation as it is stored: without ids of the importer's, without its order, without places in the export.

use std::collections::{BTreeMap, BTreeSet};

use satchel_pam::{
    conversation::{Content, ContentKind, Part},
    ids,
    record::{ConversationRecord, MessageRecord},
};
use serde_json::{Map, Value};

use super::time_of;

/// What is stored of a conversation.
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
    /// Microseconds, of the export.
    pub created: Option<i64>,
    /// The same.
    pub updated: Option<i64>,
    /// The message where the provider says that the person was.
    pub current: Option<usize>,
    /// PAM `tags`.
    pub tags: BTreeSet<String>,
    /// PAM `raw_metadata`.
    pub raw: Value,
    /// Parents before their children, siblings by time and then in no order that an export gave.
    pub messages: Vec<StoredMessage>,
}

/// What is stored of a message.
#[derive(Clone, Debug, Default)]
pub struct StoredMessage {
    /// PAM `provider_message_id`.
    pub id: Option<String>,
    /// Its parent's place among the messages.
    pub parent: Option<usize>,
    /// PAM `role`.
    pub role: String,
    /// Microseconds, if the export gives a time.
    pub time: Option<i64>,
    /// PAM `created_at`, in microseconds: a time of its own or of its neighbours.
    pub shown: i64,
    /// PAM `is_thought`.
    pub thought: bool,
    /// PAM `content`: kind of each part, and its text, else its reference.
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
    /// All texts of the content.
    pub fn texts(&self) -> Vec<String> {
        self.parts.iter().map(|(_, text)| text.clone()).collect()
    }

    /// A text of the metadata.
    pub fn kept(&self, key: &str) -> Option<String> {
        self.raw.get(key).and_then(Value::as_str).map(ToOwned::to_owned)
    }

    /// Its number among its siblings, where times do not tell their order.
    pub fn number(&self) -> Option<usize> {
        self.raw.get(crate::tree::SIBLING_NUMBER)?.as_u64().and_then(|number| usize::try_from(number).ok())
    }

    /// The time as the provider told it: microseconds, or what of `raw_metadata` was not understood as one.
    pub fn told(&self, key: &str) -> Option<String> {
        told(self.time, self.raw.get(key))
    }
}

impl Stored {
    /// The time as the provider told it.
    pub fn told(&self, time: Option<i64>, key: &str) -> Option<String> {
        told(time, self.raw.get(key))
    }

    /// A text of the metadata.
    pub fn kept(&self, key: &str) -> Option<String> {
        self.raw.get(key).and_then(Value::as_str).map(ToOwned::to_owned)
    }

    /// Places of the messages by their time; what answers a message of the same time stands behind it.
    pub fn in_time(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.messages.len()).collect();
        order.sort_by_key(|at| self.messages[*at].shown);
        order
    }

    /// What the store keeps of a record.
    pub fn of_record(platform: &str, record: &ConversationRecord) -> Self {
        let places = places(platform, record);
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

    /// What a PAM document that Satchel wrote holds.
    pub fn of_document(document: &Value) -> Option<Self> {
        let mut raw = document.get("raw_metadata").cloned().unwrap_or_default();
        let time = |value: &Value| value.as_str().and_then(time_of);
        let (created, updated) = (&document["temporal"]["created_at"], &document["temporal"]["updated_at"]);
        // What Satchel adds stands under a key of its own.
        let mut notes = take(&mut raw, "satchel").unwrap_or_default();
        let own = take(&mut notes, "created_at_source").is_none();
        let later = take(&mut notes, "updated_at_source");
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
            created: time(created).filter(|_| own),
            updated: later.as_ref().map_or_else(|| time(updated), time),
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

fn told(time: Option<i64>, kept: Option<&Value>) -> Option<String> {
    time.map(|time| time.to_string()).or_else(|| match kept? {
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

fn message(record: &MessageRecord, parent: Option<usize>, shown: i64) -> StoredMessage {
    let items = |value: serde_json::Result<Value>| value.as_ref().map(list).unwrap_or_default();
    let attachments: Vec<_> = record.attachments.iter().map(|file| &file.attachment).collect();
    StoredMessage {
        id: record.provider_message_id.clone(),
        parent,
        role: record.role.as_str().to_owned(),
        time: record.created_at,
        shown,
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
    let own = take(&mut notes, "created_at_source").is_none();
    let shown = message["created_at"].as_str().and_then(time_of).unwrap_or_default();
    let content: Option<Content> = serde_json::from_value(message["content"].clone()).ok();
    StoredMessage {
        id: text(&message["provider_message_id"]),
        parent,
        role: text(&message["role"]).unwrap_or_default(),
        time: own.then_some(shown),
        shown,
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

/// Where a message stands in the store.
struct Place {
    node: usize,
    parent: Option<String>,
    time: i64,
}

/// Parents first, siblings by time and then by Satchel's id, which says nothing of the export.
fn places(platform: &str, record: &ConversationRecord) -> Vec<Place> {
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
        placed.push(Place { node, parent, time: times[node] });
        stack.extend(below(Some(node)).into_iter().rev());
    }
    placed
}

/// Each message's time: its own, else that of the one above, else the earliest below.
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
