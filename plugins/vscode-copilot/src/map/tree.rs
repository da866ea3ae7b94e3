//! The ids of the messages of a session.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::natural_key;

/// Longest id that is remembered as it is; natural keys have this length.
const MAX_LENGTH: usize = 72;

/// The ids of requests and answers. Those of the other messages are made of them with a colon, which ids of the file never have here.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// How often each was given.
    given: BTreeMap<Box<str>, u32>,
}

impl Ids {
    /// `key`, or if an earlier request or answer has it, `key:r2`, `key:r3` and so on.
    pub(super) fn unique(&mut self, key: String) -> String {
        let remembered = if key.len() > MAX_LENGTH { natural_key(&[Some(&key)]) } else { key.clone() };
        let count = self.given.entry(remembered.into()).or_default();
        *count += 1;
        if *count == 1 { key } else { format!("{key}:r{count}") }
    }
}

/// An id of the file without colons.
pub(super) fn escaped(id: &str) -> Cow<'_, str> {
    if id.contains(['%', ':']) {
        Cow::Owned(id.replace('%', "%25").replace(':', "%3A"))
    } else {
        Cow::Borrowed(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_keys_are_numbered() {
        let mut ids = Ids::default();
        let long = "x".repeat(100);
        let given =
            ["a", "a", "a:2", "b", "a", &long, &long].map(|key| ids.unique(escaped(key).into_owned()));
        let again = format!("{long}:r2");
        assert_eq!(given, ["a", "a:r2", "a%3A2", "b", "a:r3", &long, &again]);
    }
}
