//! Tests of steps that no correct store writes: circles of undos, false version vectors, dots that are used twice.

use proptest::prelude::*;

use super::{
    concurrent::{numbered, vector},
    stores::{documents, origin},
    *,
};
use crate::causality::{Causality, Dot};

fn content(edit: &str, at: i64, text: &str) -> EditStep {
    set(edit, at, &[MemoryField::Content], memory("0", text))
}

#[test]
fn undos_in_a_circle_do_not_count() {
    // Each of the three claims to have seen the one that it undoes.
    let steps = [
        numbered(content("value", 1, "mine"), 3, 1, &[]),
        numbered(undo("x", 2, "y"), 0, 1, &[0, 1, 0, 1]),
        numbered(undo("y", 2, "z"), 1, 1, &[0, 0, 1, 1]),
        numbered(undo("z", 2, "x"), 2, 1, &[1, 0, 0, 1]),
        numbered(undo("z", 2, "value"), 2, 2, &[1, 0, 0, 1]),
    ];
    let effective: Vec<bool> = ["x", "y", "z", "value"].map(|edit| in_effect(&steps, edit)).into();
    assert_eq!(effective, [false, false, false, true]);
    assert_eq!(shown(&steps, &[]), ["active mine"]);
    // An undo from outside decides the circle.
    let from_outside = numbered(undo("w", 3, "y"), 3, 2, &[1, 1, 1, 1]);
    let steps: Vec<EditStep> = steps.into_iter().chain([from_outside]).collect();
    let effective: Vec<bool> = ["x", "y", "z", "value"].map(|edit| in_effect(&steps, edit)).into();
    assert_eq!(effective, [false, false, true, false]);
}

#[test]
fn an_undo_of_itself_or_of_what_it_has_not_seen_undoes_nothing() {
    let value = numbered(content("value", 1, "mine"), 0, 1, &[]);
    let itself = numbered(undo("value", 2, "value"), 0, 2, &[1]);
    let unseen = numbered(undo("u", 3, "value"), 1, 1, &[]);
    assert_eq!(shown(&[value, itself, unseen], &[]), ["active mine"]);
}

#[test]
fn an_undo_that_counts_wins_over_one_that_does_not_in_any_order() {
    // `u` undoes both `a` and `v`; `v`, which then does not count, undoes `a`, too.
    let steps = [
        numbered(content("a", 1, "mine"), 0, 1, &[]),
        numbered(undo("v", 2, "a"), 0, 2, &[1]),
        numbered(undo("u", 3, "a"), 0, 3, &[2]),
        numbered(undo("u", 3, "v"), 0, 4, &[3]),
    ];
    assert_eq!(shown(&steps, &[]), Vec::<String>::new());
    assert!(in_effect(&steps, "u") && !in_effect(&steps, "v") && !in_effect(&steps, "a"));
}

#[test]
fn a_false_claim_to_have_seen_everything_hides_no_later_edit() {
    let claim = numbered(content("x", 9, "claim"), 1, 1, &[u64::MAX]);
    let answer = numbered(content("a", 1, "answer"), 0, 5, &[4, 1]);
    // A third store has seen neither, so that the two are not merely left for lack of another value.
    let third = numbered(content("c", 2, "third"), 2, 1, &[]);
    assert_eq!(UserEdits::of(&[claim, answer, third]).conflicts()[0].values.len(), 3);
}

#[test]
fn steps_that_cover_each_other_in_a_circle_are_all_left() {
    let steps = [
        numbered(content("x", 1, "x"), 0, 1, &[0, 1]),
        numbered(content("y", 2, "y"), 1, 1, &[0, 0, 1]),
        numbered(content("z", 3, "z"), 2, 1, &[1]),
    ];
    assert_eq!(shown(&steps, &[]), ["active z"]);
    assert_eq!(UserEdits::of(&steps).conflicts()[0].values.len(), 3);
}

#[test]
fn a_dot_that_was_used_twice_loses_neither_value() {
    let steps = [numbered(content("a", 1, "one"), 0, 1, &[]), numbered(content("a", 1, "other"), 0, 1, &[])];
    assert_eq!(UserEdits::of(&steps).conflicts()[0].values.len(), 2);
}

/// Returns a step with arbitrary causality.
fn any_step() -> impl Strategy<Value = EditStep> {
    let causality = (0_u8..4, 0_usize..3, 1_u64..4, prop::collection::vec(0_u64..5, 3));
    (0_u8..6, 0_u8..6, 0_usize..10, 0_i64..4, causality).prop_map(
        |(edit, target, field, at, (kind, store, counter, seen))| {
            let (edit, target) = (format!("edit-{edit}"), format!("edit-{target}"));
            let patch =
                set(&edit, at, &[MemoryField::ALL[field]], memory(&(target.len() % 3).to_string(), &target));
            let step = if field < 5 { undo(&edit, at, &target) } else { patch };
            let dot = Dot::new(origin(store), counter).unwrap();
            let causality = match kind {
                0 => Causality::Unnumbered,
                1 => Causality::assigned([dot]),
                _ => Causality::Recorded { dot, seen: vector(&seen) },
            };
            EditStep { causality, ..step }
        },
    )
}

proptest! {
    #[test]
    fn whatever_steps_claim_the_result_depends_on_their_set_alone(
        steps in prop::collection::vec(any_step(), 1..14),
        turn in any::<prop::sample::Index>(),
    ) {
        let derive = |steps: &[EditStep]| {
            let edits = UserEdits::of(steps);
            let derived = derive_with(&[], &documents(), &edits);
            (edits, derived)
        };
        let mut turned = steps.clone();
        turned.rotate_left(turn.index(steps.len()));
        turned.extend(steps.iter().rev().cloned());
        prop_assert_eq!(derive(&turned), derive(&steps));
        let edits: BTreeSet<&String> = steps.iter().map(|step| &step.edit_id).collect();
        for edit in edits {
            prop_assert_eq!(in_effect(&turned, edit), in_effect(&steps, edit));
        }
    }
}
