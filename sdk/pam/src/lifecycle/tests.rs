//! Transitions, validity, decay and successors.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{
    hash::ContentHash,
    memory::{Confidence, DecayModel, MemoryType, Provenance},
    relation::{Relation, RelationType},
};

const DAY: i64 = 86_400_000_000;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn after(days: i64) -> Timestamp {
    Timestamp::saturating(at("2026-01-01T00:00:00Z").micros() + days * DAY)
}

fn memory(id: &str, status: Status, superseded_by: Option<&str>) -> Memory {
    Memory {
        id: id.to_owned(),
        memory_type: MemoryType::Fact,
        custom_type: None,
        status,
        content: id.to_owned(),
        content_hash: ContentHash::of(id),
        summary: None,
        tags: Vec::new(),
        confidence: None,
        temporal: Temporal {
            created_at: after(0),
            updated_at: None,
            valid_from: None,
            valid_until: None,
            superseded_by: superseded_by.map(str::to_owned),
        },
        provenance: Provenance { platform: "claude".to_owned(), ..Provenance::default() },
        access: None,
        embedding_ref: None,
        metadata: serde_json::Map::new(),
    }
}

fn supersedes(from: &str, to: &str) -> Relation {
    Relation {
        id: format!("{from}>{to}"),
        from: from.to_owned(),
        to: to.to_owned(),
        relation_type: RelationType::Supersedes,
        confidence: None,
        created_at: after(0),
    }
}

fn scored(model: Option<DecayModel>, current: f64) -> Memory {
    let mut memory = memory("m", Status::Active, None);
    memory.confidence =
        Some(Confidence { current: Some(current), decay_model: model, ..Confidence::default() });
    memory
}

/// Section 7.1, transition by transition.
#[test]
fn only_the_transitions_of_the_specification_are_allowed() {
    use Status::{Active, Archived, Deprecated, Retracted, Superseded};
    let transitions = [
        (Active, Superseded),
        (Active, Deprecated),
        (Active, Retracted),
        (Active, Archived),
        (Superseded, Archived),
        (Deprecated, Retracted),
        (Deprecated, Archived),
    ];
    for &from in Status::ALL {
        for &to in Status::ALL {
            let expected = from == to || transitions.contains(&(from, to));
            assert_eq!(check_transition(from, to).is_ok(), expected, "{from} → {to}");
        }
    }
}

#[test]
fn the_error_names_the_transition_and_the_allowed_ones() {
    let message = |from, to| check_transition(from, to).unwrap_err().to_string();
    assert_eq!(
        message(Status::Deprecated, Status::Active),
        "deprecated → active is not allowed: deprecated may become retracted or archived"
    );
    assert_eq!(
        message(Status::Retracted, Status::Active),
        "retracted → active is not allowed: retracted is final; add a new memory instead"
    );
}

#[test]
fn validity_includes_its_start_and_excludes_its_end() {
    let mut temporal = memory("m", Status::Active, None).temporal;
    assert_eq!(valid_at(&temporal, Timestamp::EPOCH), Validity::Valid);
    temporal.valid_from = Some(at("2026-03-01T01:00:00+01:00"));
    temporal.valid_until = Some(at("2026-04-01T00:00:00Z"));
    for (text, expected) in [
        ("2026-02-28T23:59:59.999999Z", Validity::NotYet),
        ("2026-03-01T00:00:00Z", Validity::Valid),
        ("2026-03-31T23:59:59.999999Z", Validity::Valid),
        ("2026-04-01T00:00:00Z", Validity::Expired),
        ("2026-04-01T01:00:00+02:00", Validity::Valid),
    ] {
        assert_eq!(valid_at(&temporal, at(text)), expected, "{text}");
    }
    temporal.valid_until = temporal.valid_from;
    assert_ne!(valid_at(&temporal, at("2026-03-01T00:00:00Z")), Validity::Valid);
}

