//! Tests of edits that were made without knowledge of each other.

use satchel_pam::memory::{Access, Confidence, DecayModel, Visibility};

use super::{stores::origin, *};
use crate::causality::{Causality, Dot, VersionVector};

/// Returns `step` as the `counter`-th of `store`, whose author had seen the given number of steps of each store.
pub(super) fn numbered(step: EditStep, store: usize, counter: u64, seen: &[u64]) -> EditStep {
    let dot = Dot::new(origin(store), counter).unwrap();
    EditStep { causality: Causality::Recorded { dot, seen: vector(seen) }, ..step }
}

pub(super) fn vector(seen: &[u64]) -> VersionVector {
    seen.iter().enumerate().filter_map(|(store, counter)| Dot::new(origin(store), *counter)).collect()
}

fn content(edit: &str, at: i64, text: &str) -> EditStep {
    set(edit, at, &[MemoryField::Content], memory("m", text))
}

fn changed(edit: &str, at: i64, field: MemoryField, change: impl Fn(&mut Memory)) -> EditStep {
    let mut to = memory("m", "x");
    change(&mut to);
    set(edit, at, &[field], to)
}

fn shown_memory(steps: &[EditStep]) -> Memory {
    let documents = [document(memory("m", "theirs")), document(memory("x", "x")), document(memory("y", "y"))];
    derive_with(&[], &documents, &UserEdits::of(steps)).memories["m"].clone()
}

/// Returns the first two steps as concurrent ones of two stores.
fn concurrent(one: EditStep, other: EditStep) -> [EditStep; 2] {
    [numbered(one, 0, 1, &[]), numbered(other, 1, 1, &[])]
}

#[test]
fn a_later_clock_does_not_replace_what_it_has_not_seen() {
    let [one, other] = concurrent(content("a", 9, "one"), content("b", 5, "other"));
    let edits = UserEdits::of(&[one.clone(), other.clone()]);
    let edit = |edit_id: &str, at, store| {
        vec![ConflictingEdit { edit_id: edit_id.to_owned(), at, origin: Some(origin(store)) }]
    };
    let values = vec![
        ConflictingValue { value: "one".into(), edits: edit("a", 9, 0) },
        ConflictingValue { value: "other".into(), edits: edit("b", 5, 1) },
    ];
    let conflict = FieldConflict { memory: "m".to_owned(), field: MemoryField::Content, values };
    assert_eq!(edits.conflicts(), [conflict]);
    assert_eq!(shown_memory(&[one.clone(), other.clone()]).content, "one");
    let seen = numbered(content("c", -400, "settled"), 1, 2, &[1, 1]);
    let settled = [one, other, seen];
    assert_eq!(shown_memory(&settled).content, "settled");
    assert_eq!(UserEdits::of(&settled).conflicts(), []);
}

#[test]
fn a_settlement_that_was_undone_settles_nothing() {
    let [one, other] = concurrent(content("a", 9, "one"), content("b", 5, "other"));
    let seen = numbered(content("c", 20, "settled"), 1, 2, &[1, 1]);
    let taken_back = numbered(undo("d", 1, "c"), 0, 2, &[1, 2]);
    let steps = [one, other, seen, taken_back];
    assert_eq!(shown_memory(&steps).content, "one");
    assert_eq!(UserEdits::of(&steps).conflicts().len(), 1);
}

#[test]
fn equal_values_are_no_conflict() {
    let steps = concurrent(content("a", 9, "same"), content("b", 5, "same"));
    assert_eq!(UserEdits::of(&steps).conflicts(), []);
    let tags = |edit: &str, at, tags: [&str; 2]| {
        changed(edit, at, MemoryField::Tags, |to| to.tags = tags.map(str::to_owned).to_vec())
    };
    let steps = concurrent(tags("a", 1, ["p", "q"]), tags("b", 2, ["q", "p"]));
    assert_eq!(UserEdits::of(&steps).conflicts(), []);
    assert_eq!(shown_memory(&steps).tags, ["q", "p"]);
}

