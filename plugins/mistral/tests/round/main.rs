//! Round trip: what is stored of each conversation of every fixture tells what its file told.

mod reader;

use std::path::Path;

use satchel_importer::testkit::FixtureError;
use satchel_plugin_mistral::Mistral;

#[test]
fn what_is_stored_tells_tree_order_times_roles_and_text() -> Result<(), FixtureError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let (compared, faults) = reader::ROUND.check::<Mistral>(&folder)?;
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
    assert!(compared.chats >= 7 && compared.turns >= 18, "{compared:?}");
    Ok(())
}

/// Samples of real shapes that stand beside the repository where it is developed.
#[test]
fn so_it_is_with_samples_of_real_shapes() -> Result<(), FixtureError> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
    let inputs = ["mistral", "authored/mistral"].into_iter().map(|name| samples.join(name));
    let (compared, faults) = reader::ROUND.check_all::<Mistral>(inputs)?;
    assert!(faults.is_empty(), "{compared:?}, {} faults\n{}", faults.len(), faults.join("\n"));
    Ok(())
}

#[test]
fn the_comparison_finds_faults_in_what_is_stored() -> Result<(), FixtureError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    // A chat has no title, and each message answers the one before.
    assert_eq!(reader::ROUND.blind_to::<Mistral>(&folder)?, ["title", "order"]);
    Ok(())
}
