//! The evidence of an import and of the store on some memories, and what follows from it.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
};

use satchel_merge::evidence::{
    DerivedMemories, DocumentEvidence, RelationEvidence, VectorEvidence, VectorIdentity,
};
use satchel_pam::{embedding::Embedding, memory::Memory, record::Warning};
use satchel_source::CancelToken;
use satchel_store::{Change, EvidenceWrite, Store, record_key};

use crate::{
    ingest::{
        error::IngestError,
        evidence::encode_document,
        receipt::{Counts, ImportRecord},
    },
    provenance::{
        EvidenceKey, EvidenceSlice,
        vectors::{self, DocumentVectors, VectorKey},
    },
};

/// All evidence on some memories that counts.
pub(super) struct DerivationEvidence {
    slice: EvidenceSlice,
    /// Memories of this import's PAM documents that are not yet known in this form.
    pub(super) documents: Vec<DocumentEvidence>,
    /// The result without the import's evidence. It is seldom needed, and costs as much as the result with all
    /// evidence.
    without: OnceCell<DerivedMemories>,
}

impl DerivationEvidence {
    pub(super) fn of(mut slice: EvidenceSlice) -> Self {
        let mut documents = std::mem::take(&mut slice.documents);
        let mut versions: BTreeMap<&str, Vec<&DocumentEvidence>> = BTreeMap::new();
        for document in &slice.known.documents {
            versions.entry(&document.memory.id).or_default().push(document);
        }
        documents.retain(|document| {
            let versions = versions.get(document.memory.id.as_str()).map_or(&[][..], Vec::as_slice);
            let same = |known: &&&DocumentEvidence| {
                known.memory == document.memory && known.untrusted_signer == document.untrusted_signer
            };
            match versions.iter().find(same) {
                None => true,
                // Each import reports what the document would have changed.
                Some(_) if document.untrusted_signer.is_some() => true,
                // A later export date matters only if there is another version.
                Some(known) => versions.len() > 1 && known.exported < document.exported,
            }
        });
        Self { slice, documents, without: OnceCell::new() }
    }

    /// Derives memories, without the relations that were named explicitly.
    pub(super) fn derive(&self, cancel: &CancelToken) -> Result<DerivedMemories, IngestError> {
        self.slice.derive(true, &self.documents, &|| cancel.cancelled()).ok_or(IngestError::Cancelled)
    }

    /// Returns the memory `id` as it would be without this import.
    pub(super) fn without(&self, id: &str) -> Option<&Memory> {
        let derived =
            self.without.get_or_init(|| self.slice.derive(false, &[], &|| false).unwrap_or_default());
        derived.memories.get(id)
    }

    /// Returns the result if the strangers whose documents the import brings were trusted; `None` if it brings no such
    /// documents.
    pub(super) fn trusted(&self, cancel: &CancelToken) -> Result<Option<DerivedMemories>, IngestError> {
        if self.documents.iter().all(|document| document.untrusted_signer.is_none()) {
            return Ok(None);
        }
        let own =
            |document: &DocumentEvidence| DocumentEvidence { untrusted_signer: None, ..document.clone() };
        let documents: Vec<DocumentEvidence> = self.documents.iter().map(own).collect();
        let derived = self.slice.derive(true, &documents, &|| cancel.cancelled());
        derived.map(Some).ok_or(IngestError::Cancelled)
    }

    /// Returns the ids of memories on which there is a stranger's document.
    pub(super) fn untrusted_memories(&self) -> BTreeSet<&str> {
        let all = self.slice.known.documents.iter().chain(&self.documents);
        let untrusted_ids = all.filter(|document| document.untrusted_signer.is_some());
        untrusted_ids.map(|document| document.memory.id.as_str()).collect()
    }

    /// Leaves out a stranger's vectors where there is one from another source, and its withdrawals of such vectors.
    pub(super) fn hold_vectors_back(
        &self,
        store: &Store,
        untrusted: &str,
        (embeddings, statements): (&mut Vec<Embedding>, &mut DocumentVectors),
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let known = vectors::current_vectors(&self.slice.known.vectors);
        let own = |place: &VectorKey| {
            known.get(place).is_some_and(|one| one.untrusted_signer.as_deref() == Some(untrusted))
        };
        statements.withdrawn.retain(|place, _| own(place));
        let mut kept = Vec::with_capacity(embeddings.len());
        for vector in embeddings.drain(..) {
            let place = (vector.memory_id.clone(), vector.model.clone());
            let stored = store.embedding(&place.0, &place.1)?;
            let from_another_signer = !own(&place) && (known.contains_key(&place) || stored.is_some());
            if from_another_signer && stored.is_none_or(|stored| stored.embedding != vector) {
                record.would_change.embeddings += 1;
                record.embeddings.leave_out();
                let locator = format!("embedding {:?}", vector.id);
                let message = "the embedding is left out: there is one from another source".to_owned();
                record.warn(Warning { locator, message });
            } else {
                kept.push(vector);
            }
        }
        *embeddings = kept;
        Ok(())
    }

    /// Returns the relations that earlier imports named.
    pub(super) fn edges(&self) -> &[RelationEvidence] {
        &self.slice.known.edges
    }

