//! What a piece of evidence is about.

use satchel_merge::evidence::{EditAction, EditStep, StoredEvidence, StreamName, memories_of, successors};
use satchel_pam::{ids, relation::Relation};
use uuid::Uuid;

use crate::provenance::EvidenceItem;

/// What a piece is about.
#[derive(Default)]
pub(super) struct Subjects {
    /// Memories, relations and lists, and the id of the piece: of several pieces with one id, only one counts.
    pub(super) connected: Vec<String>,
    /// The edit that it is part of.
    pub(super) edit: Option<String>,
    /// The edit that it undoes.
    pub(super) undone: Option<String>,
    /// It names a relation by an id that another relation may have.
    pub(super) unusual: bool,
}

impl Subjects {
    pub(super) fn of(item: &EvidenceItem) -> Self {
        match item {
            EvidenceItem::Stored(evidence) => Self { connected: connected_by(evidence), ..Self::default() },
            EvidenceItem::Document(document) => {
                let successor = document.memory.temporal.superseded_by.clone();
                let connected = std::iter::once(document.memory.id.clone()).chain(successor).collect();
                Self { connected, ..Self::default() }
            }
            EvidenceItem::Edge(edge) => Self::of_relation(&edge.relation),
            EvidenceItem::Edit(step) => Self::of_step(step),
            // A vector does not decide what is shown.
            EvidenceItem::Vector(_) => Self::default(),
        }
    }

    pub(super) fn of_step(step: &EditStep) -> Self {
        let subjects = match &step.action {
            EditAction::AddMemory(evidence) => Self { connected: connected_by(evidence), ..Self::default() },
            EditAction::Patch(patch) => {
                let successor = patch.to.temporal.superseded_by.clone();
                let connected = std::iter::once(patch.to.id.clone()).chain(successor).collect();
                Self { connected, ..Self::default() }
            }
            EditAction::AddRelation(relation) => Self::of_relation(relation),
            EditAction::WithdrawRelation(id) => Self { connected: vec![id.clone()], ..Self::default() },
            EditAction::Undo(edit) => Self { undone: Some(edit.clone()), ..Self::default() },
        };
        Self { edit: Some(step.edit_id.clone()), ..subjects }
    }

    fn of_relation(Relation { id, from, to, relation_type, .. }: &Relation) -> Self {
        let unusual = ids::relation_id(from, to, *relation_type).to_string() != *id;
        Self { connected: vec![id.clone(), from.clone(), to.clone()], unusual, ..Self::default() }
    }

    /// Returns all under which the index has the piece.
    pub(super) fn into_all(self) -> impl Iterator<Item = String> {
        let Self { connected, edit, undone, .. } = self;
        let undo = undone.as_ref().and(edit.as_ref()).map(|edit| undo_in(edit));
        connected.into_iter().chain(edit).chain(undone.map(|edit| undo_of(&edit))).chain(undo)
    }
}

/// The subject of the steps that undo an edit.
pub(super) fn undo_of(edit: &str) -> String {
    format!("undo of {edit}")
}

/// The subject of the steps of an edit that undo another one.
pub(super) fn undo_in(edit: &str) -> String {
    format!("undo in {edit}")
}

fn connected_by(evidence: &StoredEvidence) -> Vec<String> {
    let mut connected = memories_of(&evidence.claim);
    for successor in successors(&evidence.claim) {
        // What names the successor in another spelling is about the same memory.
        connected.extend(Uuid::parse_str(&successor).ok().map(|id| id.to_string()));
        connected.push(successor);
    }
    connected.extend(StreamName::of(evidence).map(|list| list.to_string()));
    connected.push(evidence.id.clone());
    connected
}