#[test]
fn at_the_same_time_the_greater_hash_decides_and_then_the_greater_origin() {
    let (one, other) = ("one", "other");
    let greater = if ContentHash::of(one) > ContentHash::of(other) { one } else { other };
    for [first, second] in [[one, other], [other, one]] {
        let steps = concurrent(content("a", 5, first), content("b", 5, second));
        assert_eq!(shown_memory(&steps).content, greater);
    }
    // Both say the same; the memory that the user wrote is taken from the greater origin.
    let mut with_tag = memory("n", "same");
    with_tag.tags = vec!["of-the-greater-origin".to_owned()];
    for [lesser, greater] in [["a", "b"], ["b", "a"]] {
        let of_lesser = set(lesser, 5, &[MemoryField::Content], memory("n", "same"));
        let steps = concurrent(of_lesser, set(greater, 5, &[MemoryField::Content], with_tag.clone()));
        let derived = derive_with(&[], &[], &UserEdits::of(&steps));
        assert_eq!(derived.memories["n"].tags, with_tag.tags);
    }
}

#[test]
fn the_newest_type_metadata_and_decay_are_shown() {
    let decay = |model| Some(Confidence { decay_model: Some(model), ..Confidence::default() });
    for [early, late] in [[0, 1], [1, 0]] {
        let value = |edit: &str, at, field, which: usize| {
            changed(edit, at, field, |to| {
                to.memory_type = [MemoryType::Goal, MemoryType::Skill][which];
                to.metadata.insert("language".to_owned(), ["de", "fr"][which].into());
                to.confidence = decay([DecayModel::TimeLinear, DecayModel::None][which]);
            })
        };
        for field in [MemoryField::Type, MemoryField::Metadata, MemoryField::Decay] {
            let steps = concurrent(value("a", 1, field, early), value("b", 2, field, late));
            let (shown, expected) = (shown_memory(&steps), shown_memory(&[value("b", 2, field, late)]));
            assert_eq!(shown, expected, "{field:?}");
            assert_eq!(UserEdits::of(&steps).conflicts().len(), 1, "{field:?}");
        }
    }
}

#[test]
fn two_replacements_are_both_related_and_the_newest_is_named() {
    let replaced = |edit: &str, at, by: &str| {
        changed(edit, at, MemoryField::Status, |to| {
            to.status = Status::Superseded;
            to.temporal.superseded_by = Some(by.to_owned());
        })
    };
    let documents = ["m", "x", "y"].map(|id| document(memory(id, id)));
    let derive = |steps: &[EditStep]| derive_with(&[], &documents, &UserEdits::of(steps));
    let steps = concurrent(replaced("a", 1, "x"), replaced("b", 2, "y"));
    let mut derived = derive(&steps);
    assert_eq!(derived.memories["m"].temporal.superseded_by.as_deref(), Some("y"));
    let both: BTreeSet<String> = ["x", "y"].map(|by| crate::evidence::supersedes(by, "m", 0).id).into();
    assert_eq!(derived.relations.keys().cloned().collect::<BTreeSet<_>>(), both);
    // An export that names the same relation does not contradict the user.
    let named =
        RelationEvidence { relation: crate::evidence::supersedes("x", "m", 7), untrusted_signer: None };
    crate::evidence::add_relations(&mut derived, [&named]);
    assert_eq!(derived.relations.len(), 2);
    // A successor that is gone leaves the other one.
    let gone = derive(&concurrent(replaced("a", 1, "x"), replaced("b", 2, "gone")));
    assert_eq!(gone.memories["m"].temporal.superseded_by.as_deref(), Some("x"));
    // A retraction shows no successor.
    let retracted =
        numbered(changed("c", 0, MemoryField::Status, |to| to.status = Status::Retracted), 2, 1, &[]);
    let [one, other] = steps;
    let derived = derive(&[one, other, retracted]);
    assert_eq!((derived.memories["m"].status, derived.relations.len()), (Status::Retracted, 0));
}

#[test]
fn stores_that_replaced_memories_by_each_other_show_no_circle() {
    let replaced = |edit: &str, at, id: &str, by: &str| {
        let mut to = memory(id, id);
        to.status = Status::Superseded;
        to.temporal.superseded_by = Some(by.to_owned());
        set(edit, at, &[MemoryField::Status], to)
    };
    let documents = ["a", "b", "c", "d"].map(|id| document(memory(id, id)));
    let steps = [
        numbered(replaced("1", 1, "a", "b"), 0, 1, &[]),
        numbered(replaced("2", 2, "a", "c"), 1, 1, &[]),
        numbered(replaced("3", 3, "b", "a"), 2, 1, &[]),
        numbered(replaced("4", 4, "b", "d"), 3, 1, &[]),
    ];
    let derived = derive_with(&[], &documents, &UserEdits::of(&steps));
    let mut pairs: Vec<(&str, &str)> =
        derived.relations.values().map(|one| (one.to.as_str(), one.from.as_str())).collect();
    pairs.sort_unstable();
    assert_eq!(pairs, [("a", "b"), ("a", "c"), ("b", "d")]);
}

