//! Finds out what has to leave a store, and what stays.

use std::collections::{BTreeSet, HashMap};

use satchel_merge::{
    causality::Dot,
    evidence::{EditAction, EditStep, StoredEvidence, StreamName, memories_of, memories_of_edit},
};
use satchel_store::{Cursor, Ledger, Store};
use satchel_sync::{Counter, Kind, OriginId};
use uuid::Uuid;

use super::{PayloadRange, SyncError, UNREADABLE, each_change, own_origins};
use crate::{
    each_row,
    ingest::{exchange::ACTOR, receipt::ImportRecord},
    provenance::{
        self, AssignedDots, ContributionKind, EvidenceItem, EvidenceKey, PurgeRecord, RevokedData,
        contributed_keys,
    },
    purge::planned_revocation,
    series::{
        edit_origin,
        entries::{PayloadPlace, StoredChange},
        large::{self, Content, JOINED, PART},
        payload::{ContributionPayload, IMPORT, Payload, contribution_key},
    },
    sync::outgoing,
};

/// Imports per page of the ledger.
const PAGE: usize = 500;

/// A memory or a conversation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Memory(String),
    /// By the entry of its provenance.
    Conversation(String),
    /// A list or log of memories of a provider. It says something else if a part of it is missing.
    List(StreamName),
}

/// A change whose payload is withheld, with what it is about.
#[derive(Default)]
struct WithheldChange {
    at: Option<(OriginId, Counter)>,
    parts: Vec<Counter>,
    subjects: BTreeSet<Subject>,
    evidence: Option<EvidenceKey>,
    contribution: Option<EvidenceKey>,
    agent_memory: Option<String>,
}

/// Which side a change comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// It was made here, or also here.
    Here,
    Elsewhere,
}

/// A step of an edit in the store.
struct StoredEdit {
    key: EvidenceKey,
    step: EditStep,
    side: Side,
}

