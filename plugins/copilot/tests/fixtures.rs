//! Each folder of `fixtures/` is a behaviour: what the importer makes of `input/` stands in `expected.json`.

use std::error::Error;

use satchel_importer::testkit;
use satchel_plugin_copilot::Copilot;

#[test]
fn every_fixture_gives_what_is_expected() -> Result<(), Box<dyn Error>> {
    Ok(testkit::check::<Copilot>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))?)
}
