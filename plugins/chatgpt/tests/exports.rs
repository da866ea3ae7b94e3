//! The sample exports beside the repository: every record is emitted or skipped, counted by another parser.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use satchel_importer::{
    Bundle, Importer, Line, Sink,
    pam::record::{ConversationRecord, RecordKind},
};
use satchel_plugin_chatgpt::ChatGpt;
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

fn import(bundle: &Bundle) -> Vec<Run> {
    let read = |detection: satchel_importer::Detection| {
        let mut sink = Sink::collecting();
        ChatGpt::run(&detection.format, &bundle.only(&detection.files), &mut sink)
            .expect("the export is read");
        Run { files: detection.files, lines: sink.into_lines() }
    };
    ChatGpt::detect(bundle).expect("detection answers").into_iter().map(read).collect()
}

fn records(lines: &[Line]) -> Vec<&ConversationRecord> {
    let mut found = Vec::new();
    for line in lines {
        if let Line::Conversation(record) = line {
            found.push(&**record);
        }
    }
    found
}

fn skips(lines: &[Line], kind: RecordKind) -> usize {
    lines.iter().filter(|line| matches!(line, Line::Skip(skip) if skip.kind == kind)).count()
}

/// Conversations, and messages of those with a mapping, as `serde_json` sees them.
fn count(value: &Value) -> (usize, usize) {
    let conversations: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(object) if object.contains_key("conversations") => {
            object["conversations"].as_array().into_iter().flatten().collect()
        }
        one => vec![one],
    };
    let nodes = conversations.iter().filter_map(|conversation| conversation.get("mapping")?.as_object());
    let messages = nodes
        .flat_map(|mapping| mapping.values())
        .filter(|node| node.get("message").is_some_and(|m| !m.is_null()));
    (conversations.len(), messages.count())
}

fn check_counts(folder: &Path) {
    for run in import(&Bundle::from_folder(folder).expect("the folder can be listed")) {
        let (mut conversations, mut messages) = (0, 0);
        for file in run.files.iter().filter(|file| is_source(file)) {
            let bytes = fs::read(folder.join(file)).expect("a file can be read");
            let found = count(&serde_json::from_slice(&bytes).expect("it is JSON"));
            conversations += found.0;
            messages += found.1;
        }
        // Group chats stand in a file of their own.
        let all = records(&run.lines);
        let read: Vec<_> = all.iter().filter(|record| !record.id.starts_with("group_chat:")).collect();
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

fn is_source(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or_default();
    let side = ["user", "group", "shared", "message_f", "library", "export_m", "conversation_asset"];
    Path::new(name).extension().is_some_and(|end| end == "json")
        && !side.iter().any(|side| name.starts_with(side))
}

#[test]
fn every_sample_export_balances() {
    for name in ["chatgpt", "authored/chatgpt"] {
        if let Some(folder) = samples(name) {
            check_counts(&folder);
        }
    }
}

#[test]
fn every_sample_file_is_claimed() {
    let Some(folder) = samples("chatgpt") else { return };
    let bundle = Bundle::from_folder(&folder).expect("the folder can be listed");
    let claimed: BTreeSet<String> = import(&bundle).into_iter().flat_map(|run| run.files).collect();
    let left: Vec<&str> = bundle
        .entries()
        .iter()
        .map(|entry| entry.path.as_str())
        .filter(|path| !claimed.contains(*path))
        .collect();
    // Named like no file of an export, and there is no single export beside it that it could belong to.
    assert_eq!(left, ["sthayi-user.json"]);
}

#[test]
fn exports_of_other_providers_are_left_alone() {
    for name in [
        "claude",
        "grok",
        "gemini",
        "authored/claude",
        "authored/deepseek",
        "authored/mistral",
        "authored/perplexity",
    ] {
        if let Some(folder) = samples(name) {
            let bundle = Bundle::from_folder(&folder).expect("the folder can be listed");
            assert_eq!(ChatGpt::detect(&bundle).expect("detection answers"), [], "{name}");
        }
    }
}

#[test]
fn a_slim_export_names_its_nodes_as_the_full_one_does() {
    let Some(folder) = samples("authored/chatgpt") else { return };
    let runs = import(&Bundle::from_folder(&folder).expect("the folder can be listed"));
    assert_eq!(runs.len(), 2);
    let nodes: Vec<BTreeMap<&str, Option<&str>>> = runs
        .iter()
        .map(|run| {
            records(&run.lines)[0]
                .messages
                .iter()
                .map(|node| (node.id.as_str(), node.created_at.map(|_| "dated")))
                .collect()
        })
        .collect();
    assert!(nodes[1].iter().all(|(id, dated)| nodes[0].get(id) == Some(dated)), "{nodes:?}");
}
