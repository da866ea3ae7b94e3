//! The sample exports beside the repository: this provider's are read whole, those of others are left alone.

use std::path::{Path, PathBuf};

use satchel_importer::{
    Bundle, Importer, Line, Sink,
    pam::record::{ConversationRecord, MessageRecord},
};
use satchel_plugin_perplexity::Perplexity;

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
    for detection in Perplexity::detect(&bundle).expect("detection answers") {
        Perplexity::run(&detection.format, &bundle.only(&detection.files), &mut sink)
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
        "authored/mistral",
    ] {
        if let Some(folder) = samples(name) {
            let bundle = Bundle::from_folder(&folder).expect("the folder can be listed");
            assert_eq!(Perplexity::detect(&bundle).expect("detection answers"), [], "{name}");
        }
    }
}

#[test]
fn the_samples_are_read_whole() {
    let Some(folder) = samples("authored/perplexity") else { return };
    let lines = import(&folder);
    let read = conversations(&lines);
    assert_eq!((lines.len(), read.len()), (2, 2), "nothing is skipped: {lines:?}");
    let said = |at: usize| read[at].messages.iter().map(text).collect::<Vec<String>>();
    assert_eq!((read[0].id.as_str(), said(0)), ("th1", vec!["Q".to_owned(), "A [1]".to_owned()]));
    assert_eq!((read[1].id.as_str(), said(1)), ("ctx", vec!["Q?".to_owned(), "chunked".to_owned()]));
    assert_eq!(read[0].messages[1].citations.len(), 1);
}
