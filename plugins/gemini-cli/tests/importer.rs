//! Tests of the importer on its fixtures, and on damaged and hostile input.

use satchel_importer::{importer_tests, round_trip_tests};
use satchel_plugin_gemini_cli::GeminiCli;

#[path = "importer/again.rs"]
mod again;
#[path = "importer/fields.rs"]
mod fields;
#[path = "importer/hostile.rs"]
mod hostile;
#[path = "importer/round_trip/reader.rs"]
mod reader;

importer_tests! {
    importer: GeminiCli,
    fuzz_corpus: "/../../tests/fuzz/corpus/gemini-cli",
    samples: "gemini-cli",
    // The signature of an address, and those of thoughts.
    secrets: (["files", "session-with-tools-and-thoughts"], "u-1", ["SECRETKEY", "c2lnbmF0dXJl"]),
}

round_trip_tests! {
    importer: GeminiCli,
    reader: reader::ROUND,
    least: (18, 80),
    // Messages have no order but that of the file.
    undetected: ["order"],
}
