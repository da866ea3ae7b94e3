//! Which payloads go to a store that gets only a part of this one.
//!
//! Such a store gets every series, but of the changes only the payloads about records that it may have. Whether it may have a record is
//! decided by what this store shows of it now. What says nothing about single records (erasures, undos of edits, continuations of forked
//! series) goes to all; what concerns all of this store (exports, memories of agents that were not approved) only to those that get
//! everything.

mod lists;

use std::collections::{BTreeMap, BTreeSet, HashMap, hash_map::Entry};

use satchel_merge::evidence::{EditAction, EditStep, StreamName, memory_id};
use satchel_pam::{
    conversation::ConversationHeader,
    memory::{Access, Memory},
    record::Item,
    relation::Relation,
};
use satchel_store::{MemoryQuery, Store, UNKNOWN_TIME};
use satchel_sync::{Counter, Kind, OriginId};

use super::{SyncError, UNREADABLE};
use crate::{
    each_row,
    edits::QuarantineState,
    provenance::{self, ContributionKind, EvidenceItem, EvidenceKey, contributed_keys},
    series::{
        counters::{CounterSet, Marked},
        entries::{self, PayloadPlace, StoredChange},
        large::{self, Content, JOINED, PART},
        payload::{ContributionPayload, Payload, decode_keys},
    },
};

/// Memories that are read at once.
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
pub trait RecordFilter: Send + Sync {
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
    /// Whether all of a list is included; loaded when there is one.
    lists: Option<BTreeMap<StreamName, bool>>,
    /// Up to where each series has taken effect, and the changes before that which have not.
    applied: HashMap<OriginId, (Option<Counter>, CounterSet)>,
    /// The last change that joined parts, and whether its payload is sent.
    joined: Option<((OriginId, Counter), bool)>,
}

impl<'a> PayloadFilter<'a> {
    pub(super) fn new(store: &'a Store, filter: &'a dyn RecordFilter) -> Self {
        let (memories, conversations) = (HashMap::new(), HashMap::new());
        Self { store, filter, memories, conversations, lists: None, applied: HashMap::new(), joined: None }
    }

    /// Returns whether the payload of a change is sent.
    pub(super) fn sends(&mut self, stored: &StoredChange) -> Result<bool, SyncError> {
        let change = stored.change.change();
        // Before, what is shown does not say whether it is included.
        if !self.has_taken_effect(change.origin, change.counter)? {
            return Ok(false);
        }
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
            PayloadPlace::Absent => Ok(false),
            PayloadPlace::Contribution(_, _, place) => {
                if let Some(included) = self.shown_conversation(&place.conversation)? {
                    return Ok(included);
                }
                let (entry, provenance) = provenance::resolve(self.store, place.entry.clone())?;
                self.includes_group(entry, provenance.shown)
            }
            PayloadPlace::Evidence(_, key) => match self.store.evidence(*key)? {
                Some(evidence) => self.sends_evidence(&evidence.json),
                None => Ok(false),
            },
            PayloadPlace::Inline => self.sends_content(stored),
        }
    }

    /// Returns whether a change has a payload here that is not sent although it has taken effect.
    pub(super) fn withholds(&mut self, stored: &StoredChange) -> Result<bool, SyncError> {
        let change = stored.change.change();
        Ok(stored.place != PayloadPlace::Absent
            && self.has_taken_effect(change.origin, change.counter)?
            && !self.sends(stored)?)
    }

    fn has_taken_effect(&mut self, origin: OriginId, counter: Counter) -> Result<bool, SyncError> {
        let (applied, late) = match self.applied.entry(origin) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let applied = entries::applied(self.store, origin)?.map(|applied| applied.head.counter);
                place.insert((applied, CounterSet::load(self.store, Marked::Late, origin)?))
            }
        };
        Ok(applied.is_some_and(|applied| counter <= applied) && !late.contains(self.store, counter)?)
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
        if let Some(included) = self.shown_conversation(&part.conversation)? {
            return Ok(included);
        }
        // Rows are shown in the conversation in which all exports together group them.
        for node in &part.nodes {
            if let Some((entry, provenance)) = provenance::row_provenance(self.store, &node.id)? {
                return self.includes_group(entry, provenance.shown);
            }
        }
        Ok(false)
    }

    /// Returns whether all conversations are included that show a group of rows.
    fn includes_group(&mut self, entry: String, shown: BTreeSet<String>) -> Result<bool, SyncError> {
        let mut any = false;
        for id in shown.into_iter().chain([entry]) {
            match self.shown_conversation(&id)? {
                Some(false) => return Ok(false),
                included => any |= included.is_some(),
            }
        }
        Ok(any)
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
            Some(EvidenceItem::Document(document)) => self.includes_known_memory(&document.memory.id),
            Some(EvidenceItem::Edge(edge)) => self.includes_ends(&edge.relation),
            Some(EvidenceItem::Vector(_) | EvidenceItem::Edit(_)) | None => Ok(false),
        }
    }

    /// Returns whether all of the items are included.
    fn includes_items(&mut self, items: &[&Item]) -> Result<bool, SyncError> {
        for item in items {
            if !self.includes_known_memory(&memory_id(item))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether there are memories with the text of this hash, and all of them are included.
    fn includes_text(&self, hash: &str) -> Result<bool, SyncError> {
        let query = MemoryQuery { content_hash: Some(hash.to_owned()), ..MemoryQuery::default() };
        let (mut any, mut all, now) = (false, true, self.store.revision());
        each_row::<_, SyncError>(
            |after| Ok(self.store.memories(&query, after, PAGE, now)?),
            |record| {
                any = true;
                all &= includes_memory(self.filter, &record.memory);
                Ok(())
            },
        )?;
        Ok(any && all)
    }

    fn includes_ends(&mut self, relation: &Relation) -> Result<bool, SyncError> {
        Ok(self.includes_known_memory(&relation.from)? && self.includes_known_memory(&relation.to)?)
    }

    /// Returns whether a memory is included; one that the store does not have is not.
    fn includes_known_memory(&mut self, id: &str) -> Result<bool, SyncError> {
        Ok(self.shown_memory(id)?.unwrap_or(false))
    }

    /// Returns whether a memory is included; `None` if the store does not have it.
    fn shown_memory(&mut self, id: &str) -> Result<Option<bool>, SyncError> {
        if let Some(known) = self.memories.get(id) {
            return Ok(*known);
        }
        let found = self.store.memory(id, None)?.map(|record| includes_memory(self.filter, &record.memory));
        self.memories.insert(id.to_owned(), found);
        Ok(found)
    }

    /// Returns whether a conversation is included; `None` if the store does not have it.
    fn shown_conversation(&mut self, id: &str) -> Result<Option<bool>, SyncError> {
        if let Some(known) = self.conversations.get(id) {
            return Ok(*known);
        }
        let found = self.store.conversation(id, None)?;
        let found = found.map(|record| includes_conversation(self.filter, &record.header));
        self.conversations.insert(id.to_owned(), found);
        Ok(found)
    }
}

pub(super) fn includes_memory(filter: &dyn RecordFilter, memory: &Memory) -> bool {
    let facts = RecordFacts {
        platform: &memory.provenance.platform,
        tags: &memory.tags,
        created_at: known_time(memory.temporal.created_at.micros()),
    };
    filter.includes_memory(&facts, memory.memory_type.as_str(), memory.access.as_ref())
}

pub(super) fn includes_conversation(filter: &dyn RecordFilter, header: &ConversationHeader) -> bool {
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
