//! Gives the messages of a chat their ids, which stay when the chat goes on.

use std::collections::BTreeMap;

use crate::{message::Version, piece::IdSource};

/// Pieces of one chat.
const MAX_PIECES: usize = 400_000;
/// Bytes of all ids of one chat.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The id of a piece.
#[derive(Debug)]
pub(crate) struct Id {
    pub(crate) text: String,
    /// Whether the file has it.
    pub(crate) given: bool,
    /// The id in the file, if another piece has it.
    pub(crate) repeats: Option<String>,
}

/// The ids that are in use.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// How often each id was wanted.
    uses: BTreeMap<String, usize>,
    /// For each key of words: the last entry that had it, and how many had it.
    words: BTreeMap<String, (u64, usize)>,
    bytes: usize,
    /// Whether the file gave an id twice.
    pub(crate) repeated: bool,
}

impl Ids {
    /// Whether the chat has as many messages as are read.
    pub(crate) fn is_full(&self) -> bool {
        self.uses.len() >= MAX_PIECES || self.bytes >= MAX_BYTES
    }

    /// The ids of the pieces of a version, of the entry with this number.
    pub(crate) fn claim(&mut self, version: &Version<'_>, entry: u64) -> Vec<Id> {
        let named = version.id.map(ToOwned::to_owned);
        let wanted = named.unwrap_or_else(|| self.numbered(version.natural_key(), entry));
        let own = self.unique(wanted);
        let mut ids = Vec::with_capacity(version.pieces.len());
        for piece in &version.pieces {
            let (text, given) = match piece.name {
                IdSource::Version => (own.clone(), version.id),
                IdSource::Step(id) => (self.unique(id.to_owned()), Some(id)),
                IdSource::PartOf(id, part) => (self.unique(format!("{id}:{part}")), None),
                IdSource::Numbered(step, part) => (self.unique(format!("{own}:{step}:{part}")), None),
            };
            let repeats = given.filter(|given| *given != text).map(ToOwned::to_owned);
            self.repeated |= repeats.is_some();
            ids.push(Id { given: given.is_some() && repeats.is_none(), repeats, text });
        }
        ids
    }

    /// Tells the same words in several entries apart. The versions of one entry count once, so that another version of an earlier entry
    /// changes nothing.
    fn numbered(&mut self, key: String, entry: u64) -> String {
        let (last, count) = self.words.entry(key.clone()).or_insert((entry, 1));
        if *last != entry {
            (*last, *count) = (entry, *count + 1);
        }
        if *count == 1 { key } else { format!("{key}#{count}") }
    }

    /// The id itself, or with a number if it is in use.
    fn unique(&mut self, wanted: String) -> String {
        let mut id = wanted.clone();
        loop {
            let uses = self.uses.entry(id.clone()).or_default();
            *uses += 1;
            if *uses == 1 {
                self.bytes += id.len();
                return id;
            }
            // A file may have this id, too.
            id = format!("{wanted}~{uses}");
        }
    }
}
