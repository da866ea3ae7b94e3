//! The checks behind `doctor`: whether every byte is still as it was written.

pub(crate) mod blobs;
mod compare;

use compare::Comparer;

use crate::{
    apply::{Applier, DigestWalk},
    engine,
    error::StoreError,
    journal::{Acknowledged, JournalContext, Position, scan::VisitedFrame, segments::Segments},
    keys,
    report::{CheckProgress, CheckReport, Damage, Health, StateDigest},
    store::Store,
    value::{ConversationValue, MemoryValue, PlainValue, RelationValue, decode},
};

/// The kinds of records that the digest covers, in the order of their keys.
const DIGESTED_KINDS: [u8; 5] =
    [keys::CONVERSATION, keys::MEMORY, keys::EMBEDDING, keys::EVIDENCE, keys::RELATION];

/// Maximum number of problems that are listed. A last line counts the rest.
const MAX_PROBLEMS: usize = 1_000;

impl Store {
    /// Checks the store while it is in use. With `deep`, reads every frame of the journal, unpacks every body, compares every
    /// record of the engine with its frame, and hashes every blob. Otherwise only the presence of the segments and the engine's
    /// sums are checked.
    ///
    /// # Errors
    /// Any error of the file system or the engine. Damage that is found is in the report instead.
    pub fn check(
        &self,
        deep: bool,
        progress: &mut dyn FnMut(CheckProgress),
    ) -> Result<CheckReport, StoreError> {
        let mut progress = |reached| {
            progress(reached);
            Ok(())
        };
        self.check_with(deep, &mut progress, &mut |_| {})
    }

    /// Checks the store as [`Store::check`] does. `seen` receives the content of each frame that is read, unpacked and unsealed.
    /// The check ends when `progress` returns an error.
    ///
    /// # Errors
    /// The errors of [`Store::check`], and the error that `progress` returns.
    pub fn check_with(
        &self,
        deep: bool,
        progress: &mut dyn FnMut(CheckProgress) -> Result<(), StoreError>,
        seen: &mut dyn FnMut(&[u8]),
    ) -> Result<CheckReport, StoreError> {
        let mut report = CheckReport::default();
        let (position, revision) = self.with_meta(|meta| (meta.position, meta.revision));
        let found = self.check_journal(deep, (position, revision), progress, seen, &mut report);
        report_unreadable(found, &mut report)?;
        self.record_damage(&report.damage);
        let found = self.check_sums(&mut report);
        report_unreadable(found, &mut report)?;
        if deep {
            blobs::check(self, &mut report)?;
        }
        truncate_list(&mut report.engine_problems);
        truncate_list(&mut report.blob_problems);
        Ok(report)
    }

    fn check_journal(
        &self,
        deep: bool,
        (position, revision): (Position, u64),
        progress: &mut dyn FnMut(CheckProgress) -> Result<(), StoreError>,
        seen: &mut dyn FnMut(&[u8]),
        report: &mut CheckReport,
    ) -> Result<(), StoreError> {
        let mut comparer = Comparer::new(self, revision);
        self.scan_journal(deep, (position, revision), report, &mut |visit, reached| {
            progress(reached)?;
            if deep { comparer.frame(visit, seen) } else { Ok(()) }
        })?;
        comparer.finish();
        report.records = comparer.records;
        report.engine_problems = comparer.problems;
        Ok(())
    }

