//! What becomes of a field that the provider calls otherwise one day: its words are found, or the receipt says so.

use std::path::Path;

use satchel_importer::testkit::{self, FixtureError};
use satchel_plugin_chatgpt::ChatGpt;

/// What may go in silence: names that the importer puts in place of a mark, without which the mark stands there, and records of
/// samples that have the fields of all types at once, so that another text is taken.
const KNOWN: [&str; 5] = [
    "citations-with-private-use-markers: with Key(\"alt\")",
    "citations-with-private-use-markers: with Key(\"content_references\")",
    "citations-with-private-use-markers: with Key(\"role\")",
    "polylogue-representative-00.json: with Key(\"parts\")",
    "polylogue-representative-01.json: with Key(\"parts\")",
];

fn unknown(faults: &[String]) -> Vec<&String> {
    faults.iter().filter(|fault| !KNOWN.iter().any(|known| fault.contains(known))).collect()
}

#[test]
fn no_renamed_field_of_a_fixture_takes_words_away_in_silence() -> Result<(), FixtureError> {
    let faults = testkit::renamed::<ChatGpt>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))?;
    let unknown = unknown(&faults);
    assert!(unknown.is_empty(), "{unknown:#?}");
    Ok(())
}

/// The sample exports beside the repository, where they are.
#[test]
fn no_renamed_field_of_a_sample_takes_words_away_in_silence() -> Result<(), FixtureError> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
    for folder in ["chatgpt", "authored/chatgpt"]
        .map(|name| samples.join(name))
        .into_iter()
        .filter(|folder| folder.is_dir())
    {
        let faults = testkit::renamed_samples::<ChatGpt>(&folder)?;
        let unknown = unknown(&faults);
        assert!(unknown.is_empty(), "{unknown:#?}");
    }
    Ok(())
}
