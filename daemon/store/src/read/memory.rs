//! Memories: by id, their history, and ordered, filtered pages.

use std::collections::BTreeSet;

use satchel_pam::memory::Memory;

use super::{VisibleVersion, parse, seen, walk_list};
use crate::{
    codec::{ByteReader, Malformed},
    engine::{self, Engine, SCAN},
    entry::{Facets, JournalEntry, facets},
    error::StoreError,
    journal::ChangeLocation,
    keys::{self, Id16, List},
    lookup::wrong_kind,
    query::{Cursor, MemoryOrder, MemoryQuery, Page, UNKNOWN_TIME},
    record::MemoryRecord,
    revision::Revision,
    store::Store,
    value::{MemoryValue, OldVersion, decode},
};

impl Store {
    /// Returns a memory, withdrawn or not: the current version, or the one at a revision.
    ///
    /// # Errors
    /// [`StoreError::FutureRevision`] if the store has not reached this revision; any error of the engine or the journal.
    pub fn memory(&self, id: &str, at: Option<Revision>) -> Result<Option<MemoryRecord>, StoreError> {
        let at = self.at(at)?;
        let Some(value) = self.memory_value(keys::id16(id))? else { return Ok(None) };
        if value.id == id { self.memory_at(value, at) } else { Ok(None) }
    }

    /// Returns whether a memory whose id has this key is shown now; see [`record_key`](crate::record_key).
    ///
    /// # Errors
    /// Any error of the engine.
    pub fn memory_visible(&self, key: [u8; 16]) -> Result<bool, StoreError> {
        Ok(self.memory_value(key)?.is_some_and(|value| !value.withdrawn))
    }

    /// Returns all versions of a memory, the first one first. They are kept forever.
    ///
    /// # Errors
    /// Any error of the engine or the journal.
    pub fn memory_versions(&self, id: &str) -> Result<Vec<MemoryRecord>, StoreError> {
        let id16 = keys::id16(id);
        let Some(value) = self.memory_value(id16)?.filter(|value| value.id == id) else {
            return Ok(Vec::new());
        };
        let mut versions = Vec::new();
        let prefix = keys::object(keys::OLD_MEMORY, id16);
        let (created, newest) = (value.stored.created, value.stored.version);
        engine::walk::<StoreError>(self.engine(), &prefix, None, |_, old| {
            let old = decode(old, id, OldVersion::take)?;
            if old.version < newest {
                versions.push(self.old_memory(id, created, old.version, old.place)?);
            }
            Ok(true)
        })?;
        versions.push(self.current_memory(value)?);
        Ok(versions)
    }

    /// Returns a page of memories as of a revision. During concurrent commits no row is repeated and none is missed.
    ///
    /// `after` is the cursor of the previous page of the same query and revision. `limit` is at least 1. Lists go back at least a
    /// week: at an older revision, a memory that has changed since may be missing, except in the order of ids.
    ///
    /// # Errors
    /// [`StoreError::FutureRevision`] if the store has not reached `at`, [`StoreError::TooLarge`] for too many ids; any error of
    /// the engine or the journal.
    pub fn memories(
        &self,
        query: &MemoryQuery,
        after: Option<&Cursor>,
        limit: usize,
        at: Revision,
    ) -> Result<Page<MemoryRecord>, StoreError> {
        let at = self.at(Some(at))?;
        if query.ids.len() > MemoryQuery::MAX_IDS {
            let (size, limit) = (query.ids.len() as u64, MemoryQuery::MAX_IDS as u64);
            return Err(StoreError::TooLarge { what: "the list of ids".to_owned(), size, limit });
        }
        if !query.ids.is_empty() {
            return self.page_of_ids(query, after, limit, at);
        }
        match (query.order, selective(self.engine(), query)) {
            (MemoryOrder::IdAscending, _) => self.by_id(query, after, limit, at),
            (MemoryOrder::CreatedAscending, None | Some(List::MemoriesTagged(_))) => {
                self.list_page(query, List::MemoriesCreated, after, limit, at)
            }
            (MemoryOrder::CreatedAscending, Some(list)) => self.sorted_page(query, list, after, limit, at),
            (MemoryOrder::UpdatedDescending, list) => {
                self.list_page(query, list.unwrap_or(List::MemoriesUpdated), after, limit, at)
            }
        }
    }

