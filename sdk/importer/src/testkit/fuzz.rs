//! Checks of an importer on arbitrary input: the run ends without a panic, and every record is valid.
//!
//! An input of a fuzzer contains several files, so that the fuzzer can change their bytes, their names and their number. Each is
//! its name, a line break and its bytes; [`FILE_SEPARATOR`] is between two files.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use satchel_pam::record::{ConversationRecord, Line, Skip, Warning};

use super::{FixtureError, entries_of, produce};
use crate::{Bundle, Detection, ErrorKind, ImportError, Importer, Sink};

/// Separates two files of an input; no UTF-8 text contains it.
pub const FILE_SEPARATOR: &[u8] = b"\xff\n";

/// Most files that are read from one input.
const MAX_FILES: usize = 32;
/// Most bytes of output for each byte of input. Keys and receipts make short records long, but an importer must not fill
/// a disk from a small export.
const MAX_GROWTH: usize = 256;
/// Bytes of output that are always allowed.
const MIN_OUTPUT_LIMIT: usize = 1024 * 1024;

/// What an importer did wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Flaw {
    /// It returned [`ErrorKind::Internal`].
    #[error("the importer met a case that it holds impossible: {0}")]
    Impossible(ImportError),
    /// A detection is invalid.
    #[error("detection names {0}")]
    Detection(String),
    /// A run failed with an error without a message.
    #[error("a run failed without a reason: {0}")]
    Unexplained(ImportError),
    /// A record is invalid.
    #[error("{place}: {problem}")]
    Record {
        /// Its locator.
        place: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The output is far larger than the input.
    #[error("{given} bytes came out of {taken}")]
    Growth {
        /// Bytes of the input.
        taken: usize,
        /// Bytes of the records as JSON.
        given: usize,
    },
    /// The records cannot be written as JSON.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

/// The files of an input. If two have the same name, the last one counts.
pub fn input_files(input: &[u8]) -> Bundle {
    let (mut rest, mut files) = (Some(input), Vec::new());
    while let Some(all) = rest.filter(|_| files.len() < MAX_FILES) {
        let end = all.windows(FILE_SEPARATOR.len()).position(|part| part == FILE_SEPARATOR);
        let (file, behind) = all.split_at(end.unwrap_or(all.len()));
        rest = behind.get(FILE_SEPARATOR.len()..);
        let line = file.iter().position(|byte| *byte == b'\n').unwrap_or(file.len());
        let name = String::from_utf8_lossy(file.get(..line).unwrap_or_default()).into_owned();
        files.push((name, file.get(line + 1..).unwrap_or_default()));
    }
    Bundle::from_files(files)
}

/// Runs `T` on one input and checks its output.
///
/// # Errors
/// The first flaw.
pub fn check_input<T: Importer>(input: &[u8]) -> Result<(), Flaw> {
    let bundle = input_files(input);
    let produced = match produce::<T>(&bundle) {
        Ok(produced) => produced,
        Err(error) => return check_error(error),
    };
    if produced.exports.is_empty() {
        return check_unclaimed::<T>(&bundle);
    }
    let mut given = 0;
    for export in &produced.exports {
        check_detection::<T>(&export.detection, &bundle)?;
        export.error.clone().map_or(Ok(()), check_error)?;
        for line in &export.lines {
            check_line(line)?;
            given += serde_json::to_string(line)?.len();
        }
    }
    let most = MIN_OUTPUT_LIMIT.max(input.len() * MAX_GROWTH);
    if given > most { Err(Flaw::Growth { taken: input.len(), given }) } else { Ok(()) }
}

/// Calls [`check_input`] with every file in the folder `corpus`.
///
/// # Errors
/// One line for each input with a flaw, or if there are no inputs.
pub fn replay<T: Importer>(corpus: impl AsRef<Path>) -> Result<(), FixtureError> {
    let paths = entries_of(corpus.as_ref())?;
    let mut faults = Vec::new();
    for path in &paths {
        let input = fs::read(path).map_err(FixtureError::at(path))?;
        faults.extend(check_input::<T>(&input).err().map(|flaw| format!("{}: {flaw}", path.display())));
    }
    faults.extend(paths.is_empty().then(|| "the corpus holds no input".to_owned()));
    FixtureError::of_faults(faults)
}

/// Runs `T` on files that it does not claim: it may refuse them or read what it can.
fn check_unclaimed<T: Importer>(bundle: &Bundle) -> Result<(), Flaw> {
    let mut sink = Sink::collecting();
    let run = T::run(T::describe().importer_version, bundle, &mut sink);
    run.map_or_else(check_error, |_| Ok(()))?;
    check_lines(&sink.into_lines())
}

fn check_error(error: ImportError) -> Result<(), Flaw> {
    match error.kind {
        ErrorKind::Internal => Err(Flaw::Impossible(error)),
        _ if error.message.trim().is_empty() => Err(Flaw::Unexplained(error)),
        _ => Ok(()),
    }
}

fn check_detection<T: Importer>(found: &Detection, bundle: &Bundle) -> Result<(), Flaw> {
    let Detection { format, confidence, files, account: _ } = found;
    let known: BTreeSet<&str> = bundle.entries().iter().map(|entry| entry.path.as_str()).collect();
    let distinct: BTreeSet<&str> = files.iter().map(String::as_str).collect();
    if !T::describe().formats.contains(&format.as_str()) {
        return Err(Flaw::Detection(format!("the unknown format {format:?}")));
    }
    if *confidence > 100 {
        return Err(Flaw::Detection(format!("the confidence {confidence}")));
    }
    if files.is_empty() || distinct.len() < files.len() || !distinct.is_subset(&known) {
        return Err(Flaw::Detection(format!("files that are not there, or twice, or none: {files:?}")));
    }
    Ok(())
}

/// Checks that every record is valid by itself: ids are unique and not empty, parents form no cycle, the current message exists, and
/// skips and warnings have a text.
///
/// # Errors
/// The first flaw.
pub fn check_lines(lines: &[Line]) -> Result<(), Flaw> {
    lines.iter().try_for_each(check_line)
}

fn check_line(line: &Line) -> Result<(), Flaw> {
    let check_text = |locator: &str, text: &str| {
        let problem = "a receipt without words".to_owned();
        let place = locator.to_owned();
        if text.trim().is_empty() { Err(Flaw::Record { place, problem }) } else { Ok(()) }
    };
    match line {
        Line::Conversation(record) => check_conversation(record)
            .map_err(|problem| Flaw::Record { place: record.locator.clone(), problem }),
        Line::Skip(Skip { locator, reason, .. }) => check_text(locator, reason),
        Line::Warning(Warning { locator, message }) => check_text(locator, message),
        Line::Evidence(_) | Line::Relation(_) | Line::Embedding(_) | Line::Account(_) => Ok(()),
    }
}

fn check_conversation(record: &ConversationRecord) -> Result<(), String> {
    if record.id.is_empty() || record.messages.iter().any(|message| message.id.is_empty()) {
        return Err("an id is empty".to_owned());
    }
    let parents: BTreeMap<&str, Option<&str>> =
        record.messages.iter().map(|message| (message.id.as_str(), message.parent.as_deref())).collect();
    if parents.len() < record.messages.len() {
        return Err("two messages have one id".to_owned());
    }
    if let Some(current) = record.current.as_deref().filter(|current| !parents.contains_key(current)) {
        return Err(format!("the current message {current:?} is none"));
    }
    let mut checked: BTreeSet<&str> = BTreeSet::new();
    for start in parents.keys() {
        let (mut at, mut path) = (Some(*start), BTreeSet::new());
        while let Some(id) = at.filter(|id| !checked.contains(id)) {
            if !path.insert(id) {
                return Err(format!("the parents of {start:?} lead in a circle"));
            }
            at = parents.get(id).copied().flatten();
        }
        checked.extend(path);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use satchel_pam::record::MessageRecord;
    use serde_json::json;

    use super::*;

    fn names(input: &[u8]) -> Vec<(String, u64)> {
        input_files(input).entries().iter().map(|entry| (entry.path.clone(), entry.size)).collect()
    }

    #[test]
    fn an_input_contains_files() {
        assert_eq!(
            names(b"a/b.json\n[1]\n\xff\nc\xff\nd\n"),
            [("a/b.json".into(), 4), ("c".into(), 0), ("d".into(), 0)]
        );
        assert_eq!(names(b""), [(String::new(), 0)]);
        let many: Vec<_> = (0..100_u8).map(|number| vec![b'a', number, b'x']).collect();
        assert_eq!(names(&many.join(FILE_SEPARATOR)).len(), MAX_FILES);
    }

    #[test]
    fn invalid_trees_are_found() {
        let message = |id: &str, parent: Option<&str>| -> MessageRecord {
            let record = json!({"id": id, "role": "user", "parent": parent});
            serde_json::from_value(record).expect("it is a message")
        };
        let of = |messages: Vec<MessageRecord>| {
            check_conversation(&ConversationRecord {
                id: "c".to_owned(),
                messages,
                ..ConversationRecord::default()
            })
        };
        assert_eq!(of(vec![message("a", Some("elsewhere")), message("b", Some("a"))]), Ok(()));
        for wrong in [
            vec![message("", None)],
            vec![message("a", None), message("a", None)],
            vec![message("a", Some("a"))],
            vec![message("a", Some("c")), message("b", Some("a")), message("c", Some("b"))],
        ] {
            assert!(of(wrong.clone()).is_err(), "{wrong:?}");
        }
    }
}