pub(super) struct Plan<'a> {
    store: &'a Store,
    /// The origins of the own series, also of earlier ones.
    own: BTreeSet<OriginId>,
    withheld: &'a [PayloadRange],
    /// The keys of what imports of this store brought.
    imported_here: BTreeSet<EvidenceKey>,
    /// The edits that are stored.
    edits: HashMap<Dot, StoredEdit>,
    changes: Vec<WithheldChange>,
    /// What stays, as something about it is not withheld.
    kept: BTreeSet<Subject>,
    /// What stays, as something about it was made here.
    made_here: BTreeSet<Subject>,
    /// The imports of other stores, with the changes that describe them.
    imports: Vec<(Uuid, Uuid, u64)>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(store: &'a Store, withheld: &'a [PayloadRange]) -> Result<Self, SyncError> {
        let own = own_origins(store)?;
        let imports = imports_of_others(store, &own)?;
        let ids: BTreeSet<Uuid> = imports.iter().map(|(id, ..)| *id).collect();
        Ok(Self {
            store,
            own,
            withheld,
            imported_here: imported_here(store, &ids)?,
            edits: stored_edits(store)?,
            changes: Vec::new(),
            kept: BTreeSet::new(),
            made_here: BTreeSet::new(),
            imports,
        })
    }

    fn is_withheld(&self, origin: OriginId, counter: Counter) -> bool {
        let after = self.withheld.partition_point(|range| (range.origin, range.first) <= (origin, counter));
        let range = after.checked_sub(1).and_then(|at| self.withheld.get(at));
        range.is_some_and(|range| range.origin == origin && counter <= range.last)
    }

    /// Notes what a change is about, and whether that stays.
    pub(super) fn find_records(&mut self, stored: &StoredChange) -> Result<(), SyncError> {
        let change = stored.change.change();
        if stored.place == PayloadPlace::Absent || matches!(change.kind, Kind::GENESIS | PART) {
            return Ok(());
        }
        let at = (change.origin, change.counter);
        let whole = outgoing::change_at(self.store, at.0, at.1)?;
        let Content::Present(kind, content) = large::content(self.store, &whole)? else { return Ok(()) };
        let Ok(Some(payload)) = Payload::decode(kind, &content) else { return Ok(()) };
        let (found, side) = self.read(&payload, at)?;
        let found = WithheldChange { at: Some(at), parts: large::parts_of(&whole), ..found };
        if side == Side::Here || self.own.contains(&at.0) {
            self.made_here.extend(found.subjects);
        } else if stored.place == PayloadPlace::Inline && self.is_withheld(at.0, at.1) {
            self.changes.push(found);
        } else {
            self.kept.extend(found.subjects);
        }
        Ok(())
    }

    /// Reads what a payload is about.
    fn read(&self, payload: &Payload, at: (OriginId, Counter)) -> Result<(WithheldChange, Side), SyncError> {
        let mut found = WithheldChange::default();
        let mut side = Side::Elsewhere;
        match payload {
            Payload::Evidence(key, json) | Payload::Remainder(key, json) => {
                if let Some(item) = EvidenceItem::decode(json)? {
                    found.subjects = subjects_of(&item);
                    found.evidence = item.key()?;
                }
                side = self.side_of_piece(*key);
            }
            Payload::Edit(edit) => side = self.read_step(&edit.step, at, &mut found)?,
            Payload::EarlierEdit(step) => side = self.read_step(step, at, &mut found)?,
            Payload::Contribution(part) => {
                let key = contribution_key(part).map_err(|_| UNREADABLE)?;
                found.contribution = Some(key);
                found.subjects.insert(self.conversation_of(part)?);
                side = self.side_of_piece(key);
            }
            Payload::Recording(part) => {
                found.subjects.insert(self.conversation_of(part)?);
            }
            Payload::AgentMemory(memory) => {
                found.subjects.insert(Subject::Memory(memory.id.clone()));
                found.agent_memory = Some(memory.id.clone());
            }
            Payload::Import(_)
            | Payload::Undo(_)
            | Payload::Erasure(_)
            | Payload::Continuation(_)
            | Payload::Export(_) => {}
        }
        Ok((found, side))
    }

    fn side_of_piece(&self, key: EvidenceKey) -> Side {
        if self.imported_here.contains(&key) { Side::Here } else { Side::Elsewhere }
    }

    fn read_step(
        &self,
        step: &EditStep,
        (origin, counter): (OriginId, Counter),
        found: &mut WithheldChange,
    ) -> Result<Side, SyncError> {
        found.subjects = subjects_of_step(step);
        let dot = Dot::new(edit_origin(origin), counter.get()).ok_or(UNREADABLE)?;
        let stored = self.edits.get(&dot);
        found.evidence = stored.map(|stored| stored.key);
        Ok(stored.map_or(Side::Elsewhere, |stored| stored.side))
    }

    fn conversation_of(&self, part: &ContributionPayload) -> Result<Subject, SyncError> {
        for node in &part.nodes {
            if let Some((entry, _)) = provenance::row_provenance(self.store, &node.id)? {
                return Ok(Subject::Conversation(entry));
            }
        }
        Ok(Subject::Conversation(part.conversation.clone()))
    }

    /// Keeps what was undone or withdrawn here.
    fn keep_undone(&mut self) -> Result<(), SyncError> {
        let steps: Vec<&EditStep> = self.edits.values().map(|edit| &edit.step).collect();
        let mut kept = BTreeSet::new();
        for edit in self.edits.values().filter(|edit| edit.side == Side::Here) {
            match &edit.step.action {
                EditAction::Undo(id) => kept.extend(memories_of_edit(&steps, id)),
                EditAction::WithdrawRelation(id) => {
                    let stored = self.store.relation(id, None)?;
                    kept.extend(
                        stored.into_iter().flat_map(|stored| [stored.relation.from, stored.relation.to]),
                    );
                }
                EditAction::AddMemory(_) | EditAction::Patch(_) | EditAction::AddRelation(_) => {}
            }
        }
        self.made_here.extend(kept.into_iter().map(Subject::Memory));
        Ok(())
    }

    /// Keeps lists as a whole of which something was made here, or is given.
    fn keep_whole_lists(&mut self) {
        loop {
            let known = (self.made_here.len(), self.kept.len());
            for change in &self.changes {
                let is_list = |subject: &Subject| matches!(subject, Subject::List(_));
                if !change.subjects.iter().any(is_list) {
                    continue;
                }
                if change.subjects.iter().any(|subject| self.made_here.contains(subject)) {
                    self.made_here.extend(change.subjects.iter().cloned());
                } else if change
                    .subjects
                    .iter()
                    .any(|subject| is_list(subject) && self.kept.contains(subject))
                {
                    self.kept.extend(change.subjects.iter().cloned());
                }
            }
            if (self.made_here.len(), self.kept.len()) == known {
                break;
            }
        }
        self.kept.append(&mut self.made_here);
    }

    /// Returns the record of what leaves, if something does.
    pub(super) fn record(mut self, at: i64) -> Result<Option<PurgeRecord>, SyncError> {
        self.keep_undone()?;
        self.keep_whole_lists();
        let Self { store, changes, kept, imports, .. } = self;
        let subjects = changes.iter().flat_map(|change| &change.subjects);
        let mut leaving: BTreeSet<Subject> =
            subjects.filter(|subject| !kept.contains(*subject)).cloned().collect();
        let (id, actor) = (Uuid::new_v4().to_string(), ACTOR.to_owned());
        let mut record = PurgeRecord { id, at, actor, ..PurgeRecord::default() };
        for subject in &leaving {
            match subject {
                Subject::Memory(id) => drop(record.memories.insert(id.clone(), BTreeSet::new())),
                Subject::Conversation(entry) => drop(record.conversations.insert(entry.clone())),
                Subject::List(_) => {}
            }
        }
        let keeps = |id: &str| kept.contains(&Subject::Conversation(id.to_owned()));
        let (mut record, stay) = planned_revocation(store, record, keeps)?;
        leaving.retain(|subject| !matches!(subject, Subject::Conversation(entry) if stay.contains(entry)));
        let mut revoked = RevokedData::default();
        for change in changes {
            let Some((origin, counter)) = change.at else { continue };
            if !change.subjects.iter().any(|subject| leaving.contains(subject)) {
                continue;
            }
            for counter in change.parts.into_iter().chain([counter]) {
                revoked.add_change(origin, counter);
            }
            revoked.evidence.extend(change.evidence);
            revoked.contributions.extend(change.contribution);
            revoked.agent_memories.extend(change.agent_memory);
        }
        if revoked.changes.is_empty() {
            return Ok(None);
        }
        for import in imports {
            if brought_any(store, import.0, &revoked)? {
                revoked.imports.push(import);
            }
        }
        record.revoked = Some(revoked);
        Ok(Some(record))
    }
}

