//! The scan of a memory store as a whole, before any of its entries is imported.

use std::{collections::BTreeSet, io};

use satchel_pam::{
    issue::Issue,
    parse::{self, ScanOptions, StoreEntry, StoreRoot, StoreScan, TextSource},
};

/// Maximum number of left-out entries whose issues are suppressed as duplicates; no document reports more issues than
/// that.
pub(super) const MOST_LEFT_OUT: usize = 10_000;

/// A memory store as a whole, without its entries.
pub(super) struct ScannedStore {
    pub(super) root: StoreRoot,
    /// The other results of the scan; the root is taken out of it.
    pub(super) scan: StoreScan,
    /// The number of readable entries.
    pub(super) readable: Readable,
    /// JSON paths of the entries that are left out.
    pub(super) left_out: BTreeSet<String>,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Readable {
    pub(super) memories: u64,
    pub(super) relations: u64,
    pub(super) conversations: u64,
}

/// Scans a whole memory store; the inner error holds the issues if it is no memory store. `None` if the scan was
/// cancelled.
pub(super) fn scan_store(
    text: &dyn TextSource,
    wanted: &dyn Fn() -> bool,
) -> io::Result<Option<Result<ScannedStore, Vec<Issue>>>> {
    let (mut readable, mut left_out) = (Readable::default(), BTreeSet::new());
    let scan = parse::scan_store(
        text,
        ScanOptions { salvage: true, keep_going: wanted },
        &mut |_, entry| match entry {
            StoreEntry::Memory(_) => readable.memories += 1,
            StoreEntry::Relation(_) => readable.relations += 1,
            StoreEntry::Conversation(_) => readable.conversations += 1,
            StoreEntry::Unreadable(entry) => {
                if left_out.len() < MOST_LEFT_OUT {
                    left_out.insert(entry.path());
                }
            }
        },
    )?;
    Ok(scan.map(|mut scan| match scan.root.take() {
        Some(root) => Ok(ScannedStore { root, scan, readable, left_out }),
        None => Err(scan.issues),
    }))
}

/// Returns the reason why a document cannot be imported because its file cannot be read.
pub(super) fn unreadable(name: &str, error: &io::Error) -> String {
    format!("{name:?} cannot be read: {error}")
}
