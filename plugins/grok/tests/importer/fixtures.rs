//! The tests that all importers share: fixtures, inputs of the fuzzer, renamed fields, round trip.

#[path = "round_trip/reader.rs"]
mod reader;

use satchel_importer::{importer_tests, round_trip_tests};
use satchel_plugin_grok::Grok;

importer_tests! {
    importer: Grok,
    fuzz_corpus: "/../../tests/fuzz/corpus/grok",
    samples: "grok",
    secrets: (
        ["whole-export", "account-file-that-is-broken"],
        "prod-mc-auth-mgmt-api.json",
        ["SECRET", "example.invalid"],
    ),
}

round_trip_tests! {
    importer: Grok,
    reader: reader::ROUND,
    least: (28, 68),
    undetected: [],
    samples: "grok",
}
