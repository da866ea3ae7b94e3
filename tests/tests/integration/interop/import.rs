//! The bundles that the official SDK makes from exports can be imported unchanged.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, ensure};
use satchel_tests::test_core::{ExportedState, TestCore, demo_folder, only_import, shared_samples};
use serde_json::Value;

use super::{pam_program, python};

/// Returns exports that the official program can convert.
fn convertible_exports(folder: &Path) -> Result<Vec<PathBuf>> {
    let generated = folder.join("generated");
    satchel_tests::generate::chatgpt(&generated, 300_000, 12)?;
    let claude = folder.join("generated-claude");
    satchel_tests::generate::claude(&claude, 300_000, 12)?;
    let mut inputs = vec![generated, claude, demo_folder().join("claude-export")];
    if let Some(samples) = shared_samples() {
        inputs.extend(
            [
                "chatgpt/full-2025-06-single.json",
                "chatgpt/sthayi-conversations.json",
                "claude/legacy-with-memories",
                "claude/thinking-2025.json",
                "claude/branching-2026.json",
                "grok/legacy-2025-06-response_id-iso.json",
                "authored/chatgpt/full-all-content-types",
                "authored/copilot",
                "authored/grok",
            ]
            .map(|name| samples.join(name)),
        );
    }
    Ok(inputs)
}

/// Id and content of a memory.
type MemoryText = (String, String);
/// Id of a conversation, id of a message, and the content of the message.
type MessageContent = (String, String, Value);

/// Returns everything in a bundle that an import must store: memories by id, and the content of each message by its
/// ids.
fn memories_and_messages(state: &ExportedState) -> (Vec<MemoryText>, Vec<MessageContent>) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let memories = state.memories.iter().map(|one| (text(&one["id"]), text(&one["content"])));
    let messages = state.conversations.values().flat_map(|conversation| {
        let id = text(&conversation["id"]);
        let messages = conversation["messages"].as_array().cloned().unwrap_or_default();
        messages.into_iter().map(move |one| (id.clone(), text(&one["id"]), one["content"].clone()))
    });
    let (mut memories, mut messages): (Vec<_>, Vec<_>) = (memories.collect(), messages.collect());
    memories.sort();
    messages.sort_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
    (memories, messages)
}

#[test]
fn bundles_of_the_official_sdk_survive_an_import_and_an_export() -> Result<()> {
    let Some(python) = python()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let mut converted = 0;
    for (at, input) in convertible_exports(folder.path())?.iter().enumerate() {
        let bundle = folder.path().join(format!("sdk-{at}"));
        let output = Command::new(pam_program(&python))
            .arg("convert")
            .arg(input)
            .arg("-o")
            .arg(&bundle)
            .env("COLUMNS", "200")
            .output()?;
        if !output.status.success() {
            eprintln!("not converted by the SDK: {input:?}");
            continue;
        }
        converted += 1;
        let made = ExportedState::read(&bundle)?;
        let core = TestCore::open(&folder.path().join(format!("data-{at}")))?;
        let import = only_import(core.import(&bundle)?)?;
        for counts in [import.conversations, import.messages, import.memories] {
            ensure!(counts.balanced(), "{import:?}");
        }
        let (memories, messages) = memories_and_messages(&made);
        ensure!(import.skipped.is_empty(), "{input:?}: {:?}", import.skipped);
        let found = (import.memories.new, import.conversations.new, import.messages.new);
        let there = (memories.len() as u64, made.conversations.len() as u64, messages.len() as u64);
        ensure!(found == there, "{input:?}: {found:?} of {there:?}");
        eprintln!("{input:?}: memories, conversations, messages: {found:?}");
        let again = folder.path().join(format!("again-{at}"));
        core.export(&again)?;
        let (stored_memories, stored_messages) = memories_and_messages(&ExportedState::read(&again)?);
        ensure!(stored_memories == memories, "{input:?}: memories differ");
        for (stored, made) in stored_messages.iter().zip(&messages) {
            ensure!(stored == made, "{input:?}: {stored:?} is not {made:?}");
        }
    }
    ensure!(converted > 0, "the SDK converted none of the exports");
    Ok(())
}
