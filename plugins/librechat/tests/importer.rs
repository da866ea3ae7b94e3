//! Tests of the importer on its fixtures, and on damaged and hostile input.

use satchel_importer::{importer_tests, round_trip_tests};
use satchel_plugin_librechat::LibreChat;

#[path = "importer/detection.rs"]
mod detection;
#[path = "importer/fields.rs"]
mod fields;
#[path = "importer/hostile.rs"]
mod hostile;
#[path = "importer/round_trip/reader.rs"]
mod reader;

importer_tests! {
    importer: LibreChat,
    fuzz_corpus: "/../../tests/fuzz/corpus/librechat",
    samples: "librechat",
    // The signature of an address, and a page where the person signs in.
    secrets: (
        ["files-and-pictures", "content-parts-of-agents"],
        "librechat-importer",
        ["SECRETKEY", "PRIVATESTATE"],
    ),
}

round_trip_tests! { importer: LibreChat, reader: reader::ROUND, least: (30, 120), undetected: [] }
