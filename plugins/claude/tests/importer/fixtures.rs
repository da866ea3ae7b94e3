//! The tests that every importer passes: fixtures, fuzzer inputs, renamed fields, round trip.

#[path = "round_trip/reader.rs"]
mod reader;

use satchel_importer::{importer_tests, round_trip_tests};
use satchel_plugin_claude::Claude;

importer_tests! {
    importer: Claude,
    fuzz_corpus: "/../../tests/fuzz/corpus/claude",
    samples: "claude",
    secrets: (
        ["batched-folders", "part-light-metadata"],
        "login_history.json",
        ["SECRET", "example.invalid"],
    ),
}

round_trip_tests! {
    importer: Claude,
    reader: reader::ROUND,
    least: (46, 110),
    undetected: [],
    samples: "claude",
}
