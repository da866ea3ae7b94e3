//! Sample exports outside the repository are read completely.

use satchel_importer::testkit::{Sample, conversations, text};
use satchel_plugin_perplexity::Perplexity;

#[test]
fn the_samples_are_read_completely() {
    let Some(sample) = Sample::read::<Perplexity>(env!("CARGO_MANIFEST_DIR"), "authored/perplexity") else {
        return;
    };
    let lines = sample.lines();
    let read = conversations(&lines);
    assert_eq!((lines.len(), read.len()), (2, 2), "nothing is skipped: {lines:?}");
    let texts = |at: usize| read[at].messages.iter().map(text).collect::<Vec<String>>();
    assert_eq!((read[0].id.as_str(), texts(0)), ("th1", vec!["Q".to_owned(), "A [1]".to_owned()]));
    assert_eq!((read[1].id.as_str(), texts(1)), ("ctx", vec!["Q?".to_owned(), "chunked".to_owned()]));
    assert_eq!(read[0].messages[1].citations.len(), 1);
}
