//! Tests of the importer on its fixtures, and on damaged and hostile input.

use satchel_importer::{importer_tests, round_trip_tests};
use satchel_plugin_goose::Goose;

#[path = "importer/database.rs"]
mod database;
#[path = "importer/fields.rs"]
mod fields;
#[path = "importer/hostile.rs"]
mod hostile;
#[path = "importer/kept.rs"]
mod kept;
#[path = "importer/round_trip/reader.rs"]
mod reader;

importer_tests! {
    importer: Goose,
    fuzz_corpus: "/../../tests/fuzz/corpus/goose",
    samples: "goose",
    // Signatures of thoughts and of addresses, and keys of extensions.
    secrets: (
        ["a-session-with-tools-and-thoughts", "an-export", "pictures-and-files", "sessions-in-a-database"],
        "provider_message_id",
        ["SECRETSIG", "SECRETKEY", "SECRETBLOB"],
    ),
}

round_trip_tests! {
    importer: Goose,
    reader: reader::ROUND,
    least: (7, 45),
    // Each message follows the one before it, so there are no siblings.
    undetected: ["order"],
}
