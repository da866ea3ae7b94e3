//! The ids of the records that an import of PAM documents has accepted, so that no record is imported twice and no two
//! share a key. A document may hold a million of them.

use std::collections::{BTreeMap, btree_map::Entry};

use satchel_pam::hash::ContentHash;
use satchel_store::record_key;

use crate::{
    ingest::records::{content_fingerprint, fingerprint},
    provenance::EvidenceKey,
};

/// The kind of record whose contents are noted as well.
pub(super) const MEMORY: &str = "memory";

/// The first 64 bits of a digest: enough to tell apart texts that have the same key.
pub(super) type Fingerprint = u64;

#[derive(Default)]
pub(super) struct ClaimedIds {
    /// The fingerprint of the id, by kind and key.
    ids: BTreeMap<&'static str, BTreeMap<EvidenceKey, Fingerprint>>,
    /// The fingerprint of a memory's content, by the key of its id.
    contents: BTreeMap<EvidenceKey, Fingerprint>,
}

impl ClaimedIds {
    /// Reserves an id for a record; the error says why it cannot be used.
    pub(super) fn claim(&mut self, kind: &'static str, id: &str) -> Result<(), String> {
        if id.is_empty() {
            return Err("its id is empty".to_owned());
        }
        let claimed = of_id(id);
        match self.ids.entry(kind).or_default().entry(record_key(id)) {
            Entry::Vacant(place) => {
                place.insert(claimed);
                Ok(())
            }
            Entry::Occupied(first) => {
                let same = *first.get() == claimed;
                let what = if same { "its id" } else { "an id that is stored under the same key" };
                Err(format!("another {kind} of the documents has {what}; the first is kept"))
            }
        }
    }

    /// Notes the content of the memory `id`.
    pub(super) fn note_content(&mut self, id: &str, content: &ContentHash) {
        self.contents.insert(record_key(id), content_fingerprint(content));
    }

    /// Returns the fingerprint of the content of the memory `id`; `None` if the documents do not hold it.
    pub(super) fn content(&self, id: &str) -> Option<Fingerprint> {
        let key = record_key(id);
        let taken = self.ids.get(MEMORY)?.get(&key)?;
        (*taken == of_id(id)).then(|| self.contents.get(&key).copied()).flatten()
    }
}

fn of_id(id: &str) -> Fingerprint {
    fingerprint(blake3::hash(id.as_bytes()).as_bytes())
}
