//! The interface between the store and its engine: five required methods, so that another engine can be used.

pub(crate) mod folder;
mod leaf;
mod leaf_cache;
mod leaf_codec;
pub(crate) mod leaves;
pub(crate) mod memory;
pub(crate) mod sealed;
pub(crate) mod sled_engine;
pub(crate) mod swappable;

use crate::keys::{self, Id16};

/// An ordered map of bytes that survives the process.
pub(crate) trait Engine: Send + Sync {
    /// Returns the value of a key.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError>;
    /// Returns up to `limit` pairs with `from ≤ key < until`, the largest key first if `reverse`. The result is not a snapshot.
    fn scan(&self, from: &[u8], until: &[u8], limit: usize, reverse: bool) -> Result<Vec<Pair>, EngineError>;
    /// Writes a batch atomically, in order with other batches. The write need not be durable.
    fn apply(&self, batch: Changes) -> Result<(), EngineError>;
    /// Hands everything that was applied to the file system.
    fn flush(&self) -> Result<(), EngineError>;
    /// Returns the size on disk in bytes.
    fn size(&self) -> u64;
    /// Returns the form that is used in keys for a name that only the owner may read.
    fn blind(&self, name: &str) -> Id16 {
        satchel_seal::blind(&[], name)
    }
}

/// Key and value.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// An error or a failure of the engine.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct EngineError(pub(crate) String);

/// Texts by which an error of sled shows that a resource is exhausted. Of an error only its text is kept.
const EXHAUSTION_MESSAGES: [&str; 4] =
    ["StorageFull", "QuotaExceeded", "No space left", "Too many open files"];

impl EngineError {
    /// Returns whether the error may go away because only a resource is exhausted. The stored data is not affected.
    pub(crate) fn passes(&self) -> bool {
        passes(&self.0)
    }
}

/// As `EngineError::passes`, for the text of an error.
pub(crate) fn passes(problem: &str) -> bool {
    EXHAUSTION_MESSAGES.iter().any(|lacking| problem.contains(lacking))
}

/// Maximum number of operations in one atomic batch: while sled applies a batch, it holds a process-wide lock against readers.
pub(crate) const BATCH_OPERATIONS: usize = 500;
/// Maximum number of bytes in one atomic batch, for the same reason.
pub(crate) const BATCH_BYTES: usize = 512 << 10;
/// How many times larger a batch may be while there are no readers. Entries of the same leaf in one batch are written once.
const FACTOR_WITHOUT_READERS: usize = 8;
/// Pairs fetched at once by a long scan; limits the memory that a page takes.
pub(crate) const SCAN: usize = 256;

/// Puts and deletes that belong together. For each key the last one wins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    pub(crate) operations: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    bytes: usize,
}

impl Changes {
    pub(crate) fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.bytes += key.len() + value.len();
        self.operations.push((key, Some(value)));
    }

    pub(crate) fn delete(&mut self, key: Vec<u8>) {
        self.bytes += key.len();
        self.operations.push((key, None));
    }

    /// Returns whether the batch is large enough to be applied. `readers` says that other threads may be reading at the same
    /// time.
    pub(crate) fn full(&self, readers: bool) -> bool {
        let times = if readers { 1 } else { FACTOR_WITHOUT_READERS };
        self.bytes >= BATCH_BYTES * times || self.operations.len() >= BATCH_OPERATIONS * times
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        self.bytes += other.bytes;
        self.operations.append(&mut other.operations);
    }
}

/// The pairs of a range, in order, fetched in pages of limited size.
pub(crate) struct Pairs<'a> {
    engine: &'a dyn Engine,
    /// The key of the next page; `None` once everything is fetched.
    next: Option<Vec<u8>>,
    until: Vec<u8>,
    page: usize,
    found: std::vec::IntoIter<Pair>,
}

impl<'a> Pairs<'a> {
    /// Iterates over the pairs with `from ≤ key < until`, `page` at a time.
    pub(crate) fn new(engine: &'a dyn Engine, from: Vec<u8>, until: Vec<u8>, page: usize) -> Self {
        let next = (from < until).then_some(from);
        Self { engine, next, until, page, found: Vec::new().into_iter() }
    }

    pub(crate) fn next(&mut self) -> Result<Option<Pair>, EngineError> {
        if self.found.len() == 0
            && let Some(next) = self.next.take()
        {
            let found = self.engine.scan(&next, &self.until, self.page, false)?;
            self.next = found.last().filter(|_| found.len() == self.page).map(|(key, _)| next_key(key));
            self.found = found.into_iter();
        }
        Ok(self.found.next())
    }
}

/// Visits all pairs with a prefix, starting after the key `after` if one is given, until `visit` returns false.
pub(crate) fn walk<E: From<EngineError>>(
    engine: &dyn Engine,
    prefix: &[u8],
    after: Option<&[u8]>,
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<bool, E>,
) -> Result<(), E> {
    let from = after.map_or_else(|| prefix.to_vec(), next_key).max(prefix.to_vec());
    let mut pairs = Pairs::new(engine, from, keys::after_prefix(prefix), SCAN);
    while let Some((key, value)) = pairs.next()? {
        if !visit(&key, &value)? {
            break;
        }
    }
    Ok(())
}

/// Returns the first key after `key`.
pub(crate) fn next_key(key: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next
}
