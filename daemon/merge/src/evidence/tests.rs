use proptest::prelude::*;
use satchel_pam::memory::MemoryType;

use super::*;

fn item(content: &str) -> Item {
    Item {
        key: None,
        content: content.to_owned(),
        memory_type: MemoryType::Fact,
        custom_type: None,
        status: None,
        scope: None,
        summary: None,
        tags: Vec::new(),
        confidence: None,
        created_at: None,
        updated_at: None,
        valid_from: None,
        valid_until: None,
        superseded_by: None,
        access: None,
        embedding_ref: None,
        metadata: None,
    }
}

fn evidence(id: &str, platform: &str, at: i64, claim: Claim) -> StoredEvidence {
    StoredEvidence {
        id: id.to_owned(),
        platform: platform.to_owned(),
        account: None,
        at,
        conversation: None,
        message: None,
        row: None,
        method: ExtractionMethod::ApiExport,
        extractor: "test/0.1.0".to_owned(),
        claim,
    }
}

fn status(derived: &DerivedMemories, content: &str) -> Status {
    derived.memories[&memory_id(&item(content))].status
}

fn slot(id: &str, at: i64, content: &str) -> StoredEvidence {
    list(id, at, vec![item(content)])
}

fn list(id: &str, at: i64, items: Vec<Item>) -> StoredEvidence {
    evidence(id, "chatgpt", at, Claim::Snapshot { series: "about".into(), items })
}

/// When, according to the provider, a memory was created and last changed.
fn own_times() -> impl Strategy<Value = (Option<i64>, Option<i64>)> {
    (prop::option::of(0_i64..6), prop::option::of(0_i64..6))
}

fn edit(id: &str, at: i64, edit: Edit) -> StoredEvidence {
    evidence(id, "claude", at, Claim::Edit { log: "edits".into(), sequence: 0, edit })
}

#[test]
fn a_replaced_statement_is_superseded_and_linked() {
    let derived = derive(&[slot("b", 2, "I live in Oslo"), slot("a", 1, "I live in Bergen")]);
    assert_eq!(status(&derived, "I live in Bergen"), Status::Superseded);
    assert_eq!(status(&derived, "I live in Oslo"), Status::Active);
    let old = &derived.memories[&memory_id(&item("I live in Bergen"))];
    let successor = memory_id(&item("I live in Oslo"));
    assert_eq!(old.temporal.superseded_by.as_deref(), Some(successor.as_str()));
    let edges: Vec<_> =
        derived.relations.values().map(|edge| (edge.from.as_str(), edge.to.as_str())).collect();
    assert_eq!(edges, [(successor.as_str(), old.id.as_str())]);
}

#[test]
fn a_successor_key_is_resolved_to_its_memory() {
    let replaced = |by: &str| Item {
        status: Some(Status::Superseded),
        superseded_by: Some(by.to_owned()),
        updated_at: Some(5),
        ..item("I live in Bergen")
    };
    let successor = memory_id(&item("I live in Oslo"));
    let keys = BTreeMap::from([("home-2".to_owned(), successor.clone())]);
    for (key, expected) in [("home-2", Some(successor.as_str())), ("home-9", None)] {
        let mut old = evidence("a", "toy", 1, Claim::Statement(replaced(key)));
        name_successors(&mut old, &keys);
        let new = evidence("b", "toy", 2, Claim::Statement(item("I live in Oslo")));
        let derived = derive(&[old, new]);
        let old = &derived.memories[&memory_id(&item("I live in Bergen"))];
        assert_eq!(old.temporal.superseded_by.as_deref(), expected);
        assert_eq!(derived.relations.len(), usize::from(expected.is_some()));
    }
}

#[test]
fn a_value_that_returns_is_active_again() {
    let derived = derive(&[slot("a", 1, "one"), slot("b", 2, "two"), slot("c", 3, "one")]);
    assert_eq!((status(&derived, "one"), status(&derived, "two")), (Status::Active, Status::Superseded));
}

