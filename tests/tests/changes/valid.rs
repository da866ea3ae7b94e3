//! Every bundle that is written is valid, whatever happened before it.

use anyhow::{Result, ensure};
use satchel_bundle::verify::{self, Options, Signed};
use satchel_tests::histories::{History, Made};

/// Number of histories, and number of steps in each.
const HISTORIES: u64 = 4;
const STEPS: usize = 16;

/// The endings of findings that the official program reports for every document. An incremental export has no base
/// there.
const LEADS_OUT: [&str; 5] = [
    "is not in this document",
    "nor in its base",
    "there is no embeddings file",
    "which is not here",
    "is the memory itself",
];

fn check(made: &Made) -> Result<()> {
    let options = Options { base: made.base.clone(), keys: made.keys.clone(), ..Options::default() };
    let report = verify::path(&made.path, &options)?;
    ensure!(report.valid && report.signature == Signed::Valid, "{:?} after {}", report.issues, made.told);
    let leads_out = |issue: &&verify::Finding| LEADS_OUT.iter().any(|words| issue.message.ends_with(words));
    let dangling: Vec<_> = report.issues.iter().filter(leads_out).collect();
    ensure!(dangling.is_empty(), "{dangling:?} after {}", made.told);
    Ok(())
}

#[test]
fn every_bundle_of_every_history_is_valid() -> Result<()> {
    let mut bundles = 0;
    for seed in 0..HISTORIES {
        let folder = tempfile::tempdir()?;
        for made in History::new(folder.path(), seed)?.run(STEPS)? {
            check(&made)?;
            bundles += 1;
        }
    }
    ensure!(bundles >= STEPS, "{bundles} bundles");
    Ok(())
}
