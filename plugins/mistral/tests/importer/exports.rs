//! Sample exports outside the repository are read completely.

use satchel_importer::testkit::{Sample, conversations, text};
use satchel_plugin_mistral::Mistral;

#[test]
fn the_sample_is_read_completely() {
    let Some(sample) = Sample::read::<Mistral>(env!("CARGO_MANIFEST_DIR"), "authored/mistral") else {
        return;
    };
    let lines = sample.lines();
    let read = conversations(&lines);
    assert_eq!((lines.len(), read.len()), (1, 1), "nothing is skipped: {lines:?}");
    assert_eq!(read[0].title.as_deref(), Some("Hi"));
    let texts: Vec<(&str, String)> =
        read[0].messages.iter().map(|one| (one.id.as_str(), text(one))).collect();
    assert_eq!(texts, [("m2", "Hello there.".to_owned()), ("m1", "Hi".to_owned())]);
    assert_eq!(read[0].messages[0].parent.as_deref(), Some("m1"));
    assert_eq!(read[0].messages[0].tool_calls.len(), 1);
    assert_eq!(read[0].messages[1].attachments.len(), 1);
    assert!(read[0].messages[1].attachments[0].source.is_some(), "the file is in the export");
}
