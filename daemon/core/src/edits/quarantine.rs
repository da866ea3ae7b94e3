//! Memories that agents write. Unless the owner trusts the agent, they wait in quarantine until the owner approves or
//! rejects them.
//!
//! The memories of an agent have a scope of their own, so that they are never merged with what others stated: neither
//! the answer to an agent nor the later state of its memory tells whether somebody else's memory has the same content.
//! Duplicates are found when the owner approves.

mod exchange;
mod waiting;

use satchel_merge::evidence::{StoredEvidence, items_of};
use satchel_pam::{
    hash::ContentHash,
    ids,
    memory::{Access, AccessGrant, ExtractionMethod, Memory, MemoryType, Permission, Status, Visibility},
    record::{Claim, ConfidenceRecord, Item},
};
use satchel_store::{Change, Cursor, Ledger, LedgerEntry, LedgerWrite, MemoryQuery, Page, Store};
use serde::{Deserialize, Serialize};

pub(super) use self::waiting::WaitingCounts;
use super::{Draft, EditContext, EditError, EditOutcome, Edits, SOFTWARE, Transaction, memories::new_memory};
use crate::{each_row, provenance::ProvenanceError};

/// Maximum number of memories of one review.
const MAX_REVIEWED: usize = 100;
/// Maximum size of a memory that an agent writes, in bytes as stored.
const MAX_BYTES: usize = 64 << 10;
/// Longest id of a conversation or message that an agent names, in bytes: the longest that the store accepts.
const MAX_REFERENCE_BYTES: usize = 384;
/// Entries that are read per page.
const PAGE: usize = 500;
/// Memories with the same content that are looked at to find one of the same type.
const SAME_CONTENT: usize = 100;

/// The agent that writes a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The id of its device.
    pub device: String,
    /// The name of its device.
    pub device_name: String,
    /// Its name in grants.
    pub entity: String,
    /// Its PAM platform.
    pub platform: String,
}

/// A memory as an agent states it.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentDraft {
    /// The fields that everybody may set. The access rules are not among them.
    pub draft: Draft,
    /// The agent's confidence, from 0 to 1.
    pub confidence: Option<f64>,
    /// The id of the conversation from which the memory follows.
    pub conversation: Option<String>,
    /// The id of the message in that conversation.
    pub message: Option<String>,
    /// How the agent came to it.
    pub method: ExtractionMethod,
}

/// What the owner decides about memories that agents wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewDecision {
    /// Make them memories like all others.
    Approve,
    /// Show them to nobody.
    Reject,
}

/// Whether the owner has reviewed a memory that an agent wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuarantineState {
    /// It waits for review.
    Waiting,
    /// It was approved.
    Approved {
        /// The id of the memory with this content.
        memory: String,
        /// Whether that memory existed, so that none was created.
        existed: bool,
    },
    /// It was rejected.
    Rejected,
}

/// Who reviewed a memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reviewer {
    /// The actor, such as `owner`.
    pub actor: String,
    /// The reason; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Microseconds since the Unix epoch.
    pub at: i64,
}

/// A memory that an agent wrote, as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuarantinedMemory {
    /// The id of the device.
    pub device: String,
    /// The name that the device had.
    pub device_name: String,
    /// The entity of the agent.
    pub entity: String,
    /// The reason that the agent gave; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What the agent stated.
    pub evidence: StoredEvidence,
    /// Whether it was reviewed.
    pub state: QuarantineState,
    /// Who reviewed it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<Reviewer>,
}

impl QuarantinedMemory {
    /// Returns the memory as the agent wrote it.
    ///
    /// # Errors
    /// A stored entry that an older or newer program would not accept.
    pub fn memory(&self) -> Result<Memory, EditError> {
        new_memory(&self.evidence)
    }

    /// When the agent wrote it, in microseconds since the Unix epoch.
    #[must_use]
    pub fn written_at(&self) -> i64 {
        self.evidence.at
    }

