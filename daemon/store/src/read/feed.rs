//! The change feed: every change of every revision, without gaps.

use crate::{
    apply::op_from_code,
    codec::{ByteReader, Malformed},
    engine,
    error::StoreError,
    keys,
    record::{ChangeLogEntry, ChangePosition},
    revision::Revision,
    store::Store,
    value::decode,
};

impl Store {
    /// Returns up to `limit` changes after a position, in order, up to the current revision. To continue, pass the position of
    /// the last one.
    ///
    /// # Errors
    /// Any error of the engine.
    pub fn changes_since(
        &self,
        after: ChangePosition,
        limit: usize,
    ) -> Result<Vec<ChangeLogEntry>, StoreError> {
        let current = self.revision();
        // All parts of the position's own revision are read again, because entries are numbered across parts.
        let first = keys::changes(after.revision.get(), 0);
        let before_first = first.split_last().map_or(first.as_slice(), |(_, rest)| rest);
        let mut entries = Vec::new();
        let (mut revision, mut n) = (Revision::ZERO, 0_u32);
        if limit == 0 {
            return Ok(entries);
        }
        engine::walk::<StoreError>(self.engine(), &[keys::CHANGES], Some(before_first), |key, value| {
            let Some(number) = revision_of(key) else { return Ok(true) };
            if number > current.get() {
                return Ok(false);
            }
            if revision.get() != number {
                (revision, n) = (Revision::new(number), 0);
            }
            decode(value, "the change log", |mut take| {
                while !take.0.is_empty() && entries.len() < limit {
                    let position = ChangePosition { revision, n };
                    let entry = entry(&mut take, position)?;
                    n = n.saturating_add(1);
                    if position > after {
                        entries.push(entry);
                    }
                }
                Ok(())
            })?;
            Ok(entries.len() < limit)
        })?;
        Ok(entries)
    }
}

fn revision_of(key: &[u8]) -> Option<u64> {
    key.get(1..9)?.try_into().ok().map(u64::from_be_bytes)
}

fn entry(take: &mut ByteReader<'_>, position: ChangePosition) -> Result<ChangeLogEntry, Malformed> {
    Ok(ChangeLogEntry {
        position,
        kind: keys::kind_from_code(take.u8()?).ok_or(Malformed("has a change of an unknown kind"))?,
        op: op_from_code(take.u8()?).ok_or(Malformed("has a change of an unknown sort"))?,
        id: take.id()?,
        previous: Revision::new(take.varint()?),
    })
}
