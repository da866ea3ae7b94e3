//! The evidence of an import and of the store on some memories, and what follows from it.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
};

use satchel_merge::evidence::{Derived, Document, Edge, Named, Vector, Witness};
use satchel_pam::{embedding::Embedding, memory::Memory, record::Warning};
use satchel_source::CancelToken;
use satchel_store::{Change, EvidenceWrite, Store, key_of};

use crate::{
    ingest::{
        IngestError,
        receipt::{Counts, ImportRecord},
    },
    lineage::{
        Key, Slice,
        vectors::{self, Place, Told},
    },
};

/// All evidence on some memories that counts.
pub(super) struct Evidence {
    slice: Slice,
    /// Memories of this import's PAM documents that are not yet known in this form.
    pub(super) documents: Vec<Document>,
    /// The result without the import's evidence. It is seldom needed, and costs as much as the result with all
    /// evidence.
    without: OnceCell<Derived>,
}

impl Evidence {
    pub(super) fn of(mut slice: Slice) -> Self {
        let mut documents = std::mem::take(&mut slice.documents);
        let mut versions: BTreeMap<&str, Vec<&Document>> = BTreeMap::new();
        for document in &slice.known.documents {
            versions.entry(&document.memory.id).or_default().push(document);
        }
        documents.retain(|document| {
            let versions = versions.get(document.memory.id.as_str()).map_or(&[][..], Vec::as_slice);
            let same =
                |known: &&&Document| known.memory == document.memory && known.stranger == document.stranger;
            match versions.iter().find(same) {
                None => true,
                // What it would have changed is reported by each import.
                Some(_) if document.stranger.is_some() => true,
                // A later export date matters only if there is another version.
                Some(known) => versions.len() > 1 && known.exported < document.exported,
            }
        });
        Self { slice, documents, without: OnceCell::new() }
    }

