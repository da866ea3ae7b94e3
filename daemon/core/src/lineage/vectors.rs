//! Vectors of memories: of all vectors that imports brought for one memory and model, the latest is current, and the
//! others are kept.

use std::collections::BTreeMap;

use satchel_merge::evidence::{Exported, Named, Vector};
use satchel_pam::embedding::Embedding;
use satchel_store::{Change, Ledger, Store};

use super::{LineageError, REST, decode, encode, put};

/// Prefix of the ids of the ledger entries that hold a vector.
const KIND: &str = "vector ";
const WHAT: &str = "a vector of a memory";

/// A memory's id, and a model.
pub type Place = (String, String);

/// Returns the current vectors.
#[must_use]
pub fn standing(vectors: &[Vector]) -> BTreeMap<Place, Named> {
    let mut standing: BTreeMap<Place, Named> = BTreeMap::new();
    for Vector { named, .. } in vectors {
        let known = standing.entry((named.memory.clone(), named.model.clone()));
        let known = known.or_insert_with(|| named.clone());
        if *known < *named {
            known.clone_from(named);
        }
    }
    standing
}

/// What a document says about vectors besides containing them.
#[derive(Debug, Default)]
pub struct Told {
    /// Vectors that were withdrawn in the store that wrote the document, and the times of their withdrawals.
    pub withdrawn: BTreeMap<Place, Exported>,
    /// When the document was exported; `None` if that is unknown.
    pub exported: Option<Exported>,
}

impl Told {
    /// Returns, for each place, the latest known withdrawal that is older than the document and is therefore superseded
    /// by it.
    #[must_use]
    pub fn outdated(&self, known: &[Vector]) -> BTreeMap<Place, Exported> {
        let mut outdated = BTreeMap::new();
        for Vector { named, .. } in known.iter().filter(|known| known.named.withdrawn()) {
            let Some(at) = named.after.filter(|at| self.exported.is_some_and(|exported| *at < exported))
            else {
                continue;
            };
            let latest = outdated.entry((named.memory.clone(), named.model.clone())).or_insert(at);
            *latest = at.max(*latest);
        }
        outdated
    }

    /// Returns additional entries for a place that received `came`, given the `outdated` withdrawal, if any.
    #[must_use]
    pub fn more(&self, place: &Place, came: &[Named], outdated: Option<&Exported>) -> Vec<Named> {
        let (memory, model) = place.clone();
        let gone = self.withdrawn.get(place).map(|at| Named::withdrawal(memory, model, *at));
        let again = |named: &Named| {
            let after = outdated.copied().filter(|after| named.at <= after.at);
            after.map(|after| Named { after: Some(after), ..named.clone() })
        };
        came.iter().filter_map(again).chain(gone).collect()
    }
}

/// Returns the changes that make `standing` the visible vector of a memory and model, or leave none visible. `came`
/// holds the available vectors by digest; all of them except the visible one are kept.
///
/// # Errors
/// The store or the ledger cannot be read.
pub fn show(
    store: &Store,
    (memory, model): &Place,
    standing: Option<&Named>,
    mut came: BTreeMap<String, Embedding>,
) -> Result<Vec<Change>, LineageError> {
    let stored = store.embedding(memory, model)?.map(|stored| stored.embedding);
    let shown = stored.as_ref().map(name).transpose()?;
    let standing = standing.filter(|named| !named.withdrawn());
    let wanted = match standing {
        Some(named) => match came.remove(&named.digest) {
            Some(embedding) => Some(embedding),
            None => kept(store, &named.digest)?,
        },
        None => None,
    };
    let mut changes = Vec::new();
    if shown.as_ref().map(|shown| &shown.digest) != standing.map(|named| &named.digest) {
        came.extend(shown.zip(stored).map(|(shown, stored)| (shown.digest, stored)));
        changes.push(match wanted {
            Some(embedding) => Change::Embedding(embedding),
            None => Change::WithdrawEmbedding { memory: memory.clone(), model: model.clone() },
        });
    } else if let Some(shown) = shown {
        came.remove(&shown.digest);
    }
    for (digest, embedding) in came {
        if store.ledger_get(Ledger::Lineage, &key(&digest))?.is_none() {
            changes.push(put(key(&digest), REST, encode(&embedding, WHAT)?));
        }
    }
    Ok(changes)
}

/// Returns the name of a vector.
///
/// # Errors
/// None in practice.
pub fn name(embedding: &Embedding) -> Result<Named, LineageError> {
    Ok(Vector::of(embedding).map_err(|_| LineageError::Unreadable { what: WHAT })?.named)
}

fn kept(store: &Store, digest: &str) -> Result<Option<Embedding>, LineageError> {
    let entry = store.ledger_get(Ledger::Lineage, &key(digest))?;
    entry.map(|entry| decode(&entry.value, WHAT)).transpose()
}

/// Returns the memory whose vector a ledger entry holds, or `None` if it is another kind of entry.
///
/// # Errors
/// The entry cannot be decoded.
pub fn kept_of(id: &str, value: &[u8]) -> Result<Option<String>, LineageError> {
    if !id.starts_with(KIND) || value.is_empty() {
        return Ok(None);
    }
    Ok(Some(decode::<Embedding>(value, WHAT)?.memory_id))
}

fn key(digest: &str) -> String {
    format!("{KIND}{digest}")
}
