//! By what a row is known again in a later export, in either form: its second and its title.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use satchel_importer::natural_key;

use super::verb;

const MICROS_PER_SECOND: i64 = 1_000_000;

/// A title with single spaces and without the remark about files: pages and lists differ in both.
fn folded(title: &str) -> String {
    let (title, _) = verb::without_attached(title);
    let mut folded = String::with_capacity(title.len());
    for word in title.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    folded
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
    use super::*;

    #[test]
    fn both_forms_of_a_row_have_one_key() {
        let list = text("Prompted And  now?\nSay. Attached 1 file.", Some(1_500_000));
        assert_eq!(list, text("Prompted\u{a0}And now? Say.", Some(1_000_000)));
        assert_ne!(list, text("Prompted And now? Say.", Some(2_000_000)));
        assert_ne!(text("a", None), text("b", None));
        assert_eq!(hash("a\u{a0}b", Some(7)), hash("a b", Some(8)));
    }
}
