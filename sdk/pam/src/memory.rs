//! The memory object (PAM 1.0 §4 to §11), written in the normal form that both readings of the checksum agree on.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{hash::ContentHash, names::names, ordered, time::Timestamp};

names! {
    /// What kind of thing a memory is (§5).
    MemoryType {
        /// Something that is so.
        Fact = "fact",
        /// Something that is liked better.
        Preference = "preference",
        /// Something that the person can do.
        Skill = "skill",
        /// The circumstances.
        Context = "context",
        /// Somebody and what they are to the person.
        Relationship = "relationship",
        /// Something that is wanted.
        Goal = "goal",
        /// How to answer.
        Instruction = "instruction",
        /// Who the person is.
        Identity = "identity",
        /// Tools and places.
        Environment = "environment",
        /// A piece of work.
        Project = "project",
        /// Named by `custom_type`.
        Custom = "custom",
    }
}

names! {
    /// Where a memory stands in its life (§7).
    #[derive(Default)]
    Status {
        /// It holds.
        #[default]
        Active = "active",
        /// Another took its place.
        Superseded = "superseded",
        /// It should not be used any more.
        Deprecated = "deprecated",
        /// It was taken back.
        Retracted = "retracted",
        /// It is kept and left alone.
        Archived = "archived",
    }
}

names! {
    /// How confidence fades (§8).
    DecayModel {
        /// By the same amount in the same time.
        TimeLinear = "time_linear",
        /// By the same share in the same time.
        TimeExponential = "time_exponential",
        /// Not at all.
        None = "none",
    }
}

names! {
    /// How a memory came about (§11).
    ExtractionMethod {
        /// A model concluded it.
        LlmInference = "llm_inference",
        /// The person typed it.
        ExplicitUserInput = "explicit_user_input",
        /// The provider had stored it.
        ApiExport = "api_export",
        /// A tool read it off the screen.
        BrowserExtraction = "browser_extraction",
        /// Somebody wrote it by hand.
        Manual = "manual",
    }
}

names! {
    /// Who may see a memory (§9).
    Visibility {
        /// The owner.
        Private = "private",
        /// Those in `shared_with`.
        Shared = "shared",
        /// Everybody.
        Public = "public",
    }
}

names! {
    /// What a grant allows (§9).
    Permission {
        /// To see it.
        Read = "read",
        /// To change it.
        Write = "write",
        /// To take it back.
        Delete = "delete",
    }
}

impl Status {
    /// Whether §7 lets a memory go from here to `next`; staying is no transition.
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            Self::Active => !matches!(next, Self::Active),
            Self::Superseded => matches!(next, Self::Archived),
            Self::Deprecated => matches!(next, Self::Retracted | Self::Archived),
            Self::Retracted | Self::Archived => false,
        }
    }
}

/// One memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Any text of at least one character; unique in its document.
    pub id: String,
    /// Its kind.
    #[serde(rename = "type")]
    pub memory_type: MemoryType,
    /// Set if and only if the kind is `custom`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_type: Option<String>,
    /// Where it stands; absent means active.
    #[serde(default)]
    pub status: Status,
    /// What is remembered; at least one character.
    pub content: String,
    /// Over the normal form of `content`.
    pub content_hash: ContentHash,
    /// In short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// `[a-z0-9][a-z0-9_-]*`, each once.
    #[serde(default)]
    pub tags: Vec<String>,
    /// How sure it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// When.
    pub temporal: Temporal,
    /// Whence.
    pub provenance: Provenance,
    /// Who may see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// The id of its vector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding_ref: Option<String>,
    /// `language`, `domain` and anything else; written in key order, without nulls at its top level.
    #[serde(default, skip_serializing_if = "ordered::is_empty", serialize_with = "ordered::metadata")]
    pub metadata: Map<String, Value>,
}

/// How sure a memory is: scores of the system, 0 to 1 (§8).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Confidence {
    /// When it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<f64>,
    /// Now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<f64>,
    /// How it fades.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decay_model: Option<DecayModel>,
    /// When it was last seen again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reinforced: Option<Timestamp>,
}

/// The times of a memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Temporal {
    /// When it came to be.
    pub created_at: Timestamp,
    /// When it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// From when it is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<Timestamp>,
    /// Until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<Timestamp>,
    /// The id of its successor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
}

/// Where a memory comes from (§11).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// `[a-z0-9_-]{2,32}`, the product's name.
    pub platform: String,
    /// The account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform_user_id: Option<String>,
    /// The id of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_ref: Option<String>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_ref: Option<String>,
    /// How it came about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extraction_method: Option<ExtractionMethod>,
    /// When it was taken out of there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extracted_at: Option<Timestamp>,
    /// By what, `name/x.y.z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extractor: Option<String>,
}

/// Who may see a memory, and whether it may leave (§9).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Who.
    #[serde(default = "private")]
    pub visibility: Visibility,
    /// Whether it may stand in an export.
    #[serde(default = "yes")]
    pub exportable: bool,
    /// With whom.
    #[serde(default)]
    pub shared_with: Vec<AccessGrant>,
}

const fn private() -> Visibility {
    Visibility::Private
}

const fn yes() -> bool {
    true
}

impl Default for Access {
    fn default() -> Self {
        Self { visibility: Visibility::Private, exportable: true, shared_with: Vec::new() }
    }
}

/// What one other may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessGrant {
    /// Who; at least one character.
    pub entity: String,
    /// What; at least one, each once.
    pub permissions: Vec<Permission>,
}

impl Memory {
    /// Whether it may stand in an export.
    pub fn exportable(&self) -> bool {
        self.access.as_ref().is_none_or(|access| access.exportable)
    }
}
