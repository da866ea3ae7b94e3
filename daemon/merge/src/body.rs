//! The content of one message as an export reports it, independent of its neighbours, and the union of two such
//! reports.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_pam::{
    conversation::{Attachment, Citation, Content, Message, Role, ToolCall},
    hash::Sha256Digest,
    raw::RawObject,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use super::{notes, tree::TimeSource};

/// A message without its place in the tree. The store keeps each body once, as compact JSON.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Body {
    /// The provider's id, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_message_id: Option<String>,
    /// The role of the author.
    pub role: Role,
    /// The content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// Microseconds, if the export has a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<i64>,
    /// The model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether it is reasoning rather than an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_thought: bool,
    /// Number of tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_count: Option<u64>,
    /// Attached files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Cited sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<Citation>,
    /// Tool calls with their output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Everything that has no field above. It must be the last field, because [`Body::encode`] writes it by hand.
    #[serde(default, skip_serializing)]
    pub raw_metadata: Option<RawObject>,
}

/// The first half of a SHA-256, which tells whether two bodies are the same without reading them.
pub type Digest16 = [u8; 16];

impl Body {
    /// Returns the bytes to store and their digest.
    ///
    /// # Errors
    /// None in practice: every field is text, a number or a list of these.
    pub fn encode(&self) -> serde_json::Result<(Vec<u8>, Digest16)> {
        let mut bytes = Vec::with_capacity(512);
        serde_json::to_writer(&mut bytes, self)?;
        if let Some(raw) = &self.raw_metadata {
            // It is already JSON text, so it is copied: it makes up most of a message, and a serializer would parse it
            // again.
            bytes.pop();
            bytes.extend_from_slice(b",\"raw_metadata\":");
            bytes.extend_from_slice(raw.as_str().as_bytes());
            bytes.push(b'}');
        }
        // A conversation of 200,000 messages is held in memory as a whole until it is stored.
        bytes.shrink_to_fit();
        let digest = digest(&bytes);
        Ok((bytes, digest))
    }

    /// Decodes stored bytes.
    ///
    /// # Errors
    /// If the bytes are not a body.
    pub fn decode(bytes: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(bytes)
    }

    /// Returns whether the provider hid the message from the user.
    pub fn hidden(&self) -> bool {
        self.raw_metadata.as_ref().is_some_and(|raw| {
            // Few messages have this key. Searching for its text first avoids parsing all the others.
            raw.as_str().contains("\"hidden\"") && raw.to_map().get("hidden") == Some(&Value::Bool(true))
        })
    }

    /// Returns the union of two reports of one message. Each field takes the richer value; an empty value never
    /// replaces a full one.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self {
            provider_message_id: richer(&self.provider_message_id, &other.provider_message_id),
            role: self.role.max(other.role),
            content: richer(&self.content, &other.content),
            created_at: earlier(self.created_at, other.created_at),
            model: richer(&self.model, &other.model),
            is_thought: self.is_thought || other.is_thought,
            token_count: self.token_count.max(other.token_count),
            attachments: union_of_attachments(&self.attachments, &other.attachments),
            citations: richer(&self.citations, &other.citations),
            tool_calls: richer(&self.tool_calls, &other.tool_calls),
            raw_metadata: union_of_raw(self.raw_metadata.as_ref(), other.raw_metadata.as_ref()),
        }
    }

    /// Converts the body to a PAM message at its place in the tree.
    pub fn into_message(self, place: MessagePosition) -> Message {
        let mut notes = Map::from_iter([("active_path".to_owned(), Value::Bool(place.active))]);
        if place.source != TimeSource::Message {
            notes.insert("created_at_source".to_owned(), source_name(place.source).into());
        }
        Message {
            id: place.id,
            provider_message_id: self.provider_message_id,
            role: self.role,
            content: self.content,
            created_at: place.time,
            parent_id: place.parent,
            children_ids: place.children,
            model: self.model,
            is_thought: self.is_thought,
            token_count: self.token_count,
            attachments: self.attachments,
            citations: self.citations,
            tool_calls: self.tool_calls,
            raw_metadata: notes::with(self.raw_metadata, notes),
        }
    }
}

/// The place of a message in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePosition {
    /// Satchel's id of the message.
    pub id: String,
    /// Satchel's id of the parent.
    pub parent: Option<String>,
    /// Satchel's ids of the children.
    pub children: Vec<String>,
    /// The time of the message.
    pub time: Timestamp,
    /// Where the time comes from.
    pub source: TimeSource,
    /// Whether the message is on the branch that the user last saw.
    pub active: bool,
}

/// Returns the digest of stored bytes.
pub fn digest(bytes: &[u8]) -> Digest16 {
    let mut half = [0; 16];
    // `ring` hashes in assembly, which matters because every body is hashed once.
    half.copy_from_slice(&ring::digest::digest(&ring::digest::SHA256, bytes).as_ref()[..16]);
    half
}

fn source_name(source: TimeSource) -> &'static str {
    match source {
        TimeSource::Message => "message",
        TimeSource::Parent => "parent",
        TimeSource::Child => "child",
        TimeSource::Conversation => "conversation",
    }
}

/// Returns JSON text without the white space between its tokens. That white space has no meaning, and every producer
/// indents documents differently.
fn compact(text: &str) -> Cow<'_, str> {
    let (mut quoted, mut escaped) = (false, false);
    let mut insignificant = |c: char| {
        let string = quoted;
        quoted ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped && string;
        !string && matches!(c, ' ' | '\n' | '\r' | '\t')
    };
    match text.find(&mut insignificant) {
        None => Cow::Borrowed(text),
        Some(at) => {
            // The match is outside of any string.
            let rest = text[at..].chars().filter(|c| !insignificant(*c));
            Cow::Owned(text[..at].chars().chain(rest).collect())
        }
    }
}

