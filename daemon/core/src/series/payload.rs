//! What the changes of a series contain. Each payload begins with random bytes, so that its digest, which stays in the series when
//! the payload is erased or withheld, does not tell its text.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use satchel_merge::{
    causality::Causality,
    conversation::{ConversationReport, ReportedNode},
    evidence::EditStep,
};
use satchel_pam::conversation::ImportMetadata;
pub(crate) use satchel_sync::payload::SALT_BYTES;
use satchel_sync::{Continuation, ContinuationError, Kind};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::{
    edits::QuarantinedMemory,
    export_ledger::ExportRecord,
    provenance::{ContributionSkeleton, EvidenceKey, ProvenanceError, PurgedData},
};

/// A step of an edit that was made since its store began its series.
pub(crate) const EDIT: Kind = Kind(1);
/// A step of an edit that was made before its store began its series.
pub(crate) const EARLIER_EDIT: Kind = Kind(2);
/// A piece of evidence that an import brought.
pub(crate) const EVIDENCE: Kind = Kind(3);
/// What an import reported about a conversation.
pub(crate) const CONTRIBUTION: Kind = Kind(4);
/// An import that has ended. What it brought is in this change's series or in the changes that its author had seen.
pub(crate) const IMPORT: Kind = Kind(5);
/// An undo or redo of an import.
pub(crate) const UNDO: Kind = Kind(6);

/// An erasure.
pub(crate) const ERASURE: Kind = Kind(9);
/// What an erasure left of a piece of evidence.
pub(crate) const REMAINDER: Kind = Kind(10);
/// What a program has recorded of a conversation.
pub(crate) const RECORDING: Kind = Kind(11);
/// A branch of a series that forked, which the next changes repeat.
pub(crate) const CONTINUATION: Kind = Kind(12);
/// The state of a memory that an agent wrote, which waits for the owner or was reviewed.
pub(crate) const AGENT_MEMORY: Kind = Kind(13);
/// An export that a store has made.
pub(crate) const EXPORT: Kind = Kind(14);
/// The greatest kind that this program knows.
pub(crate) const KNOWN_KINDS: u16 = EXPORT.0;

/// A decoded payload.
#[derive(Debug)]
pub(crate) enum Payload {
    /// See [`EDIT`]. The causality of its step follows from the change and is not part of the payload.
    Edit(EditPayload),
    /// See [`EARLIER_EDIT`].
    EarlierEdit(EditStep),
    /// See [`EVIDENCE`].
    Evidence(EvidenceKey, Vec<u8>),
    /// See [`CONTRIBUTION`].
    Contribution(Box<ContributionPayload>),
    /// See [`IMPORT`].
    Import(Box<ImportPayload>),
    /// See [`UNDO`].
    Undo(UndoPayload),
    /// See [`ERASURE`].
    Erasure(Box<ErasurePayload>),
    /// See [`REMAINDER`]. First the key of the piece.
    Remainder(EvidenceKey, Vec<u8>),
    /// See [`RECORDING`].
    Recording(Box<ContributionPayload>),
    /// See [`CONTINUATION`].
    Continuation(Box<Continuation>),
    /// See [`AGENT_MEMORY`].
    AgentMemory(Box<AgentMemoryPayload>),
    /// See [`EXPORT`].
    Export(Box<ExportRecord>),
}

/// A step of an edit, and who made it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct EditPayload {
    /// The actor in the history of the author's store, such as `owner`.
    pub actor: String,
    /// The step.
    pub step: EditStep,
}

/// What an import reported about a conversation.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ContributionPayload {
    /// The id of the conversation.
    pub conversation: String,
    /// PAM `provider.name`.
    pub platform: String,
    /// The import metadata of the conversation.
    pub import: ImportMetadata,
    /// The untrusted signer whose document reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<String>,
    /// The fields of the conversation.
    pub report: ConversationReport,
    /// The messages, ordered by their ids.
    pub nodes: Vec<NodePayload>,
}

/// A message of a reported conversation.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NodePayload {
    /// The id of the message.
    pub id: String,
    /// The id of its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The encoded body.
    pub body: Box<RawValue>,
}

/// An import and the keys of what it brought.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ImportPayload {
    /// Its entry in the ledger.
    pub record: Box<RawValue>,
    /// Identities of its source in the ledger of sources.
    pub sources: Vec<String>,
    /// The keys of its contributions, as hex digits without separators.
    pub contributions: String,
    /// The keys of its evidence, in the same form.
    pub evidence: String,
}

/// An undo or redo of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UndoPayload {
    /// The import.
    pub import: Uuid,
    /// Whether it was undone.
    pub undone: bool,
    /// Microseconds since the Unix epoch.
    pub at: i64,
}

