//! Does a store hold what it should? Every frame, record and attachment is looked at, while others read and write.

mod orphans;

use std::collections::BTreeSet;

use satchel_merge::body::attachment_hashes;
use satchel_pam::hash::Sha256Digest;
use satchel_store::{CheckProgress, CheckReport, ConversationQuery, Store, StoreError};

/// Conversations that are fetched at once.
const PAGE: usize = 100;
/// Missing attachments that are named one by one; the rest is counted.
const MAX_NAMED: usize = 100;

/// What was looked at, and what is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    /// Frames of the journal that were read.
    pub frames: u64,
    /// Records of the database that were compared with them.
    pub records: u64,
    /// Files of attachments that were hashed.
    pub files: u64,
    /// What is wrong; empty when all is well.
    pub findings: Vec<Finding>,
    /// Files of attachments that no message ever referred to. They harm nobody, and take room.
    pub orphans: Vec<[u8; 32]>,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// `UPPER_SNAKE_CASE`, stable.
    pub reason: &'static str,
    /// What.
    pub message: String,
    /// What to do.
    pub fix: &'static str,
}

/// What brings the bytes of an attachment back: the same bytes of the export alone would count as imported.
const IMPORT_AGAIN: &str = "import the export again that the file came with, with --again";
/// The journal lost bytes.
pub const JOURNAL_DAMAGED: &str = "JOURNAL_DAMAGED";
/// The database differs from the journal.
pub const DATABASE_DIFFERS: &str = "DATABASE_DIFFERS";

/// Looks at everything; nobody imports meanwhile.
///
/// # Errors
/// What the file system or the database refuse; what is found damaged is in the result.
pub fn examine(store: &Store, progress: &mut dyn FnMut(CheckProgress)) -> Result<Examined, StoreError> {
    let mut progress = |reached| {
        progress(reached);
        Ok(())
    };
    examine_while(store, &|| true, &mut progress)
}

/// Looks at everything. While an import runs, as `idle` denies, nobody knows which attachments it is going to refer to. It ends where
/// `progress` returns an error.
///
/// # Errors
/// As [`examine`], and what `progress` returns.
pub fn examine_while(
    store: &Store,
    idle: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(CheckProgress) -> Result<(), StoreError>,
) -> Result<Examined, StoreError> {
    let mut orphans = orphans::Search::begin(store, idle)?;
    let report = store.check_seeing(true, progress, &mut |payload| orphans.see(payload))?;
    let whole = report.damage.is_empty() && report.engine_problems.is_empty();
    let named = report.blob_problems.is_empty();
    let mut examined = examined(report);
    if whole {
        // Which attachments there should be is known only where all messages can be read.
        missing_attachments(store, &mut examined.findings)?;
        examined.orphans = if named { orphans.end() } else { Vec::new() };
    }
    Ok(examined)
}

fn examined(report: CheckReport) -> Examined {
    let CheckReport { frames, records, blobs, damage, engine_problems, blob_problems } = report;
    let damage = damage.into_iter().map(|damage| Finding {
        reason: JOURNAL_DAMAGED,
        message: format!("the journal is damaged: {damage}"),
        fix: "what is left can be read: export it now, then restore a backup with `satchel restore FILE --replace`",
    });
    let engine = engine_problems.into_iter().map(|message| Finding {
        reason: DATABASE_DIFFERS,
        message,
        fix: "stop the daemon and run `satchel doctor --repair`: it builds the database again from the journal",
    });
    let blobs_wrong = blob_problems.into_iter().map(|message| Finding {
        reason: "FILE_DAMAGED",
        message,
        fix: IMPORT_AGAIN,
    });
    let findings = damage.chain(engine).chain(blobs_wrong).collect();
    Examined { frames, records, files: blobs, findings, orphans: Vec::new() }
}

/// Names the attachments that messages refer to and whose files are gone.
fn missing_attachments(store: &Store, findings: &mut Vec<Finding>) -> Result<(), StoreError> {
    let (revision, query) = (store.revision(), ConversationQuery::default());
    let there: BTreeSet<[u8; 32]> = store.blobs()?.into_iter().collect();
    let mut missing: BTreeSet<Sha256Digest> = BTreeSet::new();
    let mut after = None;
    loop {
        let page = store.conversations(&query, after.as_ref(), PAGE, revision)?;
        for summary in page.items {
            let Some(record) = store.conversation(&summary.id, Some(revision))? else { continue };
            for body in store.all_bodies(&record) {
                let hashes = attachment_hashes(&body?.1);
                missing.extend(hashes.into_iter().filter(|hash| !there.contains(hash.as_bytes())));
            }
        }
        let Some(next) = page.next else { break };
        after = Some(next);
    }
    let fix = IMPORT_AGAIN;
    let more = missing.len().saturating_sub(MAX_NAMED);
    for hash in missing.iter().take(MAX_NAMED) {
        let message = format!("the file of attachment {} is gone", hash.to_hex());
        findings.push(Finding { reason: "FILE_MISSING", message, fix });
    }
    if more > 0 {
        let message = format!("and {more} more files of attachments are gone");
        findings.push(Finding { reason: "FILE_MISSING", message, fix });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named_with_what_to_do() {
        let report = CheckReport {
            frames: 1_204,
            records: 12,
            engine_problems: vec!["memory \"m\" differs".to_owned()],
            ..CheckReport::default()
        };
        let Examined { frames, records, findings, .. } = examined(report);
        assert_eq!((frames, records, findings.len()), (1_204, 12, 1));
        assert!(findings.iter().all(|finding| finding.fix.contains("doctor --repair")), "{findings:?}");
    }
}
