//! Each folder of `fixtures/` is a behaviour: what the importer makes of `input/` stands in `expected.json`.

use std::{error::Error, path::Path};

use satchel_importer::{Bundle, testkit};
use satchel_plugin_gemini::Gemini;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");

#[test]
fn every_fixture_gives_what_is_expected() -> Result<(), Box<dyn Error>> {
    Ok(testkit::check::<Gemini>(FIXTURES)?)
}

#[test]
fn secrets_of_an_export_go_nowhere() -> Result<(), Box<dyn Error>> {
    let bundle = Bundle::from_folder(&Path::new(FIXTURES).join("secrets/input"))?;
    let text = testkit::produce::<Gemini>(&bundle)?.to_json()?.to_string();
    assert!(text.contains("person-17"), "the rest is kept");
    assert!(!text.contains("SECRET"), "{text}");
    assert!(!text.contains("example.invalid"), "mail addresses stay out");
    Ok(())
}

#[test]
fn records_of_other_providers_are_left_alone() -> Result<(), Box<dyn Error>> {
    let bundle = Bundle::from_folder(&Path::new(FIXTURES).join("others-are-left-alone/input"))?;
    let produced = testkit::produce::<Gemini>(&bundle)?;
    assert!(produced.exports.is_empty(), "{:?}", produced.exports);
    Ok(())
}

/// Inputs of the fuzzer: those made of the fixtures, and those that showed a mistake.
#[test]
fn no_input_of_the_fuzzer_is_too_much() -> Result<(), testkit::Flaw> {
    testkit::replay::<Gemini>(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fuzz/corpus/gemini"))
        .map(drop)
}
