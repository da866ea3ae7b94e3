//! The ids of messages.
//!
//! Goose has ids for messages, but they do not last: sessions in files had none at first, the database did not store those that they had, and
//! gave all messages new ones when its schema changed. So the id of a message is a digest of what stays: its role, its time, and how its
//! first part begins. When an answer gets more parts, or when it is hidden because the session was shortened, the id stays the same.

use std::collections::BTreeMap;

use satchel_importer::natural_key;

/// Messages of one session. The longest known ones have some thousands.
const MAX_MESSAGES: usize = 100_000;
/// Pieces of the messages of one session.
const MAX_PIECES: usize = 400_000;
/// Characters of a text that count. The program once cut texts when it wrote a file again, but only those of more than 50,000.
const MAX_KEY: usize = 1024;

/// Gives each message its id.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// How many messages were alike.
    counts: BTreeMap<String, usize>,
    messages: usize,
    pieces: usize,
}

impl Ids {
    /// The id of a message with so many pieces; none if the session has too many messages.
    pub(crate) fn claim(&mut self, key: &[&str], pieces: usize) -> Option<String> {
        if self.messages == MAX_MESSAGES || self.pieces + pieces > MAX_PIECES {
            return None;
        }
        self.messages += 1;
        self.pieces += pieces;
        let parts: Vec<Option<&str>> = key.iter().map(|part| Some(beginning(part))).collect();
        let id = natural_key(&parts);
        let count = self.counts.entry(id.clone()).or_default();
        *count += 1;
        Some(if *count == 1 { id } else { format!("{id}#{count}") })
    }
}

/// The id of a piece of the message `id`.
pub(crate) fn of_piece(id: &str, at: usize) -> String {
    if at == 0 { id.to_owned() } else { format!("{id}:{}", at + 1) }
}

fn beginning(text: &str) -> &str {
    text.char_indices().nth(MAX_KEY).map_or(text, |(end, _)| text.get(..end).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_are_alike_are_counted() {
        let mut ids = Ids::default();
        let first = ids.claim(&["user", "1", "text", "Yes."], 1).unwrap_or_default();
        assert!(first.starts_with("natural:"));
        assert_eq!(ids.claim(&["user", "1", "text", "Yes."], 1), Some(format!("{first}#2")));
        assert_ne!(ids.claim(&["user", "2", "text", "Yes."], 1).as_deref(), Some(&*first));
        assert_eq!((of_piece("a", 0), of_piece("a", 1)), ("a".to_owned(), "a:2".to_owned()));
    }

    #[test]
    fn only_the_beginning_of_a_long_text_counts() {
        let long = "é".repeat(60_000);
        let id = |text: &str| Ids::default().claim(&[text], 1);
        assert_eq!(id(&long), id(&format!("{}\n\n[... truncated]", &long[..50_000])));
    }

    #[test]
    fn a_session_has_no_more_messages_than_fit() {
        let mut ids = Ids::default();
        assert_eq!(ids.claim(&["a"], MAX_PIECES + 1), None);
        for _ in 0..MAX_MESSAGES {
            assert!(ids.claim(&["a"], 1).is_some());
        }
        assert_eq!(ids.claim(&["a"], 1), None);
    }
}
