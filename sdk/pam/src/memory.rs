//! The memory object (PAM 1.0 §4 to §11), which serialises in normal form ([`crate::normal`]).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{hash::ContentHash, names::names, time::Timestamp};

names! {
    /// The type of a memory (§5).
    MemoryType {
        /// A fact.
        Fact = "fact",
        /// A preference.
        Preference = "preference",
        /// An ability of the person.
        Skill = "skill",
        /// Background of a situation.
        Context = "context",
        /// A relationship of the person to somebody.
        Relationship = "relationship",
        /// A goal.
        Goal = "goal",
        /// An instruction to the assistant.
        Instruction = "instruction",
        /// A trait of the person, such as name or profession.
        Identity = "identity",
        /// The technical or physical environment.
        Environment = "environment",
        /// A project.
        Project = "project",
        /// A type that `custom_type` names.
        Custom = "custom",
    }
}

names! {
    /// The lifecycle status of a memory (§7).
    #[derive(Default)]
    Status {
        /// In use.
        #[default]
        Active = "active",
        /// Replaced by another memory.
        Superseded = "superseded",
        /// No longer to be used.
        Deprecated = "deprecated",
        /// Withdrawn as wrong; final.
        Retracted = "retracted",
        /// Kept but not in use; final.
        Archived = "archived",
    }
}

names! {
    /// How confidence decays (§8).
    DecayModel {
        /// By the same amount in equal times.
        TimeLinear = "time_linear",
        /// By the same share in equal times.
        TimeExponential = "time_exponential",
        /// Not at all.
        None = "none",
    }
}

names! {
    /// How a memory was obtained (§11).
    ExtractionMethod {
        /// A model inferred it.
        LlmInference = "llm_inference",
        /// The person typed it.
        ExplicitUserInput = "explicit_user_input",
        /// The provider had it stored.
        ApiExport = "api_export",
        /// A tool read it from a page in the browser.
        BrowserExtraction = "browser_extraction",
        /// Somebody entered it by hand.
        Manual = "manual",
    }
}

names! {
    /// Who may see a memory (§9).
    Visibility {
        /// Only the owner.
        Private = "private",
        /// Also the entities in `shared_with`.
        Shared = "shared",
        /// Everybody.
        Public = "public",
    }
}

names! {
    /// What a grant allows (§9).
    Permission {
        /// To read the memory.
        Read = "read",
        /// To change it.
        Write = "write",
        /// To delete it.
        Delete = "delete",
    }
}

impl Status {
    /// Whether §7.1 allows a transition to `next`; staying is not a transition.
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            Self::Active => !matches!(next, Self::Active),
            Self::Superseded => matches!(next, Self::Archived),
            Self::Deprecated => matches!(next, Self::Retracted | Self::Archived),
            Self::Retracted | Self::Archived => false,
        }
    }
}

/// A memory (§4).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// At least one character; unique in its document.
    pub id: String,
    /// Type.
    #[serde(rename = "type")]
    pub memory_type: MemoryType,
    /// Present if and only if the type is `custom`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_type: Option<String>,
    /// Lifecycle status; `active` if absent.
    #[serde(default)]
    pub status: Status,
    /// The statement; at least one character.
    pub content: String,
    /// Hash of the normalised `content` (§6).
    pub content_hash: ContentHash,
    /// A shorter form of the statement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Unique tags of the form `[a-z0-9][a-z0-9_-]*`.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Confidence scores (§8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// Times (§4).
    pub temporal: Temporal,
    /// Origin (§11).
    pub provenance: Provenance,
    /// Access rights (§9); exportable and private if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// Id of its embedding (§12).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding_ref: Option<String>,
    /// `language`, `domain` and any other keys (§10); written in key order, without nulls at the top level.
    #[serde(default, skip_serializing_if = "is_empty", serialize_with = "serialize_metadata")]
    pub metadata: Map<String, Value>,
}

/// Confidence of the system in a memory; scores from 0 to 1 (§8).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Confidence {
    /// Score at creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<f64>,
    /// Latest score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<f64>,
    /// How the score decays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decay_model: Option<DecayModel>,
    /// When the statement was last confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reinforced: Option<Timestamp>,
}

/// The times of a memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Temporal {
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// Start of its validity, inclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<Timestamp>,
    /// End of its validity, exclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<Timestamp>,
    /// Id of the memory that replaced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
}

/// Where a memory comes from (§11).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Name of the product, `[a-z0-9_-]{2,32}`.
    pub platform: String,
    /// Id of the account on the platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform_user_id: Option<String>,
    /// Id of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_ref: Option<String>,
    /// Id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_ref: Option<String>,
    /// How it was obtained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extraction_method: Option<ExtractionMethod>,
    /// When it was extracted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extracted_at: Option<Timestamp>,
    /// Software that extracted it, `name/x.y.z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extractor: Option<String>,
}

/// Who may see a memory, and whether it may be exported (§9).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Access {
    /// Who may see it.
    pub visibility: Visibility,
    /// Whether exports may contain it.
    pub exportable: bool,
    /// Grants to other entities.
    pub shared_with: Vec<AccessGrant>,
}

impl Default for Access {
    fn default() -> Self {
        Self { visibility: Visibility::Private, exportable: true, shared_with: Vec::new() }
    }
}

/// The permissions of one entity (§9).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessGrant {
    /// The entity; at least one character.
    pub entity: String,
    /// At least one permission, each at most once.
    pub permissions: Vec<Permission>,
}

impl Memory {
    /// Whether exports may contain it (§9, §21.1).
    pub fn exportable(&self) -> bool {
        self.access.as_ref().is_none_or(|access| access.exportable)
    }
}

/// Whether no entry of a memory's metadata is written.
pub(crate) fn is_empty(metadata: &Map<String, Value>) -> bool {
    metadata.values().all(Value::is_null)
}

/// Writes metadata in key order, whatever map type `serde_json` uses, without nulls at the top level (normal form).
fn serialize_metadata<S: Serializer>(
    metadata: &Map<String, Value>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serialize_ordered(metadata.iter().filter(|(_, value)| !value.is_null()), serializer)
}

fn serialize_ordered<'m, S: Serializer>(
    entries: impl Iterator<Item = (&'m String, &'m Value)>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(entries.map(|(key, value)| (key, Ordered(value))).collect::<BTreeMap<_, _>>())
}

/// A JSON value that is written with its keys in order.
struct Ordered<'a>(&'a Value);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(map) => serialize_ordered(map.iter(), serializer),
            Value::Array(items) => serializer.collect_seq(items.iter().map(Ordered)),
            scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                scalar.serialize(serializer)
            }
        }
    }
}