#[test]
fn concurrent_periods_show_what_they_share_or_else_the_newest() {
    let period = |edit: &str, at, from, until| {
        let mut to = memory("m", "x");
        to.temporal.valid_from = Some(Timestamp::saturating(from));
        to.temporal.valid_until = Some(Timestamp::saturating(until));
        set(edit, at, &[MemoryField::ValidFrom, MemoryField::ValidUntil], to)
    };
    let shown = |steps: &[EditStep]| {
        let times = shown_memory(steps).temporal;
        [times.valid_from, times.valid_until].map(|time| time.unwrap().micros())
    };
    assert_eq!(shown(&concurrent(period("a", 1, 10, 30), period("b", 2, 20, 40))), [20, 30]);
    assert_eq!(shown(&concurrent(period("a", 1, 10, 20), period("b", 2, 30, 40))), [30, 40]);
    assert_eq!(shown(&concurrent(period("a", 3, 10, 20), period("b", 2, 30, 40))), [10, 20]);
}

#[test]
fn access_without_rights_is_private_and_sharing_with_nobody_is_too() {
    let access = |edit: &str, access: Option<Access>| {
        changed(edit, 1, MemoryField::Access, |to| to.access.clone_from(&access))
    };
    let open = |visibility| Some(Access { visibility, ..Access::default() });
    let shown = |one, other| shown_memory(&concurrent(access("a", one), access("b", other))).access;
    assert_eq!(shown(open(Visibility::Public), None), Some(Access::default()));
    assert_eq!(shown(open(Visibility::Public), open(Visibility::Shared)), Some(Access::default()));
    assert_eq!(shown(None, None), None);
}

#[test]
fn an_edit_counts_again_when_every_undo_of_it_is_undone() {
    let first = numbered(content("a", 5, "mine"), 0, 1, &[]);
    let undone = numbered(undo("u", 3, "a"), 0, 2, &[1]);
    let also_undone = numbered(undo("v", 2, "a"), 1, 1, &[1]);
    let redone = numbered(undo("r", 1, "u"), 0, 3, &[2]);
    let mut steps = vec![first, undone, redone];
    assert_eq!(shown_memory(&steps).content, "mine");
    steps.push(also_undone);
    assert_eq!(shown_memory(&steps).content, "theirs");
    steps.push(numbered(undo("s", 0, "v"), 1, 2, &[3, 1]));
    assert_eq!(shown_memory(&steps).content, "mine");
    let all: Vec<&EditStep> = steps.iter().collect();
    for edit in ["a", "u", "v", "r", "s"] {
        assert_eq!(memories_of_edit(&all, edit), BTreeSet::from(["m".to_owned()]), "{edit}");
    }
    assert_eq!(shown_memory(&steps).temporal.updated_at, Some(Timestamp::saturating(5)));
}

#[test]
fn an_undo_moves_the_time_of_change_whatever_its_clock_says() {
    let steps = [numbered(content("a", 5, "mine"), 0, 1, &[]), numbered(undo("u", 9, "a"), 1, 1, &[1])];
    assert_eq!(shown_memory(&steps).temporal.updated_at, Some(Timestamp::saturating(9)));
    // The undo of an undo concerns the same memory although its clock is behind.
    let redone = numbered(undo("r", 3, "u"), 2, 1, &[1, 1]);
    let late = numbered(undo("late", 20, "r"), 2, 2, &[1, 1, 1]);
    let [first, undone] = steps;
    assert_eq!(
        shown_memory(&[first, undone, redone, late]).temporal.updated_at,
        Some(Timestamp::saturating(20))
    );
}

#[test]
fn a_retraction_by_a_document_ends_by_an_edit_that_reverses_it() {
    let mut retracted = memory("m", "theirs");
    retracted.status = Status::Retracted;
    retracted.temporal.updated_at = Some(Timestamp::saturating(10));
    let status = |edit: &str, at, reverses| {
        let mut step = set(edit, at, &[MemoryField::Status], memory("m", "x"));
        if let EditAction::Patch(patch) = &mut step.action {
            patch.reverses_retraction = reverses;
        }
        step
    };
    let shown = |steps: &[EditStep]| {
        derive_with(&[], &[document(retracted.clone())], &UserEdits::of(steps)).memories["m"].status
    };
    let [active, reversing] = concurrent(status("a", 20, false), status("b", 11, true));
    assert_eq!(shown(std::slice::from_ref(&active)), Status::Retracted);
    assert_eq!(shown(&[active.clone(), reversing.clone()]), Status::Active);
    let taken_back = numbered(undo("u", 0, "b"), 0, 2, &[1, 1]);
    assert_eq!(shown(&[active, reversing, taken_back]), Status::Retracted);
}