    /// Derives memories, without the relations that were named explicitly.
    pub(super) fn derive(&self, cancel: &CancelToken) -> Result<Derived, IngestError> {
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
    pub(super) fn trusted(&self, cancel: &CancelToken) -> Result<Option<Derived>, IngestError> {
        if self.documents.iter().all(|document| document.stranger.is_none()) {
            return Ok(None);
        }
        let own = |document: &Document| Document { stranger: None, ..document.clone() };
        let documents: Vec<Document> = self.documents.iter().map(own).collect();
        let derived = self.slice.derive(true, &documents, &|| cancel.cancelled());
        derived.map(Some).ok_or(IngestError::Cancelled)
    }

    /// Returns the ids of memories on which there is a stranger's document.
    pub(super) fn of_strangers(&self) -> BTreeSet<&str> {
        let all = self.slice.known.documents.iter().chain(&self.documents);
        let strangers = all.filter(|document| document.stranger.is_some());
        strangers.map(|document| document.memory.id.as_str()).collect()
    }

    /// Leaves out a stranger's vectors where there is one from another source, and its withdrawals of such vectors.
    pub(super) fn hold_vectors_back(
        &self,
        store: &Store,
        stranger: &str,
        (came, told): (&mut Vec<Embedding>, &mut Told),
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let known = vectors::standing(&self.slice.known.vectors);
        let own =
            |place: &Place| known.get(place).is_some_and(|one| one.stranger.as_deref() == Some(stranger));
        told.withdrawn.retain(|place, _| own(place));
        let mut kept = Vec::with_capacity(came.len());
        for vector in came.drain(..) {
            let place = (vector.memory_id.clone(), vector.model.clone());
            let stored = store.embedding(&place.0, &place.1)?;
            let anothers = !own(&place) && (known.contains_key(&place) || stored.is_some());
            if anothers && stored.is_none_or(|stored| stored.embedding != vector) {
                record.would_change.embeddings += 1;
                record.embeddings.leave_out();
                let locator = format!("embedding {:?}", vector.id);
                let message = "the embedding is left out: there is one from another source".to_owned();
                record.warn(Warning { locator, message });
            } else {
                kept.push(vector);
            }
        }
        *came = kept;
        Ok(())
    }

    /// Returns the relations that earlier imports named.
    pub(super) fn edges(&self) -> &[Edge] {
        &self.slice.known.edges
    }

    /// Returns the changes that store documents again whose stored copy has an earlier export date.
    pub(super) fn exported_again(&self, store: &Store) -> Result<Vec<Change>, IngestError> {
        let mut changes = Vec::new();
        for document in &self.documents {
            let (id, json) = document_report(document)?;
            let older = |stored: &[u8]| {
                let stored: Option<Document> = serde_json::from_slice(stored).ok();
                stored.is_some_and(|stored| stored.exported < document.exported)
            };
            if store.evidence(id)?.is_some_and(|stored| stored.json != json && older(&stored.json)) {
                changes.push(Change::Evidence(EvidenceWrite { id, json }));
            }
        }
        Ok(changes)
    }

    /// Records the vectors that `came`, and what was `told` about others.
    pub(super) fn vectors(
        &self,
        store: &Store,
        (came, stranger): (Vec<Embedding>, Option<&str>),
        told: &Told,
        counts: &mut Counts,
    ) -> Result<Shown, IngestError> {
        let mut places: BTreeMap<Place, BTreeMap<String, Embedding>> = BTreeMap::new();
        let mut found: BTreeMap<Place, u64> = BTreeMap::new();
        for embedding in came {
            *found.entry((embedding.memory_id.clone(), embedding.model.clone())).or_default() += 1;
            let Named { memory, model, digest, .. } = vectors::name(&embedding)?;
            places.entry((memory, model)).or_default().insert(digest, embedding);
        }
        let known = vectors::standing(&self.slice.known.vectors);
        for place in told.withdrawn.keys() {
            // A vector that nobody brought cannot be withdrawn, however many are named.
            if known.contains_key(place) || store.embedding(&place.0, &place.1)?.is_some() {
                places.entry(place.clone()).or_default();
            }
        }
        let outdated = told.outdated(&self.slice.known.vectors);
        let mut shown = Shown::default();
        for (place, came) in places {
            let mut all: Vec<Named> = known.get(&place).cloned().into_iter().collect();
            let mut reported = came.values().map(vectors::name).collect::<Result<Vec<_>, _>>()?;
            reported.extend(told.more(&place, &reported, outdated.get(&place)));
            reported.iter_mut().for_each(|named| named.stranger = stranger.map(str::to_owned));
            for named in reported {
                let (key, json) = encoded(&named, false)?;
                shown.reports.insert(key, json);
                all.push(named);
            }
            let stored = store.embedding(&place.0, &place.1)?.map(|stored| stored.embedding);
            if let Some(named) = stored.as_ref().map(vectors::name).transpose()? {
                let [said, found] = [encoded(&named, false)?, encoded(&named, true)?];
                let told = known.get(&place).is_some_and(|known| known.digest == named.digest);
                if !told && !store.has_evidence(said.0)? && !store.has_evidence(found.0)? {
                    let (id, json) = found;
                    shown.found.push(EvidenceWrite { id, json });
                    all.push(named);
                }
            }
            let digests: BTreeSet<String> = came.keys().cloned().collect();
            let standing = all.iter().max();
            let shows = standing.filter(|standing| digests.contains(&standing.digest)).map(|one| &one.digest);
            let stored = stored.as_ref().map(vectors::name).transpose()?.map(|named| named.digest);
            count(counts, found.get(&place).copied().unwrap_or(0), shows, stored.as_ref());
            shown.changes.extend(vectors::show(store, &place, standing, came)?);
        }
        Ok(shown)
    }

    /// Returns the memories that documents brought, except those where a stranger's document differs from what is
    /// shown.
    pub(super) fn documented(&self, derived: &Derived) -> BTreeSet<String> {
        let all = self.slice.known.documents.iter().chain(&self.documents);
        let shown = all.filter(|document| {
            document.stranger.is_none() || derived.foreign.contains_key(&document.memory.id)
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
pub(super) struct Shown {
    /// Changes that show the current vectors and store the others.
    pub(super) changes: Vec<Change>,
    /// Evidence that the import brought them, by key.
    pub(super) reports: BTreeMap<Key, Vec<u8>>,
    /// Evidence for vectors that were stored before their origin was recorded.
    pub(super) found: Vec<EvidenceWrite>,
}

/// Returns the key under which a piece of evidence is stored, and its encoded bytes.
pub(in crate::ingest) fn document_report(document: &Document) -> Result<(Key, Vec<u8>), IngestError> {
    let (id, json) =
        document.encode().map_err(|_| IngestError::Unencodable { what: "a memory of a document" })?;
    Ok((key_of(&id), json))
}

/// Works as [`document_report`].
pub(super) fn witness_report(witness: &Witness) -> Result<(Key, Vec<u8>), IngestError> {
    witness.encode().map_err(|_| IngestError::Unencodable { what: "evidence" })
}

/// Works as [`document_report`].
pub(super) fn edge_report(edge: &Edge) -> Result<(Key, Vec<u8>), IngestError> {
    let (id, json) = edge.encode().map_err(|_| IngestError::Unencodable { what: "a relation" })?;
    Ok((key_of(&id), json))
}

fn encoded(named: &Named, found: bool) -> Result<(Key, Vec<u8>), IngestError> {
    let vector = Vector { named: named.clone(), found };
    let (id, bytes) = vector.encode().map_err(|_| IngestError::Unencodable { what: "a vector" })?;
    Ok((key_of(&id), bytes))
}
