//! The sample exports beside the repository: every record is emitted or skipped, counted by another parser.

use std::{
    fs,
    path::{Path, PathBuf},
};

use satchel_importer::{
    Bundle, Detection, Importer, Line, Sink,
    pam::record::{ConversationRecord, RecordKind},
};
use satchel_plugin_deepseek::DeepSeek;
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

fn import(folder: &Path) -> Vec<(Detection, Vec<Line>)> {
    let bundle = Bundle::from_folder(folder).expect("the folder can be listed");
    let read = |detection: Detection| {
        let mut sink = Sink::collecting();
        DeepSeek::run(&detection.format, &bundle.only(&detection.files), &mut sink)
            .expect("the export is read");
        (detection, sink.into_lines())
    };
    DeepSeek::detect(&bundle).expect("detection answers").into_iter().map(read).collect()
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

#[test]
fn every_sample_export_balances() {
    let Some(folder) = samples("authored/deepseek") else { return };
    let runs = import(&folder);
    assert_eq!(runs.len(), 1);
    for (detection, lines) in runs {
        let bytes = fs::read(folder.join(&detection.files[0])).expect("a file can be read");
        let value: Value = serde_json::from_slice(&bytes).expect("it is JSON");
        let list = value.as_array().expect("a list");
        let nodes =
            list.iter().filter_map(|item| item["mapping"].as_object()).flat_map(|mapping| mapping.values());
        let messages = nodes.filter(|node| node["message"].is_object()).count();
        let read = records(&lines);
        let said =
            |record: &&ConversationRecord| record.messages.iter().filter(|said| !said.is_thought).count();
        let emitted: usize = read.iter().map(said).sum();
        assert_eq!(read.len() + skips(&lines, RecordKind::Conversation), list.len());
        assert_eq!(emitted + skips(&lines, RecordKind::Message), messages);
    }
}

#[test]
fn the_sample_gives_what_it_is_known_to_hold() {
    let Some(folder) = samples("authored/deepseek") else { return };
    let runs = import(&folder);
    let record = records(&runs[0].1)[0];
    assert_eq!(record.current.as_deref(), Some("2"), "not the busy answer, which is newer");
    let answer = record.messages.iter().find(|message| message.id == "2").expect("the answer");
    assert_eq!(answer.citations[0].url.as_deref(), Some("https://example.com/a"));
    let names: Vec<&str> = answer.tool_calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["SEARCH", "TOOL_SEARCH", "TOOL_OPEN"]);
    assert!(
        record.messages.iter().any(|message| message.is_thought && message.parent.as_deref() == Some("1"))
    );
}

#[test]
fn exports_of_other_providers_are_left_alone() {
    for name in [
        "chatgpt",
        "claude",
        "gemini",
        "grok",
        "authored/chatgpt",
        "authored/claude",
        "authored/copilot",
        "authored/grok",
        "authored/gemini",
        "authored/mistral",
        "authored/perplexity",
    ] {
        let Some(folder) = samples(name) else { return };
        let bundle = Bundle::from_folder(&folder).expect("the folder can be listed");
        assert_eq!(DeepSeek::detect(&bundle).expect("detection answers"), [], "{name}");
    }
}
