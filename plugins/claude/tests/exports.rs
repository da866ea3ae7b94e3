//! The sample exports beside the repository: every record is emitted or skipped, counted by another parser.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use satchel_importer::{
    Bundle, Importer, Line, Sink,
    pam::record::{ConversationRecord, RecordKind},
};
use satchel_plugin_claude::Claude;
use serde_json::Value;

/// The folder of samples, if it is there.
#[expect(clippy::print_stderr, reason = "says why a test shows nothing")]
fn samples(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures").join(name);
    if !folder.is_dir() {
        eprintln!("skipped: there are no sample exports at {}", folder.display());
        return None;
    }
    Some(folder)
}

struct Run {
    files: Vec<String>,
    lines: Vec<Line>,
}

fn import(folder: &Path) -> Vec<Run> {
    let bundle = Bundle::from_folder(folder).expect("the folder can be listed");
    let read = |detection: satchel_importer::Detection| {
        let mut sink = Sink::collecting();
        Claude::run(&detection.format, &bundle.only(&detection.files), &mut sink)
            .expect("the export is read");
        Run { files: detection.files, lines: sink.into_lines() }
    };
    Claude::detect(&bundle).expect("detection answers").into_iter().map(read).collect()
}

fn conversation(line: &Line) -> Option<&ConversationRecord> {
    match line {
        Line::Conversation(record) => Some(record),
        _ => None,
    }
}

fn records(lines: &[Line]) -> Vec<&ConversationRecord> {
    lines.iter().filter_map(conversation).collect()
}

fn skips(lines: &[Line], kind: RecordKind) -> usize {
    lines.iter().filter(|line| matches!(line, Line::Skip(skip) if skip.kind == kind)).count()
}

/// Conversations and messages, and among the blocks the thoughts and interjections with words, as `serde_json` sees them.
fn count(value: &Value) -> (usize, usize) {
    let one = std::slice::from_ref(value);
    let conversations = value.as_array().map_or(one, Vec::as_slice);
    let lists = conversations.iter().filter_map(|conversation| {
        let list = conversation.get("chat_messages").or_else(|| conversation.get("messages"));
        list.and_then(Value::as_array)
    });
    let messages = lists.flatten().map(|message| 1 + beside(message)).sum();
    (conversations.len(), messages)
}

fn beside(message: &Value) -> usize {
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

#[test]
fn every_sample_export_balances() {
    for name in ["claude", "authored/claude"] {
        let Some(folder) = samples(name) else { return };
        for run in import(&folder) {
            let (mut conversations, mut messages) = (0, 0);
            for file in run.files.iter().filter(|file| holds_conversations(file)) {
                let bytes = fs::read(folder.join(file)).expect("a file can be read");
                let found = count(&serde_json::from_slice(&bytes).expect("it is JSON"));
                conversations += found.0;
                messages += found.1;
            }
            // Projects, artifacts and the like are conversations of ours, not of the export.
            let ours = ["account", "project", "artifact", "reflection"];
            let spoken =
                |record: &&ConversationRecord| !record.tags.iter().any(|tag| ours.contains(&tag.as_str()));
            let read: Vec<_> = records(&run.lines).into_iter().filter(spoken).collect();
            let emitted: usize = read.iter().map(|record| record.messages.len()).sum();
            assert_eq!(
                read.len() + skips(&run.lines, RecordKind::Conversation),
                conversations,
                "{:?}",
                run.files
            );
            assert_eq!(emitted + skips(&run.lines, RecordKind::Message), messages, "{:?}", run.files);
            assert!(!read.is_empty(), "{:?}", run.files);
        }
    }
}

fn holds_conversations(file: &str) -> bool {
    let others = ["users.json", "memories", "projects", "login_history", "manifest", "artifact"];
    Path::new(file).extension().is_some_and(|ending| ending == "json")
        && !others.iter().any(|other| file.contains(&format!("/{other}")) || file.starts_with(other))
}

#[test]
fn every_sample_file_is_claimed() {
    for name in ["claude", "authored/claude"] {
        let Some(folder) = samples(name) else { return };
        let bundle = Bundle::from_folder(&folder).expect("the folder can be listed");
        let all: BTreeSet<String> = bundle.entries().iter().map(|entry| entry.path.clone()).collect();
        let claimed: BTreeSet<String> = import(&folder).into_iter().flat_map(|run| run.files).collect();
        assert_eq!(all, claimed, "{name}");
    }
}

#[test]
fn each_sample_file_is_claimed_alone() {
    let Some(folder) = samples("claude") else { return };
    let bundle = Bundle::from_folder(&folder).expect("the folder can be listed");
    for entry in bundle.entries() {
        let alone = bundle.only(std::slice::from_ref(&entry.path));
        assert_eq!(Claude::detect(&alone).expect("detection answers").len(), 1, "{}", entry.path);
    }
}

#[test]
fn exports_of_other_providers_are_left_alone() {
    for name in [
        "chatgpt",
        "grok",
        "gemini",
        "authored/chatgpt",
        "authored/deepseek",
        "authored/grok",
        "authored/mistral",
        "authored/perplexity",
    ] {
        let Some(folder) = samples(name) else { return };
        let bundle = Bundle::from_folder(&folder).expect("the folder can be listed");
        assert_eq!(Claude::detect(&bundle).expect("detection answers"), [], "{name}");
    }
}

#[test]
fn the_batched_sample_gives_what_it_is_known_to_hold() {
    let Some(folder) = samples("authored/claude/batched-2026-09") else { return };
    let runs = import(&folder);
    let lines = &runs[0].lines;
    let record =
        records(lines).into_iter().find(|record| record.messages.len() > 3).expect("the long conversation");
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
    let mut claims: Vec<&str> = lines
        .iter()
        .filter_map(|line| {
            if let Line::Evidence(evidence) = line { Some(evidence.id.split('#').next()?) } else { None }
        })
        .collect();
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
