//! Records what each import brought, as pages of bare keys. An export may bring a hundred thousand conversations and
//! pieces of evidence, most of which were already in the previous export.

use std::collections::{BTreeMap, BTreeSet};

use satchel_store::{Change, Ledger, Store};
use uuid::Uuid;

use super::{LineageError, PAGE, REST, Undone, put};

/// The key of a piece of evidence, or of a report about a conversation.
pub type Key = [u8; 16];
/// Keys per page: about 28 KiB, which the storage engine holds in one value.
const KEYS: usize = 1_800;

/// A stored page with fewer keys than this is continued; otherwise an import that stores a few conversations at a time
/// would leave thousands of pages.
const OPEN: usize = 256;

/// The kind of data that the keys refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brought {
    /// Reports about conversations.
    Parts,
    /// Evidence.
    Evidence,
}

/// The keys that an import brings, page by page.
pub struct Pages {
    import: Uuid,
    kind: Brought,
    page: u32,
    keys: Vec<Key>,
    /// Number of keys that are already stored.
    stored: usize,
}

impl Pages {
    /// Creates the pages for what `import` brings of one kind.
    #[must_use]
    pub fn new(import: Uuid, kind: Brought) -> Self {
        Self { import, kind, page: 0, keys: Vec::new(), stored: 0 }
    }

    /// Adds a key. Returns the change that stores the page if the page is full.
    pub fn add(&mut self, key: Key) -> Option<Change> {
        self.keys.push(key);
        if self.keys.len() == KEYS { self.rest() } else { None }
    }

    /// Returns the change that stores the remaining keys, if there are any.
    pub fn rest(&mut self) -> Option<Change> {
        if self.keys.len() == self.stored {
            return None;
        }
        let change = put(self.kind.page(self.import, self.page), REST, self.keys.concat());
        self.stored = self.keys.len();
        if self.stored >= OPEN {
            self.page += 1;
            self.keys.clear();
            self.stored = 0;
        }
        Some(change)
    }
}

impl Brought {
    fn page(self, import: Uuid, page: u32) -> String {
        let kind = match self {
            Self::Parts => "parts",
            Self::Evidence => "evidence",
        };
        format!("{kind} {import} {page}")
    }
}

/// Returns the keys of everything that `import` brought.
///
/// # Errors
/// The ledger cannot be read.
pub fn brought(store: &Store, kind: Brought, import: Uuid) -> Result<Vec<Key>, LineageError> {
    let mut keys = Vec::new();
    for page in 0.. {
        let Some(entry) = store.ledger_get(Ledger::Lineage, &kind.page(import, page))? else { break };
        keys.extend_from_slice(entry.value.as_chunks::<16>().0);
    }
    Ok(keys)
}

/// Returns the keys that do not count, because only imports in `undone` brought them.
///
/// # Errors
/// The ledger cannot be read.
pub fn left_out(store: &Store, kind: Brought, undone: &Undone) -> Result<BTreeSet<Key>, LineageError> {
    let mut left_out = BTreeSet::new();
    for import in undone {
        left_out.extend(brought(store, kind, *import)?);
    }
    if left_out.is_empty() {
        return Ok(left_out);
    }
    each_import(store, |import| {
        if !undone.contains(&import) {
            for key in brought(store, kind, import)? {
                left_out.remove(&key);
            }
        }
        Ok(())
    })?;
    Ok(left_out)
}

/// Returns, for each key that counts, the newest import that brought it.
///
/// # Errors
/// The ledger cannot be read.
pub fn newest(store: &Store, kind: Brought, undone: &Undone) -> Result<BTreeMap<Key, Uuid>, LineageError> {
    let mut newest = BTreeMap::new();
    each_import(store, |import| {
        if !undone.contains(&import) {
            for key in brought(store, kind, import)? {
                newest.entry(key).or_insert(import);
            }
        }
        Ok(())
    })?;
    Ok(newest)
}

/// Passes all imports to `each`, newest first.
fn each_import(
    store: &Store,
    mut each: impl FnMut(Uuid) -> Result<(), LineageError>,
) -> Result<(), LineageError> {
    let mut after = None;
    loop {
        let page = store.ledger_list(Ledger::Import, after.as_ref(), PAGE)?;
        for import in page.items.iter().filter_map(|entry| Uuid::parse_str(&entry.id).ok()) {
            each(import)?;
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}
