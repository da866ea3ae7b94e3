//! The lists that records stand in: entries are put, ended, and dropped when no page is pinned to them any more.

use super::Applier;
use crate::{
    change::Origin,
    engine::{Changes, Engine},
    entry::{Facets, Summary},
    error::StoreError,
    keys::{self, Id16, List},
    read::read,
    value::{self, OldVersion, Stored},
};

/// Entries of lists that ended are kept for this time, in microseconds: a week. A page token pins its revision for 24 hours, and
/// each page gives a new one.
const PINNED: u64 = 7 * 24 * 3_600 * 1_000_000;
/// Versions dropped from lists by one commit of their record: more than one, so that what a busy week left is worked off.
const DROPPED_AT_ONCE: usize = 16;

impl Applier {
    /// Drops the entries of versions that were replaced so long before `by` that no reader is pinned to them. Returns the revision of
    /// the oldest version that is still listed. Depends on nothing but the journal, so that a rebuild gives the same keys.
    pub(super) fn unlist(
        &self,
        changes: &mut Changes,
        kind: u8,
        id: Id16,
        old: &Stored,
        by: &Origin,
    ) -> Result<u64, StoreError> {
        let (from, until) = (keys::version(kind, id, old.listed), keys::version(kind, id, old.revision));
        let mut listed = old.listed;
        for (key, value) in self.engine.scan(&from, &until, DROPPED_AT_ONCE, false)? {
            let mut version = read(&value, "an older version", OldVersion::take)?;
            listed = keys::entry_tail(&key).map_or(listed, |(_, revision)| revision);
            // A time far ahead is one of a clock that was set back.
            if version.ended_at.abs_diff(by.at_micros) < PINNED {
                return Ok(listed);
            }
            for entry in std::mem::take(&mut version.entries) {
                changes.delete(entry);
            }
            changes.put(key, version.encode());
            listed += 1;
        }
        Ok(listed)
    }
}

/// Puts the version that is replaced under its own key; `entries` are those that it has in lists.
pub(super) fn history(
    changes: &mut Changes,
    kind: u8,
    id: Id16,
    old: &Stored,
    by: &Origin,
    entries: Vec<Vec<u8>>,
) {
    let Stored { version, place, .. } = *old;
    let ended = OldVersion { version, place, ended_at: by.at_micros, entries };
    changes.put(keys::version(kind, id, old.revision), ended.encode());
}

/// Puts the entries of a version in its lists, ended at revision `end` or, if 0, holding still; returns their keys.
pub(super) fn list_memory(
    engine: &dyn Engine,
    changes: &mut Changes,
    id: Id16,
    facets: &Facets,
    revision: u64,
    end: u64,
) -> Vec<Vec<u8>> {
    let mut entries = Vec::new();
    for (list, sort) in lists(engine, facets) {
        let value = value::list_entry(end, |out| {
            // The lists that are walked from end to end say what filters ask for. The others are short, and with the other tags in
            // the entry of each tag a memory of n tags would take n² bytes.
            if matches!(list, List::MemoriesUpdated | List::MemoriesCreated) {
                facets.put(out);
            }
        });
        let entry = list.entry(sort, id, revision);
        changes.put(entry.clone(), value);
        entries.push(entry);
    }
    entries
}

pub(super) fn list_conversation(
    changes: &mut Changes,
    id: Id16,
    summary: &Summary,
    revision: u64,
    end: u64,
) -> Vec<u8> {
    let entry = List::Conversations.entry(keys::descending(summary.updated), id, revision);
    changes.put(entry.clone(), value::list_entry(end, |out| summary.put(out)));
    entry
}

/// The lists that a memory stands in, and where.
pub(crate) fn lists(engine: &dyn Engine, facets: &Facets) -> Vec<(List, u64)> {
    let newest = keys::descending(facets.updated);
    let mut lists = vec![
        (List::MemoriesUpdated, newest),
        (List::MemoriesCreated, keys::ascending(facets.created)),
        (List::MemoriesHashed(engine.blind(&facets.content_hash.to_string())), newest),
    ];
    if let Some(conversation) = &facets.conversation {
        lists.push((List::MemoriesOf(keys::id16(conversation)), newest));
    }
    let mut tags: Vec<_> = facets.tags.iter().map(|tag| engine.blind(tag)).collect();
    tags.sort_unstable();
    tags.dedup();
    lists.extend(tags.into_iter().map(|tag| (List::MemoriesTagged(tag), newest)));
    lists
}
