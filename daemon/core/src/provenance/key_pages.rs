//! Records what each import brought, as pages of bare keys. An export may bring a hundred thousand conversations and
//! pieces of evidence, most of which were already in the previous export.

use std::collections::{BTreeMap, BTreeSet};

use satchel_store::{Change, Cursor, Ledger, LedgerWrite, Store};
use uuid::Uuid;

use super::{OTHER_ENTRIES, PAGE, ProvenanceError, UndoneImports, put};
use crate::each_row;

/// The key of a piece of evidence, or of a report about a conversation.
pub type EvidenceKey = [u8; 16];
/// Keys per page: about 28 KiB, which the storage engine holds in one value.
const KEYS_PER_PAGE: usize = 1_800;

/// A stored page with fewer keys than this is continued; otherwise an import that stores a few conversations at a time
/// would leave thousands of pages.
const MIN_FULL_PAGE: usize = 256;

/// The kind of data that the keys refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContributionKind {
    /// Reports about conversations.
    Contributions,
    /// Evidence.
    Evidence,
}

/// The keys that an import brings, page by page.
pub struct KeyPages {
    import: Uuid,
    kind: ContributionKind,
    page: u32,
    keys: Vec<EvidenceKey>,
    /// Number of keys that are already stored.
    stored: usize,
}

impl KeyPages {
    /// Creates the pages for what `import` brings of one kind.
    #[must_use]
    pub fn new(import: Uuid, kind: ContributionKind) -> Self {
        Self { import, kind, page: 0, keys: Vec::new(), stored: 0 }
    }

    /// Adds a key. Returns the change that stores the page if the page is full.
    pub fn add(&mut self, key: EvidenceKey) -> Option<Change> {
        self.keys.push(key);
        if self.keys.len() == KEYS_PER_PAGE { self.flush() } else { None }
    }

    /// Returns the change that stores the remaining keys, if there are any.
    pub fn flush(&mut self) -> Option<Change> {
        if self.keys.len() == self.stored {
            return None;
        }
        let change = put(self.kind.entry_id(self.import, self.page), OTHER_ENTRIES, self.keys.concat());
        self.stored = self.keys.len();
        if self.stored >= MIN_FULL_PAGE {
            self.page += 1;
            self.keys.clear();
            self.stored = 0;
        }
        Some(change)
    }
}

impl ContributionKind {
    fn entry_id(self, import: Uuid, page: u32) -> String {
        let kind = match self {
            Self::Contributions => "parts",
            Self::Evidence => "evidence",
        };
        format!("{kind} {import} {page}")
    }
}

/// Returns the keys of everything that `import` brought.
///
/// # Errors
/// The ledger cannot be read.
pub fn contributed_keys(
    store: &Store,
    kind: ContributionKind,
    import: Uuid,
) -> Result<Vec<EvidenceKey>, ProvenanceError> {
    let mut keys = Vec::new();
    for page in 0.. {
        let Some(entry) = store.ledger_get(Ledger::Provenance, &kind.entry_id(import, page))? else { break };
        keys.extend_from_slice(entry.value.as_chunks::<16>().0);
    }
    Ok(keys)
}

/// Returns the changes after which `import` has not brought `removed`; none if it has not.
///
/// # Errors
/// The ledger cannot be read.
pub fn without_keys(
    store: &Store,
    kind: ContributionKind,
    import: Uuid,
    removed: &BTreeSet<EvidenceKey>,
) -> Result<Vec<Change>, ProvenanceError> {
    let all = contributed_keys(store, kind, import)?;
    let kept: Vec<EvidenceKey> = all.iter().filter(|key| !removed.contains(*key)).copied().collect();
    if kept.len() == all.len() {
        return Ok(Vec::new());
    }
    let (mut changes, mut pages) = (Vec::new(), kept.chunks(KEYS_PER_PAGE));
    for page in 0.. {
        let id = kind.entry_id(import, page);
        match pages.next() {
            Some(keys) => changes.push(put(id, OTHER_ENTRIES, keys.concat())),
            // An empty entry is removed.
            None if store.ledger_get(Ledger::Provenance, &id)?.is_some() => {
                changes.push(put(id, OTHER_ENTRIES, Vec::new()));
            }
            None => break,
        }
    }
    Ok(changes)
}

/// Returns the keys that do not count, because only imports in `undone` brought them.
///
/// # Errors
/// The ledger cannot be read.
pub fn excluded_keys(
    store: &Store,
    kind: ContributionKind,
    undone: &UndoneImports,
) -> Result<BTreeSet<EvidenceKey>, ProvenanceError> {
    let mut excluded = BTreeSet::new();
    for import in undone {
        excluded.extend(contributed_keys(store, kind, *import)?);
    }
    if excluded.is_empty() {
        return Ok(excluded);
    }
    let mut include = |import| {
        if !undone.contains(&import) {
            for key in contributed_keys(store, kind, import)? {
                excluded.remove(&key);
            }
        }
        Ok(())
    };
    each_import(store, &mut include)?;
    // It gets its receipt at its end.
    merging(store)?.map_or(Ok(()), include)?;
    Ok(excluded)
}

/// The entry of the ledger that names the import of another store that is being merged.
const MERGING: &str = "merging";

/// Returns the import of another store that is being merged, or that an interrupted exchange has merged in part.
fn merging(store: &Store) -> Result<Option<Uuid>, ProvenanceError> {
    let entry = store.ledger_get(Ledger::Sync, MERGING)?;
    Ok(entry.and_then(|entry| Uuid::from_slice(&entry.value).ok()))
}

/// Returns the change that names the import that is merged from now on; `None` when its receipt is stored.
pub(crate) fn put_merging(import: Option<Uuid>) -> Change {
    let value = import.map(|import| import.as_bytes().to_vec()).unwrap_or_default();
    let (ledger, id) = (Ledger::Sync, MERGING.to_owned());
    Change::Ledger(LedgerWrite::Entry { ledger, id, at_micros: 0, value })
}

/// Returns, for each key that counts, the newest import that brought it.
///
/// # Errors
/// The ledger cannot be read.
pub fn newest_imports(
    store: &Store,
    kind: ContributionKind,
    undone: &UndoneImports,
) -> Result<BTreeMap<EvidenceKey, Uuid>, ProvenanceError> {
    let mut newest = BTreeMap::new();
    each_import(store, |import| {
        if !undone.contains(&import) {
            for key in contributed_keys(store, kind, import)? {
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
    mut each: impl FnMut(Uuid) -> Result<(), ProvenanceError>,
) -> Result<(), ProvenanceError> {
    let page = |after: Option<&Cursor>| Ok(store.ledger_list(Ledger::Import, after, PAGE)?);
    each_row(page, |entry| Uuid::parse_str(&entry.id).map_or(Ok(()), &mut each))
}
