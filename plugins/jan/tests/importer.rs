//! Tests of the importer on its fixtures, and on damaged and hostile input.

use satchel_importer::{importer_tests, round_trip_tests};
use satchel_plugin_jan::Jan;

#[path = "importer/fields.rs"]
mod fields;
#[path = "importer/growth.rs"]
mod growth;
#[path = "importer/hostile.rs"]
mod hostile;
#[path = "importer/round_trip/reader.rs"]
mod reader;

importer_tests! {
    importer: Jan,
    fuzz_corpus: "/../../tests/fuzz/corpus/jan",
    samples: "jan",
}

round_trip_tests! {
    importer: Jan,
    reader: reader::ROUND,
    least: (9, 35),
    // Versions of the same time, the only ones whose places a mistake could swap, are sorted by their ids.
    undetected: ["order"],
}
