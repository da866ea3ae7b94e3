//! The rules of conversations and embeddings, and of the documents of a bundle against each other.

use satchel_pam::{
    issue::{Issue, Severity},
    parse, validate,
};
use serde_json::{Value, json};

use super::{
    Change::{self, Remove, Set},
    ERROR, WARNING, apply, check,
};
use crate::full;

fn conversation_issues(bytes: &[u8]) -> Vec<Issue> {
    let (document, mut issues) = parse::conversation(bytes);
    issues.extend(document.iter().flat_map(validate::conversation));
    issues
}

fn embeddings_issues(bytes: &[u8]) -> Vec<Issue> {
    let (document, mut issues) = parse::embeddings(bytes);
    issues.extend(document.iter().flat_map(validate::embeddings));
    issues
}

#[test]
fn conversations() {
    check(
        &full::conversation_file(),
        vec![
            (Set("/schema", json!("portable-ai-memory")), ERROR, "R-3.1", "$.schema"),
            (Remove("/id"), ERROR, "R-25.1", "$.id"),
            (Remove("/provider"), ERROR, "R-25.1", "$.provider"),
            (Remove("/temporal"), ERROR, "R-25.1", "$.temporal"),
            (Remove("/messages"), ERROR, "R-25.1", "$.messages"),
            (Remove("/messages/0/created_at"), ERROR, "R-25.1", "$.messages[0].created_at"),
            (Set("/id", json!("")), ERROR, "R-25.1", "$.id"),
            (Set("/extra", json!(1)), ERROR, "R-3.9", "$.extra"),
            (Set("/messages/0/extra", json!(1)), ERROR, "R-3.9", "$.messages[0].extra"),
            (Set("/provider/name", json!("OpenAI")), ERROR, "R-11.1", "$.provider.name"),
            (Set("/provider/name", json!("anthropic")), WARNING, "R-11.3", "$.provider.name"),
            (Set("/tags/0", json!("A")), ERROR, "R-4.4", "$.tags[0]"),
            (Set("/messages/1/id", json!("m1")), ERROR, "R-25.2", "$.messages[1].id"),
            (Set("/messages/1/parent_id", json!("x")), WARNING, "R-25.3", "$.messages[1].parent_id"),
            (
                Set("/messages/0/children_ids/-", json!("x")),
                WARNING,
                "R-25.3",
                "$.messages[0].children_ids[2]",
            ),
            (Set("/messages/0/children_ids", json!(["m2"])), WARNING, "R-25.3", "$.messages[2].parent_id"),
            (Set("/messages/2/parent_id", json!("m2")), WARNING, "R-25.3", "$.messages[0].children_ids[1]"),
            (Set("/messages/0/parent_id", json!("m1")), ERROR, "R-25.3", "$.messages[0].parent_id"),
            (Set("/messages/0/parent_id", json!("m2")), ERROR, "R-25.3", "$.messages[0].parent_id"),
            (Set("/messages/0/children_ids", json!(null)), ERROR, "R-25.3", "$.messages[0].children_ids"),
            (Set("/messages/0/role", json!("human")), ERROR, "R-3.9", "$.messages[0].role"),
            (Remove("/messages/0/role"), ERROR, "R-25.4", "$.messages[0].role"),
            (Set("/messages/0/content", json!(null)), ERROR, "R-25.5", "$.messages[0].content"),
            (Set("/messages/0/content", json!("text")), ERROR, "R-25.5", "$.messages[0].content"),
            (
                Set("/messages/0/content/type", json!("multipart")),
                WARNING,
                "R-25.5",
                "$.messages[0].content.parts",
            ),
            (Remove("/messages/0/content/text"), WARNING, "R-25.5", "$.messages[0].content.text"),
            (Set("/import_metadata", json!(null)), ERROR, "R-25.6", "$.import_metadata"),
            (
                Set("/import_metadata/importer", json!("satchel")),
                ERROR,
                "R-25.9",
                "$.import_metadata.importer",
            ),
            (
                Set("/import_metadata/source_checksum", json!("md5:1")),
                ERROR,
                "R-25.9",
                "$.import_metadata.source_checksum",
            ),
            (Set("/raw_metadata", json!(null)), ERROR, "R-25.8", "$.raw_metadata"),
            (Set("/raw_metadata", json!([])), ERROR, "R-25.8", "$.raw_metadata"),
            (
                Set("/messages/1/attachments/0/type", json!("hologram")),
                ERROR,
                "R-3.9",
                "$.messages[1].attachments[0].type",
            ),
            (
                Set("/messages/1/attachments/0/size_bytes", json!(1.5)),
                ERROR,
                "R-25.9",
                "$.messages[1].attachments[0].size_bytes",
            ),
            (Set("/messages/1/token_count", json!("7")), ERROR, "R-25.9", "$.messages[1].token_count"),
            (
                Set("/messages/1/tool_calls/0/name", json!("")),
                ERROR,
                "R-25.9",
                "$.messages[1].tool_calls[0].name",
            ),
            (
                Set("/messages/1/tool_calls/0/input", json!([1])),
                ERROR,
                "R-25.9",
                "$.messages[1].tool_calls[0].input",
            ),
            (
                Set("/messages/1/citations/0/url", json!("here")),
                WARNING,
                "A-28",
                "$.messages[1].citations[0].url",
            ),
            (
                Set("/temporal/updated_at", json!("2025-01-01T00:00:00Z")),
                WARNING,
                "SDK-temporal",
                "$.temporal.updated_at",
            ),
        ],
        conversation_issues,
    );
}

