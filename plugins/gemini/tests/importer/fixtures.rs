//! The tests that every importer passes: fixtures, inputs of the fuzzer, renamed fields, round trip.

#[path = "round_trip/reader.rs"]
mod reader;

use std::path::Path;

use satchel_importer::{Bundle, ImportError, importer_tests, round_trip_tests, testkit::produce};
use satchel_plugin_gemini::Gemini;

importer_tests! {
    importer: Gemini,
    fuzz_corpus: "/../../tests/fuzz/corpus/gemini",
    samples: "gemini",
    secrets: (["secrets"], "person-17", ["SECRET", "example.invalid"]),
}

round_trip_tests! {
    importer: Gemini,
    reader: reader::ROUND,
    least: (68, 94),
    undetected: [],
    samples: "gemini",
}

#[test]
fn records_of_other_providers_are_left_alone() -> Result<(), ImportError> {
    let bundle = Bundle::from_folder(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/others-are-left-alone/input"),
    )?;
    let produced = produce::<Gemini>(&bundle)?;
    assert!(produced.exports.is_empty(), "{:?}", produced.exports);
    Ok(())
}
