//! Memories in the order of their ids.

use uuid::Uuid;

use super::memory::{PageBuilder, matches, valid};
use crate::{
    codec::canonical_uuid,
    engine::{Pair, Pairs, SCAN},
    entry::facets,
    error::StoreError,
    keys,
    query::{Cursor, MemoryQuery, Page},
    record::MemoryRecord,
    revision::Revision,
    store::Store,
    value::{MemoryValue, decode},
};

impl Store {
    /// Returns a page in the order of ids. Ids never change, so this list has no versions.
    pub(super) fn by_id(
        &self,
        query: &MemoryQuery,
        after: Option<&Cursor>,
        limit: usize,
        at: Revision,
    ) -> Result<Page<MemoryRecord>, StoreError> {
        let mut rows = PageBuilder::new(limit);
        let mut ids = MemoriesById::new(self, after.map(Cursor::as_bytes), limit.saturating_add(1).min(SCAN));
        while let Some(value) = ids.next()? {
            let key = keys::memory_id(&value.id);
            let record = self.memory_at(value, at)?.filter(|record| !record.withdrawn);
            let Some(record) = record else { continue };
            let wanted = matches(query, &facets(&record.memory)) && valid(query, &record.memory);
            if wanted && !rows.push(&key, record) {
                break;
            }
        }
        Ok(rows.page())
    }
}

/// An iterator over all memories in the order of their ids. It merges two sorted lists: the records, whose keys sort like ids
/// that are UUIDs, and the list of the other ids.
struct MemoriesById<'a> {
    store: &'a Store,
    uuids: Pairs<'a>,
    /// A record that was read but is not needed yet.
    held: Option<Pair>,
    others: Pairs<'a>,
    uuid: Option<MemoryValue>,
    other: Option<MemoryValue>,
}

impl<'a> MemoriesById<'a> {
    /// Begins after the id in a row's key, and reads `page` pairs at a time.
    fn new(store: &'a Store, after: Option<&[u8]>, page: usize) -> Self {
        let after = after.map(|key| key.get(1..).unwrap_or_default());
        let others =
            after.map_or_else(|| vec![keys::MEMORY_ID], |id| [&[keys::MEMORY_ID], id, &[0]].concat());
        let uuids = match after {
            None => vec![keys::MEMORY],
            // There is no UUID after this id, so no row follows.
            Some(id) => uuid_after(id)
                .map_or_else(|| vec![keys::MEMORY + 1], |uuid| keys::object(keys::MEMORY, *uuid.as_bytes())),
        };
        let pairs = |from, kind| Pairs::new(store.engine(), from, vec![kind + 1], page);
        Self {
            store,
            uuids: pairs(uuids, keys::MEMORY),
            held: None,
            others: pairs(others, keys::MEMORY_ID),
            uuid: None,
            other: None,
        }
    }

    fn next(&mut self) -> Result<Option<MemoryValue>, StoreError> {
        while self.other.is_none() {
            let Some((_, id)) = self.others.next()? else { break };
            let id = decode(&id, "the list of ids", |mut take| take.array())?;
            self.other = self.store.memory_value(id)?;
        }
        while self.uuid.is_none() {
            let found = self.held.take().map_or_else(|| self.uuids.next(), |held| Ok(Some(held)));
            let Some((key, value)) = found? else { break };
            // Records of other ids are among these. Stop where the next of the other ids belongs, otherwise each page would read
            // all records.
            let key_id = keys::last16(&key).map(|id| Uuid::from_bytes(id).to_string());
            if self.other.as_ref().is_some_and(|other| key_id.is_some_and(|id| other.id < id)) {
                self.held = Some((key, value));
                break;
            }
            let value = decode(&value, "a memory", MemoryValue::take)?;
            self.uuid = Some(value).filter(|value| canonical_uuid(&value.id).is_some());
        }
        let other_first = match (&self.uuid, &self.other) {
            (Some(uuid), Some(other)) => other.id < uuid.id,
            (uuid, _) => uuid.is_none(),
        };
        Ok(if other_first { self.other.take() } else { self.uuid.take() })
    }
}

/// Returns the first UUID whose text sorts after the bytes of an id.
fn uuid_after(id: &[u8]) -> Option<Uuid> {
    let after = |number: u128| Uuid::from_u128(number).to_string().as_bytes() > id;
    // The texts sort like the numbers.
    let (mut low, mut high) = (0, u128::MAX);
    if !after(high) {
        return None;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if after(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(Uuid::from_u128(low))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn uuid_after_returns_the_next_uuid(number in any::<u128>(), cut in 0_usize..40, tail in "[ -~é]{0,3}") {
            let text = Uuid::from_u128(number).to_string();
            let id = format!("{}{tail}", &text[..cut.min(36)]);
            match uuid_after(id.as_bytes()) {
                None => prop_assert!(Uuid::max().to_string() <= id),
                Some(uuid) => {
                    prop_assert!(uuid.to_string() > id);
                    let before = uuid.as_u128().checked_sub(1).map(|number| Uuid::from_u128(number).to_string());
                    prop_assert!(before.is_none_or(|before| before <= id));
                }
            }
        }
    }
}