#[test]
fn absence_from_a_longer_list_proves_nothing() {
    let list = |id: &str, at, texts: &[&str]| {
        evidence(
            id,
            "chatgpt",
            at,
            Claim::Snapshot { series: "set".into(), items: texts.iter().map(|text| item(text)).collect() },
        )
    };
    let derived = derive(&[list("a", 1, &["x", "y"]), list("b", 2, &["y"])]);
    assert_eq!((status(&derived, "x"), status(&derived, "y")), (Status::Active, Status::Active));
    let last_seen =
        |text: &str| derived.memories[&memory_id(&item(text))].metadata["satchel"]["last_seen"].clone();
    assert!(last_seen("x").as_str() < last_seen("y").as_str());
}

#[test]
fn the_providers_log_replaces_and_removes() {
    let derived = derive(&[
        edit("a", 1, Edit::Add(item("likes tea"))),
        edit("b", 2, Edit::Add(item("has a cat"))),
        edit("c", 3, Edit::Replace { line: Some(1), target: None, item: item("likes coffee") }),
        edit("d", 4, Edit::Remove { line: None, target: Some("Has a  cat".into()) }),
    ]);
    assert_eq!(status(&derived, "likes tea"), Status::Superseded);
    assert_eq!(status(&derived, "likes coffee"), Status::Active);
    assert_eq!(status(&derived, "has a cat"), Status::Retracted);
}

#[test]
fn the_same_statement_on_two_platforms_is_one_memory_with_more_confidence() {
    let alone = derive(&[evidence("a", "chatgpt", 1, Claim::Statement(item("Keeps bees")))]);
    let both = derive(&[
        evidence("a", "chatgpt", 1, Claim::Statement(item("Keeps bees"))),
        evidence("b", "claude", 2, Claim::Statement(item("keeps  BEES"))),
    ]);
    assert_eq!(both.memories.len(), 1);
    let sure = |derived: &DerivedMemories| {
        derived.memories.values().find_map(|memory| memory.confidence.as_ref()?.current)
    };
    assert!(sure(&both) > sure(&alone));
    let memory = both.memories.values().next().expect("one memory");
    assert_eq!(memory.metadata["satchel"]["evidence_count"], 2);
    assert_eq!(memory.provenance.platform, "chatgpt");
}

/// The evidence list of the only memory.
fn listed(derived: &DerivedMemories) -> Vec<serde_json::Value> {
    let memory = derived.memories.values().next().expect("one memory");
    memory.metadata["satchel"]["evidence"].as_array().expect("a list").clone()
}

#[test]
fn every_statement_is_listed() {
    let all: Vec<StoredEvidence> = (0..1_000)
        .map(|at| evidence(&format!("w{at:04}"), "chatgpt", at, Claim::Statement(item("Keeps bees"))))
        .collect();
    let listed = listed(&derive(&all));
    let ids: Vec<&str> = listed.iter().filter_map(|line| line["id"].as_str()).collect();
    assert_eq!(ids, all.iter().map(|evidence| evidence.id.as_str()).collect::<Vec<_>>());
}

#[test]
fn snapshots_of_one_series_share_a_line() {
    let all: Vec<StoredEvidence> =
        (1..=1_000).map(|at| slot(&format!("w{at:04}"), at, "Keeps bees")).collect();
    let derived = derive(&all);
    let expected = serde_json::json!([{
        "id": "w0001", "at": "1970-01-01T00:00:00.000001Z", "platform": "chatgpt",
        "count": 1_000, "last": {"id": "w1000", "at": "1970-01-01T00:00:00.001000Z"},
    }]);
    assert_eq!(serde_json::Value::from(listed(&derived)), expected);
    let memory = derived.memories.values().next().expect("one memory");
    assert_eq!(memory.metadata["satchel"]["evidence_count"], 1_000);
}

#[test]
fn a_dated_list_overrides_an_undated_one() {
    let dated = slot("b", 5, "Keeps bees");
    assert_eq!(derive(&[slot("a", 0, "Keeps bees"), dated.clone()]), derive(std::slice::from_ref(&dated)));
    let other = derive(&[dated, slot("a", 0, "Keeps goats")]);
    assert_eq!(status(&other, "Keeps bees"), Status::Active);
    assert_eq!(status(&other, "Keeps goats"), Status::Superseded);
    assert_eq!(status(&derive(&[slot("a", 0, "Keeps goats")]), "Keeps goats"), Status::Active);
}

