//! The sample exports beside the repository: this provider's are read whole, those of others are left alone.

use std::path::{Path, PathBuf};

use satchel_importer::{
    Bundle, Importer, Line, Sink,
    pam::record::{ConversationRecord, MessageRecord},
};
use satchel_plugin_mistral::Mistral;

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
    for detection in Mistral::detect(&bundle).expect("detection answers") {
        Mistral::run(&detection.format, &bundle.only(&detection.files), &mut sink)
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
        "authored/copilot",
        "authored/perplexity",
    ] {
        if let Some(folder) = samples(name) {
            let bundle = Bundle::from_folder(&folder).expect("the folder can be listed");
            assert_eq!(Mistral::detect(&bundle).expect("detection answers"), [], "{name}");
        }
    }
}

#[test]
fn the_sample_is_read_whole() {
    let Some(folder) = samples("authored/mistral") else { return };
    let lines = import(&folder);
    let read = conversations(&lines);
    assert_eq!((lines.len(), read.len()), (1, 1), "nothing is skipped: {lines:?}");
    assert_eq!(read[0].title.as_deref(), Some("Hi"));
    let said: Vec<(&str, String)> = read[0].messages.iter().map(|one| (one.id.as_str(), text(one))).collect();
    assert_eq!(said, [("m2", "Hello there.".to_owned()), ("m1", "Hi".to_owned())]);
    assert_eq!(read[0].messages[0].parent.as_deref(), Some("m1"));
    assert_eq!(read[0].messages[0].tool_calls.len(), 1);
    assert_eq!(read[0].messages[1].attachments.len(), 1);
    assert!(read[0].messages[1].attachments[0].source.is_some(), "the file is in the export");
}
