//! Broken variants of the files of fixtures: with changed bytes, with changed values, or truncated.
//!
//! This needs the feature `property-tests` of this crate. proptest chooses the variants at random: 600 for each test, or the number in
//! the environment variable `PROPTEST_CASES`. Set `PROPTEST_RNG_SEED` to repeat a run.

use std::{env, path::Path};

use proptest::{
    collection::vec,
    prelude::{Strategy, any},
    sample::Index,
    test_runner::{Config, TestRunner},
};
use satchel_pam::record::{Line, MessageRecord};
use serde_json::{Deserializer, Value};

use super::{FixtureFile, cancelled_run, conversations, fixture_files, messages, skips, warnings};
use crate::Importer;

/// Variants for each test.
const CASES: u32 = 600;

/// The values that replace others.
const VALUES: [&str; 17] = [
    "null",
    "true",
    "0",
    "-1.5e3",
    "-1.5e300",
    r#""""#,
    r#""x""#,
    r#""[""#,
    r#""{}""#,
    r#""\ud800""#,
    "[]",
    "[null]",
    "[[{}]]",
    r#"[[1],{"text":"a"}]"#,
    "{}",
    r#"{"a":[1]}"#,
    r#"{"a":{"b":[null]}}"#,
];

/// Files of fixtures, and how an importer reads a broken variant of one.
pub struct BrokenFiles {
    files: Vec<FixtureFile>,
    read: fn(name: &str, bytes: &[u8]) -> Vec<Line>,
}

/// A truncated file.
#[derive(Debug)]
pub struct CutFile<'c> {
    /// Its name.
    pub name: &'c str,
    /// The remaining bytes.
    pub left: &'c [u8],
    /// The bytes that are missing.
    pub missing: &'c [u8],
    /// The output for the whole file.
    pub whole: &'c [Line],
    /// The output for the remaining bytes.
    pub lines: Vec<Line>,
}

impl BrokenFiles {
    /// The non-empty files that `chosen` accepts, of all fixtures of the crate in `crate_folder` (`env!("CARGO_MANIFEST_DIR")`). `read` runs
    /// the importer on one file, for instance with [`super::run_file`], checks what must be true for any input, and returns the output.
    ///
    /// # Panics
    /// If the fixtures cannot be read, or no file is accepted.
    pub fn new(
        crate_folder: &str,
        chosen: impl Fn(&FixtureFile) -> bool,
        read: fn(name: &str, bytes: &[u8]) -> Vec<Line>,
    ) -> Self {
        let mut files =
            fixture_files(Path::new(crate_folder).join("fixtures")).expect("the fixtures can be read");
        files.retain(|file| !file.bytes.is_empty() && chosen(file));
        assert!(!files.is_empty(), "no file of a fixture is accepted");
        Self { files, read }
    }

    /// The unchanged files.
    pub fn files(&self) -> &[FixtureFile] {
        &self.files
    }

    /// Reads variants with one to seven changed bytes.
    pub fn change_bytes(&self) {
        run_random(&(any::<Index>(), vec((any::<Index>(), any::<u8>()), 1..8)), |(file, changes)| {
            let FixtureFile { name, bytes, .. } = file.get(&self.files);
            let mut bytes = bytes.clone();
            changes.into_iter().for_each(|(at, byte)| *at.get_mut(&mut bytes) = byte);
            (self.read)(name, &bytes);
        });
    }

    /// Reads variants with another JSON value: it replaces a value, it replaces the rest of a line, or it is inserted and the old value
    /// moves to an unknown key.
    ///
    /// # Panics
    /// If no file has a value behind a colon.
    pub fn change_values(&self) {
        let place_count = |file: &FixtureFile| value_places(&String::from_utf8_lossy(&file.bytes)).len();
        let files: Vec<_> = self.files.iter().filter(|file| place_count(file) > 0).collect();
        assert!(!files.is_empty(), "no file holds a value behind a colon");
        run_random(&(any::<Index>(), any::<Index>(), 0..VALUES.len()), |(file, place, value)| {
            let FixtureFile { name, bytes, .. } = file.get(&files);
            let text = String::from_utf8_lossy(bytes);
            let (before, behind) = text.split_at(*place.get(&value_places(&text)));
            for variant in with_value(before, behind, VALUES[value]) {
                (self.read)(name, variant.as_bytes());
            }
        });
    }

    /// Runs `T` in `format` on each file with a conversation. The sink returns an error from the first call; the run must end with it.
    ///
    /// # Panics
    /// If a run ends otherwise, or no file has a conversation.
    pub fn cancel<T: Importer>(&self, format: &str) {
        let has_conversation =
            |file: &&FixtureFile| !conversations(&(self.read)(&file.name, &file.bytes)).is_empty();
        let runs = self.files.iter().filter(has_conversation).map(|file| {
            cancelled_run::<T>(format, &file.name, file.bytes.as_slice(), 0);
        });
        assert!(runs.count() > 0, "no file has a conversation");
    }

