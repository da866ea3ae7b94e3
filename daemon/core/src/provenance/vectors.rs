//! Vectors of memories: of all vectors that imports brought for one memory and model, the latest is current, and the
//! others are kept.

use std::collections::BTreeMap;

use satchel_merge::evidence::{ExportTime, VectorEvidence, VectorIdentity};
use satchel_pam::embedding::Embedding;
use satchel_store::{Change, Ledger, Store};

use super::{OTHER_ENTRIES, ProvenanceError, decode, encode, put};

/// Prefix of the ids of the ledger entries that hold a vector.
pub(super) const ID_PREFIX: &str = "vector ";
const WHAT: &str = "a vector of a memory";

/// A memory's id, and a model.
pub type VectorKey = (String, String);

/// Returns the current vectors.
#[must_use]
pub fn current_vectors(vectors: &[VectorEvidence]) -> BTreeMap<VectorKey, VectorIdentity> {
    let mut current: BTreeMap<VectorKey, VectorIdentity> = BTreeMap::new();
    for VectorEvidence { identity: named, .. } in vectors {
        let known = current.entry((named.memory.clone(), named.model.clone()));
        let known = known.or_insert_with(|| named.clone());
        if *known < *named {
            known.clone_from(named);
        }
    }
    current
}

/// What a document says about vectors besides containing them.
#[derive(Debug, Default)]
pub struct DocumentVectors {
    /// Vectors that were withdrawn in the store that wrote the document, and the times of their withdrawals.
    pub withdrawn: BTreeMap<VectorKey, ExportTime>,
    /// When the document was exported; `None` if that is unknown.
    pub exported: Option<ExportTime>,
}

impl DocumentVectors {
    /// Returns, for each place, the latest known withdrawal that is older than the document and is therefore superseded
    /// by it.
    #[must_use]
    pub fn outdated_withdrawals(&self, known: &[VectorEvidence]) -> BTreeMap<VectorKey, ExportTime> {
        let mut outdated = BTreeMap::new();
        for VectorEvidence { identity: named, .. } in
            known.iter().filter(|known| known.identity.is_withdrawal())
        {
            let Some(at) = named.after.filter(|at| self.exported.is_some_and(|exported| *at < exported))
            else {
                continue;
            };
            let latest = outdated.entry((named.memory.clone(), named.model.clone())).or_insert(at);
            *latest = at.max(*latest);
        }
        outdated
    }

    /// Returns additional entries for a place that received `available`, given the `outdated` withdrawal, if any.
    #[must_use]
    pub fn additional_entries(
        &self,
        place: &VectorKey,
        available: &[VectorIdentity],
        outdated: Option<&ExportTime>,
    ) -> Vec<VectorIdentity> {
        let (memory, model) = place.clone();
        let gone = self.withdrawn.get(place).map(|at| VectorIdentity::withdrawal(memory, model, *at));
        let again = |named: &VectorIdentity| {
            let after = outdated.copied().filter(|after| named.at <= after.at);
            after.map(|after| VectorIdentity { after: Some(after), ..named.clone() })
        };
        available.iter().filter_map(again).chain(gone).collect()
    }
}

/// Returns the changes that make `current` the visible vector of a memory and model, or leave none visible. `available`
/// holds the available vectors by digest; all of them except the visible one are kept.
///
/// # Errors
/// The store or the ledger cannot be read.
pub fn visibility_changes(
    store: &Store,
    (memory, model): &VectorKey,
    current: Option<&VectorIdentity>,
    mut available: BTreeMap<String, Embedding>,
) -> Result<Vec<Change>, ProvenanceError> {
    let stored = store.embedding(memory, model)?.map(|stored| stored.embedding);
    let visible = stored.as_ref().map(vector_name).transpose()?;
    let current = current.filter(|named| !named.is_withdrawal());
    let wanted = match current {
        Some(named) => match available.remove(&named.digest) {
            Some(embedding) => Some(embedding),
            None => stored_vector(store, &named.digest)?,
        },
        None => None,
    };
    let mut changes = Vec::new();
    if visible.as_ref().map(|visible| &visible.digest) != current.map(|named| &named.digest) {
        available.extend(visible.zip(stored).map(|(visible, stored)| (visible.digest, stored)));
        changes.push(match wanted {
            Some(embedding) => Change::Embedding(embedding),
            None => Change::WithdrawEmbedding { memory: memory.clone(), model: model.clone() },
        });
    } else if let Some(visible) = visible {
        available.remove(&visible.digest);
    }
    for (digest, embedding) in available {
        if store.ledger_get(Ledger::Provenance, &entry_id(&digest))?.is_none() {
            changes.push(put(entry_id(&digest), OTHER_ENTRIES, encode(&embedding, WHAT)?));
        }
    }
    Ok(changes)
}

/// Returns the name of a vector.
///
/// # Errors
/// None in practice.
pub fn vector_name(embedding: &Embedding) -> Result<VectorIdentity, ProvenanceError> {
    Ok(VectorEvidence::of(embedding).map_err(|_| ProvenanceError::Unreadable { what: WHAT })?.identity)
}

fn stored_vector(store: &Store, digest: &str) -> Result<Option<Embedding>, ProvenanceError> {
    let entry = store.ledger_get(Ledger::Provenance, &entry_id(digest))?;
    entry.map(|entry| decode(&entry.value, WHAT)).transpose()
}

/// Returns the memory whose vector a ledger entry holds, or `None` if it is another kind of entry.
///
/// # Errors
/// The entry cannot be decoded.
pub fn stored_vector_memory(id: &str, value: &[u8]) -> Result<Option<String>, ProvenanceError> {
    if !id.starts_with(ID_PREFIX) || value.is_empty() {
        return Ok(None);
    }
    Ok(Some(decode::<Embedding>(value, WHAT)?.memory_id))
}

fn entry_id(digest: &str) -> String {
    format!("{ID_PREFIX}{digest}")
}