#[test]
fn only_an_active_and_valid_memory_is_current() {
    for &status in Status::ALL {
        assert_eq!(current_at(&memory("m", status, None), after(1)), status == Status::Active);
    }
    let mut expired = memory("m", Status::Active, None);
    expired.temporal.valid_until = Some(after(1));
    assert!(!current_at(&expired, after(1)));
}

#[test]
#[expect(clippy::float_cmp, reason = "halves and quarters are exact")]
fn scores_decay_by_their_model() {
    let lives = HalfLives::default();
    let score = |model, days| decayed(&scored(model, 0.8), after(days), &lives).unwrap();
    assert_eq!(score(Some(DecayModel::TimeExponential), 0), 0.8);
    assert_eq!(score(Some(DecayModel::TimeExponential), 180), 0.4);
    assert_eq!(score(Some(DecayModel::TimeExponential), 360), 0.2);
    assert_eq!(score(Some(DecayModel::TimeLinear), 365), 0.4);
    assert_eq!(score(Some(DecayModel::TimeLinear), 730), 0.0);
    assert_eq!(score(Some(DecayModel::TimeLinear), 100_000), 0.0);
    assert_eq!(score(Some(DecayModel::None), 100_000), 0.8);
    assert_eq!(score(None, 100_000), 0.8);
    assert_eq!(score(Some(DecayModel::TimeLinear), -5), 0.8);
}

#[test]
fn decay_starts_at_the_last_reinforcement() {
    let lives = HalfLives { linear: Duration::from_hours(24), exponential: Duration::ZERO };
    let mut one = scored(Some(DecayModel::TimeLinear), 0.8);
    one.confidence.as_mut().unwrap().last_reinforced = Some(after(10));
    assert_eq!(decayed(&one, after(10), &lives), Some(0.8));
    assert_eq!(decayed(&one, after(11), &lives), Some(0.4));
    let gone = scored(Some(DecayModel::TimeExponential), 0.8);
    assert_eq!(decayed(&gone, after(0), &lives), Some(0.8));
    assert_eq!(decayed(&gone, after(1), &lives), Some(0.0));
    assert_eq!(decayed(&memory("m", Status::Active, None), after(1), &lives), None);
    let mut initial = scored(None, 0.0);
    initial.confidence = Some(Confidence { initial: Some(0.3), ..Confidence::default() });
    assert_eq!(decayed(&initial, after(1), &lives), Some(0.3));
}

#[test]
fn reinforcement_raises_the_score_and_restarts_the_decay() {
    let confidence = Confidence { initial: Some(0.5), ..Confidence::default() };
    let once = reinforced(&confidence, after(3));
    assert_eq!((once.initial, once.current, once.last_reinforced), (Some(0.5), Some(0.55), Some(after(3))));
    let twice = reinforced(&once, after(1));
    assert_eq!((twice.current, twice.last_reinforced), (Some(0.595), Some(after(3))));
    let unscored = reinforced(&Confidence::default(), after(1));
    assert_eq!((unscored.current, unscored.last_reinforced), (None, Some(after(1))));
    let odd = Confidence { current: Some(f64::NAN), ..Confidence::default() };
    assert!(reinforced(&odd, after(1)).current.is_some());
}

proptest! {
    #[test]
    fn a_score_only_falls_and_only_rises_by_reinforcement(
        stored in 0.0..=1.0_f64,
        model in prop::sample::select(DecayModel::ALL),
        (early, late) in (0..4000_i64, 0..4000_i64),
    ) {
        let (early, late) = (early.min(late), early.max(late));
        let lives = HalfLives::default();
        let one = scored(Some(model), stored);
        let (before, later) =
            (decayed(&one, after(early), &lives).unwrap(), decayed(&one, after(late), &lives).unwrap());
        prop_assert!(later <= before && before <= stored && later >= 0.0);
        let raised = reinforced(one.confidence.as_ref().unwrap(), after(late)).current.unwrap();
        prop_assert!(raised >= stored && raised <= 1.0);
    }
}

