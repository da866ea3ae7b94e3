//! Every bundle that is written is valid, whatever happened before it.

use anyhow::{Result, ensure};
use satchel_bundle::verify::{self, SignatureState, VerifyOptions};
use satchel_tests::histories::{History, HistoryExport};

/// Number of histories, and number of steps in each.
const HISTORIES: u64 = 4;
const STEPS: usize = 16;

/// The endings of findings that the official program reports for every document. An incremental export has no base
/// there.
const DANGLING_REFERENCE_ENDINGS: [&str; 5] = [
    "is not in this document",
    "nor in its base",
    "there is no embeddings file",
    "which is not here",
    "is the memory itself",
];

fn check(made: &HistoryExport) -> Result<()> {
    let options =
        VerifyOptions { base: made.base.clone(), keys: made.keys.clone(), ..VerifyOptions::default() };
    let report = verify::path(&made.path, &options)?;
    ensure!(
        report.valid && report.signature == SignatureState::Valid,
        "{:?} after {}",
        report.issues,
        made.steps
    );
    let leads_out = |issue: &&verify::VerifyFinding| {
        DANGLING_REFERENCE_ENDINGS.iter().any(|words| issue.message.ends_with(words))
    };
    let dangling: Vec<_> = report.issues.iter().filter(leads_out).collect();
    ensure!(dangling.is_empty(), "{dangling:?} after {}", made.steps);
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
