//! Tests of the importer on its fixtures, and on damaged and hostile input.

use satchel_importer::{importer_tests, round_trip_tests};
use satchel_plugin_lm_studio::LmStudio;

#[path = "importer/fields.rs"]
mod fields;
#[path = "importer/growth.rs"]
mod growth;
#[path = "importer/hostile.rs"]
mod hostile;
#[path = "importer/round_trip/reader.rs"]
mod reader;

importer_tests! {
    importer: LmStudio,
    fuzz_corpus: "/../../tests/fuzz/corpus/lm-studio",
    samples: "lm-studio",
    // Settings of plugins may have keys of services in them.
    secrets: (["a-chat-with-thoughts-and-tools"], "1767700010000-0.1111", ["SECRETKEY"]),
}

round_trip_tests! {
    importer: LmStudio,
    reader: reader::ROUND,
    least: (8, 35),
    undetected: [],
}
