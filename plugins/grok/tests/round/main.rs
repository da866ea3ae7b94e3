//! Round trip: what is stored of each conversation of every fixture tells what its file told.

mod reader;

use std::path::Path;

use satchel_importer::testkit::FixtureError;
use satchel_plugin_grok::Grok;

#[test]
fn what_is_stored_tells_tree_order_times_roles_and_text() -> Result<(), FixtureError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let (compared, faults) = reader::ROUND.check::<Grok>(&folder)?;
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
    assert!(compared.chats >= 28 && compared.turns >= 68, "{compared:?}");
    Ok(())
}

/// Samples of real shapes that stand beside the repository where it is developed.
#[test]
fn so_it_is_with_samples_of_real_shapes() -> Result<(), FixtureError> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
    let inputs = ["grok", "authored/grok"].into_iter().map(|name| samples.join(name));
    let (compared, faults) = reader::ROUND.check_all::<Grok>(inputs)?;
    assert!(faults.is_empty(), "{compared:?}, {} faults\n{}", faults.len(), faults.join("\n"));
    Ok(())
}

#[test]
fn the_comparison_finds_faults_in_what_is_stored() -> Result<(), FixtureError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    assert_eq!(reader::ROUND.blind_to::<Grok>(&folder)?, [""; 0]);
    Ok(())
}
