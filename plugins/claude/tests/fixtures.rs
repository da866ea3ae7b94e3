//! Each folder of `fixtures/` is a behaviour: what the importer makes of `input/` stands in `expected.json`.

use std::error::Error;

use satchel_importer::{Bundle, testkit};
use satchel_plugin_claude::Claude;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");

#[test]
fn every_fixture_gives_what_is_expected() -> Result<(), Box<dyn Error>> {
    Ok(testkit::check::<Claude>(FIXTURES)?)
}

#[test]
fn secrets_of_an_export_go_nowhere() -> Result<(), Box<dyn Error>> {
    for fixture in ["batched-folders", "part-light-metadata"] {
        let bundle = Bundle::from_folder(&std::path::Path::new(FIXTURES).join(fixture).join("input"))?;
        let text = testkit::produce::<Claude>(&bundle)?.to_json()?.to_string();
        assert!(text.contains("login_history.json"), "{fixture}: the file is named");
        assert!(!text.contains("SECRET"), "{fixture}: what it holds is not");
        assert!(!text.contains("example.invalid"), "{fixture}: mail addresses stay out");
    }
    Ok(())
}

/// Inputs of the fuzzer: those made of the fixtures, and those that showed a mistake.
#[test]
fn no_input_of_the_fuzzer_is_too_much() -> Result<(), testkit::Flaw> {
    testkit::replay::<Claude>(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fuzz/corpus/claude"))
        .map(drop)
}