/// Returns the value with more content. If the lengths are equal, the greater text wins, so that the order of the
/// arguments does not matter.
pub(super) fn richer<T: Serialize + Clone + PartialEq>(one: &T, other: &T) -> T {
    if one == other {
        return one.clone();
    }
    let text = |value: &T| {
        let text = serde_json::to_string(value).unwrap_or_default();
        let text = compact(&text).into_owned();
        (text.len(), text)
    };
    let empty = |text: &(usize, String)| matches!(text.1.as_str(), "null" | "[]" | "\"\"" | "{}");
    let (left, right) = (text(one), text(other));
    match (empty(&left), empty(&right)) {
        (false, true) => one.clone(),
        (true, false) => other.clone(),
        _ if left >= right => one.clone(),
        _ => other.clone(),
    }
}

pub(super) fn earlier(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Returns the attachments of both, one for each provider id or name.
fn union_of_attachments(one: &[Attachment], other: &[Attachment]) -> Vec<Attachment> {
    if one == other || other.is_empty() {
        return one.to_vec();
    }
    if one.is_empty() {
        return other.to_vec();
    }
    let key = |file: &Attachment| {
        file.provider_id.clone().or_else(|| file.name.clone()).or_else(|| file.reference.clone())
    };
    let mut all: BTreeMap<Option<String>, Attachment> = BTreeMap::new();
    for file in one.iter().chain(other) {
        all.entry(key(file)).and_modify(|known| *known = join(known, file)).or_insert_with(|| file.clone());
    }
    let all: Vec<Attachment> = all.into_values().collect();
    if same_set(&all, one) {
        one.to_vec()
    } else if same_set(&all, other) {
        other.to_vec()
    } else {
        all
    }
}

fn same_set(all: &[Attachment], some: &[Attachment]) -> bool {
    all.len() == some.len() && all.iter().all(|file| some.contains(file))
}

fn join(one: &Attachment, other: &Attachment) -> Attachment {
    Attachment {
        kind: if richer(&one.kind, &other.kind) == one.kind { one.kind } else { other.kind },
        name: richer(&one.name, &other.name),
        mime_type: richer(&one.mime_type, &other.mime_type),
        size_bytes: one.size_bytes.max(other.size_bytes),
        reference: richer(&one.reference, &other.reference),
        provider_id: richer(&one.provider_id, &other.provider_id),
    }
}

/// Returns an object with all keys of both, each with the richer value.
pub(super) fn union_of_raw(one: Option<&RawObject>, other: Option<&RawObject>) -> Option<RawObject> {
    let (one, other) = match (one, other) {
        (Some(one), Some(other)) if !same_json(one.as_str(), other.as_str()) => (one, other),
        (one, other) => return one.or(other).cloned(),
    };
    let (Some(left), Some(right)) = (keys(one), keys(other)) else {
        return Some(richer(one, other));
    };
    let mut all = left.clone();
    for (key, value) in &right {
        let known = all.entry(key.clone()).or_insert_with(|| value.clone());
        if rank(&compact(value.get())) > rank(&compact(known.get())) {
            known.clone_from(value);
        }
    }
    let same = |some: &BTreeMap<String, Box<RawValue>>| {
        some.len() == all.len() && some.iter().all(|(key, value)| same_json(all[key].get(), value.get()))
    };
    match (same(&left), same(&right)) {
        (true, false) => Some(one.clone()),
        (false, true) => Some(other.clone()),
        (true, true) => Some(if one.as_str() >= other.as_str() { one.clone() } else { other.clone() }),
        (false, false) => serde_json::to_string(&all).ok().and_then(|text| RawObject::parse(text).ok()),
    }
}

fn keys(raw: &RawObject) -> Option<BTreeMap<String, Box<RawValue>>> {
    serde_json::from_str(raw.as_str()).ok()
}

fn same_json(one: &str, other: &str) -> bool {
    one == other || compact(one) == compact(other)
}

fn rank(text: &str) -> (bool, usize, &str) {
    (!matches!(text, "null" | "[]" | "\"\"" | "{}" | "false"), text.len(), text)
}

/// Returns the hashes of the attachments that a stored message refers to.
pub fn attachment_hashes(body: &[u8]) -> Vec<Sha256Digest> {
    let Ok(body) = Body::decode(body) else { return Vec::new() };
    let refs = body.attachments.into_iter().filter_map(|file| file.reference);
    refs.filter_map(|path| format!("sha256:{}", path.strip_prefix("attachments/")?).parse().ok()).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn compact_removes_white_space_outside_strings() {
        for (text, compacted) in [
            (r#"{"a":1}"#, r#"{"a":1}"#),
            ("{ \"a b\" : [1 ,\n\t2] }", r#"{"a b":[1,2]}"#),
            (r#"{"a": "x \" y", "b\\": " "}"#, r#"{"a":"x \" y","b\\":" "}"#),
            (r#"["\\", " \\\" ", 3]"#, r#"["\\"," \\\" ",3]"#),
        ] {
            assert_eq!(compact(text), compacted);
        }
    }

    #[test]
    fn white_space_between_tokens_is_ignored() {
        let raw = |text: &str| Some(RawObject::parse(text.to_owned()).unwrap());
        let known = raw(r#"{"a": {"b": [1, 2]}}"#);
        for other in [r#"{"a":{"b":[1,2]}}"#, "{\n  \"a\": {\n    \"b\": [1,\n 2]\n  }\n}"] {
            assert_eq!(union_of_raw(known.as_ref(), raw(other).as_ref()), known);
        }
        let richer = raw(r#"{"a":{"b":[1,2]},"c":1}"#);
        assert_eq!(union_of_raw(known.as_ref(), richer.as_ref()), richer);
    }
}
