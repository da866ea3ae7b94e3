//! Which payloads go to a store that gets only a part of this one.
//!
//! Such a store gets every series, but of the changes only the payloads about records that it may have. Whether it may have a record is
//! decided by what this store shows of it now. What says nothing about single records (erasures, undos of edits, continuations of forked
//! series) goes to all; what concerns all of this store (exports, memories of agents that were not approved) only to those that get
//! everything.

use std::collections::{BTreeSet, HashMap, hash_map::Entry};

use satchel_merge::evidence::{EditAction, EditStep, StoredEvidence, StreamName, items_of, memory_id};
use satchel_pam::{
    conversation::ConversationHeader,
    hash::ContentHash,
    memory::{Access, Memory},
    record::{Claim, Edit, Item},
    relation::Relation,
};
use satchel_store::{
    ChangeKind, ChangeLogEntry, ChangePosition, MemoryQuery, Origin, Revision, Store, UNKNOWN_TIME,
};
use satchel_sync::{Counter, Kind, OriginId};

use super::{Sync, SyncError, UNREADABLE};
use crate::{
    each_row,
    edits::QuarantineState,
    ingest::exchange::ACTOR,
    provenance::{ContributionKind, EvidenceItem, EvidenceKey, contributed_keys},
    series::{
        entries::{self, Place, StoredChange},
        large::{self, Content, JOINED, PART},
        payload::{ContributionPayload, Payload, decode_keys},
    },
};

/// Changes of records that are read at once.
const PAGE: usize = 1_000;

/// The parts of a memory or conversation that decide whether a store may have it.
#[derive(Clone, Copy, Debug)]
pub struct RecordFacts<'a> {
    /// PAM `provenance.platform` of a memory, or `provider.name` of a conversation.
    pub platform: &'a str,
    /// Its tags.
    pub tags: &'a [String],
    /// When it was created, in microseconds since the Unix epoch; `None` if that is not known.
    pub created_at: Option<i64>,
}

/// Decides which records a store may have.
pub trait RecordFilter: Send + std::marker::Sync {
    /// Returns whether it may have a memory of this PAM type and access.
    fn includes_memory(&self, facts: &RecordFacts<'_>, memory_type: &str, access: Option<&Access>) -> bool;

    /// Returns whether it may have a conversation.
    fn includes_conversation(&self, facts: &RecordFacts<'_>) -> bool;
}

/// Decides which payloads are sent, and remembers what it has found out about records.
pub(super) struct PayloadFilter<'a> {
    store: &'a Store,
    filter: &'a dyn RecordFilter,
    memories: HashMap<String, Option<bool>>,
    conversations: HashMap<String, Option<bool>>,
    /// The lists of which something is not sent; loaded when there is a list.
    partial_lists: Option<BTreeSet<StreamName>>,
    /// The last change that joined parts, and whether its payload is sent.
    joined: Option<((OriginId, Counter), bool)>,
}

impl<'a> PayloadFilter<'a> {
    pub(super) fn new(store: &'a Store, filter: &'a dyn RecordFilter) -> Self {
        let (memories, conversations) = (HashMap::new(), HashMap::new());
        Self { store, filter, memories, conversations, partial_lists: None, joined: None }
    }

    /// Returns whether the payload of a change is sent.
    pub(super) fn sends(&mut self, stored: &StoredChange) -> Result<bool, SyncError> {
        let change = stored.change.change();
        match change.kind {
            Kind::GENESIS => return Ok(true),
            PART => {
                let joining = large::joining(self.store, change.origin, change.counter)?;
                return joining.map_or(Ok(false), |at| self.sends_joined(change.origin, at));
            }
            JOINED => return self.sends_joined(change.origin, change.counter),
            _ => {}
        }
        match &stored.place {
            Place::Absent => Ok(false),
            Place::Contribution(_, _, place) => {
                let facts = RecordFacts { platform: &place.platform, tags: &[], created_at: None };
                self.includes_conversation(&place.conversation, &facts)
            }
            Place::Evidence(_, key) => match self.store.evidence(*key)? {
                Some(evidence) => self.sends_evidence(&evidence.json),
                None => Ok(false),
            },
            Place::Inline => self.sends_content(stored),
        }
    }

    fn sends_joined(&mut self, origin: OriginId, at: Counter) -> Result<bool, SyncError> {
        if let Some((known, sends)) = self.joined
            && known == (origin, at)
        {
            return Ok(sends);
        }
        let stored = entries::change(self.store, origin, at)?.ok_or(UNREADABLE)?;
        let sends = self.sends_content(&stored)?;
        self.joined = Some(((origin, at), sends));
        Ok(sends)
    }

