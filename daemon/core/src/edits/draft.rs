//! The fields of a memory that the user sets; all others stay unchanged.

use std::collections::BTreeSet;

use satchel_merge::evidence::MemoryField;
use satchel_pam::{
    hash::ContentHash,
    memory::{Access, Confidence, DecayModel, Memory, MemoryType},
    raw::RawObject,
    record::{ConfidenceRecord, Item},
    time::Timestamp,
};
use serde_json::{Map, Value};

use super::EditError;

/// Longest accepted content, in bytes: as much as one call can carry, with room for the other fields.
const MAX_CONTENT: usize = 1 << 20;

/// The fields to set; an inner `None` clears the field.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    /// Content.
    pub content: Option<String>,
    /// Type and custom type.
    pub kind: Option<(MemoryType, Option<String>)>,
    /// Summary.
    pub summary: Option<Option<String>>,
    /// All tags; they replace the existing ones.
    pub tags: Option<Vec<String>>,
    /// The start of the memory's validity.
    pub valid_from: Option<Option<Timestamp>>,
    /// The end of the memory's validity.
    pub valid_until: Option<Option<Timestamp>>,
    /// The decay model of its confidence.
    pub decay: Option<Option<DecayModel>>,
    /// Access rules: who may see it, and whether it may be exported.
    pub access: Option<Access>,
    /// All metadata except the daemon's own.
    pub metadata: Option<Map<String, Value>>,
}

impl Draft {
    /// Returns the statement of a new memory.
    pub(super) fn item(&self) -> Result<Item, EditError> {
        self.check()?;
        let content =
            self.content.clone().ok_or_else(|| EditError::invalid("content", "must not be empty"))?;
        let (memory_type, custom_type) = self.kind.clone().unwrap_or((MemoryType::Fact, None));
        let micros = |time: &Option<Option<Timestamp>>| time.flatten().map(Timestamp::micros);
        let decay_model = self.decay.flatten();
        let confidence = decay_model.map(|_| ConfidenceRecord { decay_model, ..ConfidenceRecord::default() });
        let metadata = self.metadata.clone().unwrap_or_default();
        Ok(Item {
            custom_type,
            summary: self.summary.clone().flatten(),
            tags: self.tags.clone().unwrap_or_default(),
            valid_from: micros(&self.valid_from),
            valid_until: micros(&self.valid_until),
            confidence,
            access: self.access.clone(),
            metadata: (!metadata.is_empty())
                .then(|| RawObject::from_map(&metadata))
                .transpose()
                .map_err(|error| EditError::invalid("metadata_json", format!("cannot be kept: {error}")))?,
            ..Item::new(content, memory_type)
        })
    }

    /// Returns `memory` with the draft's fields applied, and the fields that differ.
    pub(super) fn on(&self, memory: &Memory) -> Result<(Memory, BTreeSet<MemoryField>), EditError> {
        self.check()?;
        let mut to = memory.clone();
        if let Some(content) = &self.content {
            to.content.clone_from(content);
            to.content_hash = ContentHash::of(content);
        }
        if let Some((memory_type, custom_type)) = &self.kind {
            to.memory_type = *memory_type;
            to.custom_type.clone_from(custom_type);
        }
        if let Some(summary) = &self.summary {
            to.summary.clone_from(summary);
        }
        if let Some(tags) = &self.tags {
            to.tags.clone_from(tags);
        }
        if let Some(from) = self.valid_from {
            to.temporal.valid_from = from;
        }
        if let Some(until) = self.valid_until {
            to.temporal.valid_until = until;
        }
        if let Some(model) = self.decay
            && (model.is_some() || to.confidence.is_some())
        {
            to.confidence.get_or_insert_with(Confidence::default).decay_model = model;
        }
        if let Some(access) = &self.access {
            to.access = Some(access.clone());
        }
        if let Some(metadata) = &self.metadata {
            let own = memory.metadata.get("satchel").cloned();
            to.metadata.clone_from(metadata);
            to.metadata.extend(own.map(|own| ("satchel".to_owned(), own)));
        }
        ordered(&to)?;
        let fields = differing(memory, &to);
        Ok((to, fields))
    }

    fn check(&self) -> Result<(), EditError> {
        match &self.kind {
            Some((MemoryType::Custom, None)) => {
                return Err(EditError::invalid("memory.custom_type", "is missing, and the type is custom"));
            }
            Some((kind, Some(_))) if *kind != MemoryType::Custom => {
                let problem = format!("goes with the type custom, not with {kind}");
                return Err(EditError::invalid("memory.custom_type", problem));
            }
            _ => {}
        }
        if let Some(content) = &self.content {
            if content.trim().is_empty() {
                return Err(EditError::invalid("content", "must not be empty"));
            }
            if content.len() > MAX_CONTENT {
                return Err(EditError::invalid("content", format!("is longer than {MAX_CONTENT} bytes")));
            }
        }
        if self.metadata.as_ref().is_some_and(|metadata| metadata.contains_key("satchel")) {
            return Err(EditError::invalid("metadata_json", "must leave the key \"satchel\" to the daemon"));
        }
        if self.metadata.as_ref().is_some_and(|metadata| metadata.values().any(Value::is_null)) {
            return Err(EditError::invalid("metadata_json", "must not hold null at its top level"));
        }
        Ok(())
    }
}

/// Refuses a validity interval that ends before it begins.
pub(super) fn ordered(memory: &Memory) -> Result<(), EditError> {
    match (memory.temporal.valid_from, memory.temporal.valid_until) {
        (Some(from), Some(until)) if until.micros() < from.micros() => {
            Err(EditError::invalid("temporal.valid_until", "lies before temporal.valid_from"))
        }
        _ => Ok(()),
    }
}

/// Returns the fields in which two memories differ.
pub(super) fn differing(one: &Memory, other: &Memory) -> BTreeSet<MemoryField> {
    let own = |memory: &Memory| {
        let mut metadata = memory.metadata.clone();
        metadata.remove("satchel");
        metadata
    };
    let decay = |memory: &Memory| memory.confidence.as_ref().and_then(|confidence| confidence.decay_model);
    let differs = |field: &MemoryField| match field {
        MemoryField::Content => one.content != other.content,
        MemoryField::Type => (one.memory_type, &one.custom_type) != (other.memory_type, &other.custom_type),
        MemoryField::Summary => one.summary != other.summary,
        MemoryField::Tags => one.tags != other.tags,
        MemoryField::ValidFrom => one.temporal.valid_from != other.temporal.valid_from,
        MemoryField::ValidUntil => one.temporal.valid_until != other.temporal.valid_until,
        MemoryField::Decay => decay(one) != decay(other),
        MemoryField::Access => one.access != other.access,
        MemoryField::Metadata => own(one) != own(other),
        MemoryField::Status => {
            (one.status, &one.temporal.superseded_by) != (other.status, &other.temporal.superseded_by)
        }
    };
    MemoryField::ALL.into_iter().filter(differs).collect()
}
