//! Damaged variants of files: cut, with changed bytes, or with a value replaced. The same seed gives the same variants.

use std::{fmt, hash::Hasher as _};

use serde_json::{Value, de::Deserializer};

/// Arrays or objects within each other; far more than any parser should follow by recursion.
const DEPTH: usize = 20_000;

/// Values that replace others, besides nested ones.
const VALUES: [&str; 8] = [
    "null",
    "true",
    "-1.5e300",
    r#""""#,
    r#""\ud800""#,
    "[]",
    r#"{"a":[null,{"b":[]}]}"#,
    "18446744073709551616",
];

/// A damaged variant of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mutation {
    pub(super) file: String,
    pub(super) change: Change,
    pub(super) bytes: Vec<u8>,
}

/// What was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Only the first bytes are left.
    Cut { left: usize, of: usize },
    /// Some bytes have other values; the first of them.
    Bytes { count: usize, first: usize },
    /// A value was replaced.
    Value { at: usize, by: &'static str },
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.file)?;
        match &self.change {
            Change::Cut { left, of } => write!(f, "cut after {left} of {of} bytes"),
            Change::Bytes { count, first } => write!(f, "with {count} changed bytes, the first at {first}"),
            Change::Value { at, by } => write!(f, "with the value at byte {at} replaced by {by}"),
        }
    }
}

/// A sequence of numbers that looks random (`SplitMix64`).
pub(super) struct Numbers(u64);

