//! The tests that every importer passes: fixtures, fuzzer inputs, renamed fields, round trip.

#[path = "round_trip/reader.rs"]
mod reader;

use satchel_importer::{importer_tests, round_trip_tests};
use satchel_plugin_chatgpt::ChatGpt;

importer_tests! {
    importer: ChatGpt,
    fuzz_corpus: "/../../tests/fuzz/corpus/chatgpt",
    samples: "chatgpt",
}

round_trip_tests! {
    importer: ChatGpt,
    reader: reader::ROUND,
    least: (108, 320),
    undetected: [],
    samples: "chatgpt",
}
