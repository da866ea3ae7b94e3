//! By what a row is known again in a later export, in either form: its second and its title.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use satchel_importer::natural_key;

use super::verb;
use crate::words::evenly_spaced;

const MICROS_PER_SECOND: i64 = 1_000_000;

/// A title with single spaces and without the remark about files: pages and lists differ in both.
fn folded(title: &str) -> String {
    let (title, _) = verb::without_attached(title);
    let mut folded = String::with_capacity(title.len());
    let (mut rest, mut space) = (title, false);
    while !rest.is_empty() {
        let words = rest.trim_start_matches(' ');
        space |= words.len() < rest.len();
        let (run, behind) = words.split_at(evenly_spaced(words.as_bytes(), may_begin_space));
        if !run.is_empty() {
            push(run, &mut space, &mut folded);
        }
        let mut behind = behind.chars();
        match behind.next() {
            Some(c) if c.is_whitespace() => space = true,
            Some(c) => push(c.encode_utf8(&mut [0; 4]), &mut space, &mut folded),
            None => {}
        }
        rest = behind.as_str();
    }
    folded
}

fn push(text: &str, space: &mut bool, folded: &mut String) {
    if std::mem::take(space) && !folded.is_empty() {
        folded.push(' ');
    }
    folded.push_str(text);
}

/// Whether white space other than a space may begin with a byte.
fn may_begin_space(byte: u8) -> u8 {
    let line = u8::from(byte.wrapping_sub(b'\t') <= b'\r' - b'\t');
    line | u8::from(byte == 0xc2) | u8::from(byte.wrapping_sub(0xe1) <= 0xe3 - 0xe1)
}

/// Pages give whole seconds only.
fn second(time: Option<i64>) -> Option<i64> {
    time.map(|time| time.div_euclid(MICROS_PER_SECOND))
}

/// The key of a row, for its messages.
pub(super) fn text(title: &str, time: Option<i64>) -> String {
    let second = second(time).map(|second| second.to_string());
    natural_key(&[Some("row"), second.as_deref(), Some(&folded(title))])
}

/// The same in short, to find rows that stand in two files.
pub(super) fn hash(title: &str, time: Option<i64>) -> u64 {
    // The keys of this hasher are fixed, so every run gives the same.
    let mut hasher = DefaultHasher::new();
    (second(time), folded(title)).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn words_are_parted_by_one_space(pieces in prop::collection::vec(prop::sample::select(vec![
            " ", "  ", "\n", "\t", "\u{b}", "\u{1c}", "\u{85}", "\u{a0}", "\u{1680}", "\u{2003}", "\u{2028}", "\u{202f}", "\u{205f}", "\u{3000}", "\u{200b}",
            "a", "word", "é", "€", "お", "茶", "🚀", "¿", "two words", "seventeen letters", "a line of many words that is long",
        ]), 0..24)) {
            let title = pieces.concat();
            let words: Vec<&str> = title.split_whitespace().collect();
            prop_assert_eq!(folded(&title), words.join(" "), "{:?}", title);
        }
    }

    #[test]
    fn both_forms_of_a_row_have_one_key() {
        let list = text("Prompted And  now?\nSay. Attached 1 file.", Some(1_500_000));
        assert_eq!(list, text("Prompted\u{a0}And now? Say.", Some(1_000_000)));
        assert_ne!(list, text("Prompted And now? Say.", Some(2_000_000)));
        assert_ne!(text("a", None), text("b", None));
        assert_eq!(hash("a\u{a0}b", Some(7)), hash("a b", Some(8)));
    }
}
