//! Sets one field of a memory and marks it as set by the user.

use std::collections::{BTreeMap, BTreeSet};

use satchel_pam::{
    memory::{Confidence, Memory},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The key of a memory's metadata that holds Satchel's own entries.
pub(super) const SATCHEL_KEY: &str = "satchel";
/// The key, inside it, of the marks: for each field, when the user set it.
const EDITED: &str = "edited";

/// A field that the user can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryField {
    /// The content, and with it the hash.
    Content,
    /// Type and custom type.
    Type,
    /// The summary.
    Summary,
    /// The tags.
    Tags,
    /// The time from which it is valid.
    ValidFrom,
    /// The time until which it is valid.
    ValidUntil,
    /// The decay model of the confidence; the scores are computed by the system.
    Decay,
    /// Who may see it, and whether it may be exported.
    Access,
    /// Metadata, except for Satchel's own.
    Metadata,
    /// Status and successor.
    Status,
}

impl MemoryField {
    /// All fields.
    pub const ALL: [Self; 10] = [
        Self::Content,
        Self::Type,
        Self::Summary,
        Self::Tags,
        Self::ValidFrom,
        Self::ValidUntil,
        Self::Decay,
        Self::Access,
        Self::Metadata,
        Self::Status,
    ];

    /// Returns the name of the field in the marks.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::Type => "type",
            Self::Summary => "summary",
            Self::Tags => "tags",
            Self::ValidFrom => "valid_from",
            Self::ValidUntil => "valid_until",
            Self::Decay => "decay",
            Self::Access => "access",
            Self::Metadata => "metadata",
            Self::Status => "status",
        }
    }
}

/// Copies `field` from `from` to `to`.
pub(super) fn copy_field(field: MemoryField, from: &Memory, to: &mut Memory) {
    match field {
        MemoryField::Content => {
            if to.content != from.content {
                // A vector belongs to one content (PAM rule ).
                to.embedding_ref = None;
            }
            to.content.clone_from(&from.content);
            to.content_hash = from.content_hash;
        }
        MemoryField::Type => {
            to.memory_type = from.memory_type;
            to.custom_type.clone_from(&from.custom_type);
        }
        MemoryField::Summary => to.summary.clone_from(&from.summary),
        MemoryField::Tags => to.tags.clone_from(&from.tags),
        MemoryField::ValidFrom => to.temporal.valid_from = from.temporal.valid_from,
        MemoryField::ValidUntil => to.temporal.valid_until = from.temporal.valid_until,
        MemoryField::Decay => {
            let model = from.confidence.as_ref().and_then(|confidence| confidence.decay_model);
            if model.is_some() || to.confidence.is_some() {
                to.confidence.get_or_insert_with(Confidence::default).decay_model = model;
            }
        }
        MemoryField::Access => to.access.clone_from(&from.access),
        MemoryField::Metadata => {
            let entries = to.metadata.remove(SATCHEL_KEY);
            to.metadata.clone_from(&from.metadata);
            to.metadata.remove(SATCHEL_KEY);
            to.metadata.extend(entries.map(|entries| (SATCHEL_KEY.to_owned(), entries)));
        }
        MemoryField::Status => {
            to.status = from.status;
            to.temporal.superseded_by.clone_from(&from.temporal.superseded_by);
        }
    }
}

/// Returns the value of `field` as in a PAM document; for a field that consists of several keys, an object of these.
/// Values that mean the same are equal.
pub(super) fn field_value(field: MemoryField, memory: &Memory) -> Value {
    match field {
        MemoryField::Content => json!(memory.content),
        MemoryField::Type => json!({ "type": memory.memory_type, "custom_type": memory.custom_type }),
        MemoryField::Summary => json!(memory.summary),
        // The order of tags means nothing.
        MemoryField::Tags => json!(memory.tags.iter().collect::<BTreeSet<_>>()),
        MemoryField::ValidFrom => json!(memory.temporal.valid_from),
        MemoryField::ValidUntil => json!(memory.temporal.valid_until),
        MemoryField::Decay => json!(memory.confidence.as_ref().and_then(|confidence| confidence.decay_model)),
        MemoryField::Access => json!(memory.access.clone().unwrap_or_default()),
        MemoryField::Metadata => {
            let own: BTreeMap<_, _> = memory.metadata.iter().filter(|(key, _)| *key != SATCHEL_KEY).collect();
            json!(own)
        }
        MemoryField::Status => {
            json!({ "status": memory.status, "superseded_by": memory.temporal.superseded_by })
        }
    }
}

/// Returns the text by which values that were set at the same time are ordered; a content is ordered by its hash first.
pub(super) fn value_text(field: MemoryField, memory: &Memory) -> String {
    let value = field_value(field, memory);
    if field == MemoryField::Content { format!("{} {value}", memory.content_hash) } else { value.to_string() }
}

/// Copies `fields` from `from`, as set at `at`, and marks them as set by the user.
pub fn apply_fields<'a>(
    fields: impl IntoIterator<Item = &'a MemoryField>,
    from: &Memory,
    at: i64,
    to: &mut Memory,
) {
    for field in fields {
        copy_field(*field, from, to);
        mark_edited(*field, at, to);
    }
    advance_updated_at(at, to);
}

/// Records that a memory changed at `at`, if that is later than its last known change.
pub(crate) fn advance_updated_at(at: i64, memory: &mut Memory) {
    let times = &mut memory.temporal;
    let last = times.updated_at.unwrap_or(times.created_at);
    if at > last.micros() {
        times.updated_at = Some(Timestamp::saturating(at));
    }
}

pub(super) fn mark_edited(field: MemoryField, at: i64, memory: &mut Memory) {
    let object = |value: &mut Value| {
        if !value.is_object() {
            *value = Value::Object(Map::new());
        }
    };
    let entries = memory.metadata.entry(SATCHEL_KEY).or_insert_with(|| Value::Object(Map::new()));
    object(entries);
    let edited = entries.as_object_mut().map(|entries| entries.entry(EDITED).or_insert(Value::Null));
    if let Some(edited) = edited {
        object(edited);
        let at = Timestamp::saturating(at).to_string();
        edited.as_object_mut().map(|edited| edited.insert(field.as_str().to_owned(), at.into()));
    }
}

/// Returns when the user set which field, in microseconds. The edits may have been made here or where a PAM document
/// comes from.
#[must_use]
pub fn edited_fields(memory: &Memory) -> BTreeMap<MemoryField, i64> {
    let edited =
        memory.metadata.get(SATCHEL_KEY).and_then(|entries| entries.get(EDITED)).and_then(Value::as_object);
    let at = |field: MemoryField| {
        let text = edited?.get(field.as_str())?.as_str()?;
        Some((field, Timestamp::parse(text).ok()?.micros()))
    };
    MemoryField::ALL.into_iter().filter_map(at).collect()
}
