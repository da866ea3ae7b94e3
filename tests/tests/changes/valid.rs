//! Whatever happened before it, every bundle that is written is valid.

use anyhow::{Result, ensure};
use satchel_daemon::verify::{self, Options, Signed};
use satchel_tests::histories::{History, Made};

/// Histories, and what happens in each.
const HISTORIES: u64 = 4;
const STEPS: usize = 20;

/// What the official program refuses in every document; an incremental one has no base there.
const REFERENCES: [&str; 5] = ["R-7.2", "R-12.2", "R-12.3", "R-13.2", "R-14.4"];

fn check(made: &Made) -> Result<()> {
    let options = Options { base: made.base.clone(), ..Options::default() };
    let report = verify::path(&made.path, &options)?;
    ensure!(report.valid && report.signature == Signed::Valid, "{:?} after {}", report.issues, made.told);
    // A memory whose successor was erased, or may not leave, names none: that is no reference.
    let leads_out = |issue: &&verify::Finding| {
        (REFERENCES.contains(&issue.check.as_str()) || issue.path.contains("derived_memories"))
            && !issue.message.contains("and the status is")
            && !issue.message.contains("but the status is")
    };
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
    ensure!(bundles >= 4 * STEPS, "{bundles} bundles");
    Ok(())
}