    /// Calls `check` with files truncated at random offsets.
    pub fn cut_at_random(&self, check: impl Fn(&CutFile<'_>)) {
        run_random(&(any::<Index>(), any::<Index>()), |(file, cut)| {
            let file = file.get(&self.files);
            check(&self.cut(file, cut.index(file.bytes.len()), &(self.read)(&file.name, &file.bytes)));
        });
    }

    /// Calls `check` with every file truncated at every offset; for small files.
    pub fn cut_everywhere(&self, check: impl Fn(&CutFile<'_>)) {
        for file in &self.files {
            let whole = (self.read)(&file.name, &file.bytes);
            (0..file.bytes.len()).for_each(|cut| check(&self.cut(file, cut, &whole)));
        }
    }

    fn cut<'c>(&self, file: &'c FixtureFile, cut: usize, whole: &'c [Line]) -> CutFile<'c> {
        let (left, missing) = file.bytes.split_at(cut);
        CutFile { name: &file.name, left, missing, whole, lines: (self.read)(&file.name, left) }
    }
}

impl CutFile<'_> {
    /// Checks that the conversations are the first ones of the whole file, with the same messages.
    ///
    /// # Panics
    /// If they are not.
    pub fn check_conversations(&self) {
        let (given, whole) = (conversations(&self.lines), conversations(self.whole));
        assert!(given.len() <= whole.len(), "{} cut at {}", self.name, self.left.len());
        for (given, whole) in given.into_iter().zip(whole) {
            assert_eq!(
                (&given.id, &given.messages),
                (&whole.id, &whole.messages),
                "{} cut at {}",
                self.name,
                self.left.len()
            );
        }
    }

    /// The messages that are not among those of the whole file, compared by id and content.
    pub fn new_messages(&self) -> Vec<&MessageRecord> {
        let whole = messages(self.whole);
        let same =
            |one: &MessageRecord, other: &MessageRecord| one.id == other.id && one.content == other.content;
        messages(&self.lines).into_iter().filter(|given| !whole.iter().any(|one| same(one, given))).collect()
    }

    /// Whether there are as many conversations as in the whole file.
    pub fn has_all_conversations(&self) -> bool {
        conversations(&self.lines).len() == conversations(self.whole).len()
    }

    /// Whether there are as many messages as in the whole file.
    pub fn has_all_messages(&self) -> bool {
        messages(&self.lines).len() == messages(self.whole).len()
    }

    /// Whether a file with one conversation on each line was cut between two lines, so that it looks complete.
    pub fn ends_between_lines(&self) -> bool {
        let lines = self.left.trim_ascii().split(|byte| *byte == b'\n').count();
        self.left.starts_with(b"{") && conversations(&self.lines).len() == lines
    }

    /// Whether a skip or a warning was reported.
    pub fn has_reports(&self) -> bool {
        !skips(&self.lines).is_empty() || !warnings(&self.lines).is_empty()
    }

    /// Whether only white space is missing.
    pub fn misses_nothing(&self) -> bool {
        self.missing.trim_ascii().is_empty()
    }
}

/// Runs `test` on random values.
fn run_random<S: Strategy>(strategy: &S, test: impl Fn(S::Value)) {
    let default = Config::default();
    let cases = if env::var_os("PROPTEST_CASES").is_some() { default.cases } else { CASES };
    let config = Config { cases, failure_persistence: None, ..default };
    let result = TestRunner::new(config).run(strategy, |value| {
        test(value);
        Ok(())
    });
    assert!(result.is_ok(), "{result:?}");
}

/// Offsets of JSON values: behind a colon that follows a quote or precedes a space.
fn value_places(text: &str) -> Vec<usize> {
    let behind = |(at, _)| {
        let (before, rest) = (&text[..at], &text[at + 1..]);
        let space = rest.starts_with(' ');
        (space || before.ends_with('"')).then(|| at + 1 + usize::from(space))
    };
    text.match_indices(':').filter_map(behind).collect()
}

/// The text with `value` between `before` and `behind`, in up to three ways.
fn with_value(before: &str, behind: &str, value: &str) -> impl Iterator<Item = String> {
    let inserted = format!("{before}{value},\"zz\": {behind}");
    let (line, below) = behind.split_at(behind.find('\n').unwrap_or(behind.len()));
    let comma = if line.ends_with(',') { "," } else { "" };
    let replaced_line = format!("{before}{value}{comma}{below}");
    let mut values = Deserializer::from_str(behind).into_iter::<Value>();
    let old = matches!(values.next(), Some(Ok(_))).then(|| values.byte_offset());
    let replaced = old.map(|old| format!("{before}{value}{}", &behind[old..]));
    [inserted, replaced_line].into_iter().chain(replaced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_changed_in_three_ways() {
        let text = "{\"a\": [1],\n\"b\":2}";
        assert_eq!(value_places(text), [6, 15]);
        let (before, behind) = text.split_at(6);
        assert_eq!(
            with_value(before, behind, "null").collect::<Vec<_>>(),
            ["{\"a\": null,\"zz\": [1],\n\"b\":2}", "{\"a\": null,\n\"b\":2}", "{\"a\": null,\n\"b\":2}"]
        );
        assert_eq!(with_value("{\"a\": ", "[1", "0").count(), 2, "the old value is none");
    }

    #[test]
    #[should_panic(expected = "changed")]
    fn changed_files_reach_the_importer() {
        let read = |_: &str, bytes: &[u8]| {
            let whole = include_bytes!("../../tests/fixtures/two_notes/input/notes.json");
            assert!(bytes == whole, "changed");
            Vec::new()
        };
        let files = fixture_files(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures"));
        BrokenFiles { files: files.expect("fixtures").split_off(1), read }.change_bytes();
    }
}
