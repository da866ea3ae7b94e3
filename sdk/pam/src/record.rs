//! The records that importers emit: PAM's fields with the provider's keys, before Satchel derives ids.
//!
//! The same records leave the sandbox as WIT types (`sdk/wit/importer.wit`), and are the contents of `expected.json` in fixtures and
//! the lines of `emit-json`. Times are microseconds since the Unix epoch, UTC.

use serde::{Deserialize, Serialize};

use crate::{
    conversation::{Attachment, Citation, Content, Participant, Role, ToolCall},
    embedding::Storage,
    memory::{Access, DecayModel, ExtractionMethod, MemoryType, Status},
    raw::RawObject,
    relation::RelationType,
};

/// A line of `emit-json`: one record of an import.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(clippy::large_enum_variant, reason = "lines are processed one by one, never collected")]
pub enum Line {
    /// A conversation with all its messages.
    Conversation(Box<ConversationRecord>),
    /// Evidence about memories.
    Evidence(Evidence),
    /// A relation between two items.
    Relation(RelationRecord),
    /// An embedding of an item.
    Embedding(EmbeddingRecord),
    /// An account of the export.
    Account(AccountRecord),
    /// A record that was found but not imported.
    Skip(Skip),
    /// A record that was imported with a change.
    Warning(Warning),
}

/// A conversation with all its messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConversationRecord {
    /// Key of the conversation, unique in the account.
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
    /// The title as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Microseconds since the Unix epoch, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<i64>,
    /// Microseconds since the Unix epoch, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<i64>,
    /// Participants.
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
    /// PAM `tags`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Key of the message at the end of the current branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// Fields of the provider that PAM does not define.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_metadata: Option<RawObject>,
    /// Location in the export.
    pub locator: String,
    /// The messages, in the order of the export.
    pub messages: Vec<MessageRecord>,
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageRecord {
    /// Key of the message, unique in the conversation.
    pub id: String,
    /// PAM `provider_message_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_message_id: Option<String>,
    /// Author.
    pub role: Role,
    /// Content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// Microseconds since the Unix epoch, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<i64>,
    /// Key of the message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The model that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether it is reasoning, not an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_thought: bool,
    /// Number of tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_count: Option<u64>,
    /// Attached files and the locations of their bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<AttachmentRecord>,
    /// Cited sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<Citation>,
    /// Calls of tools, with their outputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Fields of the provider that PAM does not define.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_metadata: Option<RawObject>,
}

/// A PAM attachment and the location of its bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttachmentRecord {
    /// The fields of PAM.
    #[serde(flatten)]
    pub attachment: Attachment,
    /// Location of the bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
}

/// Location of the bytes of an attachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A file of the export.
    Path(String),
    /// The bytes themselves, at most 16 MiB.
    Bytes(Vec<u8>),
    /// A URI; never fetched.
    Uri(String),
}

/// A statement of an export about memories, and its location.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Unique in the account, and equal in all exports that contain it.
    pub id: String,
    /// The statement.
    pub claim: Claim,
    /// When it was stated or observed; microseconds since the Unix epoch, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// PAM `provenance.platform_user_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Key of the conversation that contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Key of the message that contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// PAM `provenance.extraction_method`.
    pub extraction_method: ExtractionMethod,
    /// Location in the export.
    #[serde(default)]
    pub locator: String,
}

/// The three kinds of evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// A single statement, valid until other evidence contradicts it.
    Statement(Item),
    /// A complete list of memories at one time.
    Snapshot {
        /// Name of the list.
        series: String,
        /// All its items.
        items: Vec<Item>,
    },
    /// A change in the provider's log of memory edits.
    Edit {
        /// Name of the log.
        log: String,
        /// Order of edits at the same time.
        sequence: u64,
        /// The change.
        edit: Edit,
    },
}

/// A change in a provider's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edit {
    /// Adds a line.
    Add(Item),
    /// Replaces a line, found by its number or content, by `item`.
    Replace {
        /// Number of the line, from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<u32>,
        /// Content of the line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<String>,
        /// The new line.
        item: Item,
    },
    /// Removes a line, found by its number or content.
    Remove {
        /// Number of the line, from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<u32>,
        /// Content of the line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<String>,
    },
}

/// A memory as evidence states it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Key that the importer gives it, unique in the import.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The statement.
    pub content: String,
    /// PAM `type`.
    pub memory_type: MemoryType,
    /// Present if and only if the type is `custom`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_type: Option<String>,
    /// Lifecycle status; `active` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Scope in which the statement holds.
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
    /// When the provider created the memory, in microseconds since the Unix epoch, UTC; the time of the evidence if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<i64>,
    /// Microseconds since the Unix epoch, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<i64>,
    /// Microseconds since the Unix epoch, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<i64>,
    /// Microseconds since the Unix epoch, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<i64>,
    /// Key of the item that replaced it.
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
    /// Creates an item with content and type only.
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

/// PAM `confidence`, with its time in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConfidenceRecord {
    /// From 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial: Option<f64>,
    /// From 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<f64>,
    /// How the score decays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decay_model: Option<DecayModel>,
    /// Microseconds since the Unix epoch, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_reinforced: Option<i64>,
}

/// A relation between two items of the import, by their keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelationRecord {
    /// PAM `from`.
    pub source: String,
    /// PAM `to`.
    pub target: String,
    /// PAM `type`.
    pub relation_type: RelationType,
    /// From 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Microseconds since the Unix epoch, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<i64>,
}

/// An embedding of an item, by its key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingRecord {
    /// Key of the item.
    pub memory: String,
    /// PAM `model`.
    pub model: String,
    /// Length of the vector.
    pub dimensions: u32,
    /// Microseconds since the Unix epoch, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<i64>,
    /// The vector, if the record contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector: Option<Vec<f64>>,
    /// Where the vector is, otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
}

/// The kind of record that a skip or a count refers to.
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

/// An account at the provider from which the export comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountRecord {
    /// Id at the provider, the same as in [`ConversationRecord::account`].
    pub id: String,
    /// Name of the person there; never an e-mail address or a telephone number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Location in the export.
    pub locator: String,
}

/// A record that was found but not imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skip {
    /// Kind of the record.
    pub kind: RecordKind,
    /// Location in the export.
    pub locator: String,
    /// The reason.
    pub reason: String,
}

/// A record that was imported with a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Warning {
    /// Location in the export.
    pub locator: String,
    /// What is unusual.
    pub message: String,
}