    /// Returns a page of a list that is in the requested order.
    fn list_page(
        &self,
        query: &MemoryQuery,
        list: List,
        after: Option<&Cursor>,
        limit: usize,
        at: Revision,
    ) -> Result<Page<MemoryRecord>, StoreError> {
        let mut rows = PageBuilder::new(limit);
        walk_list(self.engine(), list, after.map(Cursor::as_bytes), |key, value| {
            let Some((known, id)) = row(key, value, at)? else { return Ok(true) };
            if known.as_ref().is_some_and(|facets| !matches(query, facets)) {
                return Ok(true);
            }
            let record = self.memory_by_key(id, at)?;
            let record = record.filter(|record| {
                (known.is_some() || matches(query, &facets(&record.memory))) && valid(query, &record.memory)
            });
            Ok(record.is_none_or(|record| rows.push(key, record)))
        })?;
        Ok(rows.page())
    }

    /// Returns a page of the rows of a selective list, sorted by creation. All rows are read for each page, and no more are held
    /// in memory than the page needs.
    fn sorted_page(
        &self,
        query: &MemoryQuery,
        list: List,
        after: Option<&Cursor>,
        limit: usize,
        at: Revision,
    ) -> Result<Page<MemoryRecord>, StoreError> {
        let mut found = BTreeSet::new();
        engine::walk::<StoreError>(self.engine(), &list.prefix(), None, |key, value| {
            let Some((_, id)) = row(key, value, at)? else { return Ok(true) };
            if let Some(facets) = self.facets_by_key(id, at)?.filter(|facets| matches(query, facets))
                && self.valid_by_key(query, id, at)?
            {
                let key = sort_key(query.order, &facets, id);
                if after.is_none_or(|after| key.as_slice() > after.as_bytes()) {
                    found.insert((key, id));
                }
                // The row after the page shows that there is a next page.
                if found.len() > limit.saturating_add(1) {
                    found.pop_last();
                }
            }
            Ok(true)
        })?;
        self.page_of(found.into_iter().collect(), after, limit, at)
    }

    /// Returns a page of the requested ids, in the requested order.
    fn page_of_ids(
        &self,
        query: &MemoryQuery,
        after: Option<&Cursor>,
        limit: usize,
        at: Revision,
    ) -> Result<Page<MemoryRecord>, StoreError> {
        let mut found = Vec::new();
        for id in &query.ids {
            let record = self.memory(id, Some(at))?.filter(|record| !record.withdrawn);
            let Some(record) = record else { continue };
            let facets = facets(&record.memory);
            if matches(query, &facets) && valid(query, &record.memory) {
                let id16 = keys::id16(id);
                let key = match query.order {
                    MemoryOrder::IdAscending => keys::memory_id(id),
                    order => sort_key(order, &facets, id16),
                };
                found.push((key, id16));
            }
        }
        self.page_of(found, after, limit, at)
    }

    fn page_of(
        &self,
        mut found: Vec<(Vec<u8>, Id16)>,
        after: Option<&Cursor>,
        limit: usize,
        at: Revision,
    ) -> Result<Page<MemoryRecord>, StoreError> {
        found.sort_unstable();
        found.dedup();
        let mut rows = PageBuilder::new(limit);
        for (key, id) in
            found.into_iter().filter(|(key, _)| after.is_none_or(|after| key.as_slice() > after.as_bytes()))
        {
            if let Some(record) = self.memory_by_key(id, at)?
                && !rows.push(&key, record)
            {
                break;
            }
        }
        Ok(rows.page())
    }

    pub(super) fn memory_by_key(&self, id: Id16, at: Revision) -> Result<Option<MemoryRecord>, StoreError> {
        self.memory_value(id)?.map_or(Ok(None), |value| self.memory_at(value, at))
    }

