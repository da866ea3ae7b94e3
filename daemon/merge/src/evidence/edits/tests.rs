//! Tests of the effect of words, alone and on top of other evidence.

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

fn set(act: &str, at: i64, fields: &[MemoryField], to: Memory) -> EditStep {
    let setting = MemoryPatch { fields: fields.iter().copied().collect(), to, reverses_retraction: false };
    EditStep { edit_id: act.to_owned(), at, action: EditAction::Patch(Box::new(setting)) }
}

fn undo(act: &str, at: i64, of: &str) -> EditStep {
    EditStep { edit_id: act.to_owned(), at, action: EditAction::Undo(of.to_owned()) }
}

fn document(memory: Memory) -> DocumentEvidence {
    DocumentEvidence { memory, exported: None, untrusted_signer: None }
}

fn shown(words: &[EditStep], documents: &[DocumentEvidence]) -> Vec<String> {
    let derived = derive_with(&[], documents, &Spoken::of(words));
    derived.memories.into_values().map(|memory| format!("{} {}", memory.status, memory.content)).collect()
}

#[test]
fn an_undo_that_was_undone_counts_no_more() {
    let base = [document(memory("m", "theirs"))];
    let mut words = vec![set("a", 1, &[MemoryField::Content], memory("m", "mine"))];
    assert_eq!(shown(&words, &base), ["active mine"]);
    words.push(undo("b", 2, "a"));
    assert_eq!(shown(&words, &base), ["active theirs"]);
    words.push(undo("c", 3, "b"));
    assert_eq!(shown(&words, &base), ["active mine"]);
    assert!(in_effect(&words, "a") && !in_effect(&words, "b") && in_effect(&words, "c"));
}

#[test]
fn the_person_has_the_last_word_on_a_field_and_only_on_it() {
    let mut theirs = memory("m", "theirs");
    theirs.tags = vec!["theirs".to_owned()];
    theirs.temporal.updated_at = Some(Timestamp::saturating(99));
    let words = [
        set("a", 1, &[MemoryField::Content], memory("m", "first")),
        set("b", 2, &[MemoryField::Content], memory("m", "mine")),
    ];
    let derived = derive_with(&[], &[document(theirs)], &Spoken::of(&words));
    let memory = &derived.memories["m"];
    assert_eq!((memory.content.as_str(), memory.tags.as_slice()), ("mine", ["theirs".to_owned()].as_slice()));
    assert_eq!(edited_fields(memory), BTreeMap::from([(MemoryField::Content, 2)]));
}

#[test]
fn a_named_edge_does_not_bring_back_what_the_person_took_back() {
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
    let edges = |words: &[EditStep], kind| {
        let mut derived = derive_with(&[], [&one, &other], &Spoken::of(words));
        crate::evidence::add_relations(
            &mut derived,
            [&RelationEvidence { relation: relation(kind), untrusted_signer: None }],
        );
        derived.relations.len()
    };
    let withdrawn =
        [EditStep { edit_id: "w".to_owned(), at: 1, action: EditAction::WithdrawRelation("r".to_owned()) }];
    let active = [set("s", 1, &[MemoryField::Status], memory("b", "b"))];
    for kind in kinds.iter().copied() {
        assert_eq!((edges(&[], kind), edges(&withdrawn, kind)), (1, 0));
        let says_replaced = kind == satchel_pam::relation::RelationType::Supersedes;
        assert_eq!(edges(&active, kind), usize::from(!says_replaced), "{kind}");
    }
}

#[test]
fn stored_forms_are_told_apart() {
    let word = set("a", 1, &[MemoryField::Tags], memory("m", "x"));
    let (_, bytes) = word.encode().unwrap();
    assert!(EditStep::is(&bytes) && !DocumentEvidence::is(&bytes) && !RelationEvidence::is(&bytes));
    assert_eq!(serde_json::from_slice::<EditStep>(&bytes).unwrap(), word);
    let (_, document) = document(memory("m", "x")).encode().unwrap();
    assert!(!EditStep::is(&document));
}

proptest! {
    #[test]
    fn the_order_of_words_never_matters(
        said in prop::collection::vec((0_u8..4, 0_u8..3, 0_usize..10, 0_i64..5), 1..10),
        turn in 0_usize..10,
    ) {
        let words: Vec<EditStep> = said
            .into_iter()
            .enumerate()
            .map(|(number, (kind, which, field, at))| {
                let act = format!("act-{number}");
                let to = memory(&which.to_string(), &format!("content {number}"));
                let word = set(&act, at, &[MemoryField::ALL[field]], to);
                if kind == 0 { undo(&act, at, &format!("act-{which}")) } else { word }
            })
            .collect();
        let mut turned = words.clone();
        turned.rotate_left(turn % words.len());
        turned.reverse();
        prop_assert_eq!(Spoken::of(&words), Spoken::of(&turned));
        let base: Vec<DocumentEvidence> = (0..3).map(|id| document(memory(&id.to_string(), "theirs"))).collect();
        prop_assert_eq!(shown(&words, &base), shown(&turned, &base));
        let twice: Vec<EditStep> = words.iter().chain(&turned).cloned().collect();
        prop_assert_eq!(shown(&words, &base), shown(&twice, &base));
    }
}
