//! What a caller asks the store to write.

use satchel_pam::{
    conversation::{ConversationHeader, Role},
    embedding::Embedding,
    memory::Memory,
    relation::Relation,
};
use uuid::Uuid;

use crate::ledger::LedgerWrite;

/// Longest id of a record or message, in bytes: ids stand in engine keys, which stay under 512.
pub(crate) const MAX_ID_BYTES: usize = 384;
/// Longest message body, in bytes: a body is unpacked whole when it is read.
pub(crate) const MAX_BODY_BYTES: usize = 128 << 20;
/// Most opaque bytes of a conversation or head: they stand in engine values, which stay under 64 KiB.
pub(crate) const MAX_OPAQUE: usize = 4 << 10;
/// Most messages in one conversation: its heads are held in memory while it is written.
pub(crate) const MAX_MESSAGES: usize = 2_000_000;

/// Where a commit comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The import that writes, if it is one.
    pub import: Option<Uuid>,
    /// Who: `owner`, an importer's `name/x.y.z`, a device.
    pub actor: String,
    /// Why, for the history of a memory.
    pub reason: String,
    /// When, in microseconds since the Unix epoch.
    pub at_micros: i64,
}

/// The changes of one commit. Each record may stand in it once.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Where the commit comes from.
    pub origin: Origin,
    /// What changes.
    pub changes: Vec<Change>,
}

impl Batch {
    /// Whether the commit raises the revision: evidence and ledger entries alone do not.
    #[must_use]
    pub fn raises_revision(&self) -> bool {
        self.changes.iter().any(Change::raises_revision)
    }
}

/// One record as it shall stand from now on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Change {
    /// Puts a memory; an older version stays readable for ever.
    Memory(Box<Memory>),
    /// Puts a memory that is not shown from now on: it leaves lists, counts and the state digest, and stays readable by its id, as
    /// withdrawn. [`Change::Memory`] shows it again.
    WithdrawMemory(Box<Memory>),
    /// Puts a conversation with the complete list of its messages.
    Conversation(Box<ConversationWrite>),
    /// Puts a conversation that is not shown from now on, as [`Change::WithdrawMemory`] does a memory.
    WithdrawConversation(Box<ConversationWrite>),
    /// Puts a relation; a withdrawn one stands again.
    Relation(Relation),
    /// Withdraws the relation with this id; it stays readable as withdrawn.
    WithdrawRelation(String),
    /// Puts the vector of a memory under a model's name.
    Embedding(Embedding),
    /// Shows the vector of a memory under a model's name no more. [`Change::Embedding`] shows one again.
    WithdrawEmbedding {
        /// The memory's id.
        memory: String,
        /// The model.
        model: String,
    },
    /// Puts a piece of evidence. Does not raise the revision.
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

/// What an export says about memories, opaque to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvidenceWrite {
    /// The key; a second write under it replaces the first.
    pub id: [u8; 16],
    /// The bytes, JSON by agreement.
    pub json: Vec<u8>,
}

/// A conversation with all its messages.
#[derive(Clone, Debug)]
pub struct ConversationWrite {
    /// Everything but the messages.
    pub header: ConversationHeader,
    /// The leaf that the person last saw.
    pub current: Option<String>,
    /// What the caller needs to unite it with later reports; kept with the record, opaque to the store. At most 4 KiB.
    pub opaque: Vec<u8>,
    /// The complete list, in order. What is left out is gone from this version on, and stays in the older ones.
    pub messages: Vec<MessageWrite>,
}

/// One message of a conversation that is written.
#[derive(Clone, Debug)]
pub enum MessageWrite {
    /// The stored body stays; the head may change.
    Keep {
        /// The head from now on.
        head: MessageHead,
    },
    /// A new message, or a new body of an old one.
    Put {
        /// The head.
        head: MessageHead,
        /// Compact JSON of the PAM message.
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

/// What the tree and the lists need to know of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageHead {
    /// PAM id, unique in the conversation.
    pub id: String,
    /// PAM id of the parent.
    pub parent: Option<String>,
    /// Who speaks.
    pub role: Role,
    /// Microseconds since the Unix epoch.
    pub created_at_micros: i64,
    /// Left out of the default view.
    pub hidden: bool,
    /// Reasoning, not an answer.
    pub thought: bool,
    /// The caller's digest of the body, so that it need not be read to be compared.
    pub digest: [u8; 16],
    /// What the caller needs to place it anew among later reports; kept with the head, opaque to the store. Mostly empty,
    /// at most 4 KiB.
    pub opaque: Vec<u8>,
}