/// An erasure: what is needed to recognise the erased content, and nothing of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ErasurePayload {
    /// A UUID.
    pub id: Uuid,
    /// Microseconds since the Unix epoch.
    pub at: i64,
    /// Who erased it.
    pub actor: String,
    /// The memories, each with the hashes of all texts that it ever had (PAM `content_hash`).
    pub memories: BTreeMap<String, BTreeSet<String>>,
    /// The ids of conversations.
    pub conversations: BTreeSet<String>,
    /// The ids of messages that were grouped from rows.
    pub rows: BTreeSet<String>,
}

/// The state of a memory that an agent wrote.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AgentMemoryPayload {
    /// The id that the memory has from its approval on.
    pub id: String,
    /// What the agent wrote, and what the owner decided.
    pub entry: QuarantinedMemory,
}

impl From<AgentMemoryPayload> for Payload {
    fn from(memory: AgentMemoryPayload) -> Self {
        Self::AgentMemory(Box::new(memory))
    }
}

/// Why a payload cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PayloadError {
    /// It has no key.
    #[error("a piece of evidence is shorter than its key")]
    Short,
    /// It is not what its kind says.
    #[error("the payload is no {what}: {source}")]
    Form { what: &'static str, source: serde_json::Error },
    /// See [`ContinuationError`].
    #[error(transparent)]
    Continuation(#[from] ContinuationError),
    /// A list of keys is not hex.
    #[error("a list of keys is not a whole number of 16-byte keys in hex digits")]
    Keys,
}

impl Payload {
    /// Returns the kind of the change.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Edit(_) => EDIT,
            Self::EarlierEdit(_) => EARLIER_EDIT,
            Self::Evidence(..) => EVIDENCE,
            Self::Contribution(_) => CONTRIBUTION,
            Self::Import(_) => IMPORT,
            Self::Undo(_) => UNDO,
            Self::Erasure(_) => ERASURE,
            Self::Remainder(..) => REMAINDER,
            Self::Recording(_) => RECORDING,
            Self::Continuation(_) => CONTINUATION,
            Self::AgentMemory(_) => AGENT_MEMORY,
            Self::Export(_) => EXPORT,
        }
    }

    /// Encodes the payload after `salt`.
    pub(crate) fn encode(&self, salt: [u8; SALT_BYTES]) -> serde_json::Result<Vec<u8>> {
        let mut bytes = salt.to_vec();
        match self {
            Self::Edit(EditPayload { actor, step }) => {
                let edit = EditPayload { actor: actor.clone(), step: unnumbered(step.clone()) };
                serde_json::to_writer(&mut bytes, &edit)?;
            }
            Self::EarlierEdit(step) => serde_json::to_writer(&mut bytes, &unnumbered(step.clone()))?,
            Self::Evidence(key, json) | Self::Remainder(key, json) => {
                bytes.extend_from_slice(key);
                bytes.extend_from_slice(json);
            }
            Self::Contribution(contribution) | Self::Recording(contribution) => {
                serde_json::to_writer(&mut bytes, contribution)?;
            }
            Self::Import(import) => serde_json::to_writer(&mut bytes, import)?,
            Self::Undo(undo) => serde_json::to_writer(&mut bytes, undo)?,
            Self::Erasure(erasure) => serde_json::to_writer(&mut bytes, erasure)?,
            Self::Continuation(continuation) => bytes.extend_from_slice(&continuation.encode()),
            Self::AgentMemory(memory) => serde_json::to_writer(&mut bytes, memory)?,
            Self::Export(export) => serde_json::to_writer(&mut bytes, export)?,
        }
        Ok(bytes)
    }

    /// Returns whether the payload has something that was erased.
    pub(crate) fn is_erased(&self, purged: &PurgedData) -> bool {
        match self {
            Self::Edit(EditPayload { step, .. }) | Self::EarlierEdit(step) => {
                purged.redact_edit(&mut step.clone())
            }
            Self::Evidence(_, json) | Self::Remainder(_, json) => {
                purged.redact_evidence(json).is_ok_and(|redacted| redacted.is_some())
            }
            Self::Contribution(contribution) | Self::Recording(contribution) => {
                purged.contains_conversation(&contribution.conversation)
                    || contribution.nodes.iter().any(|node| purged.contains_row(&node.id))
            }
            Self::AgentMemory(memory) => memory.entry.is_erased(purged),
            Self::Import(_) | Self::Undo(_) | Self::Erasure(_) | Self::Continuation(_) | Self::Export(_) => {
                false
            }
        }
    }

    /// Decodes the content of a payload; `None` if this program does not know the kind, or if it says nothing by itself.
    pub(crate) fn decode(kind: Kind, content: &[u8]) -> Result<Option<Self>, PayloadError> {
        let payload = match kind {
            EDIT => {
                let EditPayload { actor, step } = read(content, "edit")?;
                Self::Edit(EditPayload { actor, step: unnumbered(step) })
            }
            EARLIER_EDIT => Self::EarlierEdit(unnumbered(read(content, "step of an edit")?)),
            EVIDENCE => {
                let (key, json) = content.split_first_chunk().ok_or(PayloadError::Short)?;
                Self::Evidence(*key, json.to_vec())
            }
            CONTRIBUTION => Self::Contribution(read(content, "report about a conversation")?),
            IMPORT => Self::Import(read(content, "import")?),
            UNDO => Self::Undo(read(content, "undo of an import")?),
            ERASURE => Self::Erasure(read(content, "erasure")?),
            RECORDING => Self::Recording(read(content, "recording of a conversation")?),
            REMAINDER => {
                let (key, json) = content.split_first_chunk().ok_or(PayloadError::Short)?;
                Self::Remainder(*key, json.to_vec())
            }
            AGENT_MEMORY => Self::AgentMemory(read(content, "memory that an agent wrote")?),
            EXPORT => Self::Export(read(content, "record of an export")?),
            CONTINUATION => Self::Continuation(Box::new(Continuation::decode(content)?)),
            _ => return Ok(None),
        };
        Ok(Some(payload))
    }
}

