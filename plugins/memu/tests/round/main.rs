//! Round trip: what is stored of each conversation of every fixture tells what its file told.

mod reader;

use std::path::Path;

use satchel_importer::testkit::FixtureError;
use satchel_plugin_memu::MemU;

#[test]
fn what_is_stored_tells_tree_order_times_roles_and_text() -> Result<(), FixtureError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let (compared, faults) = reader::ROUND.check::<MemU>(&folder)?;
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
    assert!(compared.chats >= 9 && compared.turns >= 21, "{compared:?}");
    Ok(())
}

#[test]
fn the_comparison_finds_faults_in_what_is_stored() -> Result<(), FixtureError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    // A conversation has no title, and each message answers the one before.
    assert_eq!(reader::ROUND.blind_to::<MemU>(&folder)?, ["title", "order"]);
    Ok(())
}
