//! Sample exports outside the repository are read completely.

use satchel_importer::testkit::{Sample, conversations, text};
use satchel_plugin_copilot::Copilot;

#[test]
fn the_sample_is_read_completely_and_in_chronological_order() {
    let Some(sample) = Sample::read::<Copilot>(env!("CARGO_MANIFEST_DIR"), "authored/copilot") else {
        return;
    };
    let lines = sample.lines();
    let read = conversations(&lines);
    assert_eq!(lines.len(), read.len(), "nothing is skipped: {lines:?}");
    let titles: Vec<Option<&str>> = read.iter().map(|record| record.title.as_deref()).collect();
    assert_eq!(titles, [Some("Power, saving"), Some("Untitled")]);
    let texts: Vec<String> = read[0].messages.iter().map(text).collect();
    assert_eq!(
        texts,
        ["First question", "First answer", "second\r\nquestion", "Sure.\r\n\r\n1. do \"this\""]
    );
}