    fn sends_content(&mut self, stored: &StoredChange) -> Result<bool, SyncError> {
        let Content::Present(kind, content) = large::content(self.store, &stored.change)? else {
            return Ok(false);
        };
        // What this program cannot read may be about anything.
        let Ok(Some(payload)) = Payload::decode(kind, &content) else { return Ok(false) };
        match payload {
            Payload::Edit(edit) => self.sends_step(&edit.step),
            Payload::EarlierEdit(step) => self.sends_step(&step),
            Payload::Evidence(_, json) | Payload::Remainder(_, json) => self.sends_evidence(&json),
            Payload::Contribution(part) | Payload::Recording(part) => self.sends_contribution(&part),
            Payload::Import(import) => {
                let keys = decode_keys(&import.contributions).and_then(|mut keys| {
                    keys.extend(decode_keys(&import.evidence)?);
                    Ok(keys)
                });
                keys.map_or(Ok(false), |keys| self.sends_any(&keys))
            }
            Payload::Undo(undo) => {
                let mut keys = contributed_keys(self.store, ContributionKind::Contributions, undo.import)?;
                keys.extend(contributed_keys(self.store, ContributionKind::Evidence, undo.import)?);
                self.sends_any(&keys)
            }
            Payload::Erasure(_) | Payload::Continuation(_) => Ok(true),
            Payload::AgentMemory(memory) => match &memory.entry.state {
                QuarantineState::Approved { memory, .. } => self.includes_known_memory(memory),
                QuarantineState::Waiting | QuarantineState::Rejected => Ok(false),
            },
            Payload::Export(_) => Ok(false),
        }
    }

