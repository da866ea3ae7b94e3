//! Tests of the importer on its fixtures, and on damaged and hostile input.

use satchel_importer::{importer_tests, round_trip_tests};
use satchel_plugin_opencode::OpenCode;

#[path = "importer/bounds.rs"]
mod bounds;
#[path = "importer/database.rs"]
mod database;
#[path = "importer/fields.rs"]
mod fields;
#[path = "importer/hostile.rs"]
mod hostile;
#[path = "importer/kept.rs"]
mod kept;
#[path = "importer/layouts.rs"]
mod layouts;
#[path = "importer/round_trip/reader.rs"]
mod reader;

importer_tests! {
    importer: OpenCode,
    fuzz_corpus: "/../../tests/fuzz/corpus/opencode",
    samples: "opencode",
    // Signatures of addresses and of thoughts, keys of shared sessions, accounts, and what is in changed files.
    secrets: (
        [
            "a-session-with-tools-and-thoughts",
            "files-agents-and-subtasks",
            "errors-and-unfinished-answers",
            "subagents-and-archived-sessions",
            "a-storage-for-each-project",
            "parts-inside-of-messages",
            "sessions-in-a-database",
            "a-database-of-a-new-installation",
            "the-whole-folder-of-the-program",
            "sessions-of-version-2",
        ],
        "provider_message_id",
        ["SECRETKEY", "SECRETCONTENT", "SECRETRECENT", "rosa@garden.example", "c2lnbmF0dXJl", "ZW5jcnlwdGVk", "b3JjaGFyZC1zZWNyZXQ", "YmVlcy1zZWNyZXQ"],
    ),
}

round_trip_tests! {
    importer: OpenCode,
    reader: reader::ROUND,
    least: (6, 50),
    // Each message follows the one before it, so there are no siblings.
    undetected: ["order"],
}