    /// Reads every frame of the journal and returns the places that are damaged.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn find_damage(&self, progress: &mut dyn FnMut(CheckProgress)) -> Result<Vec<Damage>, StoreError> {
        let (position, revision) = self.with_meta(|meta| (meta.position, meta.revision));
        let mut report = CheckReport::default();
        self.read_journal(position, revision, progress, &mut report)?;
        // Damage that was found at the start may lie after this position.
        if let Health::Damaged(known) = self.health()
            && report.damage.is_empty()
        {
            report.damage = known;
        }
        self.record_damage(&report.damage);
        Ok(report.damage)
    }

    /// Reads every frame up to a position, without using the engine.
    pub(crate) fn read_journal(
        &self,
        position: Position,
        revision: u64,
        progress: &mut dyn FnMut(CheckProgress),
        report: &mut CheckReport,
    ) -> Result<(), StoreError> {
        self.scan_journal(true, (position, revision), report, &mut |_, reached| {
            progress(reached);
            Ok(())
        })
    }

    /// Scans the journal up to a position, from its beginning if `deep`, otherwise only what follows the position.
    fn scan_journal(
        &self,
        deep: bool,
        (position, revision): (Position, u64),
        report: &mut CheckReport,
        visit: &mut dyn FnMut(&VisitedFrame<'_>, CheckProgress) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let JournalContext { folder, seal, .. } = self.reader().context().clone();
        let Some(mut segments) = Segments::list(self.reader().disk(), folder, seal)? else { return Ok(()) };
        segments.clip(position);
        let acknowledged = Acknowledged { segment: position.segment, offset: position.offset, revision };
        let (from, before) =
            if deep { (Segments::beginning(), 0) } else { segments.start(position, revision) };
        let (mut done, total) = (0, segments.bytes_from(from));
        let outcome = segments.scan(from, before, acknowledged, &mut |frame| {
            done += frame.header.frame_length();
            visit(frame, CheckProgress { done, total })
        })?;
        report.frames = outcome.frames;
        report.damage = outcome.damage;
        Ok(())
    }

    /// Checks that the sum over all records equals the one that the commits maintain. Commits wait for at most one page of the
    /// walk.
    fn check_sums(&self, report: &mut CheckReport) -> Result<(), StoreError> {
        let _guard = self.lock_checks();
        self.with_applier(|applier| *applier.digest_walk() = Some(DigestWalk::default()));
        let sums = self.walk_sums();
        let (sum, maintained) = match sums {
            Ok(sums) => sums,
            Err(error) => {
                self.with_applier(|applier| *applier.digest_walk() = None);
                return Err(error);
            }
        };
        if sum != maintained {
            report.engine_problems.push(format!("the records sum up to {sum}, the commits to {maintained}"));
        }
        Ok(())
    }

    /// Returns the sum over the records, and the sum that the commits maintained at the same moment.
    fn walk_sums(&self) -> Result<(StateDigest, StateDigest), StoreError> {
        for kind in DIGESTED_KINDS {
            while self.with_applier(|applier| count_page(applier, kind))? {}
        }
        Ok(self.with_applier(|applier| {
            let sum = applier.digest_walk().take().map(|walk| walk.sum()).unwrap_or_default();
            (sum, applier.meta().digest)
        }))
    }
}

/// Counts the next records of a kind. Returns false if there are no more.
fn count_page(applier: &mut Applier, kind: u8) -> Result<bool, StoreError> {
    let engine = applier.engine();
    let Some(walk) = applier.digest_walk() else { return Ok(false) };
    let after = walk.passed().map(<[u8]>::to_vec);
    let mut counted = 0;
    engine::walk::<StoreError>(engine.as_ref(), &[kind], after.as_deref(), |key, value| {
        walk.count(key, &share(kind, value)?);
        counted += 1;
        Ok(counted < engine::SCAN)
    })?;
    Ok(counted == engine::SCAN)
}

fn share(kind: u8, value: &[u8]) -> Result<[u8; 32], StoreError> {
    let what = "a record";
    let stored = match kind {
        keys::MEMORY => decode(value, what, MemoryValue::take)?.stored,
        keys::CONVERSATION => decode(value, what, ConversationValue::take)?.stored,
        keys::RELATION => decode(value, what, RelationValue::take)?.stored,
        _ => decode(value, what, PlainValue::take)?.stored,
    };
    Ok(stored.share)
}

/// Reports an unreadable value of the engine as a finding, like one with wrong content, because a rebuild repairs both.
fn report_unreadable(found: Result<(), StoreError>, report: &mut CheckReport) -> Result<(), StoreError> {
    match found {
        Err(StoreError::Engine { problem }) => report.engine_problems.push(problem),
        Err(StoreError::BadValue { what, problem }) => {
            report.engine_problems.push(format!("{what} does not read: {problem}"));
        }
        found => return found,
    }
    Ok(())
}

fn truncate_list(problems: &mut Vec<String>) {
    let more = problems.len().saturating_sub(MAX_PROBLEMS);
    if more > 0 {
        problems.truncate(MAX_PROBLEMS);
        problems.push(format!("and {more} more"));
    }
}