    /// Returns the filter fields of a memory. If it has not changed since `at`, its text is not read.
    fn facets_by_key(&self, id: Id16, at: Revision) -> Result<Option<Facets>, StoreError> {
        let Some(value) = self.memory_value(id)? else { return Ok(None) };
        match seen(&value.stored, at) {
            VisibleVersion::Current => Ok(Some(value.facets)),
            VisibleVersion::Nothing | VisibleVersion::Older => {
                Ok(self.memory_at(value, at)?.map(|record| facets(&record.memory)))
            }
        }
    }

    /// Returns whether the validity of a memory matches the query; only its text shows that.
    fn valid_by_key(&self, query: &MemoryQuery, id: Id16, at: Revision) -> Result<bool, StoreError> {
        if query.valid_at.or(query.expired_at).or(query.unexpired_at).is_none() {
            return Ok(true);
        }
        Ok(self.memory_by_key(id, at)?.is_some_and(|record| valid(query, &record.memory)))
    }

    pub(super) fn memory_value(&self, id: Id16) -> Result<Option<MemoryValue>, StoreError> {
        let value = self.engine().get(&keys::object(keys::MEMORY, id))?;
        value.map(|value| decode(&value, "a memory", MemoryValue::take)).transpose()
    }

    pub(super) fn memory_at(
        &self,
        value: MemoryValue,
        at: Revision,
    ) -> Result<Option<MemoryRecord>, StoreError> {
        match seen(&value.stored, at) {
            VisibleVersion::Nothing => Ok(None),
            VisibleVersion::Current => self.current_memory(value).map(Some),
            VisibleVersion::Older => {
                let found = self.older(keys::OLD_MEMORY, keys::id16(&value.id), at, &value.id)?;
                found
                    .map(|old| self.old_memory(&value.id, value.stored.created, old.version, old.place))
                    .transpose()
            }
        }
    }

    fn current_memory(&self, value: MemoryValue) -> Result<MemoryRecord, StoreError> {
        let MemoryValue { id, withdrawn, stored, json, .. } = value;
        let what = format!("memory {id:?}");
        let memory = match json {
            Some(json) => parse(&json, &what)?,
            None => self.journalled_memory(stored.place, &what)?.0.0,
        };
        Ok(MemoryRecord {
            memory,
            withdrawn,
            version: stored.version,
            created_revision: Revision::new(stored.created),
            revision: Revision::new(stored.revision),
            origin: stored.origin,
        })
    }

    fn old_memory(
        &self,
        id: &str,
        created: u64,
        version: u32,
        place: ChangeLocation,
    ) -> Result<MemoryRecord, StoreError> {
        let ((memory, withdrawn), origin, revision) =
            self.journalled_memory(place, &format!("version {version} of memory {id:?}"))?;
        let (created_revision, revision) = (Revision::new(created), Revision::new(revision));
        Ok(MemoryRecord { memory, withdrawn, version, created_revision, revision, origin })
    }

    fn journalled_memory(
        &self,
        place: ChangeLocation,
        what: &str,
    ) -> Result<((Memory, bool), crate::change::Origin, u64), StoreError> {
        match self.change(place, what)? {
            (origin, revision, JournalEntry::Memory(memory)) => {
                Ok(((parse(&memory.json, what)?, memory.withdrawn), origin, revision))
            }
            _ => Err(wrong_kind(what)),
        }
    }
}

/// The rows of one page, and whether another one follows.
pub(super) struct PageBuilder<T> {
    items: Vec<T>,
    limit: usize,
    last: Vec<u8>,
    more: bool,
}

impl<T> PageBuilder<T> {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            items: Vec::with_capacity(limit.min(SCAN)),
            limit: limit.max(1),
            last: Vec::new(),
            more: false,
        }
    }

    /// Adds a row. Returns false if the page is full, which means that another row follows.
    pub(super) fn push(&mut self, key: &[u8], item: T) -> bool {
        if self.items.len() == self.limit {
            self.more = true;
            return false;
        }
        self.last = key.to_vec();
        self.items.push(item);
        true
    }

    pub(super) fn page(self) -> Page<T> {
        Page { next: self.more.then_some(Cursor(self.last)), items: self.items }
    }
}

