//! Runs of an importer on a single file, whether it claims the file or not.

use satchel_pam::record::Line;

use super::check_lines;
use crate::{Bundle, Detection, ErrorKind, ImportError, Importer, Sink};

/// What an importer answered for one file.
#[derive(Clone, Debug)]
pub struct FileRun {
    /// The exports that `detect` found.
    pub detections: Vec<Detection>,
    /// What `run` emitted, in order.
    pub lines: Vec<Line>,
    /// Why `run` ended early, if it did.
    pub error: Option<ImportError>,
}

/// What `run` must do with a file that `detect` does not claim. A file that it claims must always be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unclaimed {
    /// Refuse it with [`ErrorKind::NotThisFormat`].
    Refused,
    /// Read it, or refuse it in the same way.
    ReadOrRefused,
    /// Read it.
    Read,
}

/// Calls `detect`, and `run` with `format`, on an export with one file. `run` is called even if the file is not claimed.
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
    /// The lines, after checking that `detect` and `run` agree and that every record makes sense ([`check_lines`]).
    ///
    /// # Panics
    /// If one of this is not so.
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

/// Runs `T` on one file with a sink that answers [`ErrorKind::Cancelled`] after `calls` calls; gives what was emitted before.
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

/// A JSON list of `count` items; `item` writes one by its number.
pub fn json_list(count: usize, item: impl Fn(usize) -> String) -> String {
    format!("[{}]", (0..count).map(item).collect::<Vec<_>>().join(","))
}

/// The nodes of a large tree, separated by commas: `node` writes one by its number and the id of its parent. The first half hangs below
/// `root`, and each other node (`n…`) below the one before it.
pub fn large_tree(nodes: usize, root: &str, node: impl Fn(usize, &str) -> String) -> String {
    let parent =
        |number: usize| if number < nodes / 2 { root.to_owned() } else { format!("n{}", number - 1) };
    (0..nodes).map(|number| node(number, &parent(number))).collect::<Vec<_>>().join(",")
}

/// The text `template` with `$deep` replaced by lists nested 5,000 deep, more than any importer has to read.
pub fn nested_json(template: &str) -> Vec<u8> {
    template.replace("$deep", &format!("{}{}", "[".repeat(5000), "]".repeat(5000))).into_bytes()
}
