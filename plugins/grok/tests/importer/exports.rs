//! Sample exports outside the repository: every record is emitted or skipped, as another parser counts them.

use satchel_importer::{
    names,
    testkit::{Sample, conversations, evidence},
};
use satchel_plugin_grok::Grok;

fn sample(name: &str) -> Option<Sample> {
    Sample::read::<Grok>(env!("CARGO_MANIFEST_DIR"), name)
}

#[test]
fn every_sample_export_balances() {
    for (name, exports) in [("grok", 2), ("authored/grok", 1)] {
        let Some(sample) = sample(name) else { return };
        assert_eq!(sample.exports.len(), exports, "{name}");
        let count = |file: &str| {
            let value = sample.json(file);
            let list = value["conversations"].as_array()?;
            Some((
                list.len(),
                list.iter().filter_map(|item| item["responses"].as_array()).map(Vec::len).sum(),
            ))
        };
        sample.check_counts(
            |file| names::is_json(file).then(|| count(file))?,
            |record| Some(record.messages.iter().filter(|message| !message.is_thought).count()),
        );
    }
}

#[test]
fn every_sample_file_is_claimed() {
    for sample in ["grok", "authored/grok"].into_iter().filter_map(sample) {
        assert_eq!(sample.unclaimed(), [""; 0], "{}", sample.folder.display());
    }
}

#[test]
fn the_modern_sample_has_its_known_content() {
    let Some(sample) = sample("authored/grok") else { return };
    let lines = &sample.exports[0].lines;
    let record = conversations(lines)[0];
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
    assert_eq!(message("013").attachments.len(), 1, "an image without text");
    assert!(evidence(lines).first().is_some_and(|evidence| evidence.id.starts_with("project_personality/")));
}