/// Returns whether an import has brought something that leaves.
fn brought_any(store: &Store, import: Uuid, revoked: &RevokedData) -> Result<bool, SyncError> {
    let evidence = contributed_keys(store, ContributionKind::Evidence, import)?;
    let parts = contributed_keys(store, ContributionKind::Contributions, import)?;
    Ok(evidence.iter().any(|key| revoked.evidence.contains(key))
        || parts.iter().any(|key| revoked.contributions.contains(key)))
}

/// Returns the edits of the store by their dots.
fn stored_edits(store: &Store) -> Result<HashMap<Dot, StoredEdit>, SyncError> {
    let (dots, mut edits) = (AssignedDots::load(store)?, HashMap::new());
    for record in store.evidence_all() {
        let record = record?;
        if !EditStep::is(&record.json) {
            continue;
        }
        let side = if is_of_other(&record.origin.actor) { Side::Elsewhere } else { Side::Here };
        if let Some(EvidenceItem::Edit(step)) = EvidenceItem::decode_stored(&record.json, record.id, &dots)? {
            for dot in step.causality.dots() {
                edits.insert(dot, StoredEdit { key: record.id, step: EditStep::clone(&step), side });
            }
        }
    }
    Ok(edits)
}

/// Returns whether this is the actor in the history of what came from another store.
fn is_of_other(actor: &str) -> bool {
    actor.strip_prefix(ACTOR).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

fn subjects_of(item: &EvidenceItem) -> BTreeSet<Subject> {
    let memory = |id: &String| Subject::Memory(id.clone());
    match item {
        EvidenceItem::Stored(evidence) => subjects_of_evidence(evidence),
        EvidenceItem::Document(document) => [memory(&document.memory.id)].into(),
        EvidenceItem::Edge(edge) => [memory(&edge.relation.from), memory(&edge.relation.to)].into(),
        EvidenceItem::Vector(vector) => [memory(&vector.identity.memory)].into(),
        EvidenceItem::Edit(step) => subjects_of_step(step),
    }
}

fn subjects_of_evidence(evidence: &StoredEvidence) -> BTreeSet<Subject> {
    let memories = memories_of(&evidence.claim).into_iter().map(Subject::Memory);
    memories.chain(StreamName::of(evidence).map(Subject::List)).collect()
}

fn subjects_of_step(step: &EditStep) -> BTreeSet<Subject> {
    let memory = |id: &String| Subject::Memory(id.clone());
    match &step.action {
        EditAction::AddMemory(evidence) => subjects_of_evidence(evidence),
        EditAction::Patch(patch) => [memory(&patch.to.id)].into(),
        EditAction::AddRelation(relation) => [memory(&relation.from), memory(&relation.to)].into(),
        EditAction::WithdrawRelation(_) | EditAction::Undo(_) => BTreeSet::new(),
    }
}

/// Returns the imports of other stores, with the changes that describe them.
fn imports_of_others(store: &Store, own: &BTreeSet<OriginId>) -> Result<Vec<(Uuid, Uuid, u64)>, SyncError> {
    let mut imports = Vec::new();
    each_change(store, |stored| {
        let change = stored.change.change();
        if own.contains(&change.origin) || !matches!(change.kind, IMPORT | JOINED) {
            return Ok(());
        }
        if let Content::Present(kind, content) = large::content(store, &stored.change)?
            && let Ok(Some(Payload::Import(import))) = Payload::decode(kind, &content)
            && let Ok(receipt) = serde_json::from_str::<ImportRecord>(import.record.get())
            && let Ok(id) = Uuid::parse_str(&receipt.id)
        {
            imports.push((id, *change.origin.as_uuid(), change.counter.get()));
        }
        Ok(())
    })?;
    Ok(imports)
}

/// Returns the keys of everything that imports of this store brought, or would have brought if another store had not imported the same.
/// `others` are imports of other stores.
fn imported_here(store: &Store, others: &BTreeSet<Uuid>) -> Result<BTreeSet<EvidenceKey>, SyncError> {
    let mut imports = BTreeSet::new();
    let page = |after: Option<&Cursor>| Ok::<_, SyncError>(store.ledger_list(Ledger::Import, after, PAGE)?);
    each_row(page, |entry| {
        let Ok(id) = Uuid::parse_str(&entry.id) else { return Ok(()) };
        if others.contains(&id) {
            return Ok(());
        }
        let receipt: ImportRecord = serde_json::from_slice(&entry.value).map_err(|_| UNREADABLE)?;
        imports.insert(id);
        imports.extend(receipt.same_as.and_then(|same| Uuid::parse_str(&same).ok()));
        Ok(())
    })?;
    let mut keys = BTreeSet::new();
    for import in imports {
        for kind in [ContributionKind::Evidence, ContributionKind::Contributions] {
            keys.extend(contributed_keys(store, kind, import)?);
        }
    }
    Ok(keys)
}
