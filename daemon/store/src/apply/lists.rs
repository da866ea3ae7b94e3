//! The lists that contain records: entries are added, ended, and deleted once no page can be pinned to them any more.

use super::Applier;
use crate::{
    change::Origin,
    engine::{Changes, Engine},
    entry::{Facets, Summary},
    error::StoreError,
    keys::{self, Id16, List},
    value::{self, OldVersion, RecordMeta, decode},
};

/// Ended list entries are kept for this time, in microseconds: one week. A page token pins its revision for 24 hours, and each
/// page returns a new token.
const LIST_RETENTION_MICROS: u64 = 7 * 24 * 3_600 * 1_000_000;
/// The number of versions that one commit of a record drops from lists. It is greater than one, so that the backlog of a busy
/// week is worked off.
const MAX_DROPPED_AT_ONCE: usize = 16;

impl Applier {
    /// Drops the list entries of versions that were replaced so long before `by` that no reader is pinned to them. Returns the
    /// revision of the oldest version that is still listed. The result depends on the journal alone, so that a rebuild produces
    /// the same keys.
    pub(super) fn drop_expired(
        &self,
        changes: &mut Changes,
        kind: u8,
        id: Id16,
        old: &RecordMeta,
        by: &Origin,
    ) -> Result<u64, StoreError> {
        let (from, until) = (keys::version(kind, id, old.listed), keys::version(kind, id, old.revision));
        let mut listed = old.listed;
        for (key, value) in self.engine.scan(&from, &until, MAX_DROPPED_AT_ONCE, false)? {
            let mut version = decode(&value, "an older version", OldVersion::take)?;
            listed = keys::entry_tail(&key).map_or(listed, |(_, revision)| revision);
            // A time far in the future comes from a clock that was set back later.
            if version.ended_at.abs_diff(by.at_micros) < LIST_RETENTION_MICROS {
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

/// Stores the replaced version under its own key. `entries` are the keys of its list entries.
pub(super) fn put_old_version(
    changes: &mut Changes,
    kind: u8,
    id: Id16,
    old: &RecordMeta,
    by: &Origin,
    entries: Vec<Vec<u8>>,
) {
    let RecordMeta { version, place, .. } = *old;
    let ended = OldVersion { version, place, ended_at: by.at_micros, entries };
    changes.put(keys::version(kind, id, old.revision), ended.encode());
}

/// Puts a version into its lists, with entries that ended at revision `end` or, if `end` is 0, are still valid. Returns their
/// keys.
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
            // Only the lists that are scanned as a whole contain the filter fields. The other lists are short, and if the entry
            // of each tag contained all tags, a memory with n tags would take n² bytes.
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

/// Returns the lists that contain a memory, each with the memory's sort value.
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
