use satchel_pam::parse;
use serde_json::{Value, json};

use super::*;

fn conversation(document: Conversation) -> MappedConversation {
    super::conversation(document).unwrap()
}

fn body_of(node: &ReportedNode) -> Body {
    Body::decode(&node.bytes).unwrap()
}

/// Builds a document with these messages and parses it as an import does.
fn document(messages: &Value, raw: &Value) -> Conversation {
    let text = json!({
        "schema": "portable-ai-memory-conversation", "schema_version": "1.0", "id": "c",
        "provider": {"name": "elsewhere"}, "temporal": {"created_at": "2026-01-01T00:00:00Z"},
        "messages": messages, "raw_metadata": raw,
    });
    parse::conversation(text.to_string().as_bytes()).0.unwrap()
}

fn message(id: &str, more: &Value) -> Value {
    let mut message = json!({"id": id, "role": "user", "created_at": "2026-01-01T00:00:00Z"});
    message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    message
}

fn parents(messages: &Value) -> Vec<(String, Option<String>)> {
    let mapped = conversation(document(messages, &json!({})));
    mapped.nodes.into_iter().map(|node| (node.id, node.parent)).collect()
}

fn pair(id: &str, parent: Option<&str>) -> (String, Option<String>) {
    (id.to_owned(), parent.map(str::to_owned))
}

#[test]
fn messages_without_links_follow_each_other() {
    let line = json!([
        message("a", &json!({})),
        message("b", &json!({"children_ids": []})),
        message("c", &json!({}))
    ]);
    assert_eq!(parents(&line), [pair("a", None), pair("b", Some("a")), pair("c", Some("b"))]);
}

#[test]
fn a_link_recorded_at_one_end_is_used() {
    let tree = json!([
        message("a", &json!({"children_ids": ["b", "c", "a"]})),
        message("b", &json!({"parent_id": "a"})),
        message("c", &json!({})),
        message("d", &json!({"parent_id": "gone"})),
        message("e", &json!({"parent_id": ""})),
    ]);
    let expected =
        [pair("a", None), pair("b", Some("a")), pair("c", Some("a")), pair("d", Some("c")), pair("e", None)];
    assert_eq!(parents(&tree), expected);
}

/// Our exports put their notes under one key; older ones put them among the provider's own fields.
#[test]
fn own_notes_are_removed_and_provider_fields_stay() {
    let noted = json!({"x": 1, "active_path": false, "satchel": {"active_path": true, "created_at_source": "parent"}});
    let messages = json!([message("a", &json!({"raw_metadata": noted}))]);
    let raw = json!({"current_message": "mine", "satchel": {"current_message": "a", "else": 1}});
    let mapped = conversation(document(&messages, &raw));
    let node = body_of(&mapped.nodes[0]);
    let text = |raw: &Option<RawObject>| raw.as_ref().map(|raw| raw.as_str().to_owned()).unwrap_or_default();
    assert_eq!(text(&node.raw_metadata), r#"{"active_path":false,"x":1}"#);
    assert_eq!(node.created_at, None);
    assert_eq!(text(&mapped.report.raw_metadata), r#"{"current_message":"mine","satchel":{"else":1}}"#);
    assert_eq!(mapped.report.current.as_deref(), Some("a"));
}

#[test]
fn notes_of_older_exports_are_removed() {
    let messages = json!([
        message("a", &json!({"raw_metadata": {"x": 1, "active_path": true}})),
        message(
            "b",
            &json!({"parent_id": "a", "raw_metadata": {"created_at_source": "parent", "active_path": true}})
        ),
        message(
            "c",
            &json!({"parent_id": "a", "created_at": "2026-01-02T00:00:00Z", "raw_metadata": {"active_path": false}})
        ),
    ]);
    let raw = json!({"y": 2, "created_at_source": "messages", "updated_at_source": "2025-01-01T00:00:00Z", "current_message": "b"});
    let mapped = conversation(document(&messages, &raw));
    let nodes: Vec<_> = mapped
        .nodes
        .iter()
        .map(|node| (body_of(node).raw_metadata.map(|raw| raw.as_str().to_owned()), node.time.is_some()))
        .collect();
    assert_eq!(nodes, [(Some("{\"x\":1}".to_owned()), true), (None, false), (None, true)]);
    let report = mapped.report;
    assert_eq!(report.raw_metadata.as_ref().map(RawObject::as_str), Some("{\"y\":2}"));
    assert_eq!((report.created_at, report.updated_at), (None, Some(1_735_689_600_000_000)));
    assert_eq!(report.current.as_deref(), Some("b"));
}

#[test]
fn the_current_message_is_set_only_if_an_export_named_it() {
    let messages = json!([
        message("a", &json!({"raw_metadata": {"active_path": true}})),
        message("b", &json!({"parent_id": "a", "raw_metadata": {"active_path": true}})),
    ]);
    let current = |raw: Value| conversation(document(&messages, &raw)).report.current;
    assert_eq!(current(json!({"current_message": "b"})).as_deref(), Some("b"));
    assert_eq!(current(json!({"current_message": "b", "current_message_source": "newest"})), None);
    assert_eq!(current(json!({"current_message": "gone"})), None);
    assert_eq!(current(json!({})).as_deref(), Some("b"), "by the path");
}

#[test]
fn provider_fields_with_the_names_of_notes_stay() {
    let messages =
        json!([message("a", &json!({"raw_metadata": {"active_path": "yes", "created_at_source": 7}}))]);
    let mapped = conversation(document(&messages, &json!({"current_message": 3})));
    assert_eq!(
        body_of(&mapped.nodes[0]).raw_metadata.as_ref().map(RawObject::as_str),
        Some(r#"{"active_path":"yes","created_at_source":7}"#)
    );
    assert_eq!(mapped.report.raw_metadata.as_ref().map(RawObject::as_str), Some(r#"{"current_message":3}"#));
}

#[test]
fn a_memory_with_invalid_labels_is_repaired() {
    let text = json!({
        "id": "m", "type": "fact", "custom_type": "x", "content": "Keeps bees",
        "content_hash": format!("sha256:{}", "0".repeat(64)), "tags": ["Good One", "fine", "fine"],
        "temporal": {"created_at": "2026-01-02T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"},
        "provenance": {"platform": "Open AI", "extractor": "mine"}, "confidence": {"current": 3.0},
        "metadata": {"big": 9_007_199_254_740_993_u64, "language": 5},
    });
    let (memory, _) = parse::memory(text.to_string().as_bytes());
    let mut memory = memory.unwrap();
    let notes = repair::memory(&mut memory, "$").unwrap();
    assert_eq!(notes.len(), 9, "{notes:?}");
    assert_eq!(
        (memory.tags.as_slice(), memory.provenance.platform.as_str()),
        (&["fine".to_owned()][..], "open-ai")
    );
    assert_eq!(memory.metadata[repair::ORIGINAL_KEY]["provenance.extractor"], "mine");
    let again = memory.clone();
    assert_eq!(repair::memory(&mut memory, "$"), Ok(Vec::new()), "what is right stays");
    assert_eq!(memory, again);
    memory.content = String::new();
    assert!(
        repair::memory(&mut memory, "$.memories[3]").unwrap_err().contains("$.memories[3].content is empty")
    );
}
