//! The search for everything that is connected with some edits.

use std::collections::{BTreeMap, BTreeSet};

use satchel_merge::evidence::{EditAction, EditStep, StoredEvidence, UserEdits};
use satchel_store::Store;

use super::{
    DerivedChange, Entries, Subjects, derive_both,
    subjects::{undo_in, undo_of},
};
use crate::provenance::{
    ActiveEvidence, AssignedDots, ContributionKind, EvidenceItem, EvidenceKey, ProvenanceError, RowLocations,
    UndoneImports, excluded_keys,
};

/// Maximum number of pieces that are read one by one. To read more of them takes longer than to read all evidence.
const MAX_PIECES: usize = 2_000;
/// Maximum number of subjects of these pieces.
const MAX_SUBJECTS: usize = 20_000;
/// Maximum number of derivations. Each may show relations about which there are more pieces.
const MAX_ROUNDS: usize = 8;

pub(super) struct Search<'a> {
    store: &'a Store,
    entries: &'a Entries,
    dots: AssignedDots,
    excluded: BTreeSet<EvidenceKey>,
    /// The edits of the new steps: how many of these there are, and how many undo an edit.
    new_edits: BTreeMap<String, [usize; 2]>,
    /// The edits that new steps undo.
    undone_by_steps: BTreeSet<String>,
    pieces: BTreeMap<EvidenceKey, EvidenceItem>,
    /// The pieces whose subjects were added to the search.
    expanded: BTreeSet<EvidenceKey>,
    /// The subjects of which all pieces are needed.
    connected: BTreeSet<String>,
    /// The edits of which only those pieces are needed that decide whether they count.
    edits: BTreeSet<String>,
    open: Vec<Open>,
    /// The number of pieces that were looked up, including those that are gone.
    looked_up: usize,
    /// The number of subjects of the expanded pieces.
    subjects: usize,
    /// Pieces refer to each other in a way that the index cannot follow.
    unusual: bool,
}

/// What is left to look up.
enum Open {
    /// An entry of `connected`.
    Connected(String),
    /// An entry of `edits`.
    Edit(String),
}

impl<'a> Search<'a> {
    pub(super) fn new(
        store: &'a Store,
        entries: &'a Entries,
        undone: &UndoneImports,
        steps: &[EditStep],
    ) -> Result<Self, ProvenanceError> {
        let mut new_edits: BTreeMap<String, [usize; 2]> = BTreeMap::new();
        for step in steps {
            let [new, undoing] = new_edits.entry(step.edit_id.clone()).or_default();
            *new += 1;
            *undoing += usize::from(undone_by(step).is_some());
        }
        Ok(Self {
            store,
            entries,
            dots: AssignedDots::load(store)?,
            excluded: excluded_keys(store, ContributionKind::Evidence, undone)?,
            new_edits,
            undone_by_steps: steps.iter().filter_map(undone_by).collect(),
            pieces: BTreeMap::new(),
            expanded: BTreeSet::new(),
            connected: BTreeSet::new(),
            edits: BTreeSet::new(),
            open: Vec::new(),
            looked_up: 0,
            subjects: 0,
            unusual: false,
        })
    }

    /// Derives what follows without `steps` and with them; `None` if only all evidence can tell.
    pub(super) fn derive(mut self, steps: &[EditStep]) -> Result<Option<DerivedChange>, ProvenanceError> {
        for step in steps {
            self.add_step(step)?;
        }
        self.add_undone(steps)?;
        self.run()?;
        for _ in 0..MAX_ROUNDS {
            if self.gives_up() {
                break;
            }
            let read = self.pieces.len();
            let (mut before, mut after) = derive_both(&mut self.evidence()?, steps);
            // What follows from lists may be withdrawn by a step that names nothing but the relation.
            let relations = before.relations.keys().chain(after.relations.keys());
            relations.for_each(|relation| self.connect(relation.clone()));
            self.run()?;
            if self.pieces.len() == read && !self.gives_up() {
                before.retain(|memory| self.connected.contains(memory));
                after.retain(|memory| self.connected.contains(memory));
                return Ok(Some(DerivedChange { before, after, connected: self.connected }));
            }
        }
        Ok(None)
    }

    fn gives_up(&self) -> bool {
        self.unusual || self.looked_up > MAX_PIECES || self.subjects > MAX_SUBJECTS
    }

    fn run(&mut self) -> Result<(), ProvenanceError> {
        while let Some(open) = self.open.pop().filter(|_| !self.gives_up()) {
            match open {
                Open::Connected(subject) => {
                    let pieces = self.entries.pieces_about(&subject);
                    // A long list: nothing of it has to be read to know that it is too much.
                    self.unusual |= pieces.len() > MAX_PIECES;
                    pieces.into_iter().try_for_each(|key| self.expand(key))?;
                }
                Open::Edit(edit) => self.visit_edit(&edit)?,
            }
        }
        Ok(())
    }

    /// Adds everything about what a step changes.
    fn add_step(&mut self, step: &EditStep) -> Result<(), ProvenanceError> {
        if let EditAction::WithdrawRelation(id) = &step.action {
            self.add_ends(id)?;
        }
        self.add(Subjects::of_step(step));
        Ok(())
    }

