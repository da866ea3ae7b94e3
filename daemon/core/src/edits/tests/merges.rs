//! Edits of other stores, for which only the evidence that is connected with them is read.

use proptest::prelude::*;
use satchel_merge::evidence::{EditAction, EditStep, MemoryField, MemoryPatch};
use uuid::Uuid;

use super::{
    histories::{History, step},
    *,
};
use crate::provenance::EvidenceIndex;

impl Fixture {
    fn edit_steps(&self) -> Vec<EditStep> {
        ActiveEvidence::load(&self.store, &UndoneImports::new()).unwrap().edit_steps
    }

    /// Merges the edits of another store that this one does not have, before or after it takes what exports said there.
    fn merge_from(&self, other: &Self, edits_first: bool) {
        let theirs = ActiveEvidence::load(&other.store, &UndoneImports::new()).unwrap();
        let exported: Vec<StoredEvidence> = theirs.evidence.into_values().collect();
        if !edits_first {
            self.import(&exported);
        }
        let known = self.edit_steps();
        let new = theirs.edit_steps.into_iter().filter(|step| !known.contains(step)).collect();
        self.imports.edits().merge(&call("a test"), new, Vec::new()).unwrap();
        if edits_first {
            self.import(&exported);
        }
    }

    /// Returns an edit that gives a memory tags.
    fn tagging(&self, id: &str) -> EditStep {
        let mut to = self.memory(id);
        to.tags = vec!["kitchen".to_owned()];
        let fields = [MemoryField::Tags].into();
        let patch = MemoryPatch { fields, to, reverses_retraction: false };
        let (edit, at) = (Uuid::new_v4().to_string(), self.clock.now_micros());
        EditStep::new(edit, at, EditAction::Patch(Box::new(patch)))
    }
}

#[test]
fn an_edit_of_a_memory_needs_the_evidence_about_it_and_its_relations() {
    let fixture = Fixture::new();
    let ids: Vec<String> = (0..20).map(|number| fixture.add(&format!("Fact {number}"))).collect();
    fixture.imports.edits().supersede_memory(&call(""), &ids[1], "", Err(&ids[2])).unwrap();
    let (index, undone) = (EvidenceIndex::default(), UndoneImports::new());
    let change = |id: &str| {
        index.derive_change(&fixture.store, &undone, &[fixture.tagging(id)]).unwrap().expect("a small part")
    };
    let found = change(&ids[0]);
    assert_eq!(found.before.memories.len(), 1);
    assert_eq!(found.after.memories[&ids[0]].tags, ["kitchen"]);
    let found = change(&ids[1]);
    assert!(found.contains(&ids[1]) && found.contains(&ids[2]) && !found.contains(&ids[0]));
    assert_eq!((found.before.memories.len(), found.before.relations.len()), (2, 1));
    // What is written later is found too.
    let done = fixture.edit(&ids[0], &tags(&["garden"])).unwrap();
    assert_eq!(change(&ids[0]).before.memories[&ids[0]].tags, ["garden"]);
    fixture.imports.edits().undo_change(&call(""), &done.act).unwrap();
    assert_eq!(change(&ids[0]).before.memories[&ids[0]], fixture.memory(&ids[0]));
}

/// A withdrawal may come before the lists from which the relation follows, so that the store has never shown it.
#[test]
fn an_undone_withdrawal_shows_a_relation_that_was_never_shown() {
    let (exported, fixture) = (Fixture::new(), Fixture::new());
    let lists = [slot("first", 1, "Fact 1"), slot("second", 2, "Fact 2")];
    exported.import(&lists);
    let relation = exported.shown().1.into_keys().next().unwrap();
    let step = |action| EditStep::new(Uuid::new_v4().to_string(), fixture.clock.now_micros(), action);
    let merge = |step: &EditStep| {
        fixture.imports.edits().merge(&call(""), vec![step.clone()], Vec::new()).unwrap();
    };
    let withdrawal = step(EditAction::WithdrawRelation(relation.clone()));
    merge(&withdrawal);
    fixture.import(&lists);
    assert_eq!(fixture.shown().1.len(), 0);
    merge(&step(EditAction::Undo(withdrawal.edit_id.clone())));
    assert!(fixture.shown().1.contains_key(&relation));
    fixture.check().unwrap();
}

#[test]
fn edits_of_a_large_part_of_a_store_read_all_evidence() {
    let fixture = Fixture::new();
    let texts: Vec<String> = (0..2_001).map(|number| format!("Fact {number}")).collect();
    let exported = texts.iter().zip(0..).map(|(text, at)| stated(text, at, text));
    fixture.import(&exported.collect::<Vec<_>>());
    let ids: Vec<String> = texts.iter().map(|text| id_of(text)).collect();
    let steps: Vec<EditStep> = ids.iter().map(|id| fixture.tagging(id)).collect();
    let change = EvidenceIndex::default().derive_change(&fixture.store, &UndoneImports::new(), &steps);
    assert!(change.unwrap().is_none());
    fixture.imports.edits().merge(&call(""), steps, Vec::new()).unwrap();
    assert!(ids.iter().all(|id| fixture.memory(id).tags == ["kitchen"]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// While the tests run, each merge also compares what it derives with what follows from all evidence.
    #[test]
    fn what_is_connected_with_edits_decides_what_they_change(
        steps in prop::collection::vec((any::<bool>(), step(), any::<Option<bool>>()), 1..24)
    ) {
        let mut stores = [History::new("one "), History::new("other ")];
        for (second, step, merges) in steps {
            let at = usize::from(second);
            stores[at].apply(&step);
            if let Some(edits_first) = merges {
                stores[1 - at].fixture.merge_from(&stores[at].fixture, edits_first);
                let checked = stores[1 - at].fixture.check();
                prop_assert!(checked.is_ok(), "after {step:?}: {}", checked.unwrap_err());
            }
        }
    }
}
