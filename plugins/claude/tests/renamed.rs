//! What becomes of a field that the provider calls otherwise one day: its words are found, or the receipt says so.

use satchel_importer::testkit::{self, FixtureError};
use satchel_plugin_claude::Claude;

#[test]
fn no_renamed_field_of_a_fixture_takes_words_away_in_silence() -> Result<(), FixtureError> {
    testkit::renamed::<Claude>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
}

/// The sample exports beside the repository, where they are.
#[test]
fn no_renamed_field_of_a_sample_takes_words_away_in_silence() -> Result<(), FixtureError> {
    testkit::renamed_samples::<Claude>(env!("CARGO_MANIFEST_DIR"), "claude")
}
