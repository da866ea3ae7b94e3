//! Finds repeated keys in objects while they are parsed.

use std::cell::RefCell;

use crate::same_text;

/// The keys that an object of one element repeats. The last value counts, and the receipt has a warning.
#[derive(Debug, Default)]
pub(crate) struct RepeatedKeys(RefCell<Vec<String>>);

impl RepeatedKeys {
    fn add(&self, key: &str) {
        let mut found = self.0.borrow_mut();
        if found.len() < MAX_REPORTED && !found.iter().any(|known| known == key) {
            found.push(key.to_owned());
        }
    }

    /// Whether no object repeats a key.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Removes and returns the keys, at most [`MAX_REPORTED`].
    pub(crate) fn take(&self) -> Vec<String> {
        self.0.take()
    }
}

/// Most keys that are reported for one element; one is enough to doubt its source.
const MAX_REPORTED: usize = 8;

/// Up to this number, the keys of an object are compared as they come; more are compared at its end.
pub(super) const FEW: usize = 32;

/// The keys of the objects that are open.
pub(super) struct Keys<'a> {
    all: Vec<&'a str>,
    /// The objects around the innermost one.
    outer: Vec<Object>,
    innermost: Object,
    repeated: &'a RepeatedKeys,
}

#[derive(Clone, Copy, Default)]
struct Object {
    /// The index of its first key.
    start: usize,
    /// The [`slot`] of each key: a key whose bit is not set is certainly new.
    slots: u64,
}

impl<'a> Keys<'a> {
    pub(super) fn new(repeated: &'a RepeatedKeys) -> Self {
        let all = Vec::with_capacity(4 * FEW);
        Self { all, outer: Vec::with_capacity(16), innermost: Object::default(), repeated }
    }

    /// An object begins.
    #[inline]
    pub(super) fn open(&mut self) {
        self.outer.push(self.innermost);
        self.innermost = Object { start: self.all.len(), slots: 0 };
    }

    /// A key of the innermost object.
    #[inline]
    pub(super) fn note(&mut self, key: &'a str) {
        let slot = slot(key);
        if self.innermost.slots & slot != 0 {
            self.compare(key);
        }
        self.innermost.slots |= slot;
        self.all.push(key);
    }

    /// The innermost object ends.
    #[inline]
    pub(super) fn close(&mut self) {
        let start = self.innermost.start;
        if self.all.len() - start > FEW {
            self.compare_many();
        }
        self.all.truncate(start);
        self.innermost = self.outer.pop().unwrap_or_default();
    }

    fn compare(&self, key: &str) {
        let known = self.all.get(self.innermost.start..).unwrap_or_default();
        if known.len() <= FEW && contains(known, key) {
            self.repeated.add(key);
        }
    }

    #[cold]
    fn compare_many(&mut self) {
        let keys = self.all.get_mut(self.innermost.start..).unwrap_or_default();
        for key in repeated_among_many(keys) {
            self.repeated.add(key);
        }
    }
}

/// Whether `key` is one of `keys`.
pub(super) fn contains(keys: &[&str], key: &str) -> bool {
    keys.iter().any(|known| same_text(known, key))
}

/// The keys that are more than once in `keys`. May sort `keys`, but only if two hashes are equal: sorting hashes is much
/// cheaper than sorting texts.
pub(super) fn repeated_among_many<'k>(keys: &mut [&'k str]) -> impl Iterator<Item = &'k str> {
    let mut hashes: Vec<u64> = keys.iter().map(|key| hash(key)).collect();
    hashes.sort_unstable();
    let suspicious = hashes.windows(2).any(|pair| pair.first() == pair.last());
    if suspicious {
        keys.sort_unstable();
    }
    let pairs = if suspicious { keys.windows(2) } else { [].windows(2) };
    pairs.filter(|pair| pair.first() == pair.last()).filter_map(|pair| pair.first().copied())
}

/// One bit for a key, from what differs most between the keys of one object: length, first and last byte.
#[inline]
pub(super) fn slot(key: &str) -> u64 {
    let (Some(first), Some(last)) = (key.as_bytes().first(), key.as_bytes().last()) else { return 1 };
    let mixed = key.len().wrapping_add(usize::from(*first) * 5).wrapping_add(usize::from(*last) * 11);
    1 << (mixed & 63)
}

/// A fast hash; collisions only cost time.
fn hash(key: &str) -> u64 {
    let (words, rest) = key.as_bytes().as_chunks::<8>();
    let tail = rest.iter().fold(rest.len() as u64, |tail, byte| tail << 8 | u64::from(*byte));
    let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    mix(words.iter().fold(0, |hash, word| mix(hash, u64::from_le_bytes(*word))), tail)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Arena, JsonError, Parser};

    /// Walks every object of `text` and returns the repeated keys.
    fn repeated(text: &str) -> Vec<String> {
        let (arena, repeated) = (Arena::new(), RepeatedKeys::default());
        walk(&mut Parser::reporting(text, &arena, &repeated)).expect("it is JSON");
        let mut found = repeated.take();
        found.sort();
        found
    }

    fn walk(json: &mut Parser<'_>) -> Result<(), JsonError> {
        if json.enter_object()? {
            while json.key()?.is_some() {
                walk(json)?;
            }
        } else if json.enter_array()? {
            while json.item()? {
                walk(json)?;
            }
        }
        Ok(())
    }

    fn object(keys: &[String]) -> String {
        let pairs: Vec<String> = keys.iter().map(|key| format!("\"{key}\":{{\"x\":0}}")).collect();
        format!("{{{}}}", pairs.join(","))
    }

    proptest! {
        #[test]
        fn repeated_keys_are_found_among_few_and_many(
            mut keys in prop::collection::btree_set("[a-f]{0,3}", 0..80).prop_map(|keys| keys.into_iter().collect::<Vec<_>>()).prop_shuffle(),
            twice in prop::option::of((any::<prop::sample::Index>(), any::<prop::sample::Index>())),
        ) {
            prop_assert_eq!(repeated(&object(&keys)), Vec::<String>::new());
            if let Some((from, to)) = twice.filter(|_| !keys.is_empty()) {
                let key = from.get(&keys).clone();
                keys.insert(to.index(keys.len() + 1), key.clone());
                prop_assert_eq!(repeated(&format!("[{}]", object(&keys))), [key]);
            }
        }
    }

    #[test]
    fn objects_do_not_share_their_keys() {
        assert!(repeated(r#"[{"a":{"a":[{"a":1},{"a":1}],"b":2},"b":2},{"a":1}]"#).is_empty());
        assert_eq!(repeated(r#"{"a":{"b":1},"c":{"d":{"e":0},"\u0064":1},"a":2}"#), ["a", "d"]);
    }

    #[test]
    fn only_the_first_repeated_keys_are_reported() {
        let keys: Vec<String> =
            (0..100).flat_map(|number| [number.to_string(), number.to_string()]).collect();
        assert_eq!(repeated(&object(&keys)).len(), MAX_REPORTED);
    }
}
