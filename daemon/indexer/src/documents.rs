//! What is indexed of memories and conversations.

use std::{
    borrow::Cow,
    collections::HashSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use satchel_merge::body::Body;
use satchel_pam::{
    conversation::{ContentKind, ConversationTemporal, PartKind},
    memory::{Access, Memory, Permission, Status, Visibility},
    time::Timestamp,
};
use satchel_search::index::{Document, DocumentKind, PUBLIC_READER, shared_reader};
use satchel_store::{ConversationRecord, MessageHead, Store};

use crate::IndexerError;

/// Bytes of message bodies that are in memory at once; a single message may be larger.
const BODY_BYTES: u64 = 4 << 20;
/// Longest text of a message that is indexed, in bytes. What is after it is data rather than text.
const MAX_TEXT_BYTES: usize = 2 << 20;
/// How much memories count that are not in use any more.
const INACTIVE_WEIGHT: f64 = 0.6;
/// How much a title counts, which is short and so fits every query well.
const TITLE_WEIGHT: f64 = 0.8;
/// The weight of a memory without any confidence; full confidence has 1.
const MIN_CONFIDENCE_WEIGHT: f64 = 0.7;

/// Returns the document of a memory. `successor` is the memory that superseded it.
pub(crate) fn memory<'a>(memory: &'a Memory, successor: Option<&Memory>) -> Document<'a> {
    let text = memory_text(memory);
    let temporal = &memory.temporal;
    let time = temporal.updated_at.unwrap_or(temporal.created_at);
    Document {
        memory_type: Some(memory.memory_type.as_str()),
        status: Some(memory.status.as_str()),
        tags: memory.tags.iter().map(|tag| Cow::from(tag.as_str())).collect(),
        has: text_features(&text),
        readers: memory.access.as_ref().map(readers).unwrap_or_default(),
        time: time.known().then(|| time.micros()),
        valid_from: temporal.valid_from.map(Timestamp::micros),
        valid_until: valid_until(memory, successor),
        weight: weight(memory),
        ..Document::new(DocumentKind::Memory, &*memory.id, &*memory.provenance.platform, text)
    }
}

/// Returns the text by which a memory is found: its content, and its summary if that is another text.
#[must_use]
pub fn memory_text(memory: &Memory) -> Cow<'_, str> {
    match &memory.summary {
        Some(summary) if *summary != memory.content => Cow::from(format!("{}\n\n{summary}", memory.content)),
        Some(_) | None => Cow::from(memory.content.as_str()),
    }
}

/// Returns when a memory stopped to be valid: as it says itself, or when the statement that superseded it began to hold, as far
/// as that is known.
fn valid_until(memory: &Memory, successor: Option<&Memory>) -> Option<i64> {
    let began = successor.map(|next| next.temporal.valid_from.unwrap_or(next.temporal.created_at));
    let superseded = began.filter(|time| time.known());
    let times = memory.temporal.valid_until.into_iter().chain(superseded);
    times.map(Timestamp::micros).min()
}

fn weight(memory: &Memory) -> f64 {
    let confidence =
        memory.confidence.as_ref().and_then(|confidence| confidence.current.or(confidence.initial));
    let sure = confidence.map_or(1.0, |confidence| {
        MIN_CONFIDENCE_WEIGHT + (1.0 - MIN_CONFIDENCE_WEIGHT) * confidence.clamp(0.0, 1.0)
    });
    if memory.status == Status::Active { sure } else { sure * INACTIVE_WEIGHT }
}

/// Returns who may read a memory with this access besides the owner.
fn readers(access: &Access) -> Vec<String> {
    if access.visibility == Visibility::Private {
        return Vec::new();
    }
    let public = (access.visibility == Visibility::Public).then(|| PUBLIC_READER.to_owned());
    let granted = access.shared_with.iter().filter(|grant| grant.permissions.contains(&Permission::Read));
    public.into_iter().chain(granted.map(|grant| shared_reader(&grant.entity))).collect()
}

/// The documents of a conversation, of which only those that the index lacks are read.
pub(crate) struct ConversationDocuments<'a> {
    record: &'a ConversationRecord,
    tags: Vec<Cow<'a, str>>,
    /// The key of each message.
    keys: Vec<u64>,
    title: Option<(u64, &'a str)>,
}

impl<'a> ConversationDocuments<'a> {
    pub(crate) fn new(record: &'a ConversationRecord) -> Self {
        let header = &record.header;
        // What all messages have from their conversation.
        let mut common = DefaultHasher::new();
        (&header.id, &header.provider.name, &header.tags, &header.model).hash(&mut common);
        let of = |kind: u8, part: &dyn Fn(&mut DefaultHasher)| {
            let mut hasher = common.clone();
            kind.hash(&mut hasher);
            part(&mut hasher);
            // 0 stands for documents without a key.
            hasher.finish().max(1)
        };
        let message = |head: &MessageHead| {
            of(0, &|hasher| {
                let MessageHead { id, role, created_at_micros, hidden, thought, digest, .. } = head;
                (id, role.as_str(), created_at_micros, hidden, thought, digest).hash(hasher);
            })
        };
        let title = header.title.as_deref().filter(|title| !title.is_empty());
        let title_key = |title: &str| of(1, &|hasher| (title, time(&header.temporal)).hash(hasher));
        Self {
            tags: header.tags.iter().map(|tag| Cow::from(tag.as_str())).collect(),
            keys: record.heads.iter().map(message).collect(),
            title: title.map(|title| (title_key(title), title)),
            record,
        }
    }

