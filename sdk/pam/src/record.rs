//! What an importer hands over: PAM's fields with the provider's own keys, before Satchel derives ids.
//!
//! The same records cross the sandbox as WIT types, stand in `expected.json` of a fixture, and are the lines of
//! `emit-json`. Times are microseconds since the Unix epoch, UTC.

use serde::{Deserialize, Serialize};

use crate::{
    conversation::{Attachment, Citation, Content, Participant, Role, ToolCall},
    embedding::Storage,
    memory::{Access, DecayModel, ExtractionMethod, MemoryType, Status},
    raw::RawObject,
    relation::RelationType,
};

/// One line of `emit-json`, one step of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(clippy::large_enum_variant, reason = "lines are read and handed on one by one, never kept in lists")]
pub enum Line {
    /// A conversation with all its messages.
    Conversation(Box<ConversationRecord>),
    /// What the export says about memories.
    Evidence(Evidence),
    /// An edge between two items.
    Relation(RelationRecord),
    /// A vector of an item.
    Embedding(EmbeddingRecord),
    /// Whose export it is.
    Account(AccountRecord),
    /// A record that was found and left out.
    Skip(Skip),
    /// Something read otherwise than it stood.
    Warning(Warning),
}

/// A whole conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConversationRecord {
    /// The key of the conversation, unique in the account.
    pub id: String,
    /// PAM `provider.conversation_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_conversation_id: Option<String>,
    /// PAM `provider.account_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// PAM `provider.export_format_version`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export_format_version: Option<String>,
    /// The title as it stood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<i64>,
    /// Microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<i64>,
    /// Who took part.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub participants: Vec<Participant>,
    /// The model of the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// PAM `system_instruction`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_instruction: Option<String>,
    /// Whether the person archived it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_archived: bool,
    /// PAM tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The key of the leaf that the person last saw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// What has no place above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_metadata: Option<RawObject>,
    /// Where it stood in the export.
    pub locator: String,
    /// The nodes, in the order of the export.
    pub messages: Vec<MessageRecord>,
}

/// One node of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageRecord {
    /// The node's key, unique inside the conversation.
    pub id: String,
    /// PAM `provider_message_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_message_id: Option<String>,
    /// Who speaks.
    pub role: Role,
    /// What is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// Microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<i64>,
    /// The key of the parent node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Reasoning, not an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_thought: bool,
    /// Tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_count: Option<u64>,
    /// Files, each with where its bytes are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<AttachmentRecord>,
    /// Sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<Citation>,
    /// Calls, with their output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// What has no place above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_metadata: Option<RawObject>,
}

/// A PAM attachment and where its bytes are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttachmentRecord {
    /// PAM's fields.
    #[serde(flatten)]
    pub attachment: Attachment,
    /// The bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
}

/// Where the bytes of an attachment are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A file of the export.
    Path(String),
    /// Here, at most 16 MiB.
    Bytes(Vec<u8>),
    /// Elsewhere; never fetched.
    Uri(String),
}

/// What an export says about memories, and where it says so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Unique in the account, the same in every export that holds it.
    pub id: String,
    /// What it says.
    pub claim: Claim,
    /// Microseconds; when it was said or observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// PAM `provenance.platform_user_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The key of the conversation it stood in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The key of the message it stood in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// PAM `provenance.extraction_method`.
    pub extraction_method: ExtractionMethod,
    /// Where it stood in the export.
    #[serde(default)]
    pub locator: String,
}

/// The three kinds of evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// Said once; stands until something speaks against it.
    Statement(Item),
    /// The whole of a provider's list at one time.
    Snapshot {
        /// Which list.
        series: String,
        /// All of it.
        items: Vec<Item>,
    },
    /// One change in the provider's own log of memory edits.
    Edit {
        /// Which log.
        log: String,
        /// Order among edits of the same time.
        sequence: u64,
        /// The change.
        edit: Edit,
    },
}

/// One change in a provider's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edit {
    /// A new line.
    Add(Item),
    /// A line, found by its number or its content, becomes `item`.
    Replace {
        /// 1-based.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<u32>,
        /// The old content.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<String>,
        /// The new line.
        item: Item,
    },
    /// A line, found by its number or its content, goes.
    Remove {
        /// 1-based.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<u32>,
        /// The old content.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<String>,
    },
}

/// One memory as a piece of evidence states it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// The plugin's name for it, unique in the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What is remembered.
    pub content: String,
    /// PAM `type`.
    pub memory_type: MemoryType,
    /// Set if and only if the type is `custom`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_type: Option<String>,
    /// None: active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// What the statement is limited to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// PAM `summary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// PAM `tags`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// PAM `confidence`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<ConfidenceRecord>,
    /// When the provider made this memory, in microseconds, if it says so for each by itself; none: the time of the evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<i64>,
    /// Microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<i64>,
    /// Microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<i64>,
    /// Microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<i64>,
    /// The key of the item that replaced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// PAM `access`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// PAM `embedding_ref`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding_ref: Option<String>,
    /// PAM `metadata`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawObject>,
}

impl Item {
    /// An item that says `content`, and nothing else about it.
    #[must_use]
    pub fn new(content: impl Into<String>, memory_type: MemoryType) -> Self {
        Self {
            key: None,
            content: content.into(),
            memory_type,
            custom_type: None,
            status: None,
            scope: None,
            summary: None,
            tags: Vec::new(),
            confidence: None,
            created_at: None,
            updated_at: None,
            valid_from: None,
            valid_until: None,
            superseded_by: None,
            access: None,
            embedding_ref: None,
            metadata: None,
        }
    }
}

/// PAM `confidence` with its time in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConfidenceRecord {
    /// 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial: Option<f64>,
    /// 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<f64>,
    /// How it fades.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decay_model: Option<DecayModel>,
    /// Microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_reinforced: Option<i64>,
}

/// An edge between two items of the run, by their keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelationRecord {
    /// PAM `from`.
    pub source: String,
    /// PAM `to`.
    pub target: String,
    /// PAM `type`.
    pub relation_type: RelationType,
    /// 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<i64>,
}

/// A vector of an item, by its key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingRecord {
    /// The item's key.
    pub memory: String,
    /// PAM `model`.
    pub model: String,
    /// Length of the vector.
    pub dimensions: u32,
    /// Microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<i64>,
    /// The vector, if it is here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector: Option<Vec<f64>>,
    /// Where it is, if elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
}

/// What a skip or a count is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// A conversation.
    Conversation,
    /// A message.
    Message,
    /// A memory.
    Memory,
    /// A file of the export.
    File,
}

/// An account at the provider whose export it is. It is no conversation and no memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountRecord {
    /// The provider's id, the same as in [`ConversationRecord::account`].
    pub id: String,
    /// What the person is called there; never a mail address or a telephone number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it stood.
    pub locator: String,
}

/// A record of the source that was found and left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skip {
    /// What was left out.
    pub kind: RecordKind,
    /// Where it stood.
    pub locator: String,
    /// Why.
    pub reason: String,
}

/// Something read otherwise than it stood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Warning {
    /// Where it stands.
    pub locator: String,
    /// What is odd.
    pub message: String,
}
