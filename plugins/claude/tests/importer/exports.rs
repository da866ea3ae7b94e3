//! The sample exports beside the repository: every record that another parser counts is emitted or skipped.

use std::path::Path;

use satchel_importer::{
    Importer,
    pam::record::ConversationRecord,
    testkit::{Sample, conversations, evidence},
};
use satchel_plugin_claude::Claude;
use serde_json::Value;

fn sample(name: &str) -> Option<Sample> {
    Sample::read::<Claude>(env!("CARGO_MANIFEST_DIR"), name)
}

/// Conversations, and messages with their thoughts and interjections, counted with `serde_json`.
fn count(value: &Value) -> (usize, usize) {
    let one = std::slice::from_ref(value);
    let conversations = value.as_array().map_or(one, Vec::as_slice);
    let lists = conversations.iter().filter_map(|conversation| {
        let list = conversation.get("chat_messages").or_else(|| conversation.get("messages"));
        list.and_then(Value::as_array)
    });
    let messages = lists.flatten().map(|message| 1 + extra_messages(message)).sum();
    (conversations.len(), messages)
}

fn extra_messages(message: &Value) -> usize {
    let blocks = [&message["content"], &message["content"]["contentBlocks"]];
    let thought = |block: &&Value| {
        let words = [&block["thinking"], &block["text"], &block["summaries"][0]["summary"]];
        block["type"] == "thinking"
            && words.iter().any(|words| words.as_str().is_some_and(|words| !words.is_empty()))
    };
    let interjection =
        |block: &&Value| block["type"] == "user_interjection" && block["message"]["content"].is_string();
    let blocks = blocks.iter().filter_map(|blocks| blocks.as_array()).flatten();
    blocks.filter(|block| thought(block) || interjection(block)).count()
}

fn holds_conversations(file: &str) -> bool {
    let others = ["users.json", "memories", "projects", "login_history", "manifest", "artifact"];
    Path::new(file).extension().is_some_and(|extension| extension == "json")
        && !others.iter().any(|other| file.contains(&format!("/{other}")) || file.starts_with(other))
}

#[test]
fn every_sample_export_balances() {
    for sample in ["claude", "authored/claude"].into_iter().filter_map(sample) {
        // Projects, artifacts and the like are conversations of ours, not of the export.
        let ours = ["account", "project", "artifact", "reflection"];
        let is_ours =
            |record: &ConversationRecord| record.tags.iter().any(|tag| ours.contains(&tag.as_str()));
        sample.check_counts(
            |file| holds_conversations(file).then(|| count(&sample.json(file))),
            |record| (!is_ours(record)).then_some(record.messages.len()),
        );
    }
}

#[test]
fn every_sample_file_is_claimed() {
    for sample in ["claude", "authored/claude"].into_iter().filter_map(sample) {
        assert_eq!(sample.unclaimed(), [""; 0], "{}", sample.folder.display());
    }
}

#[test]
fn each_sample_file_is_claimed_alone() {
    let Some(sample) = sample("claude") else { return };
    for file in sample.files() {
        let alone = sample.bundle.only(&[file.to_owned()]);
        assert_eq!(Claude::detect(&alone).expect("detection answers").len(), 1, "{file}");
    }
}

#[test]
fn the_batched_sample_gives_the_known_records() {
    let Some(sample) = sample("authored/claude/batched-2026-09") else { return };
    let lines = &sample.exports[0].lines;
    let record = conversations(lines)
        .into_iter()
        .find(|record| record.messages.len() > 3)
        .expect("the long conversation");
    let message =
        |end: &str| record.messages.iter().find(|message| message.id.ends_with(end)).expect("a message");
    assert_eq!(
        message("012").tool_calls[0].output.as_deref(),
        Some("Added memory #1: User prefers metric units")
    );
    assert!(message("012:thinking:0").is_thought);
    assert_eq!(message("012").parent, Some(message("012:thinking:0").id.clone()));
    assert_eq!(message("012:thinking:0").parent, Some(message("011").id.clone()));
    assert_eq!(message("013").parent, message("015").parent, "two wordings of one question");
    assert_eq!(message("016").citations[0].url.as_deref(), Some("https://example.com/rust"));
    assert_eq!(message("016").tool_calls.len(), 2);
    let mut claims: Vec<&str> =
        evidence(lines).into_iter().filter_map(|evidence| evidence.id.split('#').next()).collect();
    claims.sort_unstable();
    assert_eq!(
        claims,
        [
            "conversations_memory/Brief history",
            "conversations_memory/Personal context",
            "conversations_memory/Top of mind",
            "conversations_memory/Work context",
            "memory_files/people/rex.md",
            "memory_files/profile.md",
            "memory_files/profile.md",
            "memory_user_edits/00000000-0000-4000-8000-000000000012/1",
            "project_memories/00000000-0000-4000-8000-000000000300",
            "project_prompt/00000000-0000-4000-8000-000000000300",
        ]
    );
}
