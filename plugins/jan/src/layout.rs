//! What the names of files say: each thread has a folder of its own.

use std::collections::BTreeMap;

use satchel_importer::{Bundle, names};

/// The files of a thread, and the folder in it with pictures and documents.
const HEAD: &str = "thread.json";
const MESSAGES: &str = "messages.jsonl";
const FILES: &str = "files/";

/// The files of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadFiles<'p> {
    pub(crate) head: Option<&'p str>,
    pub(crate) messages: Option<&'p str>,
    /// Pictures and documents.
    pub(crate) others: Vec<&'p str>,
}

/// The files that may be those of threads by their names, by folder with its last `/`.
pub(crate) fn threads(bundle: &Bundle) -> BTreeMap<&str, ThreadFiles<'_>> {
    let mut found: BTreeMap<&str, ThreadFiles<'_>> = BTreeMap::new();
    let paths =
        || bundle.entries().iter().map(|entry| entry.path.as_str()).filter(|path| !names::is_junk(path));
    for path in paths() {
        match names::split(path) {
            (folder, HEAD) => found.entry(folder).or_default().head = Some(path),
            (folder, MESSAGES) => found.entry(folder).or_default().messages = Some(path),
            _ => {}
        }
    }
    for path in paths() {
        if let Some(thread) = file_in(path).and_then(|folder| found.get_mut(folder)) {
            thread.others.push(path);
        }
    }
    found
}

/// The folder of the thread to which a picture or a document belongs by its name.
fn file_in(path: &str) -> Option<&str> {
    let (folder, _) = names::split(path);
    folder.strip_suffix(FILES).filter(|above| above.is_empty() || above.ends_with('/'))
}

/// The name of a folder without the folders above it.
pub(crate) fn name(folder: &str) -> &str {
    names::split(folder.trim_end_matches('/')).1
}

/// The folder above a folder.
pub(crate) fn above(folder: &str) -> &str {
    names::split(folder.trim_end_matches('/')).0
}

/// Whether a file may be an export by its name.
pub(crate) fn may_be_export(path: &str) -> bool {
    names::is_json(path) && !names::is_junk(path) && names::split(path).1 != HEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_thread_are_found_by_their_names() {
        let files =
            ["a/t/thread.json", "a/t/messages.jsonl", "a/t/files/1.png", "a/files/2.png", "files/3.png"];
        let bundle = Bundle::from_files(files.map(|path| (path, "")));
        let found = threads(&bundle);
        let [head, messages, picture, ..] = files;
        let thread = ThreadFiles { head: Some(head), messages: Some(messages), others: vec![picture] };
        assert_eq!(found, BTreeMap::from([("a/t/", thread)]));
        assert_eq!((name("a/t/"), above("a/t/"), above("t/"), name("")), ("t", "a/", "", ""));
    }
}
