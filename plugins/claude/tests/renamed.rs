//! What becomes of a field that the provider calls otherwise one day: its words are found, or the receipt says so.

use std::path::Path;

use satchel_importer::testkit::{self, FixtureError};
use satchel_plugin_claude::Claude;

/// What still goes in silence: remarks on artifacts, parts of chats of the design tool, a project's own words, summaries of thoughts.
const KNOWN: [&str; 7] = [
    "artifact-comments: with Key(\"comments\")",
    "batched-folders: with Key(\"comments\")",
    "design-chats: with Key(\"message\")",
    "design-chats: with Key(\"type\")",
    // The description is kept with the memory of the instructions.
    "project-documents: with Key(\"docs\")",
    // Of two lists of messages the other one is taken.
    "roles-instead-of-senders: with Key(\"chat_messages\")",
    "thoughts: with Key(\"summary\")",
];

fn unknown(faults: &[String]) -> Vec<&String> {
    faults.iter().filter(|fault| !KNOWN.iter().any(|known| fault.contains(known))).collect()
}

#[test]
fn no_renamed_field_of_a_fixture_takes_words_away_in_silence() -> Result<(), FixtureError> {
    let faults = testkit::renamed::<Claude>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))?;
    let unknown = unknown(&faults);
    assert!(unknown.is_empty(), "{unknown:#?}");
    Ok(())
}

/// The sample exports beside the repository, where they are.
#[test]
fn no_renamed_field_of_a_sample_takes_words_away_in_silence() -> Result<(), FixtureError> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
    for folder in ["claude", "authored/claude"]
        .map(|name| samples.join(name))
        .into_iter()
        .filter(|folder| folder.is_dir())
    {
        let faults = testkit::renamed_samples::<Claude>(&folder)?;
        let unknown = unknown(&faults);
        assert!(unknown.is_empty(), "{unknown:#?}");
    }
    Ok(())
}
