//! The tests that all importers share: fixtures, inputs of the fuzzer, renamed fields, round trip.

#[path = "round_trip/reader.rs"]
mod reader;

use satchel_importer::{importer_tests, round_trip_tests};
use satchel_plugin_copilot::Copilot;

importer_tests! {
    importer: Copilot,
    fuzz_corpus: "/../../tests/fuzz/corpus/copilot",
    samples: "copilot",
}

round_trip_tests! {
    importer: Copilot,
    reader: reader::ROUND,
    least: (22, 48),
    // Each row is the parent of the next.
    undetected: ["order"],
    samples: "copilot",
}
