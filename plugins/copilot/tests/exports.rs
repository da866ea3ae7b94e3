//! The sample exports beside the repository: this provider's are read whole, those of others are left alone.

use std::path::{Path, PathBuf};

use satchel_importer::{
    Bundle, Importer, Line, Sink,
    pam::record::{ConversationRecord, MessageRecord},
};
use satchel_plugin_copilot::Copilot;

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

fn import(folder: &Path) -> Vec<Line> {
    let bundle = Bundle::from_folder(folder).expect("the folder can be listed");
    let mut sink = Sink::collecting();
    for detection in Copilot::detect(&bundle).expect("detection answers") {
        Copilot::run(&detection.format, &bundle.only(&detection.files), &mut sink)
            .expect("the export is read");
    }
    sink.into_lines()
}

fn conversations(lines: &[Line]) -> Vec<&ConversationRecord> {
    let mut found = Vec::new();
    for line in lines {
        if let Line::Conversation(record) = line {
            found.push(&**record);
        }
    }
    found
}

fn text(message: &MessageRecord) -> String {
    serde_json::to_value(&message.content).expect("it can be written")["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
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
        "authored/gemini",
        "authored/grok",
        "authored/deepseek",
        "authored/mistral",
        "authored/perplexity",
    ] {
        if let Some(folder) = samples(name) {
            let bundle = Bundle::from_folder(&folder).expect("the folder can be listed");
            assert_eq!(Copilot::detect(&bundle).expect("detection answers"), [], "{name}");
        }
    }
}

#[test]
fn the_sample_is_read_whole_and_in_the_order_it_was_said() {
    let Some(folder) = samples("authored/copilot") else { return };
    let lines = import(&folder);
    let read = conversations(&lines);
    assert_eq!(lines.len(), read.len(), "nothing is skipped: {lines:?}");
    let titles: Vec<Option<&str>> = read.iter().map(|record| record.title.as_deref()).collect();
    assert_eq!(titles, [Some("Power, saving"), Some("Untitled")]);
    let said: Vec<String> = read[0].messages.iter().map(text).collect();
    assert_eq!(said, ["First question", "First answer", "second\r\nquestion", "Sure.\r\n\r\n1. do \"this\""]);
}