    /// Returns whether something that an import brought is sent.
    fn sends_any(&mut self, pieces: &[EvidenceKey]) -> Result<bool, SyncError> {
        for key in pieces {
            let Some((origin, counter)) = entries::item(self.store, *key)? else { continue };
            let Some(stored) = entries::change(self.store, origin, counter)? else { continue };
            if self.sends(&stored)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn sends_contribution(&mut self, part: &ContributionPayload) -> Result<bool, SyncError> {
        let (platform, tags) = (part.platform.as_str(), part.report.tags.as_slice());
        let facts = RecordFacts { platform, tags, created_at: part.report.created_at };
        self.includes_conversation(&part.conversation, &facts)
    }

    fn sends_step(&mut self, step: &EditStep) -> Result<bool, SyncError> {
        match &step.action {
            EditAction::AddMemory(evidence) => self.sends_stored(evidence),
            EditAction::Patch(patch) => self.includes_known_memory(&patch.to.id),
            EditAction::AddRelation(relation) => self.includes_ends(relation),
            EditAction::WithdrawRelation(id) => match self.store.relation(id, None)? {
                Some(record) => self.includes_ends(&record.relation),
                None => Ok(false),
            },
            // It names the other edit, and says nothing of its contents.
            EditAction::Undo(_) => Ok(true),
        }
    }

    fn sends_evidence(&mut self, json: &[u8]) -> Result<bool, SyncError> {
        match EvidenceItem::decode(json)? {
            Some(EvidenceItem::Stored(evidence)) => self.sends_stored(&evidence),
            Some(EvidenceItem::Document(document)) => self.includes_memory(&document.memory),
            Some(EvidenceItem::Edge(edge)) => self.includes_ends(&edge.relation),
            Some(EvidenceItem::Vector(_) | EvidenceItem::Edit(_)) | None => Ok(false),
        }
    }

    fn sends_stored(&mut self, evidence: &StoredEvidence) -> Result<bool, SyncError> {
        // A list of which a part is missing would say something else.
        if let Some(list) = StreamName::of(evidence) {
            return Ok(!self.partial_lists()?.contains(&list));
        }
        self.includes_items(evidence)
    }

    fn partial_lists(&mut self) -> Result<&BTreeSet<StreamName>, SyncError> {
        if self.partial_lists.is_none() {
            let (store, mut partial) = (self.store, BTreeSet::new());
            for record in store.evidence_all() {
                let Some(EvidenceItem::Stored(evidence)) = EvidenceItem::decode(&record?.json)? else {
                    continue;
                };
                let list = StreamName::of(&evidence).filter(|list| !partial.contains(list));
                if let Some(list) = list
                    && !self.includes_items(&evidence)?
                {
                    partial.insert(list);
                }
            }
            self.partial_lists = Some(partial);
        }
        self.partial_lists.as_ref().ok_or(UNREADABLE)
    }

    /// Returns whether all memories are included that a piece of evidence is about.
    fn includes_items(&mut self, evidence: &StoredEvidence) -> Result<bool, SyncError> {
        for item in items_of(&evidence.claim) {
            if !self.includes_item(evidence, item)? {
                return Ok(false);
            }
        }
        let target = match &evidence.claim {
            Claim::Edit { edit: Edit::Replace { target, .. } | Edit::Remove { target, .. }, .. } => target,
            Claim::Statement(_) | Claim::Snapshot { .. } | Claim::Edit { edit: Edit::Add(_), .. } => &None,
        };
        target.as_deref().map_or(Ok(true), |target| self.includes_text(target))
    }

    fn includes_item(&mut self, evidence: &StoredEvidence, item: &Item) -> Result<bool, SyncError> {
        let created_at = known_time(item.created_at.unwrap_or(evidence.at));
        let facts = RecordFacts { platform: &evidence.platform, tags: &item.tags, created_at };
        let known = self.shown_memory(&memory_id(item))?;
        let access = item.access.as_ref();
        Ok(known.unwrap_or_else(|| self.filter.includes_memory(&facts, item.memory_type.as_str(), access)))
    }

    /// Returns whether all memories with this text are included. A text that no memory has is.
    fn includes_text(&mut self, text: &str) -> Result<bool, SyncError> {
        let query = MemoryQuery { content_hash: Some(ContentHash::of(text).to_string()), ..MemoryQuery::default() };
        let (store, mut all, now) = (self.store, true, self.store.revision());
        each_row::<_, SyncError>(
            |after| Ok(store.memories(&query, after, PAGE, now)?),
            |record| {
                all &= self.includes(&record.memory);
                Ok(())
            },
        )?;
        Ok(all)
    }

    fn includes_ends(&mut self, relation: &Relation) -> Result<bool, SyncError> {
        Ok(self.includes_known_memory(&relation.from)? && self.includes_known_memory(&relation.to)?)
    }

    /// Returns whether a memory is included; one that the store does not have is not.
    fn includes_known_memory(&mut self, id: &str) -> Result<bool, SyncError> {
        Ok(self.shown_memory(id)?.unwrap_or(false))
    }

    /// Returns whether a memory is included, by what the store shows of it, or else by `stated`.
    fn includes_memory(&mut self, stated: &Memory) -> Result<bool, SyncError> {
        let known = self.shown_memory(&stated.id)?;
        Ok(known.unwrap_or_else(|| self.includes(stated)))
    }

    fn includes(&self, memory: &Memory) -> bool {
        includes_memory(self.filter, memory)
    }

    /// Returns whether a memory is included; `None` if the store does not have it.
    fn shown_memory(&mut self, id: &str) -> Result<Option<bool>, SyncError> {
        if let Some(known) = self.memories.get(id) {
            return Ok(*known);
        }
        let found = self.store.memory(id, None)?.map(|record| self.includes(&record.memory));
        self.memories.insert(id.to_owned(), found);
        Ok(found)
    }

    /// Returns whether a conversation is included, by what the store shows of it, or else by `stated`.
    fn includes_conversation(&mut self, id: &str, stated: &RecordFacts<'_>) -> Result<bool, SyncError> {
        let known = match self.conversations.entry(id.to_owned()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                let header = self.store.conversation(id, None)?.map(|record| record.header);
                *place.insert(header.map(|header| includes_conversation(self.filter, &header)))
            }
        };
        Ok(known.unwrap_or_else(|| self.filter.includes_conversation(stated)))
    }
}

fn includes_memory(filter: &dyn RecordFilter, memory: &Memory) -> bool {
    let facts = RecordFacts {
        platform: &memory.provenance.platform,
        tags: &memory.tags,
        created_at: known_time(memory.temporal.created_at.micros()),
    };
    filter.includes_memory(&facts, memory.memory_type.as_str(), memory.access.as_ref())
}

fn includes_conversation(filter: &dyn RecordFilter, header: &ConversationHeader) -> bool {
    filter.includes_conversation(&RecordFacts {
        platform: &header.provider.name,
        tags: &header.tags,
        created_at: known_time(header.temporal.created_at.micros()),
    })
}

/// Returns a time; `None` if it says that the time is not known.
fn known_time(micros: i64) -> Option<i64> {
    (micros != UNKNOWN_TIME).then_some(micros)
}

impl Sync {
    /// Returns whether records that this store has changed after the revision `after` are included by `filter` since then, and were not
    /// before. Then a store may lack payloads that this one did not send it, and sends now.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn has_included(&self, filter: &dyn RecordFilter, after: Revision) -> Result<bool, SyncError> {
        let (store, mut position) = (self.0.store(), ChangePosition::after(after));
        loop {
            let changes = store.changes_since(position, PAGE)?;
            let Some(last) = changes.last() else { return Ok(false) };
            position = last.position;
            for change in &changes {
                if was_included(store, filter, change)? {
                    return Ok(true);
                }
            }
        }
    }
}

/// Returns whether this change of a record made `filter` include it.
fn was_included(
    store: &Store,
    filter: &dyn RecordFilter,
    change: &ChangeLogEntry,
) -> Result<bool, SyncError> {
    let version = |at: Revision| -> Result<Option<(bool, Origin)>, SyncError> {
        Ok(match change.kind {
            ChangeKind::Memory => {
                let record = store.memory(&change.id, Some(at))?;
                record.map(|record| (includes_memory(filter, &record.memory), record.origin))
            }
            ChangeKind::Conversation => {
                let record = store.conversation(&change.id, Some(at))?;
                record.map(|record| (includes_conversation(filter, &record.header), record.origin))
            }
            _ => None,
        })
    };
    let Some((true, origin)) = version(change.position.revision)? else { return Ok(false) };
    if change.previous == Revision::ZERO {
        // What another store has sent may have been passed on before it took effect here.
        return Ok(origin.actor.starts_with(ACTOR));
    }
    Ok(!version(change.previous)?.is_some_and(|(included, _)| included))
}
