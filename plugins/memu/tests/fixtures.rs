//! Each folder of `fixtures/` is a behaviour: what the importer makes of `input/` stands in `expected.json`.

use satchel_importer::testkit::{self, FixtureError};
use satchel_plugin_memu::MemU;

#[test]
fn every_fixture_gives_what_is_expected() -> Result<(), FixtureError> {
    testkit::check::<MemU>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
}
