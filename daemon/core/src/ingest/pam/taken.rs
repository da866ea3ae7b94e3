//! The ids of the records that an import of PAM documents has accepted, so that no record is imported twice and no two
//! share a key. A document may hold a million of them.

use std::collections::{BTreeMap, btree_map::Entry};

use satchel_pam::hash::ContentHash;
use satchel_store::key_of;

use crate::lineage::Key;

/// The kind of record whose contents are noted as well.
pub(super) const MEMORY: &str = "memory";

/// The first 64 bits of a digest: enough to tell apart texts that have the same key.
pub(super) type Fingerprint = u64;

#[derive(Default)]
pub(super) struct Taken {
    /// The fingerprint of the id, by kind and key.
    ids: BTreeMap<&'static str, BTreeMap<Key, Fingerprint>>,
    /// The fingerprint of a memory's content, by the key of its id.
    contents: BTreeMap<Key, Fingerprint>,
}

impl Taken {
    /// Reserves an id for a record; the error says why it cannot be used.
    pub(super) fn claim(&mut self, kind: &'static str, id: &str) -> Result<(), String> {
        if id.is_empty() {
            return Err("its id is empty".to_owned());
        }
        let fingerprint = of_id(id);
        match self.ids.entry(kind).or_default().entry(key_of(id)) {
            Entry::Vacant(place) => {
                place.insert(fingerprint);
                Ok(())
            }
            Entry::Occupied(first) => {
                let same = *first.get() == fingerprint;
                let what = if same { "its id" } else { "an id that is stored under the same key" };
                Err(format!("another {kind} of the documents has {what}; the first is kept"))
            }
        }
    }

    /// Notes the content of the memory `id`.
    pub(super) fn note_content(&mut self, id: &str, content: &ContentHash) {
        self.contents.insert(key_of(id), of_content(content));
    }

    /// Returns the fingerprint of the content of the memory `id`; `None` if the documents do not hold it.
    pub(super) fn content(&self, id: &str) -> Option<Fingerprint> {
        let key = key_of(id);
        let taken = self.ids.get(MEMORY)?.get(&key)?;
        (*taken == of_id(id)).then(|| self.contents.get(&key).copied()).flatten()
    }
}

fn of_id(id: &str) -> Fingerprint {
    start(blake3::hash(id.as_bytes()).as_bytes())
}

/// Returns the fingerprint of a memory's content.
pub(in crate::ingest) fn of_content(content: &ContentHash) -> Fingerprint {
    start(content.as_bytes())
}

fn start(digest: &[u8; 32]) -> Fingerprint {
    let mut start = [0; 8];
    start.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(start)
}
