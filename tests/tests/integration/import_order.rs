//! The final state depends on what was imported, not on the order of the imports.

use std::{fs, path::PathBuf};

use anyhow::{Result, ensure};
use satchel_importer::testkit::first_difference;
use satchel_tests::{
    generate::Rng,
    samples::samples,
    test_core::{ExportedState, TestCore, demo_folder},
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Number of shuffled orders to try in addition to the given one and its reverse.
const SHUFFLES: u64 = 2;

/// Returns every small export: all providers, full and slim, older and newer, intact and broken.
fn test_exports(made: &TempDir) -> Result<Vec<PathBuf>> {
    let mut exports: Vec<PathBuf> = samples()?.into_iter().map(|sample| sample.input).collect();
    exports.extend([demo_folder().join("chatgpt-export"), demo_folder().join("claude-export")]);
    exports.extend(exports_with_one_statement(made)?);
    Ok(exports)
}

/// Writes three exports of three platforms, all of which state that a person keeps bees.
fn exports_with_one_statement(made: &TempDir) -> Result<[PathBuf; 3]> {
    let file = |name: &str, value: Value| -> Result<PathBuf> {
        let folder = made.path().join(name);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("conversations.json"), serde_json::to_vec(&value)?)?;
        Ok(folder)
    };
    let chatgpt = json!([{
        "title": "Hives", "create_time": 1_751_360_400.0, "update_time": 1_751_360_500.0, "current_node": "u1",
        "conversation_id": "68148099-7a10-800f-9c51-000000000001",
        "mapping": {
            "root": {"id": "root", "message": null, "parent": null, "children": ["mem"]},
            "mem": {"id": "mem", "parent": "root", "children": ["u1"], "message": {
                "id": "mem", "author": {"role": "assistant"}, "create_time": 1_751_360_401.0, "recipient": "all",
                "content": {"content_type": "model_editable_context",
                    "model_set_context": "1. [2025-05-02]. Keeps bees.\n2. [2025-05-03]. Has a van."},
                "metadata": {"is_visually_hidden_from_conversation": true}}},
            "u1": {"id": "u1", "parent": "mem", "children": [], "message": {
                "id": "u1", "author": {"role": "user"}, "create_time": 1_751_360_402.0, "recipient": "all",
                "content": {"content_type": "text", "parts": ["Hello"]}, "metadata": {}}},
        },
    }]);
    let edit = json!({"type": "tool_use", "id": "toolu_1", "name": "memory_user_edits",
        "input": {"command": "add", "control": "keeps  BEES."}});
    let claude = json!([{
        "uuid": "aaaaaaaa-0000-4000-8000-000000000077", "name": "Honey", "account": {"uuid": "account-1"},
        "created_at": "2025-06-01T08:00:00Z", "updated_at": "2025-06-01T08:01:00Z",
        "chat_messages": [
            {"uuid": "m-1", "sender": "human", "created_at": "2025-06-01T08:00:00Z", "text": "Remember it",
                "content": [{"type": "text", "text": "Remember it"}]},
            {"uuid": "m-2", "sender": "assistant", "created_at": "2025-06-01T08:01:00Z", "text": "Done", "content": [
                edit,
                {"type": "tool_result", "tool_use_id": "toolu_1", "name": "memory_user_edits", "is_error": false,
                    "content": [{"type": "text", "text": "Added memory #1"}]},
                {"type": "text", "text": "Done"}]},
        ],
    }]);
    let memu = json!([{"memory_id": "mem-7", "agent_id": "agent", "user_id": "user",
        "updated_at": "2025-07-03T09:30:00Z", "profile_content": ["Keeps bees.", "Lives on a hill"]}]);
    Ok([file("chatgpt-bees", chatgpt)?, file("claude-bees", claude)?, file("memu-bees", memu)?])
}

