//! Tests of the effect of edits, alone and on top of other evidence.

mod concurrent;
mod hostile;
mod model;
mod stores;

use proptest::prelude::*;
use satchel_pam::{
    hash::ContentHash,
    memory::{MemoryType, Provenance, Status, Temporal},
    time::Timestamp,
};

use super::*;
use crate::evidence::{DocumentEvidence, RelationEvidence, derive_with};

fn memory(id: &str, content: &str) -> Memory {
    Memory {
        id: id.to_owned(),
        memory_type: MemoryType::Fact,
        custom_type: None,
        status: Status::Active,
        content: content.to_owned(),
        content_hash: ContentHash::of(content),
        summary: None,
        tags: Vec::new(),
        confidence: None,
        temporal: Temporal {
            created_at: Timestamp::EPOCH,
            updated_at: None,
            valid_from: None,
            valid_until: None,
            superseded_by: None,
        },
        provenance: Provenance { platform: "elsewhere".to_owned(), ..Provenance::default() },
        access: None,
        embedding_ref: None,
        metadata: serde_json::Map::new(),
    }
}

fn set(edit: &str, at: i64, fields: &[MemoryField], to: Memory) -> EditStep {
    let patch = MemoryPatch { fields: fields.iter().copied().collect(), to, reverses_retraction: false };
    EditStep::new(edit.to_owned(), at, EditAction::Patch(Box::new(patch)))
}

fn undo(edit: &str, at: i64, of: &str) -> EditStep {
    EditStep::new(edit.to_owned(), at, EditAction::Undo(of.to_owned()))
}

fn document(memory: Memory) -> DocumentEvidence {
    DocumentEvidence { memory, exported: None, untrusted_signer: None }
}

fn shown(steps: &[EditStep], documents: &[DocumentEvidence]) -> Vec<String> {
    let derived = derive_with(&[], documents, &UserEdits::of(steps));
    derived.memories.into_values().map(|memory| format!("{} {}", memory.status, memory.content)).collect()
}

#[test]
fn an_undone_undo_has_no_effect() {
    let base = [document(memory("m", "theirs"))];
    let mut steps = vec![set("a", 1, &[MemoryField::Content], memory("m", "mine"))];
    assert_eq!(shown(&steps, &base), ["active mine"]);
    steps.push(undo("b", 2, "a"));
    assert_eq!(shown(&steps, &base), ["active theirs"]);
    steps.push(undo("c", 3, "b"));
    assert_eq!(shown(&steps, &base), ["active mine"]);
    assert!(in_effect(&steps, "a") && !in_effect(&steps, "b") && in_effect(&steps, "c"));
}

#[test]
fn an_edit_overrides_only_its_own_fields() {
    let mut theirs = memory("m", "theirs");
    theirs.tags = vec!["theirs".to_owned()];
    theirs.temporal.updated_at = Some(Timestamp::saturating(99));
    let steps = [
        set("a", 1, &[MemoryField::Content], memory("m", "first")),
        set("b", 2, &[MemoryField::Content], memory("m", "mine")),
    ];
    let derived = derive_with(&[], &[document(theirs)], &UserEdits::of(&steps));
    let memory = &derived.memories["m"];
    assert_eq!((memory.content.as_str(), memory.tags.as_slice()), ("mine", ["theirs".to_owned()].as_slice()));
    assert_eq!(edited_fields(memory), BTreeMap::from([(MemoryField::Content, 2)]));
}

#[test]
fn relation_evidence_does_not_override_a_withdrawal() {
    let (one, other) = (document(memory("a", "a")), document(memory("b", "b")));
    let relation = |kind| Relation {
        id: "r".to_owned(),
        from: "a".to_owned(),
        to: "b".to_owned(),
        relation_type: kind,
        confidence: None,
        created_at: Timestamp::EPOCH,
    };
    let kinds = satchel_pam::relation::RelationType::ALL;
    let edges = |steps: &[EditStep], kind| {
        let mut derived = derive_with(&[], [&one, &other], &UserEdits::of(steps));
        crate::evidence::add_relations(
            &mut derived,
            [&RelationEvidence { relation: relation(kind), untrusted_signer: None }],
        );
        derived.relations.len()
    };
    let withdrawn = [EditStep::new("w".to_owned(), 1, EditAction::WithdrawRelation("r".to_owned()))];
    let active = [set("s", 1, &[MemoryField::Status], memory("b", "b"))];
    for kind in kinds.iter().copied() {
        assert_eq!((edges(&[], kind), edges(&withdrawn, kind)), (1, 0));
        let says_replaced = kind == satchel_pam::relation::RelationType::Supersedes;
        assert_eq!(edges(&active, kind), usize::from(!says_replaced), "{kind}");
    }
}

#[test]
fn stored_edit_steps_are_recognised() {
    let step = set("a", 1, &[MemoryField::Tags], memory("m", "x"));
    let (_, bytes) = step.encode().unwrap();
    assert!(EditStep::is(&bytes) && !DocumentEvidence::is(&bytes) && !RelationEvidence::is(&bytes));
    assert_eq!(serde_json::from_slice::<EditStep>(&bytes).unwrap(), step);
    let (_, document) = document(memory("m", "x")).encode().unwrap();
    assert!(!EditStep::is(&document));
}

proptest! {
    #[test]
    fn the_order_of_edit_steps_never_matters(
        inputs in prop::collection::vec((0_u8..4, 0_u8..3, 0_usize..10, 0_i64..5), 1..10),
        turn in 0_usize..10,
    ) {
        let steps: Vec<EditStep> = inputs
            .into_iter()
            .enumerate()
            .map(|(number, (kind, which, field, at))| {
                let edit = format!("act-{number}");
                let to = memory(&which.to_string(), &format!("content {number}"));
                let step = set(&edit, at, &[MemoryField::ALL[field]], to);
                if kind == 0 { undo(&edit, at, &format!("act-{which}")) } else { step }
            })
            .collect();
        let mut turned = steps.clone();
        turned.rotate_left(turn % steps.len());
        turned.reverse();
        prop_assert_eq!(UserEdits::of(&steps), UserEdits::of(&turned));
        let base: Vec<DocumentEvidence> = (0..3).map(|id| document(memory(&id.to_string(), "theirs"))).collect();
        prop_assert_eq!(shown(&steps, &base), shown(&turned, &base));
        let twice: Vec<EditStep> = steps.iter().chain(&turned).cloned().collect();
        prop_assert_eq!(shown(&steps, &base), shown(&twice, &base));
    }
}
