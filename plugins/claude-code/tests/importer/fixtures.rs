//! The tests that all importers share: fixtures, inputs of the fuzzer, renamed fields, round trip.

#[path = "round_trip/reader.rs"]
mod reader;

use satchel_importer::{importer_tests, round_trip_tests};
use satchel_plugin_claude_code::ClaudeCode;

importer_tests! {
    importer: ClaudeCode,
    fuzz_corpus: "/../../tests/fuzz/corpus/claude-code",
    samples: "claude-code",
    // Signatures of thoughts, encrypted thoughts, and the signature of an address.
    secrets: (
        ["tools-and-branches", "pictures-documents-and-searches"],
        "msg_",
        ["c2VjcmV0", "SECRET"]
    ),
}

round_trip_tests! {
    importer: ClaudeCode,
    reader: reader::ROUND,
    least: (15, 70),
    undetected: [],
    samples: "claude-code",
}
