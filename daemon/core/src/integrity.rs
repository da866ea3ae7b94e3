//! Checks whether a store is intact. Reads every frame, record and attachment, while other tasks read and write.

mod orphans;

use std::collections::BTreeSet;

use satchel_merge::body::attachment_hashes;
use satchel_pam::hash::Sha256Digest;
use satchel_store::{CheckProgress, CheckReport, ConversationQuery, Cursor, Store, StoreError};

/// Conversations per page.
const PAGE: usize = 100;
/// Maximum number of missing attachments that are reported individually; the others are only counted.
const MAX_NAMED: usize = 100;

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntegrityReport {
    /// Number of journal frames that were read.
    pub frames: u64,
    /// Number of database records that were compared with the journal.
    pub records: u64,
    /// Number of attachment files that were hashed.
    pub files: u64,
    /// The problems that were found. Empty if the store is intact.
    pub findings: Vec<IntegrityFinding>,
    /// Attachment files that no message ever referred to. They are harmless, but take space.
    pub orphans: Vec<[u8; 32]>,
}

/// A problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntegrityFinding {
    /// A stable identifier in `UPPER_SNAKE_CASE`.
    pub reason: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub fix: &'static str,
}

/// How to restore the bytes of an attachment. The option is needed because the same export would otherwise count as
/// imported already.
const IMPORT_AGAIN: &str = "import the export again that the file came with, with --again";
/// The journal has lost data.
pub const JOURNAL_DAMAGED: &str = "JOURNAL_DAMAGED";
/// The database differs from the journal.
pub const DATABASE_DIFFERS: &str = "DATABASE_DIFFERS";

/// Checks everything. No import may run at the same time.
///
/// # Errors
/// The file system or the database refuses. Damage is reported in the result.
pub fn check(store: &Store, progress: &mut dyn FnMut(CheckProgress)) -> Result<IntegrityReport, StoreError> {
    let mut progress = |reached| {
        progress(reached);
        Ok(())
    };
    check_while(store, &|| true, &mut progress)
}

/// Checks everything. While an import runs (`idle` returns false), orphaned attachments are not reported, because it is
/// not known which attachments the import will refer to. The check ends if `progress` returns an error.
///
/// # Errors
/// As [`check`], and the errors of `progress`.
pub fn check_while(
    store: &Store,
    idle: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(CheckProgress) -> Result<(), StoreError>,
) -> Result<IntegrityReport, StoreError> {
    let mut orphans = orphans::OrphanSearch::begin(store, idle)?;
    let report = store.check_with(true, progress, &mut |payload| orphans.scan(payload))?;
    let intact = report.damage.is_empty() && report.engine_problems.is_empty();
    let named = report.blob_problems.is_empty();
    let mut checked = to_report(report);
    if intact {
        // The set of expected attachments is known only if all messages can be read.
        missing_attachments(store, &mut checked.findings)?;
        checked.orphans = if named { orphans.finish() } else { Vec::new() };
    }
    Ok(checked)
}

fn to_report(report: CheckReport) -> IntegrityReport {
    let CheckReport { frames, records, blobs, damage, engine_problems, blob_problems } = report;
    let damage = damage.into_iter().map(|damage| IntegrityFinding {
        reason: JOURNAL_DAMAGED,
        message: format!("the journal is damaged: {damage}"),
        fix: "what is left can be read: export it now, then restore a backup with `satchel restore FILE --replace`",
    });
    let engine = engine_problems.into_iter().map(|message| IntegrityFinding {
        reason: DATABASE_DIFFERS,
        message,
        fix: "stop the daemon and run `satchel doctor --repair`: it builds the database again from the journal",
    });
    let blobs_wrong = blob_problems.into_iter().map(|message| IntegrityFinding {
        reason: "FILE_DAMAGED",
        message,
        fix: IMPORT_AGAIN,
    });
    let findings = damage.chain(engine).chain(blobs_wrong).collect();
    IntegrityReport { frames, records, files: blobs, findings, orphans: Vec::new() }
}

/// Reports the attachments that messages refer to and whose files are missing.
fn missing_attachments(store: &Store, findings: &mut Vec<IntegrityFinding>) -> Result<(), StoreError> {
    let (revision, query) = (store.revision(), ConversationQuery::default());
    let there: BTreeSet<[u8; 32]> = store.blobs()?.into_iter().collect();
    let mut missing: BTreeSet<Sha256Digest> = BTreeSet::new();
    let page = |after: Option<&Cursor>| store.conversations(&query, after, PAGE, revision);
    crate::each_row(page, |summary| {
        let Some(record) = store.conversation(&summary.id, Some(revision))? else { return Ok(()) };
        for body in store.all_bodies(&record) {
            let hashes = attachment_hashes(&body?.1);
            missing.extend(hashes.into_iter().filter(|hash| !there.contains(hash.as_bytes())));
        }
        Ok(())
    })?;
    let fix = IMPORT_AGAIN;
    let more = missing.len().saturating_sub(MAX_NAMED);
    for hash in missing.iter().take(MAX_NAMED) {
        let message = format!("the file of attachment {} is gone", hash.to_hex());
        findings.push(IntegrityFinding { reason: "FILE_MISSING", message, fix });
    }
    if more > 0 {
        let message = format!("and {more} more files of attachments are gone");
        findings.push(IntegrityFinding { reason: "FILE_MISSING", message, fix });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_names_a_fix() {
        let report = CheckReport {
            frames: 1_204,
            records: 12,
            engine_problems: vec!["memory \"m\" differs".to_owned()],
            ..CheckReport::default()
        };
        let IntegrityReport { frames, records, findings, .. } = to_report(report);
        assert_eq!((frames, records, findings.len()), (1_204, 12, 1));
        assert!(findings.iter().all(|finding| finding.fix.contains("doctor --repair")), "{findings:?}");
    }
}
