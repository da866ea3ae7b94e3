//! Each folder of `fixtures/` is a behaviour: what the importer makes of `input/` stands in `expected.json`.

use std::error::Error;

use satchel_importer::testkit;
use satchel_plugin_perplexity::Perplexity;

#[test]
fn every_fixture_gives_what_is_expected() -> Result<(), Box<dyn Error>> {
    Ok(testkit::check::<Perplexity>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))?)
}

/// Inputs of the fuzzer: those made of the fixtures, and those that showed a mistake.
#[test]
fn no_input_of_the_fuzzer_is_too_much() -> Result<(), testkit::Flaw> {
    testkit::replay::<Perplexity>(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fuzz/corpus/perplexity"))
        .map(drop)
}
