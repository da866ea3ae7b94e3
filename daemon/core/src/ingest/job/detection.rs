//! Detects the exports of a source. Damaged parts get receipts of their own, and archives inside archives are opened.

use std::collections::BTreeSet;

use satchel_pam::record::Warning;
use satchel_source::{Bundle, OpenedArchives, ReadFault, UnreadFile, UnreadKind};

use super::ImportTask;
use crate::ingest::{
    IngestError,
    detect::{DetectedExport, DetectionResult, detect},
    receipt::{ImportRecord, ImportStatus},
};

/// Damaged parts that a reason lists.
const NAMED: usize = 3;

impl ImportTask {
    /// Ends archives that cannot be opened, backups and unfinished downloads with receipts of their own.
    pub(super) fn end_unreadable(&self, bundle: Bundle) -> Bundle {
        for unread in bundle.unread() {
            let status = match unread.kind {
                UnreadKind::Skipped => continue,
                UnreadKind::Damaged => ImportStatus::Failed,
                UnreadKind::Backup => ImportStatus::Unrecognized,
                UnreadKind::Downloading => ImportStatus::Waiting,
            };
            let reason = Some(unread.reason.clone());
            self.end(ImportRecord { status, reason, ..self.empty_record(&unread.name) });
        }
        bundle.with_reported(|unread| unread.kind != UnreadKind::Skipped, Vec::new())
    }

    /// Detects the exports in `bundle`. Damaged parts are removed from the bundle, and the files of inner archives are
    /// added.
    pub(super) fn detect_exports(
        &self,
        bundle: &mut Bundle,
    ) -> Result<(Vec<DetectedExport>, Vec<Warning>), IngestError> {
        let mut opened = OpenedArchives::default();
        loop {
            let detected = detect(&self.inner.plugins, bundle, &self.only())?;
            if self.cancel.cancelled() {
                return Ok((Vec::new(), Vec::new()));
            }
            let (found, notes) = match detected {
                DetectionResult::Broken(faults) => {
                    *bundle = self.end_damaged(bundle, &faults, &BTreeSet::new());
                    continue;
                }
                DetectionResult::Found(found, notes, faults) => {
                    let claimed = claimed(&found);
                    let lost: Vec<ReadFault> =
                        faults.into_iter().filter(|fault| !claimed.contains(fault.file.as_str())).collect();
                    *bundle = self.end_damaged(bundle, &lost, &claimed);
                    (found, notes)
                }
            };
            let claimed = claimed(&found);
            let inner = opened.unopened(bundle, &claimed);
            drop(bundle.take_faults());
            if inner.is_empty() {
                let deep = bundle.too_deep(|name| claimed.contains(name));
                *bundle = opened.close_unclaimed(bundle.clone(), &claimed).with_reported(|_| false, deep);
                return Ok((found, notes));
            }
            let (before, after) = (bundle.clone(), bundle.with_opened(&inner)?);
            // Archives that cannot be opened have already ended with their own receipts.
            let whole = |name: &String| after.unread().iter().all(|unread| unread.name != *name);
            let names = inner.into_iter().filter(whole).collect();
            *bundle = self.end_unreadable(after);
            opened.add(before, names);
        }
    }

    /// Ends damaged archives, unless some of their files are claimed anyway, and leaves out the damaged files.
    fn end_damaged(&self, bundle: &Bundle, faults: &[ReadFault], claimed: &BTreeSet<&str>) -> Bundle {
        let used: BTreeSet<&str> = claimed.iter().filter_map(|file| bundle.archive_of(file)).collect();
        let mut ended = BTreeSet::new();
        let mut left_out = Vec::new();
        for fault in faults {
            match &fault.archive {
                Some(archive) if used.contains(archive.as_str()) => left_out.push(fault),
                Some(archive) if ended.insert(archive.as_str()) => {
                    let (status, reason) = (ImportStatus::Failed, Some(fault.message.clone()));
                    self.end(ImportRecord { status, reason, ..self.empty_record(archive) });
                }
                Some(_) => {}
                None => left_out.push(fault),
            }
        }
        let files: BTreeSet<&str> = left_out.iter().map(|fault| fault.file.as_str()).collect();
        let unread = left_out.iter().map(|fault| UnreadFile {
            name: fault.file.clone(),
            reason: fault.message.clone(),
            kind: UnreadKind::Skipped,
        });
        bundle
            .without(|file, archive| {
                files.contains(file) || archive.is_some_and(|archive| ended.contains(archive))
            })
            .with_reported(|_| false, unread.collect())
    }
}

fn claimed(found: &[DetectedExport]) -> BTreeSet<&str> {
    found.iter().flat_map(|found| found.files.iter().map(String::as_str)).collect()
}

/// Returns the files of an export that are in no damaged archive, if the export stopped at `faults`; none if it did not
/// stop.
pub(super) fn whole_files(bundle: &Bundle, mut files: Vec<String>, faults: &[ReadFault]) -> Vec<String> {
    if faults.is_empty() {
        return Vec::new();
    }
    files.retain(|file| {
        let archive = bundle.archive_of(file);
        !faults.iter().any(|fault| match &fault.archive {
            Some(damaged) => archive == Some(damaged),
            None => *file == fault.file,
        })
    });
    files
}

/// Names the damaged parts at which a failed import stopped in its receipt, and returns them.
pub(super) fn name_faults(record: &mut ImportRecord, faults: Vec<ReadFault>) -> Vec<ReadFault> {
    let (ImportStatus::Failed, Some(reason)) = (record.status, &record.reason) else { return Vec::new() };
    // An unreadable attachment does not stop an import, so it is not listed here.
    let faults: Vec<ReadFault> = faults.into_iter().filter(|fault| reason.contains(&fault.error)).collect();
    let mut sentences: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
    sentences.dedup();
    sentences.truncate(NAMED);
    if !sentences.is_empty() {
        record.reason = Some(sentences.join("; "));
    }
    faults
}
