//! Ids of the records that an import of PAM documents has taken, so that none comes twice and no two share a key. A document may hold a
//! million of them.

use std::collections::{BTreeMap, btree_map::Entry};

use satchel_pam::hash::ContentHash;
use satchel_store::key_of;

use crate::lineage::Key;

/// The kind of record of which it is known what each says.
pub(super) const MEMORY: &str = "memory";

/// The start of a digest: enough to tell texts apart that came under one key.
pub(super) type Fingerprint = u64;

#[derive(Default)]
pub(super) struct Taken {
    /// By kind and key: the id.
    ids: BTreeMap<&'static str, BTreeMap<Key, Fingerprint>>,
    /// By the key of its id: what a memory says.
    contents: BTreeMap<Key, Fingerprint>,
}

impl Taken {
    /// Takes an id for a record; why not, if it has been taken.
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

    /// Notes what the memory `id` says.
    pub(super) fn note_content(&mut self, id: &str, content: &ContentHash) {
        self.contents.insert(key_of(id), of_content(content));
    }

    /// What the memory `id` of the documents says; none: they do not hold it.
    pub(super) fn content(&self, id: &str) -> Option<Fingerprint> {
        let key = key_of(id);
        let taken = self.ids.get(MEMORY)?.get(&key)?;
        (*taken == of_id(id)).then(|| self.contents.get(&key).copied()).flatten()
    }
}

fn of_id(id: &str) -> Fingerprint {
    start(blake3::hash(id.as_bytes()).as_bytes())
}

/// The fingerprint of what a memory says.
pub(in crate::ingest) fn of_content(content: &ContentHash) -> Fingerprint {
    start(content.as_bytes())
}

fn start(digest: &[u8; 32]) -> Fingerprint {
    let mut start = [0; 8];
    start.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(start)
}
