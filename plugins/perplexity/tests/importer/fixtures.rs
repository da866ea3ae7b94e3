//! The tests that all importers share: fixtures, inputs of the fuzzer, renamed fields, round trip.

#[path = "round_trip/reader.rs"]
mod reader;

use satchel_importer::{importer_tests, round_trip_tests};
use satchel_plugin_perplexity::Perplexity;

importer_tests! {
    importer: Perplexity,
    fuzz_corpus: "/../../tests/fuzz/corpus/perplexity",
    samples: "perplexity",
}

round_trip_tests! {
    importer: Perplexity,
    reader: reader::ROUND,
    least: (10, 15),
    // Each turn is the parent of the next.
    undetected: ["order"],
    samples: "perplexity",
}
