//! sled 0.34 as an engine. It panics on damaged files, so panics are caught in every call.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use super::{Changes, Engine, EngineError, Pair};

/// Size of sled's segments. Large segments keep pages out of sled's `blobs/`, which it does not fsync.
const SEGMENT_BYTES: usize = 8 << 20;
/// The size of a page in memory as a multiple of its stored length. sled's cache limit counts the stored length.
const PAGE_IN_MEMORY: u64 = 2;
/// How often sled hands its buffer to the file system. A kill loses at most this much, and it is replayed.
const FLUSH_MILLISECONDS: u64 = 500;

/// Bytes that are read before a page is accessed once more. sled counts accesses in 256 heaps, and checks whether a heap holds
/// too many pages only after 64 accesses. A reader that accesses each page once would therefore have up to 16,384 pages in
/// memory, regardless of the limit. So a long scan accesses each page again in proportion to its length.
const BYTES_PER_TOUCH: usize = 1 << 10;
/// The number of entries from which a scan counts as one step of a longer one. A lookup of a single entry or its neighbours
/// usually returns to the same pages, and these should stay in the cache.
const LONG_SCAN: usize = 4;

/// The default tree of a sled database.
pub(crate) struct SledEngine(sled::Db);

impl SledEngine {
    /// Opens or creates the database in `folder`; cached pages take about `cache_bytes` of memory.
    pub(crate) fn open(folder: &Path, cache_bytes: u64) -> Result<Self, EngineError> {
        let config = sled::Config::new()
            .path(folder)
            .mode(sled::Mode::LowSpace)
            .cache_capacity(cache_bytes / PAGE_IN_MEMORY)
            .segment_size(SEGMENT_BYTES)
            .flush_every_ms(Some(FLUSH_MILLISECONDS))
            .use_compression(false);
        catch_panics(|| config.open().map(Self))
    }

    /// Accesses the pages of these entries again.
    fn touch(&self, entries: &[Pair]) -> sled::Result<()> {
        let mut read = 0;
        for (key, value) in entries {
            read += value.len();
            for _ in 0..read / BYTES_PER_TOUCH {
                self.0.contains_key(key)?;
            }
            read %= BYTES_PER_TOUCH;
        }
        Ok(())
    }
}

impl Engine for SledEngine {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        catch_panics(|| Ok(self.0.get(key)?.map(|value| value.to_vec())))
    }

    fn scan(&self, from: &[u8], until: &[u8], limit: usize, reverse: bool) -> Result<Vec<Pair>, EngineError> {
        if from >= until {
            return Ok(Vec::new());
        }
        let pair = |pair: sled::Result<(sled::IVec, sled::IVec)>| {
            pair.map(|(key, value)| (key.to_vec(), value.to_vec()))
        };
        catch_panics(|| {
            let range = self.0.range(from..until);
            let found: Vec<Pair> = if reverse {
                range.rev().take(limit).map(pair).collect::<sled::Result<_>>()?
            } else {
                range.take(limit).map(pair).collect::<sled::Result<_>>()?
            };
            if found.len() >= LONG_SCAN {
                self.touch(&found)?;
            }
            Ok(found)
        })
    }

    fn apply(&self, changes: Changes) -> Result<(), EngineError> {
        let mut batch = sled::Batch::default();
        for (key, value) in changes.operations {
            match value {
                Some(value) => batch.insert(key, value),
                None => batch.remove(key),
            }
        }
        catch_panics(|| self.0.apply_batch(batch))
    }

    fn flush(&self) -> Result<(), EngineError> {
        catch_panics(|| self.0.flush().map(|_| ()))
    }

    fn size(&self) -> u64 {
        catch_panics(|| self.0.size_on_disk()).unwrap_or(0)
    }
}

/// Converts both errors and panics of sled into an error. After a panic its state is unknown, and the store stops using it.
fn catch_panics<T>(call: impl FnOnce() -> sled::Result<T>) -> Result<T, EngineError> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(done) => done.map_err(|error| EngineError(error.to_string())),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(EngineError(format!("panicked: {}", text.unwrap_or_default())))
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
