//! The tests that all importers share: fixtures, inputs of the fuzzer, renamed fields, round trip.

#[path = "round_trip/reader.rs"]
mod reader;

use satchel_importer::{importer_tests, round_trip_tests};
use satchel_plugin_mistral::Mistral;

importer_tests! {
    importer: Mistral,
    fuzz_corpus: "/../../tests/fuzz/corpus/mistral",
    samples: "mistral",
}

round_trip_tests! {
    importer: Mistral,
    reader: reader::ROUND,
    least: (7, 18),
    // A chat has no title, and each message is the parent of the next.
    undetected: ["title", "order"],
    samples: "mistral",
}
