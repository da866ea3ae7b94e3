//! What becomes of a field that the provider calls otherwise one day: its words are found, or the receipt says so.

use std::path::Path;

use satchel_importer::testkit::{self, FixtureError};
use satchel_plugin_mistral::Mistral;

#[test]
fn no_renamed_field_of_a_fixture_takes_words_away_in_silence() -> Result<(), FixtureError> {
    let faults = testkit::renamed::<Mistral>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))?;
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}

/// The sample exports beside the repository, where they are.
#[test]
fn no_renamed_field_of_a_sample_takes_words_away_in_silence() -> Result<(), FixtureError> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
    for folder in
        ["authored/mistral"].map(|name| samples.join(name)).into_iter().filter(|folder| folder.is_dir())
    {
        let faults = testkit::renamed_samples::<Mistral>(&folder)?;
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
    Ok(())
}
