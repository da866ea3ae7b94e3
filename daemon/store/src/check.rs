//! What `doctor` asks: does every byte still say what was written?

pub(crate) mod blobs;
mod compare;

use compare::Comparer;

use crate::{
    apply::{Applier, Tally},
    engine,
    error::StoreError,
    journal::{Position, scan::Acknowledged, segments::Segments},
    keys, read,
    report::{CheckProgress, CheckReport, Damage, Health, StateDigest},
    store::Store,
    value::{ConversationValue, MemoryValue, PlainValue, RelationValue},
};

/// The kinds of records in the digest, in the order of their keys.
const SUMMED: [u8; 5] = [keys::CONVERSATION, keys::MEMORY, keys::EMBEDDING, keys::EVIDENCE, keys::RELATION];

/// Problems listed one by one; the rest is counted in a last line.
const MAX_PROBLEMS: usize = 1_000;

impl Store {
    /// Checks the store while it is in use. `deep` reads every frame of the journal, unpacks every body, compares every record of the
    /// engine with its frame and hashes every blob; otherwise segments are checked for being there, and the engine's sums.
    ///
    /// # Errors
    /// What the file system or the engine refuse; what is found damaged is in the report.
    pub fn check(
        &self,
        deep: bool,
        progress: &mut dyn FnMut(CheckProgress),
    ) -> Result<CheckReport, StoreError> {
        let mut progress = |reached| {
            progress(reached);
            Ok(())
        };
        self.check_seeing(deep, &mut progress, &mut |_| {})
    }

    /// As [`Store::check`]; `seen` is shown what each frame holds that is read, unpacked and unsealed. The check ends where
    /// `progress` returns an error.
    ///
    /// # Errors
    /// As [`Store::check`], and what `progress` returns.
    pub fn check_seeing(
        &self,
        deep: bool,
        progress: &mut dyn FnMut(CheckProgress) -> Result<(), StoreError>,
        seen: &mut dyn FnMut(&[u8]),
    ) -> Result<CheckReport, StoreError> {
        let mut report = CheckReport::default();
        let (position, revision) = self.while_quiet(|meta| (meta.position, meta.revision));
        let found = self.check_journal(deep, (position, revision), progress, seen, &mut report);
        unreadable(found, &mut report)?;
        self.found_damage(&report.damage);
        let found = self.check_sums(&mut report);
        unreadable(found, &mut report)?;
        if deep {
            blobs::check(self, &mut report)?;
        }
        shorten(&mut report.engine_problems);
        shorten(&mut report.blob_problems);
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
        let home = self.reader().home().clone();
        let Some(mut segments) = Segments::list(self.reader().disk(), home.folder, home.seal)? else {
            return Ok(());
        };
        segments.clip(position);
        let acknowledged = Acknowledged { segment: position.segment, offset: position.offset, revision };
        let mut comparer = Comparer::new(self, revision);
        let mut done = 0;
        let (from, before) =
            if deep { (Segments::beginning(), 0) } else { segments.start(position, revision) };
        let total = segments.bytes_from(from);
        let outcome = segments.scan(from, before, acknowledged, &mut |visit| {
            done += visit.header.frame_length();
            progress(CheckProgress { done, total })?;
            if deep { comparer.frame(visit, seen) } else { Ok(()) }
        })?;
        comparer.end();
        report.frames = outcome.frames;
        report.damage = outcome.damage;
        report.records = comparer.records;
        report.engine_problems = comparer.problems;
        Ok(())
    }

