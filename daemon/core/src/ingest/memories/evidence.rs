//! What an import and the store say of some memories, and what follows.

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
    /// Memories of this import's PAM documents that were not known so.
    pub(super) documents: Vec<Document>,
    /// What would follow if the import had said nothing. Seldom needed, and as costly as what follows from all.
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
                // What it would have changed is told each time.
                Some(_) if document.stranger.is_some() => true,
                // When it was exported last matters only beside another version.
                Some(known) => versions.len() > 1 && known.exported < document.exported,
            }
        });
        Self { slice, documents, without: OnceCell::new() }
    }

    /// Without the edges that are named.
    pub(super) fn derive(&self, cancel: &CancelToken) -> Result<Derived, IngestError> {
        self.slice.derive(true, &self.documents, &|| cancel.cancelled()).ok_or(IngestError::Cancelled)
    }

    /// The memory `id` as it would be if the import had said nothing.
    pub(super) fn without(&self, id: &str) -> Option<&Memory> {
        let derived =
            self.without.get_or_init(|| self.slice.derive(false, &[], &|| false).unwrap_or_default());
        derived.memories.get(id)
    }

    /// What would follow if the strangers were trusted whose documents the import brings; none: it brings no such.
    pub(super) fn trusted(&self, cancel: &CancelToken) -> Result<Option<Derived>, IngestError> {
        if self.documents.iter().all(|document| document.stranger.is_none()) {
            return Ok(None);
        }
        let own = |document: &Document| Document { stranger: None, ..document.clone() };
        let documents: Vec<Document> = self.documents.iter().map(own).collect();
        let derived = self.slice.derive(true, &documents, &|| cancel.cancelled());
        derived.map(Some).ok_or(IngestError::Cancelled)
    }

    /// The memories of which a stranger's document speaks.
    pub(super) fn of_strangers(&self) -> BTreeSet<&str> {
        let all = self.slice.known.documents.iter().chain(&self.documents);
        let strangers = all.filter(|document| document.stranger.is_some());
        strangers.map(|document| document.memory.id.as_str()).collect()
    }

    /// Leaves out the vectors of a stranger where another's stands, and what it says of such.
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

    /// Relations that were named before.
    pub(super) fn edges(&self) -> &[Edge] {
        &self.slice.known.edges
    }

    /// Stores documents once more that are stored as exported at another time.
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

    /// Notes the vectors that `came` and what was `told` of others.
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
            // Of what nobody brought nothing is taken back, however much of it is named.
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

    /// The memories that documents brought; not those of which a stranger's says something else than what is shown.
    pub(super) fn documented(&self, derived: &Derived) -> BTreeSet<String> {
        let all = self.slice.known.documents.iter().chain(&self.documents);
        let shown = all.filter(|document| {
            document.stranger.is_none() || derived.foreign.contains_key(&document.memory.id)
        });
        shown.map(|document| document.memory.id.clone()).collect()
    }
}

/// Counts the vectors `found` for one memory and model, of which at most one `shows`, where one was `stored`.
fn count(counts: &mut Counts, found: u64, shows: Option<&String>, stored: Option<&String>) {
    let changed = u64::from(shows.is_some() && shows != stored);
    counts.found += found;
    counts.unchanged += found - changed.min(found);
    *(if stored.is_some() { &mut counts.updated } else { &mut counts.new }) += changed.min(found);
}

/// What became of the vectors that an import brought.
#[derive(Default)]
pub(super) struct Shown {
    /// What shows those that stand, and keeps the others.
    pub(super) changes: Vec<Change>,
    /// That the import brought them.
    pub(super) reports: BTreeMap<Key, Vec<u8>>,
    /// Vectors that were stored before it was noted who brought them.
    pub(super) found: Vec<EvidenceWrite>,
}

/// The key under which a piece of evidence is stored, and its bytes.
pub(in crate::ingest) fn document_report(document: &Document) -> Result<(Key, Vec<u8>), IngestError> {
    let (id, json) =
        document.encode().map_err(|_| IngestError::Unencodable { what: "a memory of a document" })?;
    Ok((key_of(&id), json))
}

/// As [`document_report`].
pub(super) fn witness_report(witness: &Witness) -> Result<(Key, Vec<u8>), IngestError> {
    witness.encode().map_err(|_| IngestError::Unencodable { what: "evidence" })
}

/// As [`document_report`].
pub(super) fn edge_report(edge: &Edge) -> Result<(Key, Vec<u8>), IngestError> {
    let (id, json) = edge.encode().map_err(|_| IngestError::Unencodable { what: "a relation" })?;
    Ok((key_of(&id), json))
}

fn encoded(named: &Named, found: bool) -> Result<(Key, Vec<u8>), IngestError> {
    let vector = Vector { named: named.clone(), found };
    let (id, bytes) = vector.encode().map_err(|_| IngestError::Unencodable { what: "a vector" })?;
    Ok((key_of(&id), bytes))
}
