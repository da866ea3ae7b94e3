//! The ids of the messages of a session.

use std::collections::BTreeMap;

/// The ids that were given.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// Each with the number that is tried next if it is given again.
    given: BTreeMap<String, u32>,
}

impl Ids {
    /// `key`, or if an earlier message has it, `key:2`, `key:3` and so on.
    pub(super) fn unique(&mut self, key: String) -> String {
        let Some(mut number) = self.given.get(&key).copied() else {
            self.given.insert(key.clone(), 2);
            return key;
        };
        let other = loop {
            let other = format!("{key}:{number}");
            number = number.saturating_add(1);
            if !self.given.contains_key(&other) {
                break other;
            }
        };
        self.given.insert(key, number);
        self.given.insert(other.clone(), 2);
        other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_keys_are_numbered() {
        let mut ids = Ids::default();
        let given = ["a", "a", "a:2", "b", "a"].map(|key| ids.unique(key.to_owned()));
        assert_eq!(given, ["a", "a:2", "a:2:2", "b", "a:3"]);
    }
}
