//! The records that the store returns.

use satchel_pam::{
    conversation::ConversationHeader, embedding::Embedding, memory::Memory, relation::Relation,
};

use crate::{
    change::{MessageHead, Origin},
    entry::summary,
    read::conversation::public,
    revision::Revision,
};

/// A version of a memory.
#[derive(Clone, Debug)]
pub struct MemoryRecord {
    /// The memory in PAM form.
    pub memory: Memory,
    /// Whether it is hidden.
    pub withdrawn: bool,
    /// The version number, from 1.
    pub version: u32,
    /// The revision that created the memory.
    pub created_revision: Revision,
    /// The revision that wrote this version.
    pub revision: Revision,
    /// The commit that wrote this version.
    pub origin: Origin,
}

/// A version of a relation.
#[derive(Clone, Debug)]
pub struct RelationRecord {
    /// The relation in PAM form.
    pub relation: Relation,
    /// Whether it was withdrawn.
    pub withdrawn: bool,
    /// The revision that created the relation.
    pub created_revision: Revision,
    /// The revision that wrote this version.
    pub revision: Revision,
    /// The commit that wrote this version.
    pub origin: Origin,
}

/// A version of a conversation, without the bodies of its messages.
#[derive(Clone, Debug)]
pub struct ConversationRecord {
    /// Everything except the messages.
    pub header: ConversationHeader,
    /// Whether it is hidden.
    pub withdrawn: bool,
    /// The leaf that the user saw last.
    pub current: Option<String>,
    /// The bytes that the writer stored with the record ([`crate::ConversationWrite::opaque`]).
    pub opaque: Vec<u8>,
    /// The messages in order.
    pub heads: Vec<MessageHead>,
    /// The place of each head's body, in the same order.
    pub body_locations: Vec<BodyPlace>,
    /// The version number, from 1.
    pub version: u32,
    /// The revision that created the conversation.
    pub created_revision: Revision,
    /// The revision that wrote this version.
    pub revision: Revision,
    /// The commit that wrote this version.
    pub origin: Origin,
}

impl ConversationRecord {
    /// Returns the row of the list of conversations for this version.
    #[must_use]
    pub fn summary(&self) -> ConversationSummary {
        let messages = u32::try_from(self.heads.len()).unwrap_or(u32::MAX);
        public(summary(&self.header, messages), self.revision.get())
    }
}

/// The place of a message's body in the journal.
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

/// A row of the list of conversations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationSummary {
    /// PAM id.
    pub id: String,
    /// The title of this version.
    pub title: Option<String>,
    /// `provider.name`.
    pub platform: String,
    /// `provider.account_id`.
    pub account: Option<String>,
    /// Microseconds since the Unix epoch.
    pub created_at_micros: i64,
    /// Microseconds since the Unix epoch; the creation time if there was no update.
    pub updated_at_micros: i64,
    /// The number of all messages, including hidden ones.
    pub messages: u32,
    /// Whether the user archived it.
    pub archived: bool,
    /// PAM tags.
    pub tags: Vec<String>,
    /// The revision that wrote this version.
    pub revision: Revision,
}

/// A vector and the revision that wrote it.
#[derive(Clone, Debug)]
pub struct EmbeddingRecord {
    /// The embedding in PAM form.
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

/// The kind of record that a change in the feed affects.
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

/// The operation of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ChangeOp {
    /// The record was created.
    Created,
    /// The record has a new version.
    Updated,
    /// The record was withdrawn.
    Withdrawn,
}

/// A position in the feed; reading continues after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangePosition {
    /// The revision.
    pub revision: Revision,
    /// The number of the change within the revision, from 0.
    pub n: u32,
}

impl ChangePosition {
    /// Returns the position after all changes of `revision`.
    #[must_use]
    pub const fn after(revision: Revision) -> Self {
        Self { revision, n: u32::MAX }
    }
}

/// One change of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeLogEntry {
    /// The position in the feed.
    pub position: ChangePosition,
    /// The kind of the record.
    pub kind: ChangeKind,
    /// The operation.
    pub op: ChangeOp,
    /// PAM id.
    pub id: String,
    /// The revision of the previous version; [`Revision::ZERO`] if there was none.
    pub previous: Revision,
}
