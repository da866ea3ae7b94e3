//! The key of a row: the second of its time and its title, which are the same in lists, pages and later exports.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use satchel_importer::natural_key;

use super::verb;
use crate::whitespace::collapsed_prefix;

const MICROS_PER_SECOND: i64 = 1_000_000;

/// The title with single spaces and without the note about files. Pages and lists differ in both.
fn normalized(title: &str) -> String {
    let (title, _) = verb::split_attachment_note(title);
    let mut out = String::with_capacity(title.len());
    let (mut rest, mut space) = (title, false);
    while !rest.is_empty() {
        let words = rest.trim_start_matches(' ');
        space |= words.len() < rest.len();
        let (collapsed, behind) = words.split_at(collapsed_prefix(words.as_bytes(), may_begin_space));
        if !collapsed.is_empty() {
            push(collapsed, &mut space, &mut out);
        }
        let mut behind = behind.chars();
        match behind.next() {
            Some(c) if c.is_whitespace() => space = true,
            Some(c) => push(c.encode_utf8(&mut [0; 4]), &mut space, &mut out),
            None => {}
        }
        rest = behind.as_str();
    }
    out
}

fn push(text: &str, space: &mut bool, out: &mut String) {
    if std::mem::take(space) && !out.is_empty() {
        out.push(' ');
    }
    out.push_str(text);
}

/// 1 if white space other than a space may begin with the byte, else 0.
fn may_begin_space(byte: u8) -> u8 {
    let line = u8::from(byte.wrapping_sub(b'\t') <= b'\r' - b'\t');
    line | u8::from(byte == 0xc2) | u8::from(byte.wrapping_sub(0xe1) <= 0xe3 - 0xe1)
}

/// The whole second of a time: pages hold no more.
fn second(time: Option<i64>) -> Option<i64> {
    time.map(|time| time.div_euclid(MICROS_PER_SECOND))
}

/// The key of a row, from which the ids of its messages are made.
pub(super) fn row_key(title: &str, time: Option<i64>) -> String {
    let second = second(time).map(|second| second.to_string());
    natural_key(&[Some("row"), second.as_deref(), Some(&normalized(title))])
}

/// A hash of the key, to find rows that occur in several files.
pub(super) fn row_hash(title: &str, time: Option<i64>) -> u64 {
    // This hasher has fixed keys, so the result is the same in every run.
    let mut hasher = DefaultHasher::new();
    (second(time), normalized(title)).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn words_are_separated_by_one_space(pieces in prop::collection::vec(prop::sample::select(vec![
            " ", "  ", "\n", "\t", "\u{b}", "\u{1c}", "\u{85}", "\u{a0}", "\u{1680}", "\u{2003}", "\u{2028}", "\u{202f}", "\u{205f}", "\u{3000}", "\u{200b}",
            "a", "word", "é", "€", "お", "茶", "🚀", "¿", "two words", "seventeen letters", "a line of many words that is long",
        ]), 0..24)) {
            let title = pieces.concat();
            let words: Vec<&str> = title.split_whitespace().collect();
            prop_assert_eq!(normalized(&title), words.join(" "), "{:?}", title);
        }
    }

    #[test]
    fn a_row_has_the_same_key_in_lists_and_pages() {
        let list = row_key("Prompted And  now?\nSay. Attached 1 file.", Some(1_500_000));
        assert_eq!(list, row_key("Prompted\u{a0}And now? Say.", Some(1_000_000)));
        assert_ne!(list, row_key("Prompted And now? Say.", Some(2_000_000)));
        assert_ne!(row_key("a", None), row_key("b", None));
        assert_eq!(row_hash("a\u{a0}b", Some(7)), row_hash("a b", Some(8)));
    }
}
