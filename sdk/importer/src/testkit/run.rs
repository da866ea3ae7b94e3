//! Runs an importer on a single file.

use std::collections::BTreeMap;

use satchel_pam::record::{ConversationRecord, Line, MessageRecord};

use super::{check_lines, conversations, produce, text, warnings};
use crate::{Bundle, Detection, ErrorKind, ImportError, Importer, Sink};

/// The results of `detect` and `run` for one file.
#[derive(Clone, Debug)]
pub struct FileRun {
    /// The exports that `detect` found.
    pub detections: Vec<Detection>,
    /// What `run` emitted, in order.
    pub lines: Vec<Line>,
    /// Why `run` ended early, if it did.
    pub error: Option<ImportError>,
}

/// What `run` must do with a file that `detect` does not claim. It must read every file that `detect` claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unclaimed {
    /// Refuse it with [`ErrorKind::NotThisFormat`].
    Refused,
    /// Read it or refuse it.
    ReadOrRefused,
    /// Read it.
    Read,
}

/// Calls `detect` and `run` on an export with one file. Calls `run` even if the file is not claimed.
///
/// # Panics
/// If `detect` returns an error.
pub fn run_file<T: Importer>(format: &str, name: &str, bytes: impl Into<Vec<u8>>) -> FileRun {
    let bundle = Bundle::from_files([(name, bytes)]);
    let detections = T::detect(&bundle).expect("detection answers");
    let mut sink = Sink::collecting();
    let error = T::run(format, &bundle, &mut sink).err();
    FileRun { detections, lines: sink.into_lines(), error }
}

impl FileRun {
    /// Checks that `detect` and `run` agree and that every record is valid ([`check_lines`]); returns the lines.
    ///
    /// # Panics
    /// If a check fails.
    pub fn checked_lines(self, unclaimed: Unclaimed) -> Vec<Line> {
        let Self { detections, lines, error } = self;
        match &error {
            None if unclaimed == Unclaimed::Refused => {
                assert_eq!(detections.len(), 1, "an unclaimed file is read");
            }
            None => {}
            Some(error) => {
                assert_eq!(error.kind, ErrorKind::NotThisFormat, "{error}");
                assert_eq!(detections, [], "a claimed file is refused");
                assert_ne!(unclaimed, Unclaimed::Read, "{error}");
            }
        }
        check_lines(&lines).expect("every record makes sense");
        lines
    }
}

/// Runs `T` on one file with a sink that returns [`ErrorKind::Cancelled`] after `calls` calls; returns what was emitted before.
///
/// # Panics
/// If the run does not end with that error.
pub fn cancelled_run<T: Importer>(
    format: &str,
    name: &str,
    bytes: impl Into<Vec<u8>>,
    calls: u64,
) -> Vec<Line> {
    let mut sink = Sink::stopping_after(calls);
    let ended = T::run(format, &Bundle::from_files([(name, bytes)]), &mut sink);
    assert_eq!(ended.map_err(|error| error.kind), Err(ErrorKind::Cancelled), "the sink stops the run");
    sink.into_lines()
}

/// The texts that an importer emits for one file.
#[derive(Debug, PartialEq, Eq)]
pub struct Threads {
    /// The texts of each conversation: its root, then always the first answer.
    pub texts: Vec<Vec<String>>,
    /// The messages of all warnings.
    pub warnings: Vec<String>,
}

impl Threads {
    /// Checks that there is exactly one conversation, and its texts and the warnings.
    ///
    /// # Panics
    /// If they differ.
    pub fn check(&self, texts: &[&str], warnings: &[&str]) {
        assert_eq!(self.texts, [texts]);
        assert_eq!(self.warnings, warnings);
    }
}

/// Detects and runs `T` on one file.
///
/// # Errors
/// If detection fails.
pub fn threads<T: Importer>(name: &str, content: &str) -> Result<Threads, ImportError> {
    let produced = produce::<T>(&Bundle::from_files([(name, content)]))?;
    let lines: Vec<Line> = produced.exports.into_iter().flat_map(|export| export.lines).collect();
    Ok(Threads {
        texts: conversations(&lines).into_iter().map(thread).collect(),
        warnings: warnings(&lines).into_iter().map(|warning| warning.message.clone()).collect(),
    })
}

fn thread(conversation: &ConversationRecord) -> Vec<String> {
    let mut answers: BTreeMap<Option<&str>, &MessageRecord> = BTreeMap::new();
    for message in &conversation.messages {
        answers.entry(message.parent.as_deref()).or_insert(message);
    }
    let mut texts = Vec::new();
    let mut next = answers.get(&None);
    while let Some(message) = next.filter(|_| texts.len() < conversation.messages.len()) {
        texts.push(text(message));
        next = answers.get(&Some(message.id.as_str()));
    }
    texts
}

/// A JSON array of `count` items; `item` writes the one with this index.
pub fn json_list(count: usize, item: impl Fn(usize) -> String) -> String {
    format!("[{}]", (0..count).map(item).collect::<Vec<_>>().join(","))
}

/// The nodes of a large tree, separated by commas: `node` writes the one with this index and parent id. The first half are children of
/// `root`; each other node is a child of the one before it (`n<index>`).
pub fn large_tree(nodes: usize, root: &str, node: impl Fn(usize, &str) -> String) -> String {
    let parent =
        |number: usize| if number < nodes / 2 { root.to_owned() } else { format!("n{}", number - 1) };
    (0..nodes).map(|number| node(number, &parent(number))).collect::<Vec<_>>().join(",")
}

/// `template` with `$deep` replaced by arrays nested 5,000 deep, more than any importer must read.
pub fn nested_json(template: &str) -> Vec<u8> {
    template.replace("$deep", &format!("{}{}", "[".repeat(5000), "]".repeat(5000))).into_bytes()
}
