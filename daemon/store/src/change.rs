//! Changes that a caller asks the store to write.

use satchel_pam::{
    conversation::{ConversationHeader, Role},
    embedding::Embedding,
    memory::Memory,
    relation::Relation,
};
use uuid::Uuid;

use crate::ledger::LedgerWrite;

/// Maximum length of the id of a record or message, in bytes. Ids are part of engine keys, which stay under 512 bytes.
pub(crate) const MAX_ID_BYTES: usize = 384;
/// Maximum length of a message body, in bytes. A body is unpacked as a whole when it is read.
pub(crate) const MAX_BODY_BYTES: usize = 128 << 20;
/// Maximum number of opaque bytes of a conversation or a head. They are part of engine values, which stay under 64 KiB.
pub(crate) const MAX_OPAQUE: usize = 4 << 10;
/// Maximum number of messages in one conversation. All heads are held in memory while the conversation is written.
pub(crate) const MAX_MESSAGES: usize = 2_000_000;

/// The source of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The import that writes the commit, if any.
    pub import: Option<Uuid>,
    /// The author: `owner`, an importer's `name/x.y.z`, or a device.
    pub actor: String,
    /// The reason, for the history of a memory.
    pub reason: String,
    /// The time of the commit, in microseconds since the Unix epoch.
    pub at_micros: i64,
}

/// The changes of one commit. A batch can contain each record only once.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The source of the commit.
    pub origin: Origin,
    /// The changes.
    pub changes: Vec<Change>,
}

impl Batch {
    /// Returns whether the commit raises the revision. Evidence and ledger entries alone do not.
    #[must_use]
    pub fn raises_revision(&self) -> bool {
        self.changes.iter().any(Change::raises_revision)
    }
}

/// One record in the state that it has from this commit on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Change {
    /// Puts a memory. Older versions stay readable forever.
    Memory(Box<Memory>),
    /// Puts a memory and hides it: it is removed from lists, counts and the state digest, and stays readable by its id, as
    /// withdrawn. [`Change::Memory`] shows it again.
    WithdrawMemory(Box<Memory>),
    /// Puts a conversation with the complete list of its messages.
    Conversation(Box<ConversationWrite>),
    /// Puts a conversation and hides it, as [`Change::WithdrawMemory`] does for a memory.
    WithdrawConversation(Box<ConversationWrite>),
    /// Puts a relation. If it was withdrawn, it is valid again.
    Relation(Relation),
    /// Withdraws the relation with this id. It stays readable as withdrawn.
    WithdrawRelation(String),
    /// Puts the vector of a memory for a model.
    Embedding(Embedding),
    /// Hides the vector of a memory for a model. [`Change::Embedding`] shows one again.
    WithdrawEmbedding {
        /// The memory's id.
        memory: String,
        /// The model.
        model: String,
    },
    /// Puts a piece of evidence, or removes it if its bytes are empty. Does not raise the revision.
    Evidence(EvidenceWrite),
    /// Puts a ledger entry together with the rest of the commit. Does not raise the revision.
    Ledger(LedgerWrite),
}

impl Change {
    pub(crate) fn raises_revision(&self) -> bool {
        match self {
            Self::Memory(_)
            | Self::WithdrawMemory(_)
            | Self::Conversation(_)
            | Self::WithdrawConversation(_)
            | Self::Relation(_)
            | Self::WithdrawRelation(_)
            | Self::Embedding(_)
            | Self::WithdrawEmbedding { .. } => true,
            Self::Evidence(_) | Self::Ledger(_) => false,
        }
    }
}

/// The claims of an export about memories, opaque to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvidenceWrite {
    /// The key; a second write under the same key replaces the first.
    pub id: [u8; 16],
    /// The bytes, JSON by convention.
    pub json: Vec<u8>,
}

/// A conversation with all its messages.
#[derive(Clone, Debug)]
pub struct ConversationWrite {
    /// Everything except the messages.
    pub header: ConversationHeader,
    /// The leaf that the user saw last.
    pub current: Option<String>,
    /// Data that the caller needs to merge the conversation with later reports. Stored with the record, opaque to the store, at
    /// most 4 KiB.
    pub opaque: Vec<u8>,
    /// The complete list of messages, in order. A message that is left out is missing from this version on and remains in the
    /// older ones.
    pub messages: Vec<MessageWrite>,
}

/// One message of a conversation that is written.
#[derive(Clone, Debug)]
pub enum MessageWrite {
    /// Keeps the stored body; the head may change.
    Keep {
        /// The new head.
        head: MessageHead,
    },
    /// Adds a message, or replaces the body of an existing one.
    Put {
        /// The head.
        head: MessageHead,
        /// The PAM message as compact JSON.
        body: Vec<u8>,
    },
}

impl MessageWrite {
    /// Returns the head.
    #[must_use]
    pub fn head(&self) -> &MessageHead {
        match self {
            Self::Keep { head } | Self::Put { head, .. } => head,
        }
    }
}

/// The part of a message that the message tree and the lists need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageHead {
    /// PAM id, unique within the conversation.
    pub id: String,
    /// PAM id of the parent.
    pub parent: Option<String>,
    /// The role of the author.
    pub role: Role,
    /// Microseconds since the Unix epoch.
    pub created_at_micros: i64,
    /// Whether the message is left out of the default view.
    pub hidden: bool,
    /// Whether the message is reasoning, not an answer.
    pub thought: bool,
    /// The caller's digest of the body, so that bodies can be compared without being read.
    pub digest: [u8; 16],
    /// Data that the caller needs to place the message again when it merges later reports. Stored with the head, opaque to the
    /// store, usually empty, at most 4 KiB.
    pub opaque: Vec<u8>,
}
