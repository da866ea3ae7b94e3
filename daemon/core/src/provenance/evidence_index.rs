//! Finds the evidence on which a few memories depend, without reading all of it.
//!
//! What is shown of a memory follows from the evidence about it, about the lists that contain it, and about the memories that it is
//! related to. The index says which pieces are about what. It is built when it is first needed, and follows what the store writes.
//! It is an aid alone: if it does not help, the caller reads all evidence.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use satchel_merge::evidence::{
    EditAction, EditStep, StoredEvidence, StreamName, UserEdits, memories_of, successors,
};
use satchel_store::{Store, record_key};

use super::{
    ActiveEvidence, AssignedDots, ContributionKind, EvidenceItem, EvidenceKey, ProvenanceError, RowLocations,
    UndoneImports, excluded_keys,
};

/// Most pieces that are worth to be looked up one by one.
const MAX_PIECES: usize = 2_000;
/// Most edits for which the index is used.
const MAX_EDITS: usize = 200;
/// Most entries, about 40 bytes each.
const MAX_ENTRIES: usize = 200_000;
/// The subject of all pieces that withdraw a relation: relations that follow from other evidence have no piece that names them.
const WITHDRAWALS: &str = "withdrawn relations";

/// Which evidence is about what. Clones share it.
#[derive(Clone, Default)]
pub struct EvidenceIndex(Arc<Mutex<Option<Entries>>>);

/// All evidence that decides what is shown of some memories.
pub struct ConnectedEvidence {
    /// The evidence. It may be about other memories too, but is not all that there is about those.
    pub evidence: ActiveEvidence,
    /// The ids of the memories, among other ids.
    complete: BTreeSet<String>,
}

/// The start of the key of a subject, and the key of a piece that is about it. Two subjects may have the same start, which costs time
/// and nothing else.
type Entry = (u64, EvidenceKey);

#[derive(Default)]
struct Entries {
    entries: BTreeSet<Entry>,
    /// The number of writes of the store that are included.
    writes: u64,
    /// There is too much evidence for an index.
    too_many: bool,
}

/// What a piece is about.
#[derive(Default)]
struct Subjects {
    /// Memories, lists and evidence ids.
    records: Vec<String>,
    relations: Vec<String>,
    /// The edit that it is part of.
    edit: Option<String>,
    /// The edit that it undoes.
    undone: Option<String>,
}

/// What the search has to look up.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    /// Everything about a subject, and about what is connected with it.
    Everything(String),
    /// Whether a relation was withdrawn.
    Relation(String),
    /// Whether an edit counts.
    Edit(String),
}

struct Search<'a> {
    store: &'a Store,
    entries: &'a Entries,
    dots: AssignedDots,
    excluded: BTreeSet<EvidenceKey>,
    pieces: BTreeMap<EvidenceKey, EvidenceItem>,
    visited: BTreeSet<Need>,
    open: Vec<Need>,
}

impl EvidenceIndex {
    /// Returns all evidence that decides what `steps` change, without those of the steps that are not stored. Returns `None` if that
    /// may be a large part of all evidence.
    ///
    /// # Errors
    /// The store or the ledger cannot be read.
    pub fn connected(
        &self,
        store: &Store,
        undone: &UndoneImports,
        steps: &[EditStep],
    ) -> Result<Option<ConnectedEvidence>, ProvenanceError> {
        if steps.len() > MAX_EDITS {
            return Ok(None);
        }
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = held.get_or_insert_default();
        entries.follow(store)?;
        if entries.too_many {
            return Ok(None);
        }
        let mut search = Search {
            store,
            entries,
            dots: AssignedDots::load(store)?,
            excluded: excluded_keys(store, ContributionKind::Evidence, undone)?,
            pieces: BTreeMap::new(),
            visited: BTreeSet::new(),
            open: Vec::new(),
        };
        if search.run(steps)? { search.finish().map(Some) } else { Ok(None) }
    }
}

impl ConnectedEvidence {
    /// Returns whether the evidence is all that decides what is shown of the memory.
    #[must_use]
    pub fn decides(&self, memory: &str) -> bool {
        self.complete.contains(memory)
    }
}