    /// Returns the changes that store documents again whose stored copy has an earlier export date.
    pub(super) fn exported_again(&self, store: &Store) -> Result<Vec<Change>, IngestError> {
        let mut changes = Vec::new();
        for document in &self.documents {
            let (id, json) = encode_document(document)?;
            let older = |stored: &[u8]| {
                let stored: Option<DocumentEvidence> = serde_json::from_slice(stored).ok();
                stored.is_some_and(|stored| stored.exported < document.exported)
            };
            if store.evidence(id)?.is_some_and(|stored| stored.json != json && older(&stored.json)) {
                changes.push(Change::Evidence(EvidenceWrite { id, json }));
            }
        }
        Ok(changes)
    }

    /// Records the vectors of the import, and its `statements` about others.
    pub(super) fn vectors(
        &self,
        store: &Store,
        (embeddings, untrusted): (Vec<Embedding>, Option<&str>),
        statements: &DocumentVectors,
        counts: &mut Counts,
    ) -> Result<VectorChanges, IngestError> {
        let mut places: BTreeMap<VectorKey, BTreeMap<String, Embedding>> = BTreeMap::new();
        let mut found: BTreeMap<VectorKey, u64> = BTreeMap::new();
        for embedding in embeddings {
            *found.entry((embedding.memory_id.clone(), embedding.model.clone())).or_default() += 1;
            let VectorIdentity { memory, model, digest, .. } = vectors::vector_name(&embedding)?;
            places.entry((memory, model)).or_default().insert(digest, embedding);
        }
        let known = vectors::current_vectors(&self.slice.known.vectors);
        for place in statements.withdrawn.keys() {
            // A vector that no import has cannot be withdrawn, however many are named.
            if known.contains_key(place) || store.embedding(&place.0, &place.1)?.is_some() {
                places.entry(place.clone()).or_default();
            }
        }
        let outdated = statements.outdated_withdrawals(&self.slice.known.vectors);
        let mut shown = VectorChanges::default();
        for (place, embeddings) in places {
            let mut all: Vec<VectorIdentity> = known.get(&place).cloned().into_iter().collect();
            let mut reported =
                embeddings.values().map(vectors::vector_name).collect::<Result<Vec<_>, _>>()?;
            reported.extend(statements.additional_entries(&place, &reported, outdated.get(&place)));
            reported.iter_mut().for_each(|named| named.untrusted_signer = untrusted.map(str::to_owned));
            for named in reported {
                let (key, json) = encoded(&named, false)?;
                shown.reports.insert(key, json);
                all.push(named);
            }
            let stored = store.embedding(&place.0, &place.1)?.map(|stored| stored.embedding);
            if let Some(named) = stored.as_ref().map(vectors::vector_name).transpose()? {
                let [imported, found] = [encoded(&named, false)?, encoded(&named, true)?];
                let recorded = known.get(&place).is_some_and(|known| known.digest == named.digest);
                if !recorded && !store.has_evidence(imported.0)? && !store.has_evidence(found.0)? {
                    let (id, json) = found;
                    shown.found.push(EvidenceWrite { id, json });
                    all.push(named);
                }
            }
            let digests: BTreeSet<String> = embeddings.keys().cloned().collect();
            let standing = all.iter().max();
            let shows = standing.filter(|standing| digests.contains(&standing.digest)).map(|one| &one.digest);
            let stored = stored.as_ref().map(vectors::vector_name).transpose()?.map(|named| named.digest);
            count(counts, found.get(&place).copied().unwrap_or(0), shows, stored.as_ref());
            shown.changes.extend(vectors::visibility_changes(store, &place, standing, embeddings)?);
        }
        Ok(shown)
    }

    /// Returns the memories that documents brought, except those where a stranger's document differs from what is
    /// shown.
    pub(super) fn documented(&self, derived: &DerivedMemories) -> BTreeSet<String> {
        let all = self.slice.known.documents.iter().chain(&self.documents);
        let shown = all.filter(|document| {
            document.untrusted_signer.is_none() || derived.untrusted.contains_key(&document.memory.id)
        });
        shown.map(|document| document.memory.id.clone()).collect()
    }
}

/// Counts the vectors `found` for one memory and model. `shows` is the digest of the one that is shown, if it is one of
/// these; `stored` is the digest of the one that was stored before.
fn count(counts: &mut Counts, found: u64, shows: Option<&String>, stored: Option<&String>) {
    let changed = u64::from(shows.is_some() && shows != stored);
    counts.found += found;
    counts.unchanged += found - changed.min(found);
    *(if stored.is_some() { &mut counts.updated } else { &mut counts.new }) += changed.min(found);
}

/// The result for the vectors that an import brought.
#[derive(Default)]
pub(super) struct VectorChanges {
    /// Changes that show the current vectors and store the others.
    pub(super) changes: Vec<Change>,
    /// Evidence that the import brought them, by key.
    pub(super) reports: BTreeMap<EvidenceKey, Vec<u8>>,
    /// Evidence for vectors that were stored before their origin was recorded.
    pub(super) found: Vec<EvidenceWrite>,
}

fn encoded(named: &VectorIdentity, found: bool) -> Result<(EvidenceKey, Vec<u8>), IngestError> {
    let vector = VectorEvidence { identity: named.clone(), without_import: found };
    let (id, bytes) = vector.encode().map_err(|_| IngestError::Unencodable { what: "a vector" })?;
    Ok((record_key(&id), bytes))
}
