//! The tests that all importers share: fixtures, renamed fields, round trip.

#[path = "round_trip/reader.rs"]
mod reader;

use satchel_importer::{importer_tests, round_trip_tests};
use satchel_plugin_codex::Codex;

importer_tests! {
    importer: Codex,
    fuzz_corpus: "/../../tests/fuzz/corpus/codex",
    samples: "codex",
    // Encrypted texts begin like this.
    secrets: (
        ["compaction", "session-with-tools-and-reasoning", "subagent"],
        "natural:",
        ["gAAAA"],
    ),
}

round_trip_tests! {
    importer: Codex,
    reader: reader::ROUND,
    least: (12, 90),
    // Messages have no order but that of the file.
    undetected: ["order"],
    samples: "codex",
}
