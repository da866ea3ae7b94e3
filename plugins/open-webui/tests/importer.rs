//! Tests of the importer on its fixtures, and on damaged and hostile input.

use satchel_importer::{importer_tests, round_trip_tests};
use satchel_plugin_open_webui::OpenWebUi;

#[path = "importer/database.rs"]
mod database;
#[path = "importer/fields.rs"]
mod fields;
#[path = "importer/hostile.rs"]
mod hostile;
#[path = "importer/round_trip/reader.rs"]
mod reader;

importer_tests! {
    importer: OpenWebUi,
    fuzz_corpus: "/../../tests/fuzz/corpus/open-webui",
    samples: "open-webui",
    // The signature of an address.
    secrets: (["files-and-pictures"], "f-1", ["SECRETKEY"]),
}

round_trip_tests! { importer: OpenWebUi, reader: reader::ROUND, least: (33, 90), undetected: [] }
