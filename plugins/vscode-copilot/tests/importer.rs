//! Tests of the importer on its fixtures, and on damaged and hostile input.

use satchel_importer::{importer_tests, round_trip_tests};
use satchel_plugin_vscode_copilot::VsCodeCopilot;

#[path = "importer/database.rs"]
mod database;
#[path = "importer/fields.rs"]
mod fields;
#[path = "importer/hostile.rs"]
mod hostile;
#[path = "importer/round_trip/reader.rs"]
mod reader;

importer_tests! {
    importer: VsCodeCopilot,
    fuzz_corpus: "/../../tests/fuzz/corpus/vscode-copilot",
    samples: "vscode-copilot",
    // The signature of an address, and a thought that cannot be read.
    secrets: (
        ["a-session-with-references", "pictures", "a-log-of-an-agent", "sessions-in-a-database"],
        "request_",
        ["SECRETKEY", "ENCRYPTEDBLOB"],
    ),
}

round_trip_tests! {
    importer: VsCodeCopilot,
    reader: reader::ROUND,
    least: (20, 84),
    // Requests have no order but that of the file.
    undetected: ["order"],
}
