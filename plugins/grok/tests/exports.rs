//! The sample exports beside the repository: every record is emitted or skipped, counted by another parser.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use satchel_importer::{
    Bundle, Detection, Importer, Line, Sink, names,
    pam::record::{ConversationRecord, RecordKind},
};
use satchel_plugin_grok::Grok;
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
        Grok::run(&detection.format, &bundle.only(&detection.files), &mut sink).expect("the export is read");
        (detection, sink.into_lines())
    };
    Grok::detect(&bundle).expect("detection answers").into_iter().map(read).collect()
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
    for (name, exports) in [("grok", 2), ("authored/grok", 1)] {
        let Some(folder) = samples(name) else { return };
        let runs = import(&folder);
        assert_eq!(runs.len(), exports, "{name}");
        for (detection, lines) in runs {
            let main = detection.files.iter().find(|file| names::is_json(file)).expect("a main file");
            let bytes = fs::read(folder.join(main)).expect("a file can be read");
            let value: Value = serde_json::from_slice(&bytes).expect("it is JSON");
            let list = value["conversations"].as_array().expect("a list");
            let responses: usize =
                list.iter().filter_map(|item| item["responses"].as_array()).map(Vec::len).sum();
            let read = records(&lines);
            let said =
                |record: &&ConversationRecord| record.messages.iter().filter(|said| !said.is_thought).count();
            let emitted: usize = read.iter().map(said).sum();
            assert_eq!(read.len() + skips(&lines, RecordKind::Conversation), list.len(), "{main}");
            assert_eq!(emitted + skips(&lines, RecordKind::Message), responses, "{main}");
            assert!(!read.is_empty(), "{main}");
        }
    }
}

#[test]
fn every_sample_file_is_claimed() {
    for name in ["grok", "authored/grok"] {
        let Some(folder) = samples(name) else { return };
        let bundle = Bundle::from_folder(&folder).expect("the folder can be listed");
        let all: BTreeSet<String> = bundle.entries().iter().map(|entry| entry.path.clone()).collect();
        let claimed: BTreeSet<String> =
            import(&folder).into_iter().flat_map(|(detection, _)| detection.files).collect();
        assert_eq!(all, claimed, "{name}");
    }
}

#[test]
fn exports_of_other_providers_are_left_alone() {
    for name in [
        "chatgpt",
        "claude",
        "gemini",
        "authored/chatgpt",
        "authored/claude",
        "authored/copilot",
        "authored/deepseek",
        "authored/gemini",
        "authored/mistral",
        "authored/perplexity",
    ] {
        let Some(folder) = samples(name) else { return };
        let bundle = Bundle::from_folder(&folder).expect("the folder can be listed");
        assert_eq!(Grok::detect(&bundle).expect("detection answers"), [], "{name}");
    }
}

#[test]
fn the_modern_sample_gives_what_it_is_known_to_hold() {
    let Some(folder) = samples("authored/grok") else { return };
    let runs = import(&folder);
    let lines = &runs[0].1;
    let record = records(lines)[0];
    let message =
        |end: &str| record.messages.iter().find(|message| message.id.ends_with(end)).expect("a message");
    assert_eq!(message("011").parent, None, "its parent is not in the file");
    assert_eq!(message("011").attachments.len(), 1);
    assert!(message("011").attachments[0].source.is_some(), "its bytes are");
    let answer = message("012");
    assert_eq!(answer.model.as_deref(), Some("grok-chat-app-builder-free"));
    assert_eq!(answer.citations[0].url.as_deref(), Some("https://odin-lang.org"));
    assert_eq!(answer.citations[0].title.as_deref(), Some("Odin"));
    assert_eq!(answer.tool_calls[0].name, "WebSearch");
    assert_eq!(answer.content.as_ref().and_then(|content| content.text.as_deref()), Some("Odin is…"));
    assert_eq!(record.current.as_deref(), Some(answer.id.as_str()));
    assert_eq!(message("013").attachments.len(), 1, "an image and no words");
    let evidence =
        lines.iter().find_map(|line| if let Line::Evidence(evidence) = line { Some(evidence) } else { None });
    assert!(evidence.is_some_and(|evidence| evidence.id.starts_with("project_personality/")));
}
