//! Ids and parents of messages, in the order of the file.

use std::collections::BTreeMap;

use crate::turn::digest;

/// The messages of one file so far.
#[derive(Debug, Default)]
pub(crate) struct MessageTree {
    /// How often each id was wanted, by its digest.
    seen: BTreeMap<u64, u32>,
    /// The id of the message before.
    last: Option<String>,
    /// The id of the message before each turn that was not rolled back.
    turns: Vec<Option<String>>,
}

/// A message's place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    /// An earlier message has the same id of the provider or the same key.
    pub(crate) repeated: bool,
}

impl MessageTree {
    /// Adds a message. `begins_turn` says that the person wrote it.
    pub(crate) fn add(&mut self, id: String, begins_turn: bool) -> Place {
        let (id, repeated) = self.unique(id);
        let parent = self.last.replace(id.clone());
        if begins_turn {
            self.turns.push(parent.clone());
        }
        Place { id, parent, repeated }
    }

    /// Makes the next message an alternative to the last `turns` turns.
    pub(crate) fn roll_back(&mut self, turns: u64) {
        let left = usize::try_from(turns).map_or(0, |turns| self.turns.len().saturating_sub(turns));
        let first = self.turns.drain(left..).next();
        if let Some(before) = first {
            self.last = before;
        }
    }

    /// The id of the last message that was not rolled back.
    pub(crate) fn into_last(self) -> Option<String> {
        self.last
    }

    /// An id that no message has yet: the second with one id gets `:2`.
    fn unique(&mut self, id: String) -> (String, bool) {
        let key = digest(&id);
        let Some(mut count) = self.seen.get(&key).copied() else {
            self.seen.insert(key, 1);
            return (id, false);
        };
        loop {
            count += 1;
            let numbered = format!("{id}:{count}");
            let own = digest(&numbered);
            if !self.seen.contains_key(&own) {
                self.seen.insert(own, 1);
                self.seen.insert(key, count);
                return (numbered, true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parents(steps: &[(&str, u64)]) -> Vec<(String, Option<String>)> {
        let mut tree = MessageTree::default();
        let mut found = Vec::new();
        for (id, number) in steps {
            if *id == "back" {
                tree.roll_back(*number);
            } else {
                let place = tree.add((*id).to_owned(), *number == 1);
                found.push((place.id, place.parent));
            }
        }
        found
    }

    #[test]
    fn the_message_after_a_rollback_follows_the_last_that_is_left() {
        let steps = [
            ("s", 0),
            ("q1", 1),
            ("a1", 0),
            ("q2", 1),
            ("a2", 0),
            ("back", 1),
            ("q3", 1),
            ("back", 2),
            ("q4", 1),
        ];
        let parents = parents(&steps);
        let of = |id: &str| parents.iter().find(|(own, _)| own == id).and_then(|(_, parent)| parent.clone());
        assert_eq!(of("q2").as_deref(), Some("a1"));
        assert_eq!(of("q3").as_deref(), Some("a1"));
        assert_eq!(of("q4").as_deref(), Some("s"), "rollbacks are cumulative");
    }

    #[test]
    fn too_long_and_empty_rollbacks_are_harmless() {
        let parents = parents(&[("back", 5), ("q1", 1), ("back", 0), ("a1", 0), ("back", 9), ("q2", 1)]);
        assert_eq!(parents[1].1.as_deref(), Some("q1"));
        assert_eq!(parents[2].1, None);
    }

    #[test]
    fn repeated_ids_are_numbered() {
        let ids: Vec<String> =
            parents(&[("a", 0), ("a:2", 0), ("a", 0), ("a", 0)]).into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, ["a", "a:2", "a:3", "a:4"]);
    }
}
