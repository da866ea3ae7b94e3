//! The sample exports beside the repository are read whole.

use satchel_importer::testkit::{Sample, conversations, text};
use satchel_plugin_copilot::Copilot;

#[test]
fn the_sample_is_read_whole_and_in_the_order_it_was_said() {
    let Some(sample) = Sample::read::<Copilot>(env!("CARGO_MANIFEST_DIR"), "authored/copilot") else {
        return;
    };
    let lines = sample.lines();
    let read = conversations(&lines);
    assert_eq!(lines.len(), read.len(), "nothing is skipped: {lines:?}");
    let titles: Vec<Option<&str>> = read.iter().map(|record| record.title.as_deref()).collect();
    assert_eq!(titles, [Some("Power, saving"), Some("Untitled")]);
    let said: Vec<String> = read[0].messages.iter().map(text).collect();
    assert_eq!(said, ["First question", "First answer", "second\r\nquestion", "Sure.\r\n\r\n1. do \"this\""]);
}
