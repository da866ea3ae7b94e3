//! Tests of the importer on its fixtures, and on damaged, hostile and growing input.

use satchel_importer::{importer_tests, round_trip_tests};
use satchel_plugin_dti::Dti;

#[path = "importer/detection.rs"]
mod detection;
#[path = "importer/fields.rs"]
mod fields;
#[path = "importer/growth.rs"]
mod growth;
#[path = "importer/hostile.rs"]
mod hostile;
#[path = "importer/round_trip/reader.rs"]
mod reader;

importer_tests! {
    importer: Dti,
    fuzz_corpus: "/../../tests/fuzz/corpus/dti",
    samples: "dti",
    // Mail addresses, a telephone number, and the queries of addresses.
    secrets: (
        ["a-conversation", "one-of-several-pages", "several-people-and-models", "senders-nobody-identifies", "times-of-the-export"],
        "dti-importer",
        ["example.org\"", "nadia.okoye@", "lost@", "5550 117", "SECRETKEY", "PAGETOKEN"],
    ),
}

round_trip_tests! { importer: Dti, reader: reader::ROUND, least: (10, 36), undetected: ["order"] }
