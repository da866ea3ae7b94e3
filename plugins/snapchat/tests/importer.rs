//! Tests of the importer on its fixtures, and on damaged, hostile and growing input.

use satchel_importer::{importer_tests, round_trip_tests};
use satchel_plugin_snapchat::Snapchat;

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
    importer: Snapchat,
    fuzz_corpus: "/../../tests/fuzz/corpus/snapchat",
    samples: "snapchat",
    // What people wrote and their names, addresses of computers, and the signature of an address.
    secrets: (
        ["chats-with-people", "a-chat-among-chats", "a-chat-with-my-ai", "odd-entries"],
        "snapchat-importer",
        ["PRIVATEWORDS", "ola.strand", "mari.k", "Choir", "198.51.100", "SECRETKEY", "Lena Fjord"],
    ),
}

round_trip_tests! { importer: Snapchat, reader: reader::ROUND, least: (8, 30), undetected: ["title", "order"] }
