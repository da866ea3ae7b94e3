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

    /// Takes what exports said in another store, then merges the edits there that this one does not have.
    fn merge_from(&self, other: &Self) {
        let theirs = ActiveEvidence::load(&other.store, &UndoneImports::new()).unwrap().evidence;
        self.import(&theirs.into_values().collect::<Vec<_>>());
        let known = self.edit_steps();
        let mut new = other.edit_steps();
        new.retain(|step| !known.contains(step));
        self.imports.edits().merge(&call("a test"), new, Vec::new()).unwrap();
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
    let connected = |id: &str| {
        index.connected(&fixture.store, &undone, &[fixture.tagging(id)]).unwrap().expect("a small part")
    };
    let found = connected(&ids[0]);
    assert_eq!(found.evidence.edit_steps.len(), 1);
    assert!(found.decides(&ids[0]) && !found.decides(&ids[1]));
    let found = connected(&ids[1]);
    assert_eq!(found.evidence.edit_steps.len(), 3, "the memory, its successor, and the edit that says so");
    assert!(found.decides(&ids[1]) && found.decides(&ids[2]) && !found.decides(&ids[0]));
    // What is written later is found too.
    let done = fixture.edit(&ids[0], &tags(&["garden"])).unwrap();
    fixture.imports.edits().undo_change(&call(""), &done.act).unwrap();
    assert_eq!(connected(&ids[0]).evidence.edit_steps.len(), 3);
    assert_eq!(connected(&ids[1]).evidence.edit_steps.len(), 3);
}

#[test]
fn edits_of_a_large_part_of_a_store_read_all_evidence() {
    let fixture = Fixture::new();
    let ids: Vec<String> = (0..300).map(|number| fixture.add(&format!("Fact {number}"))).collect();
    let steps: Vec<EditStep> = ids.iter().map(|id| fixture.tagging(id)).collect();
    let connected = EvidenceIndex::default().connected(&fixture.store, &UndoneImports::new(), &steps);
    assert!(connected.unwrap().is_none());
    fixture.imports.edits().merge(&call(""), steps, Vec::new()).unwrap();
    assert!(ids.iter().all(|id| fixture.memory(id).tags == ["kitchen"]));
    fixture.check().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// While the tests run, each merge also compares what it derives with what follows from all evidence.
    #[test]
    fn what_is_connected_with_edits_decides_what_they_change(
        steps in prop::collection::vec((any::<bool>(), step(), any::<bool>()), 1..24)
    ) {
        let mut stores = [History::new("one "), History::new("other ")];
        for (second, step, merges) in steps {
            let at = usize::from(second);
            stores[at].apply(&step);
            if merges {
                stores[1 - at].fixture.merge_from(&stores[at].fixture);
                let checked = stores[1 - at].fixture.check();
                prop_assert!(checked.is_ok(), "after {step:?}: {}", checked.unwrap_err());
            }
        }
    }
}
