//! The field table of the README, held against every leaf of every fixture.

use std::path::Path;

use satchel_importer::{names, testkit::FieldTable};
use satchel_plugin_perplexity::Perplexity;

#[test]
fn what_the_table_says_of_each_field_is_so() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let table = FieldTable::parse(include_str!("../README.md"), root, &[]);
    let faults = table.faults::<Perplexity>(&folder).expect("the fixtures can be read");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn root(path: &str) -> Option<&'static str> {
    names::is_json(path).then_some("thread")
}