    /// Reads the bytes of a ledger entry; `None` if they are something else.
    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        serde_json::from_slice(value).ok()
    }

    /// Returns every memory that an agent wrote and that waits or was reviewed.
    ///
    /// # Errors
    /// Any error of the store.
    pub(crate) fn all(store: &Store) -> Result<Vec<(String, Self)>, ProvenanceError> {
        let mut all = Vec::new();
        for ledger in [Ledger::Quarantine, Ledger::Review] {
            let page = |after: Option<&Cursor>| Ok(store.ledger_list(ledger, after, PAGE)?);
            each_row::<_, ProvenanceError>(page, |LedgerEntry { id, value, .. }| {
                let what = "a memory that an agent wrote";
                all.push((id, Self::parse(&value).ok_or(ProvenanceError::Unreadable { what })?));
                Ok(())
            })?;
        }
        Ok(all)
    }

    /// Returns the hash of its content.
    pub(crate) fn content_hash(&self) -> Option<ContentHash> {
        items_of(&self.evidence.claim).first().map(|item| ContentHash::of(&item.content))
    }

    fn decode(entry: &LedgerEntry) -> Result<Self, EditError> {
        Self::parse(&entry.value).ok_or(EditError::Unencodable { what: "a memory that an agent wrote" })
    }

    fn encode(&self) -> Result<Vec<u8>, EditError> {
        serde_json::to_vec(self).map_err(|_| EditError::Unencodable { what: "a memory that an agent wrote" })
    }

    /// Returns the change that stores this entry in a ledger.
    fn put(&self, ledger: Ledger, id: &str) -> Result<Change, EditError> {
        let (id, at_micros, value) = (id.to_owned(), self.written_at(), self.encode()?);
        Ok(Change::Ledger(LedgerWrite::Entry { ledger, id, at_micros, value }))
    }
}

impl Edits {
    /// Stores a memory that an agent wrote, until the owner reviews it. The answer names it by the id that the memory has
    /// from its approval on.
    ///
    /// # Errors
    /// A field that is not valid, a memory that the owner has settled before, too many memories that wait, or an error of
    /// the store.
    pub fn quarantine_memory(
        &self,
        call: &EditContext,
        agent: &Agent,
        draft: &AgentDraft,
    ) -> Result<EditOutcome, EditError> {
        let outcome = self.transact(call, |act| act.quarantine(agent, draft, &call.reason, &self.waiting));
        self.waiting.recount_after_error(&outcome);
        outcome
    }

    /// Adds a memory that a trusted agent wrote.
    ///
    /// # Errors
    /// A field that is not valid, a memory that was withdrawn, or an error of the store.
    pub fn add_agent_memory(
        &self,
        call: &EditContext,
        agent: &Agent,
        draft: &AgentDraft,
    ) -> Result<EditOutcome, EditError> {
        self.transact(call, |act| {
            let evidence = act.stated(agent, draft)?;
            let id = new_memory(&evidence)?.id;
            if act.store.memory(&id, None)?.is_some_and(|record| record.withdrawn) {
                return Err(settled(&id));
            }
            let evidence = act.with_stored_references(evidence)?;
            act.add_evidence(evidence).map(drop)
        })
    }

    /// Approves or rejects memories that agents wrote.
    ///
    /// # Errors
    /// [`EditError::NotQuarantined`], the rejection of an approved memory, content that was erased, or an error of the
    /// store. Nothing is changed then.
    pub fn review_memories(
        &self,
        call: &EditContext,
        ids: &[String],
        decision: ReviewDecision,
    ) -> Result<EditOutcome, EditError> {
        if ids.is_empty() || ids.len() > MAX_REVIEWED {
            return Err(EditError::invalid("ids", format!("must hold 1 to {MAX_REVIEWED} ids")));
        }
        let outcome = self.transact(call, |act| {
            let mut review = Review { act, call, approved: Vec::new() };
            let mut seen = std::collections::BTreeSet::new();
            ids.iter().filter(|id| seen.insert(id.as_str())).try_for_each(|id| {
                let was_waiting = review.settle(id, decision)?;
                was_waiting.map_or(Ok(()), |entry| self.waiting.remove(review.act.store, &entry))
            })
        });
        self.waiting.recount_after_error(&outcome);
        outcome
    }

    /// Returns a memory that an agent wrote, whether it waits or was reviewed.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn quarantined_memory(&self, id: &str) -> Result<Option<QuarantinedMemory>, EditError> {
        stored(&self.store, id)
    }

    /// Returns a page of the memories that agents wrote, newest first: those that wait, or those that were reviewed.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn quarantined_memories(
        &self,
        waiting: bool,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page<QuarantinedMemory>, EditError> {
        let ledger = if waiting { Ledger::Quarantine } else { Ledger::Review };
        let page = self.store.ledger_list(ledger, after, limit)?;
        let items = page.items.iter().map(QuarantinedMemory::decode).collect::<Result<_, _>>()?;
        Ok(Page { items, next: page.next })
    }

    /// Returns the number of memories that wait for review.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn waiting_memories(&self) -> Result<u64, EditError> {
        self.waiting.total(&self.store)
    }
}

