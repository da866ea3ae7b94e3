//! The tests that all importers share: fixtures, inputs of the fuzzer, renamed fields, round trip.

#[path = "round_trip/reader.rs"]
mod reader;

use satchel_importer::{importer_tests, round_trip_tests};
use satchel_plugin_deepseek::DeepSeek;

importer_tests! {
    importer: DeepSeek,
    fuzz_corpus: "/../../tests/fuzz/corpus/deepseek",
    samples: "deepseek",
    // Mail address and telephone number.
    secrets: (["whole-export"], "u-1", ["example.invalid", "SECRET"]),
}

round_trip_tests! {
    importer: DeepSeek,
    reader: reader::ROUND,
    least: (27, 59),
    undetected: [],
    samples: "deepseek",
}