    /// Adds the ends of a relation that is withdrawn, or not withdrawn any more. It may follow from evidence that does not name it.
    fn add_ends(&mut self, relation: &str) -> Result<(), ProvenanceError> {
        match self.store.relation(relation, None)? {
            Some(record) => {
                self.connect(record.relation.from);
                self.connect(record.relation.to);
            }
            None => self.unusual = true,
        }
        Ok(())
    }

    /// Adds the edits that count, or do not count any more, because of `steps`: those that one of them undoes, and those with steps that
    /// come after their undo.
    fn add_undone(&mut self, steps: &[EditStep]) -> Result<(), ProvenanceError> {
        let mut edits: BTreeSet<String> = steps.iter().map(|step| step.edit_id.clone()).collect();
        edits.extend(self.undone_by_steps.iter().cloned());
        let mut seen = BTreeSet::new();
        while let Some(edit) = edits.pop_first() {
            let undone = self.undone_by_steps.contains(&edit)
                || !self.entries.pieces_about(&undo_of(&edit)).is_empty();
            if !undone || !seen.insert(edit.clone()) {
                continue;
            }
            for key in self.entries.pieces_about(&edit) {
                if let Some(EvidenceItem::Edit(step)) = self.piece(key)? {
                    let step = EditStep::clone(step);
                    edits.extend(undone_by(&step));
                    self.add_step(&step)?;
                }
            }
        }
        Ok(())
    }

    /// Adds what is connected with a piece, once.
    fn expand(&mut self, key: EvidenceKey) -> Result<(), ProvenanceError> {
        if self.expanded.insert(key)
            && let Some(item) = self.piece(key)?
        {
            let subjects = Subjects::of(item);
            self.add(subjects);
        }
        Ok(())
    }

    fn add(&mut self, subjects: Subjects) {
        let Subjects { connected, edit, unusual, .. } = subjects;
        self.subjects += connected.len();
        self.unusual |= unusual;
        connected.into_iter().for_each(|subject| self.connect(subject));
        edit.into_iter().for_each(|edit| self.add_edit(edit));
    }

    fn connect(&mut self, subject: String) {
        if self.connected.insert(subject.clone()) {
            self.open.push(Open::Connected(subject));
        }
    }

    fn add_edit(&mut self, edit: String) {
        if self.edits.insert(edit.clone()) {
            self.open.push(Open::Edit(edit));
        }
    }

    /// Adds what decides whether an edit counts.
    fn visit_edit(&mut self, edit: &str) -> Result<(), ProvenanceError> {
        let (steps, undoing) = (self.entries.pieces_about(edit), self.entries.pieces_about(&undo_in(edit)));
        let [new, new_undoing] = self.new_edits.get(edit).copied().unwrap_or_default();
        // Whether an edit counts that undoes several, or undoes one and changes something, depends on more than is looked up here.
        self.unusual |= match undoing.len() + new_undoing {
            0 => false,
            1 => new > new_undoing || steps.len() > undoing.len(),
            _ => true,
        };
        let undos = self.entries.pieces_about(&undo_of(edit));
        // An undo takes back an edit of which it had seen a step.
        let needed = if undos.is_empty() { Vec::new() } else { steps };
        for key in needed.into_iter().chain(undos) {
            if let Some(item) = self.piece(key)? {
                let edit = Subjects::of(item).edit;
                edit.into_iter().for_each(|edit| self.add_edit(edit));
            }
        }
        Ok(())
    }

    /// Returns a piece; `None` if it does not count or is gone, or if the search gives up.
    fn piece(&mut self, key: EvidenceKey) -> Result<Option<&EvidenceItem>, ProvenanceError> {
        if self.excluded.contains(&key) || self.gives_up() {
            return Ok(None);
        }
        if !self.pieces.contains_key(&key) {
            self.looked_up += 1;
            let Some(record) = self.store.evidence(key)? else { return Ok(None) };
            let Some(item) = EvidenceItem::decode_stored(&record.json, key, &self.dots)? else {
                return Ok(None);
            };
            self.pieces.insert(key, item);
        }
        Ok(self.pieces.get(&key))
    }

    /// Returns what was found.
    fn evidence(&mut self) -> Result<ActiveEvidence, ProvenanceError> {
        let mut evidence = ActiveEvidence::default();
        self.pieces.values().for_each(|item| evidence.add(item.clone()));
        // If a document gives the same memory, its message may be a row that other evidence names.
        let names_message = |item: &StoredEvidence| item.row.is_none() && item.message.is_some();
        self.unusual |= !evidence.documents.is_empty() && evidence.evidence.values().any(names_message);
        evidence.user_edits = UserEdits::of(&evidence.edit_steps);
        evidence.row_locations =
            RowLocations::load(self.store, evidence.evidence.values(), &evidence.documents)?;
        Ok(evidence)
    }
}

/// Returns the edit that a step undoes.
fn undone_by(step: &EditStep) -> Option<String> {
    match &step.action {
        EditAction::Undo(edit) => Some(edit.clone()),
        _ => None,
    }
}