/// Imports these exports in this order into a new data directory; returns the bytes of its memories, and its state.
fn state_after_imports(exports: &[PathBuf]) -> Result<(String, ExportedState)> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    for export in exports {
        core.import(export)?;
    }
    let bundle = dir.path().join("bundle");
    core.export(&bundle)?;
    let text = fs::read_to_string(bundle.join("memory-store.json"))?;
    let memories = text.split_once("\"memories\"").map(|(_, rest)| rest).unwrap_or_default();
    let memories = memories.split_once("\"conversations_index\"").map_or(memories, |(memories, _)| memories);
    Ok((memories.to_owned(), ExportedState::read(&bundle)?))
}

fn shuffled(exports: &[PathBuf], seed: u64) -> Vec<PathBuf> {
    let mut rng = Rng::new(seed);
    let mut rest = exports.to_vec();
    let mut order = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let at = usize::try_from(rng.below(rest.len() as u64)).unwrap_or(0);
        order.push(rest.swap_remove(at));
    }
    order
}

fn assert_same_state(
    one: &(String, ExportedState),
    other: &(String, ExportedState),
    order: &[PathBuf],
) -> Result<()> {
    let context = |what: &str| format!("{what} differ when the exports are imported as {order:#?}");
    for (what, left, right) in [
        ("memories", &one.1.memories, &other.1.memories),
        ("relations", &one.1.relations, &other.1.relations),
    ] {
        let difference = first_difference(&json!(left), &json!(right));
        ensure!(difference.is_none(), "{}: {}", context(what), difference.unwrap_or_default());
    }
    let difference = first_difference(&json!(one.1.conversations), &json!(other.1.conversations));
    ensure!(difference.is_none(), "{}: {}", context("conversations"), difference.unwrap_or_default());
    ensure!(one.0 == other.0, "{}", context("the bytes of the memories"));
    Ok(())
}

#[test]
fn all_exports_in_any_order_end_in_the_same_state() -> Result<()> {
    let made = tempfile::tempdir()?;
    let exports = test_exports(&made)?;
    ensure!(exports.len() > 150, "only {} exports were found", exports.len());
    let first = state_after_imports(&exports)?;
    ensure!(first.1.memories.len() > 30 && first.1.conversations.len() > 100, "too little was imported");
    let backwards: Vec<PathBuf> = exports.iter().rev().cloned().collect();
    assert_same_state(&first, &state_after_imports(&backwards)?, &backwards)?;
    for seed in 0..SHUFFLES {
        let order = shuffled(&exports, seed);
        assert_same_state(&first, &state_after_imports(&order)?, &order)?;
    }
    Ok(())
}

#[test]
fn a_statement_on_three_platforms_is_one_memory_with_all_its_sources() -> Result<()> {
    let made = tempfile::tempdir()?;
    let exports = exports_with_one_statement(&made)?;
    let [one, two, three] = exports.clone();
    let mut states = Vec::new();
    for order in [[&one, &two, &three], [&three, &two, &one], [&two, &one, &three], [&three, &one, &two]] {
        let order: Vec<PathBuf> = order.into_iter().cloned().collect();
        states.push(state_after_imports(&order)?);
    }
    for state in &states[1..] {
        assert_same_state(&states[0], state, &exports)?;
    }
    let bees: Vec<&Value> = states[0]
        .1
        .memories
        .iter()
        .filter(|memory| memory["content"].as_str().is_some_and(|text| text.to_lowercase().contains("bees")))
        .collect();
    ensure!(bees.len() == 1, "one memory was expected: {bees:#?}");
    let bees = bees[0];
    ensure!(bees["provenance"]["platform"] == "claude", "the earliest source is not the first: {bees:#?}");
    let text = bees["metadata"].to_string();
    for platform in ["chatgpt", "claude", "memu"] {
        ensure!(text.contains(&format!("\"{platform}\"")), "{platform} is no source: {bees:#?}");
    }
    let alone = state_after_imports(&[one])?.1.memories;
    let confidence = |memory: &Value| memory["confidence"]["current"].as_f64().unwrap_or_default();
    let once = alone.iter().find(|memory| memory["id"] == bees["id"]).map(confidence).unwrap_or_default();
    ensure!(confidence(bees) > once, "three sources are more than one: {once} and {}", confidence(bees));
    Ok(())
}

