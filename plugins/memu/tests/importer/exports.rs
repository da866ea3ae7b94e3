//! Rows of the database with vectors, and the sample exports of other providers beside the repository.

use satchel_importer::{
    Bundle, Claim, EmbeddingRecord, Item, Line,
    pam::{hash::ContentHash, memory::MemoryType},
    testkit::{Sample, evidence, produce, skips, warnings},
};
use satchel_plugin_memu::MemU;
use serde_json::{Value, json};

fn import(files: &[(&str, Value)]) -> Vec<Line> {
    let bundle =
        Bundle::from_files(files.iter().map(|(name, value)| (*name, value.to_string().into_bytes())));
    let mut exports = produce::<MemU>(&bundle).expect("detection answers").exports;
    assert_eq!(exports.len(), 1, "one export is found");
    assert_eq!(exports[0].error, None, "the export is read");
    exports.remove(0).lines
}

fn embeddings(lines: &[Line]) -> Vec<&EmbeddingRecord> {
    lines
        .iter()
        .filter_map(|line| if let Line::Embedding(vector) = line { Some(vector) } else { None })
        .collect()
}

fn items(lines: &[Line]) -> Vec<&Item> {
    let mut found = Vec::new();
    for evidence in evidence(lines) {
        match &evidence.claim {
            Claim::Statement(item) => found.push(item),
            Claim::Snapshot { items, .. } => found.extend(items),
            Claim::Edit { .. } => {}
        }
    }
    found
}

fn numbers() -> Vec<f64> {
    (0..1536).map(|number| f64::from(number) / 7.0 - 100.0).collect()
}

fn memory() -> Value {
    json!({ "memory_id": "m-1", "agent_id": "agent_harbour", "user_id": "user_ines",
        "created_at": "2025-07-01T10:00:00Z", "updated_at": "2025-07-03T09:30:00Z" })
}

fn row(kind: &str, entries: &[&str], vector: Value) -> Value {
    json!({ "content_id": format!("c-{kind}"), "memory_id": "m-1", "content_type": kind, "content_data": entries,
        "content_text": entries.join("\n"), "content_vector": vector })
}

#[test]
fn the_vector_of_a_row_with_one_entry_belongs_to_that_entry() {
    for vector in [json!(numbers()), json!(json!(numbers()).to_string())] {
        let rows = json!([row("mind", &["Patient with details"], vector)]);
        let lines = import(&[("memories.json", json!([memory()])), ("memory_contents.json", rows)]);
        let (items, vectors) = (items(&lines), embeddings(&lines));
        assert_eq!((items.len(), vectors.len()), (1, 1));
        assert_eq!(items[0].key.as_deref(), Some(vectors[0].memory.as_str()));
        assert_eq!(vectors[0].model, "text-embedding-ada-002");
        assert_eq!((vectors[0].dimensions, vectors[0].vector.as_deref()), (1536, Some(numbers().as_slice())));
        assert_eq!(vectors[0].created_at, Some(1_751_535_000_000_000));
        assert!(skips(&lines).is_empty() && warnings(&lines).is_empty());
    }
}

#[test]
fn the_vector_of_a_longer_row_belongs_to_its_whole_text() {
    let entries = ["Ines Falk repairs clocks", "Speaks Danish and Portuguese"];
    let rows = json!([row("profile", &entries, json!(numbers()))]);
    let lines = import(&[("memories.json", json!([memory()])), ("memory_contents.json", rows)]);
    let items = items(&lines);
    assert_eq!(
        items.iter().map(|item| item.memory_type).collect::<Vec<_>>(),
        [MemoryType::Fact, MemoryType::Fact, MemoryType::Identity]
    );
    assert_eq!(items[2].content, entries.join("\n"));
    assert_eq!(items[2].key.as_deref(), Some(embeddings(&lines)[0].memory.as_str()));
}

#[test]
fn a_row_takes_agent_user_and_time_from_its_memory() {
    let rows = json!([row("event", &["Opened a workshop"], Value::Null)]);
    let lines = import(&[("a_contents.json", rows), ("b_memories.json", json!([memory()]))]);
    let evidence = evidence(&lines);
    assert_eq!(evidence[0].account.as_deref(), Some("user_ines"));
    assert_eq!(evidence[0].at, Some(1_751_535_000_000_000));
    assert!(skips(&lines).is_empty(), "the row of the memory is used");
}

#[test]
fn a_memory_and_its_rows_of_contents_are_the_same_evidence() {
    let entries = ["Ines Falk repairs clocks", "Speaks Danish and Portuguese"];
    let mut whole = memory();
    whole["profile_content"] = json!(entries);
    let rows = json!([row("profile", &entries, Value::Null)]);
    let lines = import(&[("memories.json", json!([whole])), ("memory_contents.json", rows)]);
    let evidence = evidence(&lines);
    assert_eq!(evidence.len(), 2);
    assert_eq!(evidence[0].id, evidence[1].id);
}

#[test]
fn a_list_and_its_lines_are_the_same_memories() {
    let (mut list, mut joined) = (memory(), memory());
    list["mind_content"] = json!(["Patient with details", "Enjoys explaining her craft"]);
    joined["mind_content"] = json!("Patient with details\nEnjoys explaining her craft");
    let hashes = |value: Value| {
        let lines = import(&[("memory.json", value)]);
        let ids: Vec<String> = evidence(&lines).iter().map(|evidence| evidence.id.clone()).collect();
        (ids, items(&lines).iter().map(|item| ContentHash::of(&item.content)).collect::<Vec<_>>())
    };
    assert_eq!(hashes(list), hashes(joined));
}

#[test]
fn exports_of_other_providers_are_not_claimed() {
    let Some(samples) = Sample::read::<MemU>(env!("CARGO_MANIFEST_DIR"), "") else { return };
    assert!(samples.files().len() > 20);
    assert_eq!(samples.exports, []);
}