#[test]
fn a_relation_that_was_withdrawn_returns_only_knowingly() {
    let relation = Relation {
        id: "r".to_owned(),
        from: "x".to_owned(),
        to: "y".to_owned(),
        relation_type: satchel_pam::relation::RelationType::Supports,
        confidence: None,
        created_at: Timestamp::EPOCH,
    };
    let add = |edit: &str, at| EditStep::new(edit.to_owned(), at, EditAction::AddRelation(relation.clone()));
    let withdraw = EditStep::new("w".to_owned(), 1, EditAction::WithdrawRelation("r".to_owned()));
    let drawn = |steps: &[EditStep]| {
        let documents = [document(memory("x", "x")), document(memory("y", "y"))];
        derive_with(&[], &documents, &UserEdits::of(steps)).relations.len()
    };
    let [added, withdrawn] = concurrent(add("a", 9), withdraw);
    assert_eq!(drawn(&[added.clone(), withdrawn.clone()]), 0);
    let again = numbered(add("b", 0), 0, 2, &[1, 1]);
    assert_eq!(drawn(&[added, withdrawn, again]), 1);
}

#[test]
fn steps_from_before_the_series_are_ordered_within_one_store_only() {
    let assigned = |step: EditStep, dots: &[(usize, u64)]| {
        let dots = dots.iter().filter_map(|(store, counter)| Dot::new(origin(*store), *counter));
        EditStep { causality: Causality::assigned(dots), ..step }
    };
    let conflicts = |steps: &[EditStep]| UserEdits::of(steps).conflicts().len();
    let (old, new) = (content("a", 1, "old"), content("b", 2, "new"));
    assert_eq!(conflicts(&[assigned(old.clone(), &[(0, 1)]), assigned(new.clone(), &[(0, 2)])]), 0);
    assert_eq!(conflicts(&[assigned(old.clone(), &[(0, 1)]), assigned(new.clone(), &[(1, 1)])]), 1);
    // The second store is a copy of the first.
    let copied = [assigned(old.clone(), &[(0, 1)]), assigned(old, &[(1, 1)]), assigned(new, &[(1, 2)])];
    assert_eq!(conflicts(&copied), 0);
    let seen = |vector: &[u64]| {
        let later = numbered(content("c", 0, "later"), 2, 1, vector);
        conflicts(&[assigned(content("a", 1, "old"), &[(0, 1), (1, 1)]), later])
    };
    assert_eq!([seen(&[]), seen(&[1]), seen(&[0, 1])], [1, 0, 0]);
    // Which dots a step has is known only with the series that contain it; until then its value is kept.
    let later = numbered(content("c", 0, "later"), 2, 1, &[0, 1]);
    assert_eq!(conflicts(&[assigned(content("a", 1, "old"), &[(0, 1)]), later]), 1);
}

#[test]
fn a_step_with_a_dot_replaces_those_that_have_none() {
    let steps = [content("a", 900, "old"), numbered(content("b", 1, "new"), 0, 1, &[])];
    assert_eq!(shown_memory(&steps).content, "new");
}

#[test]
fn a_step_without_a_dot_is_stored_as_before() {
    let step = undo("b", 2, "a");
    let expected = r#"{"word":"b","at":2,"deed":{"undo":"a"}}"#;
    assert_eq!(serde_json::to_string(&step).unwrap(), expected);
    let dot = Dot::new(origin(0), 1).unwrap();
    let assigned = EditStep { causality: Causality::assigned([dot]), ..step.clone() };
    assert_eq!(assigned.encode().unwrap(), step.encode().unwrap());
    assert_eq!(serde_json::from_str::<EditStep>(expected).unwrap(), step);
    let recorded = numbered(step, 0, 1, &[0, 4]);
    let (_, bytes) = recorded.encode().unwrap();
    assert!(EditStep::is(&bytes));
    assert_eq!(serde_json::from_slice::<EditStep>(&bytes).unwrap(), recorded);
}