impl Numbers {
    /// Starts a sequence for a name.
    pub(super) fn of(seed: u64, name: &str) -> Self {
        let mut hasher = Fnv(0xcbf2_9ce4_8422_2325 ^ seed);
        hasher.write(name.as_bytes());
        Self(hasher.finish())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`, which is not zero.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap_or_default()
    }
}

/// FNV-1a: `std`'s hashers may change between versions, and then a seed would mean other variants.
struct Fnv(u64);

impl std::hash::Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Makes the variant with this number of a file that is not empty. The kinds of changes take turns.
pub(super) fn mutation(number: usize, file: &str, bytes: &[u8], numbers: &mut Numbers) -> Mutation {
    let (change, bytes) = match number % 4 {
        0 => cut(bytes, numbers),
        1 => change_bytes(bytes, numbers),
        2 => replace_value(bytes, nested(numbers.below(3)), numbers),
        _ => {
            let value = VALUES[numbers.below(VALUES.len())];
            replace_value(bytes, (value, value.to_owned()), numbers)
        }
    };
    Mutation { file: file.to_owned(), change, bytes }
}

fn cut(bytes: &[u8], numbers: &mut Numbers) -> (Change, Vec<u8>) {
    let left = numbers.below(bytes.len());
    (Change::Cut { left, of: bytes.len() }, bytes[..left].to_vec())
}

fn change_bytes(bytes: &[u8], numbers: &mut Numbers) -> (Change, Vec<u8>) {
    let mut changed = bytes.to_vec();
    let count = 1 + numbers.below(7);
    let mut first = bytes.len();
    for _ in 0..count {
        let at = numbers.below(bytes.len());
        // Never zero, so that the byte differs.
        changed[at] ^= u8::try_from(1 + numbers.below(255)).unwrap_or(1);
        first = first.min(at);
    }
    (Change::Bytes { count, first }, changed)
}

/// A deeply nested value and its name.
fn nested(number: usize) -> (&'static str, String) {
    match number {
        0 => ("20,000 arrays within each other", "[".repeat(DEPTH) + &"]".repeat(DEPTH)),
        1 => ("20,000 objects within each other", r#"{"a":"#.repeat(DEPTH) + "1" + &"}".repeat(DEPTH)),
        _ => ("20,000 arrays that are never closed", "[".repeat(DEPTH)),
    }
}

/// Replaces a value of JSON; in other text, some place gets the value in addition, as elements of HTML if it is HTML.
fn replace_value(bytes: &[u8], by: (&'static str, String), numbers: &mut Numbers) -> (Change, Vec<u8>) {
    let (name, mut value) = by;
    let places = value_places(bytes);
    let (at, end) = if places.is_empty() {
        if bytes.trim_ascii_start().starts_with(b"<") {
            value = value.replace('[', "<div>").replace(']', "</div>");
        }
        let at = numbers.below(bytes.len());
        (at, at)
    } else {
        let at = places[numbers.below(places.len())];
        (at, value_end(bytes, at))
    };
    let changed = [&bytes[..at], value.as_bytes(), &bytes[end..]].concat();
    (Change::Value { at, by: name }, changed)
}

/// Returns the offsets of values of JSON: behind the colons that follow a quote.
fn value_places(bytes: &[u8]) -> Vec<usize> {
    // A quote behind a backslash ends nothing.
    let escaped = |at: usize| at > 0 && bytes[at - 1] == b'\\';
    let pairs = bytes.windows(2).enumerate();
    let colons = pairs.filter(|(at, pair)| pair == b"\":" && !escaped(*at));
    let places = colons.map(|(at, _)| {
        let behind = &bytes[at + 2..];
        at + 2 + (behind.len() - behind.trim_ascii_start().len())
    });
    places.filter(|at| *at < bytes.len()).collect()
}

/// Returns where the value at `at` ends; if it is none, where its line ends.
fn value_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let mut values = Deserializer::from_slice(rest).into_iter::<Value>();
    if let Some(Ok(_)) = values.next() {
        return at + values.byte_offset();
    }
    at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTES: &[u8] = br#"[{"id": "n1", "text": "Bake \"rye\": bread"},{"id":2}]"#;

    fn all(seed: u64) -> Vec<Mutation> {
        let mut numbers = Numbers::of(seed, "notes");
        (0..200).map(|number| mutation(number, "notes.json", NOTES, &mut numbers)).collect()
    }

    #[test]
    fn a_seed_decides_all_variants_and_each_differs_from_the_file() {
        assert_eq!(all(7), all(7));
        assert_ne!(all(7), all(8));
        assert!(
            all(7)
                .iter()
                .all(|mutation| mutation.bytes != NOTES || matches!(mutation.change, Change::Bytes { .. }))
        );
    }

    #[test]
    fn whole_values_are_replaced() {
        assert_eq!(value_places(NOTES), [8, 22, 51]);
        let mut numbers = Numbers::of(0, "");
        let mut found = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let (_, bytes) = replace_value(NOTES, ("null", "null".to_owned()), &mut numbers);
            found.insert(String::from_utf8_lossy(&bytes).into_owned());
        }
        assert!(found.contains(r#"[{"id": "n1", "text": null},{"id":2}]"#), "{found:?}");
        assert!(found.contains(r#"[{"id": "n1", "text": "Bake \"rye\": bread"},{"id":null}]"#), "{found:?}");
    }

    #[test]
    fn nested_values_are_deep_and_text_without_values_gets_them_too() {
        let nested = all(0).into_iter().find(|mutation| matches!(mutation.change, Change::Value { .. }));
        assert!(nested.is_some_and(|mutation| mutation.bytes.len() > DEPTH));
        let mut numbers = Numbers::of(0, "");
        let html = mutation(2, "a.html", b"<p>tea</p>", &mut numbers);
        assert!(html.bytes.windows(10).any(|part| part == b"<div><div>"), "{html}");
        let text = mutation(2, "a.csv", b"tea;rye", &mut numbers);
        assert!(text.bytes.len() > DEPTH);
    }

    #[test]
    fn a_variant_names_its_file_and_change() {
        let mutation =
            Mutation { file: "a.json".to_owned(), change: Change::Cut { left: 3, of: 9 }, bytes: Vec::new() };
        assert_eq!(mutation.to_string(), "a.json cut after 3 of 9 bytes");
    }
}
