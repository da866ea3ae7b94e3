//! Relations: by id, by either end, in pages.

use super::{VisibleVersion, memory::PageBuilder, parse, seen};
use crate::{
    change::Origin,
    engine,
    entry::JournalEntry,
    error::StoreError,
    keys::{self, Id16},
    lookup::wrong_kind,
    query::{Cursor, Page},
    record::RelationRecord,
    revision::Revision,
    store::Store,
    value::{RelationValue, decode},
};

impl Store {
    /// Returns a relation, withdrawn or not: the current version, or the one at a revision.
    ///
    /// # Errors
    /// [`StoreError::FutureRevision`] if the store has not reached this revision; any error of the engine or the journal.
    pub fn relation(&self, id: &str, at: Option<Revision>) -> Result<Option<RelationRecord>, StoreError> {
        let at = self.at(at)?;
        Ok(self.relation_by_key(keys::id16(id), at)?.filter(|record| record.relation.id == id))
    }

    /// Returns the valid relations that have a memory at either end.
    ///
    /// # Errors
    /// [`StoreError::FutureRevision`] if the store has not reached this revision; any error of the engine or the journal.
    pub fn relations_of(
        &self,
        memory: &str,
        at: Option<Revision>,
    ) -> Result<Vec<RelationRecord>, StoreError> {
        Ok(self.first_relations_of(memory, at, usize::MAX)?.0)
    }

    /// Returns the first valid relations that have a memory at either end, at most `limit`, and whether there may be more.
    ///
    /// # Errors
    /// As [`Store::relations_of`].
    pub fn first_relations_of(
        &self,
        memory: &str,
        at: Option<Revision>,
        limit: usize,
    ) -> Result<(Vec<RelationRecord>, bool), StoreError> {
        let at = self.at(at)?;
        let mut ids = Vec::new();
        for kind in [keys::RELATION_FROM, keys::RELATION_TO] {
            let prefix = keys::object(kind, keys::id16(memory));
            engine::walk::<StoreError>(self.engine(), &prefix, None, |key, _| {
                ids.extend(keys::last16(key));
                Ok(true)
            })?;
        }
        ids.sort_unstable();
        ids.dedup();
        let mut relations = Vec::new();
        for id in ids {
            if relations.len() >= limit {
                return Ok((relations, true));
            }
            // The key may be that of an older version with other ends.
            let record = self.relation_by_key(id, at)?;
            let ends =
                |record: &RelationRecord| record.relation.from == memory || record.relation.to == memory;
            relations.extend(record.filter(|record| !record.withdrawn && ends(record)));
        }
        Ok((relations, false))
    }

    /// Returns a page of the relations that were valid at a revision, in a fixed order.
    ///
    /// # Errors
    /// [`StoreError::FutureRevision`] if the store has not reached this revision; any error of the engine or the journal.
    pub fn relations(
        &self,
        after: Option<&Cursor>,
        limit: usize,
        at: Revision,
    ) -> Result<Page<RelationRecord>, StoreError> {
        self.relation_page(false, after, limit, at)
    }

    /// Returns a page of the relations that were withdrawn at a revision, in a fixed order.
    ///
    /// # Errors
    /// [`StoreError::FutureRevision`] if the store has not reached this revision; any error of the engine or the journal.
    pub fn withdrawn_relations(
        &self,
        after: Option<&Cursor>,
        limit: usize,
        at: Revision,
    ) -> Result<Page<RelationRecord>, StoreError> {
        self.relation_page(true, after, limit, at)
    }

    fn relation_page(
        &self,
        withdrawn: bool,
        after: Option<&Cursor>,
        limit: usize,
        at: Revision,
    ) -> Result<Page<RelationRecord>, StoreError> {
        let at = self.at(Some(at))?;
        let mut rows = PageBuilder::new(limit);
        let prefix = [keys::RELATION];
        engine::walk::<StoreError>(self.engine(), &prefix, after.map(Cursor::as_bytes), |key, value| {
            let value = decode(value, "a relation", RelationValue::take)?;
            let record = self.relation_at(value, at)?;
            Ok(record
                .filter(|record| record.withdrawn == withdrawn)
                .is_none_or(|record| rows.push(key, record)))
        })?;
        Ok(rows.page())
    }

    fn relation_by_key(&self, id: Id16, at: Revision) -> Result<Option<RelationRecord>, StoreError> {
        let Some(value) = self.engine().get(&keys::object(keys::RELATION, id))? else { return Ok(None) };
        self.relation_at(decode(&value, "a relation", RelationValue::take)?, at)
    }

    fn relation_at(&self, value: RelationValue, at: Revision) -> Result<Option<RelationRecord>, StoreError> {
        let RelationValue { stored, withdrawn, json, id } = value;
        let what = format!("relation {id:?}");
        let created = Revision::new(stored.created);
        let record = |json: &[u8], withdrawn, revision, origin: Origin| {
            let relation = parse(json, &what)?;
            let revision = Revision::new(revision);
            Ok(Some(RelationRecord { relation, withdrawn, created_revision: created, revision, origin }))
        };
        match seen(&stored, at) {
            VisibleVersion::Nothing => Ok(None),
            VisibleVersion::Current => {
                let json = json.ok_or_else(|| wrong_kind(&what))?;
                record(&json, withdrawn, stored.revision, stored.origin)
            }
            VisibleVersion::Older => {
                let older = self.older(keys::OLD_RELATION, keys::id16(&id), at, &what)?;
                let Some(older) = older else { return Ok(None) };
                match self.change(older.place, &what)? {
                    (origin, revision, JournalEntry::Relation(entry)) => {
                        record(&entry.json, false, revision, origin)
                    }
                    (origin, revision, JournalEntry::Withdraw(entry)) => {
                        record(&entry.json, true, revision, origin)
                    }
                    _ => Err(wrong_kind(&what)),
                }
            }
        }
    }
}
