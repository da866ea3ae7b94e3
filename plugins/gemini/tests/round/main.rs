//! Round trip: what is stored of each conversation of every fixture tells what its file told.

mod reader;

use std::path::Path;

use satchel_importer::testkit::FixtureError;
use satchel_plugin_gemini::Gemini;

#[test]
fn what_is_stored_tells_tree_order_times_roles_and_text() -> Result<(), FixtureError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let (compared, faults) = reader::ROUND.check::<Gemini>(&folder)?;
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
    assert!(compared.chats >= 1 && compared.turns >= 1, "{compared:?}");
    Ok(())
}
