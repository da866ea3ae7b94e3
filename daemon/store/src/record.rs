//! What the store hands out.

use satchel_pam::{
    conversation::ConversationHeader, embedding::Embedding, memory::Memory, relation::Relation,
};

use crate::{
    change::{MessageHead, Origin},
    revision::Revision,
};

/// A version of a memory.
#[derive(Clone, Debug)]
pub struct MemoryRecord {
    /// The memory as PAM has it.
    pub memory: Memory,
    /// Whether it was taken out of what is shown.
    pub withdrawn: bool,
    /// From 1.
    pub version: u32,
    /// The revision in which the memory first came.
    pub created_revision: Revision,
    /// The revision that wrote this version.
    pub revision: Revision,
    /// The commit that wrote this version.
    pub origin: Origin,
}

/// A version of a relation.
#[derive(Clone, Debug)]
pub struct RelationRecord {
    /// The relation as PAM has it.
    pub relation: Relation,
    /// Whether it was taken back.
    pub withdrawn: bool,
    /// The revision in which the relation first came.
    pub created_revision: Revision,
    /// The revision that wrote this version.
    pub revision: Revision,
    /// The commit that wrote this version.
    pub origin: Origin,
}

/// A version of a conversation, without the bodies of its messages.
#[derive(Clone, Debug)]
pub struct ConversationRecord {
    /// Everything but the messages.
    pub header: ConversationHeader,
    /// Whether it was taken out of what is shown.
    pub withdrawn: bool,
    /// The leaf that the person last saw.
    pub current: Option<String>,
    /// What the writer kept with the record ([`crate::ConversationWrite::opaque`]).
    pub opaque: Vec<u8>,
    /// The messages in order.
    pub heads: Vec<MessageHead>,
    /// Where the body of each head is, in the same order.
    pub places: Vec<BodyPlace>,
    /// From 1.
    pub version: u32,
    /// The revision in which the conversation first came.
    pub created_revision: Revision,
    /// The revision that wrote this version.
    pub revision: Revision,
    /// The commit that wrote this version.
    pub origin: Origin,
}

/// Where the body of a message lies in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BodyPlace {
    pub(crate) segment: u32,
    pub(crate) offset: u64,
    pub(crate) start: u32,
    pub(crate) length: u32,
}

impl BodyPlace {
    /// Returns the length of the body in bytes.
    #[must_use]
    pub fn length(&self) -> u32 {
        self.length
    }
}

/// A line of the list of conversations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationSummary {
    /// PAM id.
    pub id: String,
    /// The title as it stood.
    pub title: Option<String>,
    /// `provider.name`.
    pub platform: String,
    /// `provider.account_id`.
    pub account: Option<String>,
    /// Microseconds since the Unix epoch.
    pub created_at_micros: i64,
    /// Microseconds since the Unix epoch; the creation where there is no update.
    pub updated_at_micros: i64,
    /// All nodes, hidden ones too.
    pub messages: u32,
    /// Whether the person archived it.
    pub archived: bool,
    /// PAM tags.
    pub tags: Vec<String>,
    /// The revision that wrote this version.
    pub revision: Revision,
}

/// A vector and when it was written.
#[derive(Clone, Debug)]
pub struct EmbeddingRecord {
    /// The embedding as PAM has it.
    pub embedding: Embedding,
    /// The revision that wrote it.
    pub revision: Revision,
}

/// A piece of evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvidenceRecord {
    /// The key.
    pub id: [u8; 16],
    /// The bytes as they were put.
    pub json: Vec<u8>,
    /// The commit that wrote it last.
    pub origin: Origin,
}

/// What a change in the feed is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ChangeKind {
    /// A conversation.
    Conversation,
    /// A memory.
    Memory,
    /// A relation.
    Relation,
    /// An embedding; the id is the memory's.
    Embedding,
}

/// What happened to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ChangeOp {
    /// It came.
    Created,
    /// It has a new version.
    Updated,
    /// It was taken back.
    Withdrawn,
}

/// A place in the feed; reading goes on after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangePosition {
    /// The revision.
    pub revision: Revision,
    /// The number of the change inside it, from 0.
    pub n: u32,
}

impl ChangePosition {
    /// All of `revision` has been seen.
    #[must_use]
    pub const fn after(revision: Revision) -> Self {
        Self { revision, n: u32::MAX }
    }
}

/// One change of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeLogEntry {
    /// Where it stands.
    pub position: ChangePosition,
    /// What it is about.
    pub kind: ChangeKind,
    /// What happened.
    pub op: ChangeOp,
    /// PAM id.
    pub id: String,
    /// The revision of the version before it; [`Revision::ZERO`] if there was none.
    pub previous: Revision,
}