/// The times of creation and of the last change of the memory with this `content`.
fn times(derived: &DerivedMemories, content: &str) -> (i64, Option<i64>) {
    let temporal = &derived.memories[&memory_id(&item(content))].temporal;
    (temporal.created_at.micros(), temporal.updated_at.map(satchel_pam::time::Timestamp::micros))
}

#[test]
fn a_listed_memory_has_the_times_of_its_provider() {
    let dated = |content: &str, created_at, updated_at| Item { created_at, updated_at, ..item(content) };
    let shown = list(
        "a",
        9,
        vec![
            dated("tea", Some(3), Some(5)),
            dated("rye", Some(4), Some(4)),
            dated("oat", None, Some(7)),
            dated("fig", Some(11), None),
            item("nut"),
        ],
    );
    let derived = derive(std::slice::from_ref(&shown));
    assert_eq!(times(&derived, "tea"), (3, Some(5)));
    assert_eq!(times(&derived, "rye"), (4, None));
    assert_eq!(times(&derived, "oat"), (9, None));
    assert_eq!(times(&derived, "fig"), (11, None));
    assert_eq!(times(&derived, "nut"), (9, None));
    // An older snapshot contains one of them, and a newer export says that it was changed.
    let older = evidence("b", "chatgpt", 2, Claim::Statement(item("tea")));
    let newer = list("c", 20, vec![dated("tea", Some(3), Some(15)), dated("rye", Some(4), Some(4))]);
    let derived = derive(&[newer, shown, older]);
    assert_eq!(times(&derived, "tea"), (2, Some(15)));
    assert_eq!(times(&derived, "rye"), (4, None));
}

#[test]
fn a_provider_time_overrides_an_unknown_one() {
    let undated = evidence("a", "grok", 0, Claim::Statement(item("tea")));
    assert_eq!(times(&derive(std::slice::from_ref(&undated)), "tea"), (0, None));
    let dated = evidence("b", "grok", 0, Claim::Statement(Item { created_at: Some(6), ..item("tea") }));
    assert_eq!(times(&derive(&[undated, dated]), "tea"), (6, None));
}

#[test]
fn accounts_are_listed_separately() {
    let mut other = slot("b", 2, "Keeps bees");
    other.account = Some("anna".into());
    let listed = listed(&derive(&[slot("a", 1, "Keeps bees"), other]));
    assert_eq!((listed.len(), &listed[1]["account"]), (2, &"anna".into()));
}

proptest! {
    #[test]
    fn derivation_does_not_depend_on_the_order_of_evidence(
        kinds in prop::collection::vec((0_u8..5, 0_u8..3, 0_i64..4, own_times()), 1..12),
        turn in 0_usize..12,
    ) {
        let texts = ["red", "green", "blue"];
        let all: Vec<StoredEvidence> = kinds
            .iter()
            .enumerate()
            .map(|(at, (kind, text, time, times))| {
                let (id, text) = (format!("w{at}"), texts[usize::from(*text)]);
                let item = |text: &str| Item { created_at: times.0, updated_at: times.1, ..item(text) };
                match kind {
                    0 => evidence(&id, "chatgpt", *time, Claim::Statement(item(text))),
                    1 => list(&id, *time, vec![item(text)]),
                    2 => edit(&id, *time, Edit::Add(item(text))),
                    3 => edit(&id, *time, Edit::Replace { line: Some(1), target: None, item: item(text) }),
                    _ => edit(&id, *time, Edit::Remove { line: None, target: Some(text.to_owned()) }),
                }
            })
            .collect();
        let mut other = all.clone();
        other.reverse();
        let pivot = turn % other.len();
        other.rotate_left(pivot);
        prop_assert_eq!(derive(&all), derive(&other));
        let derived = derive(&all);
        for memory in derived.memories.values() {
            prop_assert!(memory.temporal.updated_at.is_none_or(|at| at > memory.temporal.created_at));
            prop_assert!(memory.temporal.superseded_by.iter().all(|by| derived.memories.contains_key(by)));
        }
    }
}