impl AgentDraft {
    fn check(&self) -> Result<(), EditError> {
        if self.draft.access.is_some() {
            return Err(EditError::invalid("memory.access", "is set by the daemon for agents; leave it out"));
        }
        if self.confidence.is_some_and(|confidence| !(0.0..=1.0).contains(&confidence)) {
            return Err(EditError::invalid("memory.confidence.initial", "must lie between 0 and 1"));
        }
        for (field, reference) in [
            ("memory.provenance.conversation_ref", &self.conversation),
            ("memory.provenance.message_ref", &self.message),
        ] {
            if reference.as_ref().is_some_and(|id| id.is_empty() || id.len() > MAX_REFERENCE_BYTES) {
                let problem = format!("must have 1 to {MAX_REFERENCE_BYTES} bytes");
                return Err(EditError::invalid(field, problem));
            }
        }
        if self.message.is_some() && self.conversation.is_none() {
            return Err(EditError::invalid("memory.provenance.message_ref", "needs conversation_ref"));
        }
        if !matches!(self.method, ExtractionMethod::LlmInference | ExtractionMethod::ExplicitUserInput) {
            let problem = "must be LLM inference or explicit user input";
            return Err(EditError::invalid("memory.provenance.extraction_method", problem));
        }
        Ok(())
    }

    /// Returns the statement, with the access rules and the scope of the agent.
    fn item(&self, agent: &Agent) -> Result<Item, EditError> {
        self.check()?;
        let mut item = self.draft.item()?;
        item.scope = Some(format!("agent:{}", agent.entity));
        item.access = Some(Access {
            visibility: Visibility::Shared,
            exportable: true,
            shared_with: vec![AccessGrant {
                entity: agent.entity.clone(),
                permissions: vec![Permission::Read, Permission::Write],
            }],
        });
        if self.confidence.is_some() {
            item.confidence.get_or_insert_with(ConfidenceRecord::default).initial = self.confidence;
        }
        Ok(item)
    }
}

impl Transaction<'_> {
    /// Returns what an agent states.
    fn stated(&self, agent: &Agent, draft: &AgentDraft) -> Result<StoredEvidence, EditError> {
        let evidence = StoredEvidence {
            id: ids::evidence_id(&agent.platform, None, &self.id).to_string(),
            platform: agent.platform.clone(),
            account: None,
            at: self.now,
            conversation: draft.conversation.clone(),
            message: draft.message.clone(),
            row: None,
            method: draft.method,
            extractor: SOFTWARE.to_owned(),
            claim: Claim::Statement(draft.item(agent)?),
        };
        let size = serde_json::to_vec(&evidence).map_or(usize::MAX, |json| json.len());
        if size > MAX_BYTES {
            let problem = format!("takes {size} bytes; an agent may write at most {MAX_BYTES}");
            return Err(EditError::invalid("memory", problem));
        }
        Ok(evidence)
    }

    fn quarantine(
        &mut self,
        agent: &Agent,
        draft: &AgentDraft,
        reason: &str,
        waiting: &WaitingCounts,
    ) -> Result<(), EditError> {
        let evidence = self.stated(agent, draft)?;
        let id = new_memory(&evidence)?.id;
        self.name(&id);
        if self.store.ledger_get(Ledger::Quarantine, &id)?.is_some() {
            (self.done.existed, self.done.quarantined) = (true, true);
            return Ok(());
        }
        // The caller checks whether the agent may still see it.
        if self.store.memory(&id, None)?.is_some_and(|record| !record.withdrawn) {
            self.done.existed = true;
            return Ok(());
        }
        if self.store.memory(&id, None)?.is_some() || self.store.ledger_get(Ledger::Review, &id)?.is_some() {
            return Err(settled(&id));
        }
        let entry = QuarantinedMemory {
            device: agent.device.clone(),
            device_name: agent.device_name.clone(),
            entity: agent.entity.clone(),
            reason: reason.to_owned(),
            evidence,
            state: QuarantineState::Waiting,
            reviewer: None,
        };
        waiting.add(self.store, &entry)?;
        self.announce(&id, &entry)?;
        self.change(entry.put(Ledger::Quarantine, &id)?);
        self.done.quarantined = true;
        Ok(())
    }

    /// Leaves out references to a conversation or message that is not stored.
    fn with_stored_references(&self, mut evidence: StoredEvidence) -> Result<StoredEvidence, EditError> {
        let conversation = match &evidence.conversation {
            Some(id) => self.store.conversation(id, None)?.filter(|record| !record.withdrawn),
            None => None,
        };
        let Some(conversation) = conversation else {
            (evidence.conversation, evidence.message) = (None, None);
            return Ok(evidence);
        };
        evidence.message =
            evidence.message.filter(|message| conversation.heads.iter().any(|head| head.id == *message));
        Ok(evidence)
    }

    /// Returns the id of a memory with the same content and type.
    fn same_statement(&self, memory: &Memory) -> Result<Option<String>, EditError> {
        let query = MemoryQuery {
            content_hash: Some(memory.content_hash.to_string()),
            types: vec![memory.memory_type],
            statuses: Status::ALL.to_vec(),
            ..MemoryQuery::default()
        };
        let page = self.store.memories(&query, None, SAME_CONTENT, self.store.revision())?;
        let mut same = page.items.into_iter().filter(|record| same_type(&record.memory, memory));
        Ok(same.next().map(|record| record.memory.id))
    }
}

