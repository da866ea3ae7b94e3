//! The sample exports beside the repository: every record is emitted or skipped, counted by another parser.

use std::{
    fs,
    path::{Path, PathBuf},
};

use satchel_importer::{
    Bundle, Detection, Importer, Line, Sink,
    pam::{
        conversation::Role,
        record::{ConversationRecord, MessageRecord},
    },
};
use satchel_plugin_gemini::Gemini;
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
    let read = |detection: Detection| {
        let mut sink = Sink::collecting();
        Gemini::run(&detection.format, &bundle.only(&detection.files), &mut sink)
            .expect("the export is read");
        Run { files: detection.files, lines: sink.into_lines() }
    };
    Gemini::detect(bundle).expect("detection answers").into_iter().map(read).collect()
}

fn conversation(line: &Line) -> Option<&ConversationRecord> {
    match line {
        Line::Conversation(record) => Some(record),
        _ => None,
    }
}

fn records(runs: &[Run]) -> Vec<&ConversationRecord> {
    runs.iter().flat_map(|run| &run.lines).filter_map(conversation).collect()
}

fn text(message: &MessageRecord) -> String {
    message
        .content
        .as_ref()
        .map(|content| serde_json::to_string(content).expect("it is JSON"))
        .unwrap_or_default()
}

fn folder(name: &str) -> Option<Bundle> {
    samples(name).map(|folder| Bundle::from_folder(&folder).expect("the folder can be listed"))
}

#[test]
fn every_sample_file_is_claimed_and_no_other() {
    let Some(bundle) = folder("gemini") else { return };
    let claimed: Vec<String> = import(&bundle).into_iter().flat_map(|run| run.files).collect();
    let all: Vec<&str> = bundle.entries().iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(claimed, all);
    for other in [
        "chatgpt",
        "claude",
        "grok",
        "authored/copilot",
        "authored/deepseek",
        "authored/mistral",
        "authored/perplexity",
    ] {
        let Some(bundle) = folder(other) else { return };
        let claimed: Vec<String> = import(&bundle).into_iter().flat_map(|run| run.files).collect();
        assert!(claimed.is_empty(), "{other}: {claimed:?}");
    }
}

#[test]
fn every_chunk_of_ai_studio_is_a_message() {
    let Some(folder) = samples("gemini") else { return };
    let bundle = Bundle::from_folder(&folder).expect("the folder can be listed");
    let runs = import(&bundle);
    for entry in bundle.entries().iter().filter(|entry| entry.path.contains("aistudio")) {
        let value: Value =
            serde_json::from_slice(&fs::read(folder.join(&entry.path)).expect("it can be read"))
                .expect("it is JSON");
        let chunks = value["chunkedPrompt"]["chunks"].as_array().expect("it has chunks");
        let all = records(&runs);
        let record =
            all.iter().find(|record| record.locator.starts_with(&entry.path)).expect("it is imported");
        assert_eq!(record.messages.len(), chunks.len(), "{}", entry.path);
        for (chunk, message) in chunks.iter().zip(&record.messages) {
            assert_eq!(chunk["role"] == "user", message.role == Role::User, "{}", entry.path);
            let words = chunk["text"].as_str().filter(|words| !words.is_empty());
            if let Some(words) = words {
                let quoted = serde_json::to_string(words).expect("it is JSON");
                assert!(text(message).contains(quoted.trim_matches('"')), "{}: {words}", entry.path);
            }
        }
    }
}

#[test]
fn rows_of_activity_are_prompts_and_answers() {
    for (name, file) in [
        ("gemini", "MyActivity.safeHtmlItem.json"),
        ("authored/gemini", "Takeout/My Activity/Gemini Apps/MyActivity.json"),
    ] {
        let Some(folder) = samples(name) else { return };
        let rows: Value = serde_json::from_slice(&fs::read(folder.join(file)).expect("it can be read"))
            .expect("it is JSON");
        let runs = import(&Bundle::from_folder(&folder).expect("the folder can be listed"));
        let all = records(&runs);
        let messages: Vec<_> = all
            .iter()
            .filter(|record| record.locator.contains(file))
            .flat_map(|record| &record.messages)
            .collect();
        for row in rows.as_array().expect("it is a list") {
            let header = row["header"].as_str().unwrap_or_default();
            let title = row["title"].as_str().unwrap_or_default();
            if header == "Search" {
                assert!(!messages.iter().any(|message| text(message).contains(title)), "{title}");
                continue;
            }
            let said = title
                .trim_start_matches("Prompted ")
                .trim_start_matches("Asked Bard: ")
                .trim_start_matches("Eingegebener Prompt: ");
            let said = said.split(" Attached ").next().unwrap_or_default();
            let found = messages.iter().any(|message| {
                let raw = message
                    .raw_metadata
                    .as_ref()
                    .map(|raw| serde_json::to_string(raw).expect("it is JSON"))
                    .unwrap_or_default();
                text(message).contains(said) || raw.contains(said)
            });
            let skipped = runs.iter().flat_map(|run| &run.lines).any(|line| matches!(line, Line::Skip(_)));
            assert!(found || skipped, "{title}");
        }
        let answers = messages.iter().filter(|message| message.role == Role::Assistant).count();
        let answered = rows
            .as_array()
            .expect("it is a list")
            .iter()
            .filter(|row| row["header"] != "Search" && row["safeHtmlItem"].is_array());
        assert_eq!(answers, answered.count(), "{name}");
    }
}

#[test]
fn secrets_of_the_samples_go_nowhere() {
    let Some(bundle) = folder("gemini") else { return };
    let text: String = import(&bundle)
        .iter()
        .flat_map(|run| &run.lines)
        .map(|line| serde_json::to_string(line).expect("it is JSON"))
        .collect();
    for secret in [
        "SESSION_TOKEN",
        "AUTHORIZATION_VALUE",
        "EMBEDDED_SCRIPT",
        "EMBEDDED_STYLE",
        "GEMINI_ACCOUNT@",
        "NON_GEMINI",
    ] {
        assert!(!text.contains(secret), "{secret}");
    }
}
