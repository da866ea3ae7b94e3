//! Sample exports outside the repository: every record is emitted or skipped, as another parser counts them.

use satchel_importer::testkit::{Sample, conversations};
use satchel_plugin_deepseek::DeepSeek;

fn sample() -> Option<Sample> {
    Sample::read::<DeepSeek>(env!("CARGO_MANIFEST_DIR"), "authored/deepseek")
}

#[test]
fn every_sample_export_balances() {
    let Some(sample) = sample() else { return };
    assert_eq!(sample.exports.len(), 1);
    let first = &sample.exports[0].detection.files[0];
    let count = |file: &str| {
        let value = sample.json(file);
        let list = value.as_array().expect("a list");
        let nodes =
            list.iter().filter_map(|item| item["mapping"].as_object()).flat_map(|nodes| nodes.values());
        (list.len(), nodes.filter(|node| node["message"].is_object()).count())
    };
    sample.check_counts(
        |file| (file == first).then(|| count(file)),
        |record| Some(record.messages.iter().filter(|message| !message.is_thought).count()),
    );
}

#[test]
fn the_sample_has_its_known_content() {
    let Some(sample) = sample() else { return };
    let record = conversations(&sample.exports[0].lines)[0];
    assert_eq!(record.current.as_deref(), Some("2"), "not the busy answer, which is newer");
    let answer = record.messages.iter().find(|message| message.id == "2").expect("the answer");
    assert_eq!(answer.citations[0].url.as_deref(), Some("https://example.com/a"));
    let names: Vec<&str> = answer.tool_calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["SEARCH", "TOOL_SEARCH", "TOOL_OPEN"]);
    assert!(
        record.messages.iter().any(|message| message.is_thought && message.parent.as_deref() == Some("1"))
    );
}