#[test]
fn linear_conversations_are_in_order() {
    let mut conversation = full::conversation();
    conversation.messages.truncate(2);
    conversation.messages[0].children_ids.truncate(1);
    conversation.messages[0].created_at = full::at("2026-01-01T00:00:01Z");
    let issues = validate::conversation(&conversation);
    assert_eq!(issues.len(), 1);
    assert_eq!((issues[0].rule, issues[0].path.as_str()), ("R-25.10", "$.messages[1].created_at"));
}

#[test]
fn embeddings() {
    check(
        &full::embeddings().to_json().unwrap(),
        vec![
            (Remove("/embeddings"), ERROR, "R-12.7", "$.embeddings"),
            (Set("/embeddings/1/memory_id", json!("a-full")), ERROR, "R-12.6", "$.embeddings[1].memory_id"),
            (Set("/embeddings/1/id", json!("vector-1")), ERROR, "R-4.6", "$.embeddings[1].id"),
            (Set("/embeddings/0/model", json!("")), ERROR, "R-12.7", "$.embeddings[0].model"),
            (Set("/embeddings/0/dimensions", json!(0)), ERROR, "R-12.7", "$.embeddings[0].dimensions"),
            (Set("/embeddings/0/dimensions", json!(3)), ERROR, "R-12.7", "$.embeddings[0].vector"),
            (Set("/embeddings/0/vector/0", json!("x")), ERROR, "R-12.7", "$.embeddings[0].vector[0]"),
            (Set("/embeddings/1/storage/ref", json!("")), ERROR, "R-12.7", "$.embeddings[1].storage.ref"),
            (Set("/embeddings/1/extra", json!("")), ERROR, "R-3.9", "$.embeddings[1].extra"),
        ],
        embeddings_issues,
    );
}

/// The bundle of `full` after a change to one of its three files, and the issue.
fn check_bundle(file: usize, change: Change, severity: Severity, rule: &str, path: &str) {
    let mut files = [full::store(), full::conversation_file(), full::embeddings().to_json().unwrap()];
    let mut document: Value = serde_json::from_slice(&files[file]).unwrap();
    apply(&mut document, change);
    files[file] = document.to_string().into_bytes();
    let issues =
        validate::bundle(&files[0], [("conversations/conv-1.json", &*files[1])], Some(&files[2])).issues;
    let found = issues.iter().any(|one| one.severity == severity && one.rule == rule && one.path == path);
    assert!(found, "{severity:?} {rule} {path} is not among {issues:#?}");
}

#[test]
fn documents_against_each_other() {
    let conversation = |path: &str| format!("conversations/conv-1.json:{path}");
    check_bundle(
        0,
        Set("/conversations_index/0/title", json!("Wasps")),
        ERROR,
        "R-14.5",
        &conversation("$.title"),
    );
    check_bundle(
        0,
        Set("/conversations_index/0/message_count", json!(9)),
        ERROR,
        "R-14.5",
        &conversation("$.messages"),
    );
    check_bundle(
        0,
        Set("/conversations_index/0/platform", json!("claude")),
        ERROR,
        "R-14.5",
        &conversation("$.provider.name"),
    );
    check_bundle(1, Set("/id", json!("conv-2")), ERROR, "R-14.5", &conversation("$.id"));
    check_bundle(1, Set("/schema_version", json!("1.1")), ERROR, "R-25.1", &conversation("$.schema_version"));
    check_bundle(
        0,
        Set("/conversations_index/0/storage/ref", json!("elsewhere.json")),
        WARNING,
        "R-14.4",
        &conversation("$"),
    );
    check_bundle(
        0,
        Set("/conversations_index/0/storage/ref", json!("elsewhere.json")),
        WARNING,
        "R-2.1",
        "$.conversations_index[0].storage.ref",
    );
    check_bundle(
        0,
        Set("/memories/0/provenance/message_ref", json!("m9")),
        WARNING,
        "R-14.4",
        "$.memories[0].provenance.message_ref",
    );
    check_bundle(
        2,
        Set("/embeddings/0/memory_id", json!("x")),
        ERROR,
        "R-12.6",
        "embeddings.json:$.embeddings[0].memory_id",
    );
    check_bundle(2, Set("/embeddings/0/id", json!("x")), WARNING, "R-12.3", "embeddings.json:$.embeddings");
    check_bundle(
        2,
        Set("/schema_version", json!("1.1")),
        ERROR,
        "R-25.1",
        "embeddings.json:$.schema_version",
    );
}

#[test]
fn two_files_of_one_conversation_are_an_error() {
    let file = full::conversation_file();
    let files = [("conversations/conv-1.json", &*file), ("conversations/copy.json", &*file)];
    let report = validate::bundle(&full::store(), files, None);
    assert!(
        report.issues.iter().any(|one| one.rule == "R-4.6" && one.path == "conversations/copy.json:$.id")
    );
    assert!(!report.valid());
}
