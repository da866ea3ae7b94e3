//! Ids and references of a document that may hold millions of them: what is kept of each is its hash under keys of this run, and of
//! the first references their texts, for messages.

use std::{
    collections::HashSet,
    hash::{BuildHasher as _, RandomState},
};

use crate::issue::quote;

/// Bytes of texts that are kept.
const TEXTS: usize = 16 << 20;

/// An id: 128 bits, so that two of a document are never taken for one.
pub(super) type Key = [u32; 4];

/// Makes keys. Nobody can choose ids that have one key, as nobody knows the keys of the hash.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys([RandomState; 2]);

impl Keys {
    pub(super) fn of(&self, id: &str) -> Key {
        let [low, high] = [&self.0[0], &self.0[1]].map(|state| state.hash_one(id).to_ne_bytes());
        let part = |bytes: [u8; 8], at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        [part(low, 0), part(low, 4), part(high, 0), part(high, 4)]
    }

    /// The key of two ids together.
    pub(super) fn pair(&self, left: Key, right: Key) -> u64 {
        self.0[0].hash_one((left, right))
    }
}

/// The ids of a list.
pub(super) type Ids = HashSet<Key>;

/// References of a list, each with the place of who refers.
#[derive(Clone, Debug, Default)]
pub(super) struct References {
    rows: Vec<(u32, Key)>,
    texts: String,
    ends: Vec<u32>,
}

impl References {
    pub(super) fn push(&mut self, at: usize, key: Key, text: &str) {
        self.rows.push((u32::try_from(at).unwrap_or(u32::MAX), key));
        if self.ends.len() + 1 == self.rows.len() && self.texts.len() + text.len() <= TEXTS {
            self.texts.push_str(text);
            self.ends.push(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        }
    }

    /// Place, key, and the text for a message.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, Key, Shown<'_>)> {
        self.rows.iter().enumerate().map(|(row, (at, key))| {
            let start = row.checked_sub(1).map_or(0, |before| self.ends.get(before).copied().unwrap_or(0));
            let text = self.ends.get(row).map(|end| &self.texts[start as usize..*end as usize]);
            (*at as usize, *key, Shown(text))
        })
    }
}

/// An id for a message.
#[derive(Clone, Copy)]
pub(super) struct Shown<'t>(pub(super) Option<&'t str>);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.map_or_else(|| "an id".to_owned(), quote))
    }
}
