//! The tests that every importer passes: fixtures, fuzzer inputs, renamed fields, round trip.

#[path = "round_trip/reader.rs"]
mod reader;

use satchel_importer::{importer_tests, round_trip_tests};
use satchel_plugin_memu::MemU;

importer_tests! {
    importer: MemU,
    fuzz_corpus: "/../../tests/fuzz/corpus/memu",
}

round_trip_tests! {
    importer: MemU,
    reader: reader::ROUND,
    least: (9, 21),
    // A conversation has no title, and each message answers the one before.
    undetected: ["title", "order"],
}