/// Reads an index entry if it was valid at `at`. Entries of selective lists contain no facets.
fn row(key: &[u8], value: &[u8], at: Revision) -> Result<Option<(Option<Facets>, Id16)>, StoreError> {
    let Some((id, from)) = keys::entry_tail(key) else { return Ok(None) };
    let facets =
        spanned(
            value,
            from,
            at,
            |take| {
                if take.0.is_empty() { Ok(None) } else { Facets::take(take).map(Some) }
            },
        )?;
    Ok(facets.map(|facets| (facets, id)))
}

/// Reads the content of an index entry if its span covers `at`.
pub(super) fn spanned<T>(
    value: &[u8],
    from: u64,
    at: Revision,
    take: impl FnOnce(&mut ByteReader<'_>) -> Result<T, Malformed>,
) -> Result<Option<T>, StoreError> {
    decode(value, "an entry of a list", |mut span| {
        let end = span.u64()?;
        if from > at.get() || (end != 0 && end <= at.get()) {
            return Ok(None);
        }
        take(&mut span).map(Some)
    })
}

/// Returns the list with the fewest rows for a query, if one is better than the list of all memories.
fn selective(engine: &dyn Engine, query: &MemoryQuery) -> Option<List> {
    if let Some(hash) = &query.content_hash {
        return Some(List::MemoriesHashed(engine.blind(hash)));
    }
    if let Some(conversation) = &query.conversation {
        return Some(List::MemoriesOf(keys::id16(conversation)));
    }
    let tag = query.tags_all.first().or(match query.tags_any.as_slice() {
        [only] => Some(only),
        _ => None,
    });
    tag.map(|tag| List::MemoriesTagged(engine.blind(tag)))
}

fn sort_key(order: MemoryOrder, facets: &Facets, id: Id16) -> Vec<u8> {
    let (time, sorted): (i64, fn(i64) -> u64) = match order {
        MemoryOrder::CreatedAscending => (facets.created, keys::ascending),
        MemoryOrder::UpdatedDescending | MemoryOrder::IdAscending => (facets.updated, keys::descending),
    };
    let sort = if time == UNKNOWN_TIME { u64::MAX } else { sorted(time) };
    [sort.to_be_bytes().as_slice(), &id].concat()
}

pub(crate) fn matches(query: &MemoryQuery, facets: &Facets) -> bool {
    let MemoryQuery {
        types,
        statuses,
        platforms,
        accounts,
        tags_any,
        tags_all,
        conversation,
        created,
        updated,
        content_hash,
        // See `valid`.
        valid_at: _,
        expired_at: _,
        unexpired_at: _,
        ids: _,
        order: _,
    } = query;
    (types.is_empty() || types.iter().any(|one| one.as_str() == facets.memory_type))
        && (statuses.is_empty() || statuses.iter().any(|one| one.as_str() == facets.status))
        && (platforms.is_empty() || platforms.contains(&facets.platform))
        && (accounts.is_empty() || facets.account.as_ref().is_some_and(|account| accounts.contains(account)))
        && tagged(tags_any, tags_all, &facets.tags)
        && (conversation.is_none() || *conversation == facets.conversation)
        && created.holds(facets.created)
        && updated.holds(facets.updated)
        && content_hash.as_ref().is_none_or(|hash| *hash == facets.content_hash.to_string())
}

/// Returns whether the validity of a memory matches the query; lists do not contain it.
pub(crate) fn valid(query: &MemoryQuery, memory: &Memory) -> bool {
    let from = memory.temporal.valid_from.map(satchel_pam::time::Timestamp::micros);
    let until = memory.temporal.valid_until.map(satchel_pam::time::Timestamp::micros);
    query.valid_at.is_none_or(|at| from.is_none_or(|from| from <= at) && until.is_none_or(|until| until > at))
        && query.unexpired_at.is_none_or(|at| until.is_none_or(|until| until > at))
        && query.expired_at.is_none_or(|at| until.is_some_and(|until| until <= at))
}

pub(super) fn tagged(any: &[String], all: &[String], tags: &[String]) -> bool {
    (any.is_empty() || any.iter().any(|tag| tags.contains(tag))) && all.iter().all(|tag| tags.contains(tag))
}