impl Entries {
    /// Adds what the store has written since the last call. Pieces that were removed keep their entries.
    fn follow(&mut self, store: &Store) -> Result<(), ProvenanceError> {
        // Before anything is read: what is written meanwhile is read again.
        let writes = store.evidence_writes();
        let known = !self.entries.is_empty();
        let new = if known { store.evidence_written_after(self.writes) } else { None };
        match new {
            _ if self.too_many => {}
            Some(ids) => {
                for id in ids {
                    store.evidence(id)?.map_or(Ok(()), |record| self.add(id, &record.json))?;
                }
            }
            None => {
                self.entries.clear();
                for record in store.evidence_all() {
                    let record = record?;
                    self.add(record.id, &record.json)?;
                    if self.too_many {
                        break;
                    }
                }
            }
        }
        self.writes = writes;
        Ok(())
    }

    fn add(&mut self, key: EvidenceKey, json: &[u8]) -> Result<(), ProvenanceError> {
        if let Some(item) = EvidenceItem::decode(json)? {
            let Subjects { records, relations, edit, undone } = Subjects::of(&item);
            let undo = undone.map(|edit| undo_of(&edit));
            let subjects = records.into_iter().chain(relations).chain(edit).chain(undo);
            let withdraws = withdraws(&item).then(|| WITHDRAWALS.to_owned());
            self.entries.extend(subjects.chain(withdraws).map(|subject| (start_of(&subject), key)));
        }
        self.too_many = self.entries.len() > MAX_ENTRIES;
        if self.too_many {
            self.entries.clear();
        }
        Ok(())
    }

    fn about(&self, subject: &str) -> Vec<EvidenceKey> {
        let start = start_of(subject);
        self.entries.range((start, [0; 16])..=(start, [0xff; 16])).map(|(_, key)| *key).collect()
    }
}

