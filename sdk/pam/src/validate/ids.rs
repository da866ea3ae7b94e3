//! Ids and references of a document that may contain millions of them. Each id is kept as a hash, and the texts of the first
//! references are kept for messages.

use std::{
    collections::HashSet,
    hash::{BuildHasher as _, RandomState},
};

use crate::issue::quote;

/// Maximum bytes of texts that are kept.
const MAX_TEXTS: usize = 16 << 20;

/// The hash of an id: 128 bits, so that different ids of a document have different hashes.
pub(super) type IdHash = [u32; 4];

/// Hashes ids with random keys, so that nobody can construct ids with equal hashes.
#[derive(Clone, Debug, Default)]
pub(super) struct IdHasher([RandomState; 2]);

impl IdHasher {
    pub(super) fn hash(&self, id: &str) -> IdHash {
        let [low, high] = [&self.0[0], &self.0[1]].map(|state| state.hash_one(id).to_ne_bytes());
        let part = |bytes: [u8; 8], at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        [part(low, 0), part(low, 4), part(high, 0), part(high, 4)]
    }

    /// The hash of a pair of ids.
    pub(super) fn pair(&self, left: IdHash, right: IdHash) -> u64 {
        self.0[0].hash_one((left, right))
    }
}

/// The ids of a list.
pub(super) type IdSet = HashSet<IdHash>;

/// References of a list, each with the index of the referring record.
#[derive(Clone, Debug, Default)]
pub(super) struct References {
    rows: Vec<(u32, IdHash)>,
    texts: String,
    ends: Vec<u32>,
}

impl References {
    pub(super) fn push(&mut self, at: usize, key: IdHash, text: &str) {
        self.rows.push((u32::try_from(at).unwrap_or(u32::MAX), key));
        if self.ends.len() + 1 == self.rows.len() && self.texts.len() + text.len() <= MAX_TEXTS {
            self.texts.push_str(text);
            self.ends.push(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        }
    }

    /// Index of the referring record, hash of the id, and its text for a message.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, IdHash, QuotedId<'_>)> {
        self.rows.iter().enumerate().map(|(row, (at, key))| {
            let start = row.checked_sub(1).map_or(0, |before| self.ends.get(before).copied().unwrap_or(0));
            let text = self.ends.get(row).map(|end| &self.texts[start as usize..*end as usize]);
            (*at as usize, *key, QuotedId(text))
        })
    }
}

/// An id for a message; none if its text was not kept.
#[derive(Clone, Copy)]
pub(super) struct QuotedId<'t>(pub(super) Option<&'t str>);

impl std::fmt::Display for QuotedId<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.map_or_else(|| "an id".to_owned(), quote))
    }
}