/// Writes a dump of saved memories, a newer one in which one memory was changed, a conversation that lists one of them,
/// and a Grok project.
fn exports_with_times(made: &TempDir) -> Result<[PathBuf; 4]> {
    let file = |name: &str, file: &str, value: Value| -> Result<PathBuf> {
        let folder = made.path().join(name);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(file), serde_json::to_vec(&value)?)?;
        Ok(folder)
    };
    let memory = |id: &str, content: &str, created: &str, updated: &str| json!({"id": id, "content": content, "created_at": created, "updated_at": updated});
    let kites = memory("m1", "Flies kites.", "2024-03-01T10:00:00Z", "2024-03-01T10:00:00Z");
    let older = json!({"memories": [kites.clone(), memory("m2", "Owns a boat.", "2024-05-01T10:00:00Z", "2024-06-01T10:00:00Z")]});
    let newer = json!({"memories": [kites, memory("m2", "Owns a boat.", "2024-05-01T10:00:00Z", "2025-02-01T10:00:00Z")]});
    let listed = json!([{
        "title": "Wind", "create_time": 1_751_360_400.0, "conversation_id": "68148099-7a10-800f-9c51-000000000009",
        "mapping": {"mem": {"id": "mem", "parent": null, "children": [], "message": {
            "id": "mem", "author": {"role": "assistant"}, "create_time": 1_751_360_401.0, "recipient": "all",
            "content": {"content_type": "model_editable_context", "model_set_context": "1. [2025-05-02]. Owns a boat.\n2. [2025-05-03]. Has a van."},
            "metadata": {"is_visually_hidden_from_conversation": true}}}},
    }]);
    let grok = json!({"conversations": [{"conversation": {"id": "c-1", "title": "Hi", "create_time": "2026-08-26T20:23:32Z"},
            "responses": [{"response": {"_id": "r-1", "message": "Hi", "sender": "human", "create_time": "2026-08-26T20:23:32Z"}}]}],
        "projects": [{"workspace_id": "w-1", "custom_personality": "Answer in knots.", "create_time": "2026-01-01T00:00:00Z"}],
        "tasks": [], "media_posts": []});
    // A list of memories is read if it is beside conversations.
    for dump in ["dump-older", "dump-newer"] {
        file(dump, "conversations.json", listed.clone())?;
    }
    Ok([
        file("dump-older", "memories.json", older)?,
        file("dump-newer", "memories.json", newer)?,
        file("chatgpt-wind", "conversations.json", listed)?,
        file("grok-knots", "prod-grok-backend.json", grok)?,
    ])
}

#[test]
fn memories_have_their_providers_times_in_any_order_of_imports() -> Result<()> {
    let made = tempfile::tempdir()?;
    let exports = exports_with_times(&made)?.to_vec();
    let first = state_after_imports(&exports)?;
    for seed in 0..4 {
        let order = shuffled(&exports, seed);
        assert_same_state(&first, &state_after_imports(&order)?, &order)?;
    }
    let times = |content: &str| {
        let memory = first.1.memories.iter().find(|memory| memory["content"] == content);
        let temporal = memory.map_or(&Value::Null, |memory| &memory["temporal"]);
        (
            temporal["created_at"].as_str().unwrap_or_default().to_owned(),
            temporal["updated_at"].as_str().map(ToOwned::to_owned),
        )
    };
    let expected =
        |created: &str, updated: Option<&str>| (created.to_owned(), updated.map(ToOwned::to_owned));
    assert_eq!(times("Flies kites."), expected("2024-03-01T10:00:00Z", None));
    assert_eq!(times("Owns a boat."), expected("2024-05-01T10:00:00Z", Some("2025-02-01T10:00:00Z")));
    assert_eq!(times("Has a van."), expected("2025-05-03T00:00:00Z", None));
    assert_eq!(times("Answer in knots."), expected("2026-01-01T00:00:00Z", None));
    Ok(())
}