impl Search<'_> {
    /// Returns false if there is too much.
    fn run(&mut self, steps: &[EditStep]) -> Result<bool, ProvenanceError> {
        for key in self.entries.about(WITHDRAWALS) {
            self.add_effect_of(key)?;
        }
        for step in steps {
            self.add_step(step)?;
        }
        self.add_undone(steps)?;
        while let Some(need) = self.open.pop() {
            if self.visited.insert(need.clone()) {
                self.visit(&need)?;
            }
            if self.pieces.len() > MAX_PIECES {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds the edits that count, or do not count any more, because of `steps`: those that one of them undoes, and those with steps that
    /// come after their undo.
    fn add_undone(&mut self, steps: &[EditStep]) -> Result<(), ProvenanceError> {
        let named = |step: &EditStep| [Some(step.edit_id.clone()), undone_by(step)];
        let mut edits: Vec<String> = steps.iter().flat_map(named).flatten().collect();
        let mut seen = BTreeSet::new();
        while let Some(edit) = edits.pop() {
            let undone = steps.iter().any(|step| undone_by(step).is_some_and(|undone| undone == edit))
                || !self.entries.about(&undo_of(&edit)).is_empty();
            if !undone || !seen.insert(edit.clone()) {
                continue;
            }
            for key in self.entries.about(&edit) {
                if let Some(EvidenceItem::Edit(step)) = self.piece(key)? {
                    let step = EditStep::clone(step);
                    edits.extend(undone_by(&step));
                    self.add_step(&step)?;
                }
                if self.pieces.len() > MAX_PIECES {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Adds everything about what a step changes.
    fn add_step(&mut self, step: &EditStep) -> Result<(), ProvenanceError> {
        let subjects = Subjects::of_step(step);
        for relation in &subjects.relations {
            // It may follow from evidence that does not name it.
            if let Some(record) = self.store.relation(relation, None)? {
                self.open.extend([record.relation.from, record.relation.to].map(Need::Everything));
            }
        }
        self.add_everything(subjects);
        Ok(())
    }

    fn add_everything(&mut self, subjects: Subjects) {
        let Subjects { records, relations, edit, .. } = subjects;
        self.open.extend(records.into_iter().chain(relations).map(Need::Everything));
        self.open.extend(edit.map(Need::Edit));
    }

    fn visit(&mut self, need: &Need) -> Result<(), ProvenanceError> {
        match need {
            Need::Everything(subject) => {
                for key in self.entries.about(subject) {
                    if let Some(item) = self.piece(key)? {
                        let subjects = Subjects::of(item);
                        self.add_everything(subjects);
                    }
                }
            }
            Need::Relation(relation) => {
                for key in self.entries.about(relation) {
                    self.add_effect_of(key)?;
                }
            }
            Need::Edit(edit) => {
                let undos = self.entries.about(&undo_of(edit));
                // An undo takes back an edit of which it had seen a step.
                let of_edit = if undos.is_empty() { Vec::new() } else { self.entries.about(edit) };
                for key in of_edit.into_iter().chain(undos) {
                    self.add_effect_of(key)?;
                }
            }
        }
        Ok(())
    }

    /// Adds what decides whether a piece counts.
    fn add_effect_of(&mut self, key: EvidenceKey) -> Result<(), ProvenanceError> {
        if let Some(item) = self.piece(key)? {
            let Subjects { relations, edit, .. } = Subjects::of(item);
            self.open.extend(relations.into_iter().map(Need::Relation).chain(edit.map(Need::Edit)));
        }
        Ok(())
    }

    /// Returns a piece that counts.
    fn piece(&mut self, key: EvidenceKey) -> Result<Option<&EvidenceItem>, ProvenanceError> {
        if self.excluded.contains(&key) {
            return Ok(None);
        }
        if !self.pieces.contains_key(&key) {
            let Some(record) = self.store.evidence(key)? else { return Ok(None) };
            let Some(item) = EvidenceItem::decode_stored(&record.json, key, &self.dots)? else {
                return Ok(None);
            };
            self.pieces.insert(key, item);
        }
        Ok(self.pieces.get(&key))
    }

    fn finish(self) -> Result<ConnectedEvidence, ProvenanceError> {
        let mut evidence = ActiveEvidence::default();
        self.pieces.into_values().for_each(|item| evidence.add(item));
        evidence.user_edits = UserEdits::of(&evidence.edit_steps);
        evidence.row_locations =
            RowLocations::load(self.store, evidence.evidence.values(), &evidence.documents)?;
        let everything = self.visited.into_iter().filter_map(|need| match need {
            Need::Everything(subject) => Some(subject),
            Need::Relation(_) | Need::Edit(_) => None,
        });
        Ok(ConnectedEvidence { evidence, complete: everything.collect() })
    }
}

impl Subjects {
    fn of(item: &EvidenceItem) -> Self {
        match item {
            EvidenceItem::Stored(evidence) => Self { records: records_of(evidence), ..Self::default() },
            EvidenceItem::Document(document) => {
                let successor = document.memory.temporal.superseded_by.clone();
                let records = std::iter::once(document.memory.id.clone()).chain(successor).collect();
                Self { records, ..Self::default() }
            }
            EvidenceItem::Edge(edge) => Self {
                records: vec![edge.relation.from.clone(), edge.relation.to.clone()],
                relations: vec![edge.relation.id.clone()],
                ..Self::default()
            },
            EvidenceItem::Edit(step) => Self::of_step(step),
            // A vector does not decide what is shown.
            EvidenceItem::Vector(_) => Self::default(),
        }
    }

    fn of_step(step: &EditStep) -> Self {
        let edit = Some(step.edit_id.clone());
        let mut subjects = Self { edit, undone: undone_by(step), ..Self::default() };
        match &step.action {
            EditAction::AddMemory(evidence) => subjects.records = records_of(evidence),
            EditAction::Patch(patch) => {
                let successor = patch.to.temporal.superseded_by.clone();
                subjects.records = std::iter::once(patch.to.id.clone()).chain(successor).collect();
            }
            EditAction::AddRelation(relation) => {
                subjects.records = vec![relation.from.clone(), relation.to.clone()];
                subjects.relations = vec![relation.id.clone()];
            }
            EditAction::WithdrawRelation(id) => subjects.relations = vec![id.clone()],
            EditAction::Undo(_) => {}
        }
        subjects
    }
}

/// Returns the memories of a piece, their successors, its list, and its id: of several pieces with one id, only one counts.
fn records_of(evidence: &StoredEvidence) -> Vec<String> {
    let mut records = memories_of(&evidence.claim);
    records.extend(successors(&evidence.claim));
    records.extend(StreamName::of(evidence).map(|list| list.to_string()));
    records.push(evidence.id.clone());
    records
}

/// Returns the edit that a step undoes.
fn undone_by(step: &EditStep) -> Option<String> {
    match &step.action {
        EditAction::Undo(edit) => Some(edit.clone()),
        _ => None,
    }
}

/// Returns the subject of the steps that undo an edit.
fn undo_of(edit: &str) -> String {
    format!("undo of {edit}")
}

fn withdraws(item: &EvidenceItem) -> bool {
    matches!(item, EvidenceItem::Edit(step) if matches!(step.action, EditAction::WithdrawRelation(_)))
}

fn start_of(subject: &str) -> u64 {
    let mut start = [0; 8];
    start.copy_from_slice(&record_key(subject)[..8]);
    u64::from_be_bytes(start)
}