/// One review in progress.
struct Review<'r, 'a> {
    act: &'r mut Transaction<'a>,
    call: &'r EditContext,
    /// The memories that this review creates.
    approved: Vec<Memory>,
}

impl Review<'_, '_> {
    /// Settles one memory. Returns its entry if it waited until now.
    fn settle(&mut self, id: &str, decision: ReviewDecision) -> Result<Option<QuarantinedMemory>, EditError> {
        let entry = stored(self.act.store, id)?.ok_or_else(|| EditError::NotQuarantined(id.to_owned()))?;
        self.act.name(id);
        match (&entry.state, decision) {
            (QuarantineState::Approved { .. }, ReviewDecision::Approve)
            | (QuarantineState::Rejected, ReviewDecision::Reject) => return Ok(None),
            (QuarantineState::Approved { memory, .. }, ReviewDecision::Reject) => {
                let problem = format!(
                    "the memory {id:?} was approved before; undo that with `satchel memories undo`, or retract the memory {memory:?}"
                );
                return Err(EditError::state(id, problem));
            }
            (QuarantineState::Waiting, _) | (QuarantineState::Rejected, ReviewDecision::Approve) => {}
        }
        match decision {
            ReviewDecision::Approve => self.approve(id, entry.clone())?,
            ReviewDecision::Reject => {
                for change in self.reviewed(id, entry.clone(), QuarantineState::Rejected)? {
                    self.act.change(change);
                }
            }
        }
        Ok((entry.state == QuarantineState::Waiting).then_some(entry))
    }

    fn approve(&mut self, id: &str, entry: QuarantinedMemory) -> Result<(), EditError> {
        let memory = entry.memory()?;
        let same = self
            .approved
            .iter()
            .find(|other| other.content_hash == memory.content_hash && same_type(other, &memory));
        let existing = match same {
            Some(same) => Some(same.id.clone()),
            None => self.act.same_statement(&memory)?,
        };
        if let Some(existing) = existing {
            let state = QuarantineState::Approved { existed: existing != id, memory: existing };
            for change in self.reviewed(id, entry, state)? {
                self.act.change(change);
            }
            return Ok(());
        }
        let mut reason = format!("approved by {}", self.call.actor);
        if !self.call.reason.is_empty() {
            reason = format!("{reason}: {}", self.call.reason);
        }
        // The history names the agent as the author, and the owner as the one who approved.
        let origin = EditContext { actor: format!("device:{}", entry.device_name), reason, request: None };
        let mut part = Transaction::part_of(self.act, &origin);
        let evidence = part.with_stored_references(entry.evidence.clone())?;
        let created = part.add_evidence(evidence)?;
        let state = QuarantineState::Approved { memory: created, existed: false };
        for change in self.reviewed(id, entry, state)? {
            part.change(change);
        }
        self.approved.push(memory);
        self.act.include(part)
    }

    /// Returns the changes that move an entry to the ledger of reviewed ones.
    fn reviewed(
        &self,
        id: &str,
        mut entry: QuarantinedMemory,
        state: QuarantineState,
    ) -> Result<Vec<Change>, EditError> {
        let mut changes = Vec::new();
        if entry.state == QuarantineState::Waiting {
            let (ledger, at_micros, value) = (Ledger::Quarantine, entry.written_at(), Vec::new());
            let id = id.to_owned();
            changes.push(Change::Ledger(LedgerWrite::Entry { ledger, id, at_micros, value }));
        }
        let (actor, reason) = (self.call.actor.clone(), self.call.reason.clone());
        entry.reviewer = Some(Reviewer { actor, reason, at: self.act.now });
        entry.state = state;
        self.act.announce(id, &entry)?;
        changes.push(entry.put(Ledger::Review, id)?);
        Ok(changes)
    }
}

fn same_type(one: &Memory, other: &Memory) -> bool {
    let kind = |memory: &Memory| -> (MemoryType, Option<String>) {
        (memory.memory_type, memory.custom_type.clone())
    };
    kind(one) == kind(other)
}

fn stored(store: &Store, id: &str) -> Result<Option<QuarantinedMemory>, EditError> {
    let entry = match store.ledger_get(Ledger::Quarantine, id)? {
        Some(entry) => Some(entry),
        None => store.ledger_get(Ledger::Review, id)?,
    };
    entry.as_ref().map(QuarantinedMemory::decode).transpose()
}

/// The error for a memory that an agent writes again after the owner has settled it. It does not say how it was
/// settled: that would reveal whether another memory has the same content.
fn settled(id: &str) -> EditError {
    EditError::state(
        id,
        "this memory was written before, and the owner has settled it; it is not added again",
    )
}
