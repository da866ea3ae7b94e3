//! Makes scheduled exports, and removes those that are no longer needed.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use satchel_pam::time::Timestamp;
use satchel_source::envelope::ExportEncryption;
use uuid::Uuid;

use super::{ExportError, ExportFormat, ExportRecord, ExportRequest, Exports, Extent, FULL, Selection};
use crate::{data_dir, export_ledger, schedule::ScheduledExports};

impl Exports {
    /// Makes the scheduled export if one is due, and removes exports that are no longer needed. Returns `None` if none
    /// is due.
    ///
    /// # Errors
    /// As [`Exports::create`], and if an older export cannot be removed.
    pub fn run_schedule(&self, plan: &ScheduledExports) -> Result<Option<ExportRecord>, ExportError> {
        let made = self.scheduled()?;
        let now = self.0.clock.now_micros();
        // An export dated in the future by a wrong clock does not tell when the next one is due.
        let last = made.iter().map(|record| record.at_micros).find(|at| *at <= now);
        if !plan.schedule.is_due(last, now) {
            return Ok(None);
        }
        let lock = ExportEncryption::parse(&plan.recipients, None)?;
        let request = ExportRequest {
            output: plan.folder.join(file_name(now, lock.is_some())),
            format: ExportFormat::Pam,
            conversations: true,
            attachments: false,
            extent: Extent::Incremental { base: None },
            selection: Selection::default(),
            lock,
        };
        data_dir::refuse_inside(self.0.store.dir(), &request.output)?;
        let record = self.write(&request, true, &|_| true)?;
        let made: Vec<ExportRecord> = std::iter::once(record.clone()).chain(made).collect();
        for old in expired(&made, plan.keep) {
            remove_expired(plan, old)?;
        }
        Ok(Some(record))
    }

    /// Returns the scheduled exports whose files still exist, newest first. The newest is included even if its file was
    /// removed, because it tells when the next one is due.
    fn scheduled(&self) -> Result<Vec<ExportRecord>, ExportError> {
        let mut found = Vec::new();
        export_ledger::for_each(&self.0.store, |record| {
            let wanted = record.scheduled && (found.is_empty() || Path::new(&record.path).exists());
            found.extend(wanted.then_some(record));
            true
        })?;
        Ok(found)
    }
}

/// Returns a unique name that sorts by time.
fn file_name(now: i64, encrypted: bool) -> String {
    let date = Timestamp::saturating(now - now.rem_euclid(1_000_000)).to_string();
    let mut suffix = Uuid::new_v4().to_string();
    suffix.truncate(4);
    let end = if encrypted { "zip.age" } else { "zip" };
    format!("satchel-{}-{suffix}.{end}", date.replace(':', "").trim_end_matches('Z'))
}

/// Removes the file of an export from the schedule's folder. An export that was moved elsewhere belongs to the user,
/// and stays.
fn remove_expired(plan: &ScheduledExports, old: &ExportRecord) -> Result<(), ExportError> {
    let path = PathBuf::from(&old.path);
    let folder = fs::canonicalize(&plan.folder).map_err(ExportError::write(&plan.folder))?;
    if path.parent() != Some(folder.as_path()) {
        return Ok(());
    }
    match fs::remove_file(&path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(ExportError::Write { path, source }),
        _ => Ok(()),
    }
}

/// Returns which scheduled exports may be removed. `made` is ordered newest first. The newest `keep` full exports are
/// kept, and of each full export only the newest incremental one.
fn expired(made: &[ExportRecord], keep: usize) -> Vec<&ExportRecord> {
    let (mut fulls, mut with_increment) = (BTreeSet::new(), BTreeSet::new());
    let mut kept = Vec::new();
    for record in made.iter().filter(|record| record.export_type == FULL) {
        if fulls.len() < keep.max(1) {
            fulls.insert(record.export_id.as_str());
            kept.push(record.export_id.as_str());
        }
    }
    for record in made.iter().filter(|record| record.export_type != FULL) {
        let base = record.base_export_id.as_deref().unwrap_or_default();
        // An incremental export is useless if its scheduled base was removed. It is kept if its base was made by hand.
        let base_exists = fulls.contains(base) || made.iter().all(|other| other.export_id != base);
        if base_exists && with_increment.insert(base) {
            kept.push(record.export_id.as_str());
        }
    }
    made.iter().filter(|record| !kept.contains(&record.export_id.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export_ledger::INCREMENTAL;

    fn record(id: &str, base: Option<&str>) -> ExportRecord {
        ExportRecord {
            export_id: id.into(),
            export_type: if base.is_some() { INCREMENTAL } else { FULL }.into(),
            base_export_id: base.map(str::to_owned),
            scheduled: true,
            ..ExportRecord::default()
        }
    }

    #[test]
    fn the_newest_full_exports_are_kept_with_their_newest_increments() {
        let made = [
            record("g", Some("f")),
            record("f", None),
            record("e", Some("c")),
            record("d", Some("c")),
            record("c", None),
            record("b", Some("a")),
            record("a", None),
            record("h", Some("made by hand")),
        ];
        let gone = |keep| expired(&made, keep).iter().map(|one| one.export_id.as_str()).collect::<Vec<_>>();
        assert_eq!(gone(3), ["d"]);
        assert_eq!(gone(2), ["d", "b", "a"]);
        assert_eq!(gone(0), gone(1));
        assert_eq!(gone(1), ["e", "d", "c", "b", "a"]);
    }
}
