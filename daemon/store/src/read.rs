//! Reads at a revision: the current record if it is old enough, otherwise the version that was current then.

pub(crate) mod conversation;
mod evidence;
mod feed;
mod ids;
mod ledger;
pub(crate) mod memory;
mod prefix;
mod relation;

pub use conversation::MessageBodies;
pub use evidence::EvidenceIter;

use crate::{
    change::Origin,
    codec::batch,
    engine::{self, Engine, Pairs, SCAN},
    entry::JournalEntry,
    error::StoreError,
    journal::{ChangeLocation, frame::FrameKind},
    keys::{self, Id16, List},
    query::UNKNOWN_TIME,
    revision::Revision,
    store::Store,
    value::{OldVersion, RecordMeta, decode},
};

/// A reader that finds a writer between two of its keys tries again. The writer finishes a record long before this many attempts.
const READ_ATTEMPTS: usize = 100;

impl Store {
    /// Returns `at`, or the current revision if it is `None`.
    fn at(&self, at: Option<Revision>) -> Result<Revision, StoreError> {
        let current = self.revision();
        match at {
            None => Ok(current),
            Some(at) if at > current => {
                Err(StoreError::FutureRevision { asked: at.get(), current: current.get() })
            }
            Some(at) => Ok(at),
        }
    }

    /// Reads a change from the journal: one of an older version, or one that is too long for the engine.
    fn change(&self, place: ChangeLocation, what: &str) -> Result<(Origin, u64, JournalEntry), StoreError> {
        let frame =
            self.reader().frame(place.segment, place.offset, &[FrameKind::Batch, FrameKind::Note], what)?;
        let (origin, entry) = batch::decode_one(&frame.payload, place.change)
            .map_err(|error| StoreError::BadValue { what: what.to_owned(), problem: error.to_string() })?;
        Ok((origin, frame.header.revision, entry))
    }

    /// Returns all changes of a commit.
    fn changes_at(&self, segment: u32, offset: u64, what: &str) -> Result<Vec<JournalEntry>, StoreError> {
        let frame = self.reader().frame(segment, offset, &[FrameKind::Batch, FrameKind::Note], what)?;
        let (_, entries) = batch::decode(&frame.payload)
            .map_err(|error| StoreError::BadValue { what: what.to_owned(), problem: error.to_string() })?;
        Ok(entries)
    }

    /// Returns the older version of an object that was current at `at`.
    fn older(&self, kind: u8, id: Id16, at: Revision, what: &str) -> Result<Option<OldVersion>, StoreError> {
        let from = keys::version(kind, id, 0);
        let until = keys::version(kind, id, at.get() + 1);
        let found = self.engine().scan(&from, &until, 1, true)?;
        found.first().map(|(_, value)| decode(value, what, OldVersion::take)).transpose()
    }
}

/// Visits the entries of a list, after the key `after` if one is given, until `visit` returns false. Entries with an unknown time
/// come last, although their keys do not: the keys are as earlier versions of the program wrote them.
fn walk_list(
    engine: &dyn Engine,
    list: List,
    after: Option<&[u8]>,
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<bool, StoreError>,
) -> Result<(), StoreError> {
    let prefix = list.prefix();
    let unknown = [prefix.as_slice(), &list.sort(UNKNOWN_TIME).to_be_bytes()].concat();
    let (end, unknown_end) = (keys::after_prefix(&prefix), keys::after_prefix(&unknown));
    let all = [(prefix, unknown.clone()), (unknown_end.clone(), end), (unknown.clone(), unknown_end)];
    // If the previous page ended among the entries with an unknown time, only such entries are left.
    let passed = if after.is_some_and(|after| after.starts_with(&unknown)) { 2 } else { 0 };
    for (from, until) in all.into_iter().skip(passed) {
        let from = match after {
            Some(after) if passed == 2 || !from.starts_with(&unknown) => engine::next_key(after).max(from),
            _ => from,
        };
        let mut pairs = Pairs::new(engine, from, until, SCAN);
        while let Some((key, value)) = pairs.next()? {
            if !visit(&key, &value)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The version that a reader at a revision sees.
enum VisibleVersion {
    /// None: the record was created later.
    Nothing,
    /// The current version.
    Current,
    /// An older version.
    Older,
}

fn seen(stored: &RecordMeta, at: Revision) -> VisibleVersion {
    if stored.created > at.get() {
        VisibleVersion::Nothing
    } else if stored.revision <= at.get() {
        VisibleVersion::Current
    } else {
        VisibleVersion::Older
    }
}

fn parse<T: serde::de::DeserializeOwned>(json: &[u8], what: &str) -> Result<T, StoreError> {
    serde_json::from_slice(json)
        .map_err(|error| StoreError::BadValue { what: what.to_owned(), problem: error.to_string() })
}
