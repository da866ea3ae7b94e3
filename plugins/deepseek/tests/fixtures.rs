//! Each folder of `fixtures/` is a behaviour: what the importer makes of `input/` stands in `expected.json`.

use std::error::Error;

use satchel_importer::{Bundle, testkit};
use satchel_plugin_deepseek::DeepSeek;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");

#[test]
fn every_fixture_gives_what_is_expected() -> Result<(), Box<dyn Error>> {
    Ok(testkit::check::<DeepSeek>(FIXTURES)?)
}

#[test]
fn mail_address_and_telephone_number_go_nowhere() -> Result<(), Box<dyn Error>> {
    let bundle = Bundle::from_folder(&std::path::Path::new(FIXTURES).join("whole-export/input"))?;
    let text = testkit::produce::<DeepSeek>(&bundle)?.to_json()?.to_string();
    assert!(text.contains("u-1"), "the account is known");
    assert!(!text.contains("example.invalid") && !text.contains("SECRET"));
    Ok(())
}

/// Inputs of the fuzzer: those made of the fixtures, and those that showed a mistake.
#[test]
fn no_input_of_the_fuzzer_is_too_much() -> Result<(), testkit::Flaw> {
    testkit::replay::<DeepSeek>(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fuzz/corpus/deepseek"))
        .map(drop)
}
