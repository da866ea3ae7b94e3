//! What becomes of a field that the provider calls otherwise one day: its words are found, or the receipt says so.

use std::path::Path;

use satchel_importer::testkit::{self, FixtureError};
use satchel_plugin_perplexity::Perplexity;

/// What still goes in silence: a block that does not say what it is for.
const KNOWN: [&str; 1] = ["entries: with Key(\"intended_usage\")"];

fn unknown(faults: &[String]) -> Vec<&String> {
    faults.iter().filter(|fault| !KNOWN.iter().any(|known| fault.contains(known))).collect()
}

#[test]
fn no_renamed_field_of_a_fixture_takes_words_away_in_silence() -> Result<(), FixtureError> {
    let faults = testkit::renamed::<Perplexity>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))?;
    let unknown = unknown(&faults);
    assert!(unknown.is_empty(), "{unknown:#?}");
    Ok(())
}

/// The sample exports beside the repository, where they are.
#[test]
fn no_renamed_field_of_a_sample_takes_words_away_in_silence() -> Result<(), FixtureError> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
    for folder in
        ["authored/perplexity"].map(|name| samples.join(name)).into_iter().filter(|folder| folder.is_dir())
    {
        let faults = testkit::renamed_samples::<Perplexity>(&folder)?;
        let unknown = unknown(&faults);
        assert!(unknown.is_empty(), "{unknown:#?}");
    }
    Ok(())
}