fn found(memories: &[Memory], relations: &[Relation]) -> Vec<(String, InconsistencyKind)> {
    inconsistencies(memories, relations).into_iter().map(|found| (found.memory, found.kind)).collect()
}

#[test]
fn the_records_of_a_replacement_are_consistent() {
    let replaced = supersede(&memory("old", Status::Active, None), "new", after(2)).unwrap();
    assert_eq!(replaced.memory.status, Status::Superseded);
    let memories = [replaced.memory, memory("new", Status::Active, None)];
    assert_eq!(found(&memories, &[replaced.relation]), []);
}

#[test]
fn a_replacement_checks_status_and_successor() {
    for status in [Status::Archived, Status::Retracted, Status::Deprecated] {
        let refused = supersede(&memory("old", status, None), "new", after(2)).unwrap_err();
        assert!(matches!(refused, SupersedeError::Transition { .. }) && refused.to_string().contains("→"));
    }
    let done = memory("old", Status::Superseded, Some("new"));
    assert!(supersede(&done, "new", after(2)).is_ok());
    assert!(matches!(supersede(&done, "other", after(2)), Err(SupersedeError::Already { .. })));
    let own = supersede(&memory("old", Status::Active, None), "old", after(2));
    assert_eq!(own, Err(SupersedeError::Itself("old".to_owned())));
}

#[test]
fn each_inconsistency_is_found() {
    use Status::{Active, Archived, Superseded};
    let one = |problem| vec![("a".to_owned(), problem)];
    let new = || memory("b", Active, None);
    assert_eq!(found(&[memory("a", Superseded, None), new()], &[]), one(InconsistencyKind::NoSuccessor));
    assert_eq!(
        found(&[memory("a", Superseded, Some("b")), new()], &[]),
        one(InconsistencyKind::NoRelation("b".to_owned()))
    );
    let drawn = [supersedes("b", "a")];
    assert_eq!(found(&[memory("a", Active, Some("b")), new()], &drawn), one(InconsistencyKind::StillActive));
    assert_eq!(found(&[memory("a", Archived, Some("b")), new()], &drawn), []);
    assert_eq!(
        found(&[memory("a", Superseded, Some("c"))], &[supersedes("c", "a")]),
        one(InconsistencyKind::UnknownSuccessor("c".to_owned()))
    );
    assert_eq!(
        found(&[memory("a", Active, None), new()], &drawn),
        one(InconsistencyKind::OtherSuccessor("b".to_owned()))
    );
    assert_eq!(found(&[memory("a", Archived, Some("a"))], &[]), one(InconsistencyKind::OwnSuccessor));
}

#[test]
fn two_successors_of_one_memory_are_consistent() {
    let memories = [
        memory("a", Status::Superseded, Some("c")),
        memory("b", Status::Active, None),
        memory("c", Status::Active, None),
    ];
    assert_eq!(found(&memories, &[supersedes("b", "a"), supersedes("c", "a")]), []);
}

#[test]
fn cycles_of_successors_are_found_and_what_leads_into_them_is_not_on_them() {
    let links = [("0", "1"), ("1", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("e", "f")];
    let memories: Vec<Memory> = links
        .iter()
        .map(|(old, new)| memory(old, Status::Superseded, Some(new)))
        .chain([memory("f", Status::Active, None)])
        .collect();
    let relations: Vec<Relation> = links.iter().map(|(old, new)| supersedes(new, old)).collect();
    let expected: Vec<_> = ["a", "b", "c"].map(|id| (id.to_owned(), InconsistencyKind::Cycle)).into();
    assert_eq!(found(&memories, &relations), expected);
}

#[test]
fn a_long_chain_of_successors_takes_no_long_time() {
    let name = |at: u32| format!("{at:06}");
    let memories: Vec<Memory> =
        (0..20_000).map(|at| memory(&name(at), Status::Superseded, Some(&name(at + 1)))).collect();
    let found = found(&memories, &[]);
    assert_eq!(found.len(), 20_001, "no relation each, and one unknown successor");
}