    /// Returns the keys of all documents.
    pub(crate) fn keys(&self) -> HashSet<u64> {
        self.keys.iter().copied().chain(self.title.map(|(key, _)| key)).collect()
    }

    /// Passes the documents whose keys are not in `known` to `visit`.
    pub(crate) fn each_new(
        &self,
        store: &Store,
        known: &HashSet<u64>,
        mut visit: impl FnMut(Document<'_>) -> Result<(), IndexerError>,
    ) -> Result<(), IndexerError> {
        let header = &self.record.header;
        if let Some((key, title)) = self.title.filter(|(key, _)| !known.contains(key)) {
            visit(Document {
                key,
                tags: self.tags.clone(),
                time: time(&header.temporal),
                weight: TITLE_WEIGHT,
                ..Document::new(DocumentKind::Title, &*header.id, &*header.provider.name, title)
            })?;
        }
        let new: Vec<usize> = (0..self.keys.len()).filter(|at| !known.contains(&self.keys[*at])).collect();
        let mut rest = &new[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(self.chunk(rest));
            rest = later;
            for (at, body) in now.iter().zip(store.bodies_at(self.record, now)?) {
                // A body that cannot be read is reported by `doctor`; the others are found.
                if let Ok(body) = Body::decode(&body) {
                    let (key, tags) = (self.keys[*at], self.tags.clone());
                    visit(Document { key, tags, ..message(self.record, *at, &body) })?;
                }
            }
        }
        Ok(())
    }

    /// Returns how many of these messages are read at once.
    fn chunk(&self, messages: &[usize]) -> usize {
        let mut bytes = 0;
        let fits = |at: &&usize| {
            let first = bytes == 0;
            bytes += self.record.body_locations.get(**at).map_or(1, |place| u64::from(place.length()).max(1));
            first || bytes <= BODY_BYTES
        };
        messages.iter().take_while(fits).count().max(1)
    }
}

/// Returns when a conversation last changed, in microseconds since the Unix epoch; `None` if that is not known.
fn time(temporal: &ConversationTemporal) -> Option<i64> {
    let time = temporal.updated_at.unwrap_or(temporal.created_at);
    time.known().then(|| time.micros())
}

fn message<'a>(record: &'a ConversationRecord, at: usize, body: &'a Body) -> Document<'a> {
    let head = &record.heads[at];
    let mut text = message_text(body);
    if text.len() > MAX_TEXT_BYTES {
        let cut = text.floor_char_boundary(MAX_TEXT_BYTES);
        text.to_mut().truncate(cut);
    }
    Document {
        role: Some(head.role.as_str()),
        model: body.model.as_deref().or(record.header.model.as_deref()).map(Cow::from),
        has: features(body, &text),
        time: Some(head.created_at_micros).filter(|micros| Timestamp::saturating(*micros).known()),
        hidden: head.hidden || head.thought,
        ..Document::new(DocumentKind::Message, &*head.id, &*record.header.provider.name, text)
    }
}

/// Returns the text by which a message is found: its own, the names of its attachments, and the results of tools.
#[must_use]
pub fn message_text(body: &Body) -> Cow<'_, str> {
    let content = body.content.as_ref();
    let texts = content.into_iter().flat_map(|content| {
        let whole = (content.kind == ContentKind::Text).then_some(content.text.as_deref()).flatten();
        whole.into_iter().chain(content.parts.iter().filter_map(|part| part.text.as_deref()))
    });
    let names = body.attachments.iter().filter_map(|attachment| attachment.name.as_deref());
    let outputs = body.tool_calls.iter().filter_map(|call| call.output.as_deref());
    let mut all = texts.chain(names).chain(outputs).filter(|text| !text.is_empty());
    let Some(first) = all.next() else { return Cow::Borrowed("") };
    all.fold(Cow::Borrowed(first), |mut joined, text| {
        let whole = joined.to_mut();
        whole.push_str("\n\n");
        whole.push_str(text);
        joined
    })
}

/// Returns the values of `has:` for a message.
fn features(body: &Body, text: &str) -> Vec<&'static str> {
    let mut has = text_features(text);
    let parts = body.content.iter().flat_map(|content| &content.parts);
    let mut add = |name, found: bool| {
        if found && !has.contains(&name) {
            has.push(name);
        }
    };
    add("code", parts.into_iter().any(|part| part.kind == PartKind::Code));
    add("attachment", !body.attachments.is_empty());
    add("citation", !body.citations.is_empty());
    add("tool", !body.tool_calls.is_empty());
    has
}

fn text_features(text: &str) -> Vec<&'static str> {
    let code = text.contains("```").then_some("code");
    let link = (text.contains("https://") || text.contains("http://")).then_some("link");
    code.into_iter().chain(link).collect()
}