    /// Reads every frame of the journal and answers the places that do not check.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn survey(&self, progress: &mut dyn FnMut(CheckProgress)) -> Result<Vec<Damage>, StoreError> {
        let (position, revision) = self.while_quiet(|meta| (meta.position, meta.revision));
        let mut report = CheckReport::default();
        self.read_journal(position, revision, progress, &mut report)?;
        // What a start found may lie behind the end.
        if let Health::Damaged(known) = self.health()
            && report.damage.is_empty()
        {
            report.damage = known;
        }
        self.found_damage(&report.damage);
        Ok(report.damage)
    }

    /// Reads every frame up to a place, without a look at the engine.
    pub(crate) fn read_journal(
        &self,
        position: Position,
        revision: u64,
        progress: &mut dyn FnMut(CheckProgress),
        report: &mut CheckReport,
    ) -> Result<(), StoreError> {
        let home = self.reader().home().clone();
        let Some(mut segments) = Segments::list(self.reader().disk(), home.folder, home.seal)? else {
            return Ok(());
        };
        segments.clip(position);
        let acknowledged = Acknowledged { segment: position.segment, offset: position.offset, revision };
        let from = Segments::beginning();
        let (mut done, total) = (0, segments.bytes_from(from));
        let outcome = segments.scan(from, 0, acknowledged, &mut |visit| {
            done += visit.header.frame_length();
            progress(CheckProgress { done, total });
            Ok(())
        })?;
        report.frames = outcome.frames;
        report.damage = outcome.damage;
        Ok(())
    }

    /// The sum over all records must be the one that the commits kept. Commits wait for a page of the walk at most.
    fn check_sums(&self, report: &mut CheckReport) -> Result<(), StoreError> {
        let _alone = self.checking();
        self.with_applier(|applier| *applier.tally() = Some(Tally::default()));
        let sums = self.walk_sums();
        let (sum, kept) = match sums {
            Ok(sums) => sums,
            Err(error) => {
                self.with_applier(|applier| *applier.tally() = None);
                return Err(error);
            }
        };
        if sum != kept {
            report.engine_problems.push(format!("the records sum up to {sum}, the commits to {kept}"));
        }
        Ok(())
    }

    /// Returns the sum over the records, and the one of the commits at the same moment.
    fn walk_sums(&self) -> Result<(StateDigest, StateDigest), StoreError> {
        for kind in SUMMED {
            while self.with_applier(|applier| count_page(applier, kind))? {}
        }
        Ok(self.with_applier(|applier| {
            let sum = applier.tally().take().map(|tally| tally.sum()).unwrap_or_default();
            (sum, applier.meta().digest)
        }))
    }
}

/// Counts the next records of a kind; false if there are no more.
fn count_page(applier: &mut Applier, kind: u8) -> Result<bool, StoreError> {
    let engine = applier.engine();
    let Some(tally) = applier.tally() else { return Ok(false) };
    let after = tally.passed().map(<[u8]>::to_vec);
    let mut counted = 0;
    engine::walk::<StoreError>(engine.as_ref(), &[kind], after.as_deref(), |key, value| {
        tally.count(key, &share(kind, value)?);
        counted += 1;
        Ok(counted < engine::SCAN)
    })?;
    Ok(counted == engine::SCAN)
}

fn share(kind: u8, value: &[u8]) -> Result<[u8; 32], StoreError> {
    let what = "a record";
    let stored = match kind {
        keys::MEMORY => read::read(value, what, MemoryValue::take)?.stored,
        keys::CONVERSATION => read::read(value, what, ConversationValue::take)?.stored,
        keys::RELATION => read::read(value, what, RelationValue::take)?.stored,
        _ => read::read(value, what, PlainValue::take)?.stored,
    };
    Ok(stored.share)
}

/// A value of the engine that does not read is a finding, like one that reads wrong: a rebuild mends both.
fn unreadable(found: Result<(), StoreError>, report: &mut CheckReport) -> Result<(), StoreError> {
    match found {
        Err(StoreError::Engine { problem }) => report.engine_problems.push(problem),
        Err(StoreError::BadValue { what, problem }) => {
            report.engine_problems.push(format!("{what} does not read: {problem}"));
        }
        found => return found,
    }
    Ok(())
}

fn shorten(problems: &mut Vec<String>) {
    let more = problems.len().saturating_sub(MAX_PROBLEMS);
    if more > 0 {
        problems.truncate(MAX_PROBLEMS);
        problems.push(format!("and {more} more"));
    }
}