/// Returns whether the content of a payload has something that was erased. One that cannot be read has no effect in any store.
pub(crate) fn is_erased(purged: &PurgedData, kind: Kind, content: &[u8]) -> bool {
    Payload::decode(kind, content).is_ok_and(|payload| payload.is_some_and(|known| known.is_erased(purged)))
}

impl ContributionPayload {
    /// Encodes `nodes`, sorted: a contribution that is read back from the store has them in another order.
    pub(crate) fn encode_nodes(mut nodes: Vec<ReportedNode>) -> serde_json::Result<Vec<NodePayload>> {
        nodes.sort_by(|one, other| (&one.id, &one.parent).cmp(&(&other.id, &other.parent)));
        let encoded = nodes.into_iter().map(|ReportedNode { id, parent, bytes, .. }| {
            Ok(NodePayload { id, parent, body: serde_json::from_slice(&bytes)? })
        });
        encoded.collect()
    }

    /// Decodes the nodes.
    pub(crate) fn decode_nodes(nodes: Vec<NodePayload>) -> serde_json::Result<Vec<ReportedNode>> {
        let read = |NodePayload { id, parent, body }: NodePayload| {
            ReportedNode::read(id, parent, body.get().as_bytes().to_vec())
        };
        nodes.into_iter().map(read).collect()
    }
}

/// Returns keys as hex digits.
pub(crate) fn encode_keys(keys: &[EvidenceKey]) -> String {
    let mut digits = String::with_capacity(keys.len() * 32);
    for key in keys {
        // Writing to a string does not fail.
        let _ = write!(digits, "{:032x}", u128::from_be_bytes(*key));
    }
    digits
}

/// Reads keys from hex digits.
pub(crate) fn decode_keys(digits: &str) -> Result<Vec<EvidenceKey>, PayloadError> {
    let (keys, rest) = digits.as_bytes().as_chunks::<32>();
    let read = |digits: &[u8; 32]| {
        // `from_str_radix` also takes a sign.
        let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
        u128::from_str_radix(str::from_utf8(digits).ok()?, 16).ok().map(u128::to_be_bytes)
    };
    let keys: Option<Vec<EvidenceKey>> = keys.iter().map(read).collect();
    keys.filter(|_| rest.is_empty()).ok_or(PayloadError::Keys)
}

/// Returns a step without its causality. What a payload says of that is ignored.
fn unnumbered(step: EditStep) -> EditStep {
    EditStep { causality: Causality::Unnumbered, ..step }
}

fn read<T: serde::de::DeserializeOwned>(content: &[u8], what: &'static str) -> Result<T, PayloadError> {
    serde_json::from_slice(content).map_err(|source| PayloadError::Form { what, source })
}

/// Returns the key of a contribution, under which imports list it.
pub(crate) fn contribution_key(contribution: &ContributionPayload) -> Result<EvidenceKey, ProvenanceError> {
    const WHAT: ProvenanceError = ProvenanceError::Unreadable { what: "a report about a conversation" };
    let ContributionPayload { conversation, untrusted, report, nodes, .. } = contribution;
    let nodes = nodes.iter().map(|NodePayload { id, parent, body }| {
        ReportedNode::read(id.clone(), parent.clone(), body.get().as_bytes().to_vec())
    });
    let nodes: Vec<ReportedNode> = nodes.collect::<serde_json::Result<_>>().map_err(|_| WHAT)?;
    Ok(ContributionSkeleton::of(conversation, report, &nodes)?.attributed_to(untrusted.as_deref()).key())
}
