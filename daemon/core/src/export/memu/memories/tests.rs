//! Round trips of the memories in the importer's fixtures.

use std::{collections::BTreeMap, fs, path::PathBuf};

use satchel_pam::{
    memory::{Provenance, Temporal},
    record::Line,
};

use super::*;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../plugins/memu/fixtures").join(name)
}

fn read(path: PathBuf) -> Value {
    serde_json::from_slice(&fs::read(path).expect("the fixture is there")).expect("it is JSON")
}

/// Returns the importer's expected output for a fixture.
fn lines(name: &str) -> Vec<Line> {
    let exports = read(fixture(name).join("expected.json"));
    let lines =
        exports.as_array().into_iter().flatten().filter_map(|export| export["lines"].as_array()).flatten();
    lines.map(|line| serde_json::from_value(line.clone()).expect("it is a line")).collect()
}

fn stored_evidence(lines: &[Line]) -> Vec<StoredEvidence> {
    let mut found = BTreeMap::new();
    for line in lines {
        let Line::Evidence(evidence) = line else { continue };
        let stored = StoredEvidence {
            id: evidence.id.clone(),
            platform: PLATFORM.to_owned(),
            account: evidence.account.clone(),
            at: evidence.at.unwrap_or_default(),
            conversation: None,
            message: None,
            row: None,
            method: evidence.extraction_method,
            extractor: "memu/0.1.0".to_owned(),
            claim: evidence.claim.clone(),
        };
        found.insert(evidence.id.clone(), stored);
    }
    found.into_values().collect()
}

/// Returns texts and vectors by memory, as a store with no other data has them.
fn store(
    lines: &[Line],
    evidence: &[StoredEvidence],
) -> (BTreeMap<String, String>, BTreeMap<String, Vec<f64>>) {
    let items: Vec<&Item> = evidence.iter().flat_map(|one| items_of(&one.claim)).collect();
    let texts = items.iter().map(|item| (memory_id(item), item.content.clone())).collect();
    let mut vectors = BTreeMap::new();
    for line in lines {
        let Line::Embedding(vector) = line else { continue };
        let item =
            items.iter().find(|item| item.key.as_ref() == Some(&vector.memory)).expect("an item has the key");
        vectors.insert(memory_id(item), vector.vector.clone().unwrap_or_default());
    }
    (texts, vectors)
}

fn view(name: &str, edit: impl Fn(&mut BTreeMap<String, String>)) -> MemuLists {
    let lines = lines(name);
    let evidence = stored_evidence(&lines);
    let (mut texts, vectors) = store(&lines, &evidence);
    edit(&mut texts);
    let sources = MemuSources { shown: &|id| texts.get(id).cloned(), vector: &|id| vectors.get(id).cloned() };
    lists(&evidence, &sources)
}

fn input(name: &str, file: &str) -> Value {
    read(fixture(name).join("input").join(file))
}

#[test]
fn a_memory_round_trips() {
    for name in ["memory-answer", "memory-answer-joined"] {
        let view = view(name, |_| {});
        assert_eq!(Value::from(view.memories), json!([input(name, "memory.json")]), "{name}");
        assert!(view.rows.is_empty());
    }
    let bare = view("bare-lists", |_| {});
    assert_eq!(Value::from(bare.memories), json!([input("bare-lists", "core.json")]));
}

#[test]
fn rows_and_their_vectors_round_trip() {
    let view = view("rows-in-one-dump", |_| {});
    let mut dump = input("rows-in-one-dump", "dump.json");
    // The vector that was stored as text is written as a list with the same numbers.
    dump["memory_contents"][1]["content_vector"] = json!([0.5, 0.5, 1.0]);
    let by_id = |rows: &[Value]| -> BTreeMap<String, Value> {
        rows.iter().map(|row| (row["content_id"].to_string(), row.clone())).collect()
    };
    let rows: Vec<Value> = view.rows.into_iter().map(Value::from).collect();
    assert_eq!(by_id(&rows), by_id(dump["memory_contents"].as_array().expect("a list")));
    for (key, value) in dump["memories"][0].as_object().expect("an object") {
        assert_eq!(view.memories[0].get(key), Some(value), "{key}");
    }
}

#[test]
fn edited_and_retracted_memories_are_exported_as_edited() {
    let changed = view("memory-answer-joined", |texts| {
        texts.retain(|_, text| text != "Patient with details");
        for text in texts.values_mut().filter(|text| text.starts_with("Ines Falk")) {
            *text = "Ines Falk mends clocks".to_owned();
        }
    });
    let memory = &changed.memories[0];
    assert_eq!(memory["profile_content"], "Ines Falk mends clocks\nSpeaks Danish and Portuguese");
    assert_eq!(memory["mind_content"], "Enjoys explaining her craft");
}

#[test]
fn the_newest_state_of_a_list_is_written() {
    let view = view("one-event-does-not-replace-another", |_| {});
    assert_eq!(view.memories.len(), 1);
    assert_eq!(view.memories[0]["event_content"], json!(["Closed the old workshop"]));
    assert_eq!(view.memories[0]["updated_at"], "2025-07-09T00:00:00Z");
}

fn memory(id: &str, memory_type: MemoryType, status: Status) -> Memory {
    Memory {
        id: id.to_owned(),
        memory_type,
        custom_type: None,
        status,
        content: id.to_uppercase(),
        content_hash: ContentHash::of(id),
        summary: None,
        tags: Vec::new(),
        confidence: None,
        temporal: Temporal {
            created_at: Timestamp::saturating(0),
            updated_at: None,
            valid_from: None,
            valid_until: None,
            superseded_by: None,
        },
        provenance: Provenance::default(),
        access: None,
        embedding_ref: None,
        metadata: Object::new(),
    }
}

#[test]
fn memories_of_other_assistants_are_grouped_by_type() {
    let memories = [
        memory("a", MemoryType::Preference, Status::Active),
        memory("b", MemoryType::Goal, Status::Active),
        memory("c", MemoryType::Fact, Status::Retracted),
    ];
    let mut all = OtherMemories::default();
    memories.iter().for_each(|memory| all.add(memory));
    assert_eq!(all.count(), 2);
    let object = all.object("nora").expect("there is something");
    assert_eq!(object["profile_content"], json!(["A"]));
    assert_eq!(object["event_content"], json!(["B"]));
    assert_eq!((&object["mind_content"], &object["user_id"]), (&json!([]), &json!("nora")));
    assert_eq!(OtherMemories::default().object("nora"), None);
}
