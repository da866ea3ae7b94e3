//! The order of the messages of a session, in which each one follows the one before it.

use std::collections::{BTreeMap, BTreeSet};

use crate::message::Record;

/// Messages of one session. The longest known ones have some thousands.
pub(crate) const MAX_MESSAGES: usize = 100_000;
/// Pieces of the messages of one session.
const MAX_PIECES: usize = 400_000;
/// Bytes of their ids, which are all kept in the memory of the guest. Those of the program have 30 bytes each.
const MAX_ID_BYTES: usize = 16 * 1024 * 1024;

/// Where a message belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry<T> {
    pub(crate) id: String,
    /// Its place among messages of the same moment, if the program has one.
    pub(crate) rank: Option<i64>,
    /// Microseconds.
    pub(crate) created: Option<i64>,
    /// What the message is found by.
    pub(crate) source: T,
}

/// Sorts messages as the program does: by their times, and those of the same moment by their ranks and ids. A message without a time follows
/// the one that is before it by these.
pub(crate) fn sort<T>(entries: &mut [Entry<T>]) {
    entries.sort_by(|a, b| (a.rank, &a.id).cmp(&(b.rank, &b.id)));
    let mut last = None;
    for entry in entries.iter_mut() {
        last = entry.created.or(last);
        entry.created = last;
    }
    entries.sort_by_key(|entry| entry.created);
}

/// Gives each piece its parent, and leaves out those whose id an earlier one has.
#[derive(Debug, Default)]
pub(crate) struct PieceIds {
    ids: BTreeSet<String>,
    bytes: usize,
    /// Whether a piece did not fit.
    full: bool,
}

impl PieceIds {
    /// Removes the pieces whose ids are taken, and returns their ids.
    pub(crate) fn claim(&mut self, record: &mut Record<'_>) -> Vec<String> {
        let mut repeated = Vec::new();
        record.pieces.retain(|piece| {
            let fits = self.ids.len() < MAX_PIECES && self.bytes + piece.id.len() <= MAX_ID_BYTES;
            let new = fits && self.ids.insert(piece.id.to_string());
            if new {
                self.bytes += piece.id.len();
            } else {
                self.full |= !fits;
                repeated.push(piece.id.to_string());
            }
            new
        });
        repeated
    }

    /// Whether there is no place for more pieces.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Why a piece is left out.
    pub(crate) fn reason(&self) -> &'static str {
        if self.full {
            return "the session has more messages than fit";
        }
        "an earlier part or message has the same id"
    }
}

/// The last piece of each message, by the place of the message in its file.
pub(crate) type LastPieces = BTreeMap<u64, String>;

/// For each message, by its place in the file, the piece that its first piece follows.
pub(crate) fn parents(mut entries: Vec<Entry<u64>>, last: &LastPieces) -> BTreeMap<u64, String> {
    sort(&mut entries);
    let mut parents = BTreeMap::new();
    let mut before: Option<&String> = None;
    for entry in &entries {
        if let Some(before) = before {
            parents.insert(entry.source, before.clone());
        }
        before = last.get(&entry.source).or(before);
    }
    parents
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, created: Option<i64>, source: u64) -> Entry<u64> {
        Entry { id: id.to_owned(), rank: None, created, source }
    }

    #[test]
    fn messages_are_sorted_by_time_and_then_by_id() {
        let mut entries =
            [entry("d", Some(1), 0), entry("a", Some(3), 1), entry("c", None, 2), entry("b", Some(1), 3)];
        sort(&mut entries);
        let ids: Vec<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!(ids, ["b", "c", "d", "a"]);
    }

    #[test]
    fn a_message_follows_the_last_piece_before_it() {
        let entries = vec![entry("a", Some(1), 5), entry("b", Some(2), 1), entry("c", Some(3), 3)];
        let last = LastPieces::from([(5, "a:2".to_owned()), (3, "c".to_owned())]);
        let expected = [(1, "a:2".to_owned()), (3, "a:2".to_owned())];
        assert_eq!(parents(entries, &last), BTreeMap::from(expected));
    }
}
