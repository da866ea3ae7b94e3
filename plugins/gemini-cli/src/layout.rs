//! Names of the files that Gemini CLI writes below `~/.gemini`.

use satchel_importer::{Element, ImportError, JsonArray, names};

/// Extensions of the files that are looked at.
const EXTENSIONS: [&str; 3] = ["json", "jsonl", "ndjson"];
/// The folder of the sessions of a project.
const CHATS: &str = "chats";
/// The file with the instructions for the model, to which the program adds memories.
const CONTEXT_FILE: &str = "GEMINI.md";
/// The file that names the folder of a project.
const PROJECT_ROOT: &str = ".project_root";
/// Bytes of one line or message. A guest has 128 MiB for it, its decoded texts and its files.
const MAX_LENGTH: usize = 16 * 1024 * 1024;

/// Whether a file may be a session by its name.
pub(crate) fn is_candidate(path: &str) -> bool {
    EXTENSIONS.iter().any(|extension| names::has_extension(path, extension)) && !names::is_junk(path)
}

/// Whether a file may hold memories by its name.
pub(crate) fn is_context_file(path: &str) -> bool {
    names::split(path).1 == CONTEXT_FILE
}

/// The lines of a `.jsonl` file; what another file holds is decided by its first bytes.
pub(crate) fn elements(path: &str) -> JsonArray<'_> {
    let file = JsonArray::new(path).limit(MAX_LENGTH);
    if names::has_extension(path, "jsonl") { file.lines() } else { file }
}

/// What is at `pointer` in a file with one object.
pub(crate) fn member<'p>(path: &'p str, pointer: &'p str) -> JsonArray<'p> {
    JsonArray::new(path).limit(MAX_LENGTH).pointer(pointer)
}

/// Refuses a message that is too long, for walks without a limit of their own.
pub(crate) fn check_length(element: &Element<'_>) -> Result<(), ImportError> {
    if element.text().len() <= MAX_LENGTH {
        return Ok(());
    }
    Err(ImportError::malformed(format!("it is longer than {MAX_LENGTH} bytes")))
}

/// The name of a file without its extension.
pub(crate) fn stem(path: &str) -> &str {
    let name = names::split(path).1;
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// The session that started this one: sessions of subagents are in a folder with its id.
pub(crate) fn parent_session(path: &str) -> Option<&str> {
    let folder = names::split(path).0.strip_suffix('/')?;
    let (above, parent) = folder.rsplit_once('/')?;
    (names::split(above).1 == CHATS).then_some(parent)
}

/// The file that names the folder of the project of a session.
pub(crate) fn project_root(path: &str) -> Option<String> {
    let mut folder = names::split(path).0.strip_suffix('/')?;
    while names::split(folder).1 != CHATS {
        folder = names::split(folder).0.strip_suffix('/')?;
    }
    Some(format!("{}{PROJECT_ROOT}", names::split(folder).0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_name_the_project_and_the_session_above() {
        let main = "tmp/garden/chats/session-2026-05-01T10-00-a.jsonl";
        let subagent = "tmp/garden/chats/s-1/s-2.jsonl";
        assert_eq!((parent_session(main), parent_session(subagent)), (None, Some("s-1")));
        for path in [main, subagent] {
            assert_eq!(project_root(path).as_deref(), Some("tmp/garden/.project_root"));
        }
        assert_eq!(project_root("chats/session.json").as_deref(), Some(".project_root"));
        assert_eq!((project_root("session.json"), parent_session("a/session.json")), (None, None));
    }

    #[test]
    fn backups_and_unfinished_files_are_no_candidates() {
        assert!(is_candidate("a/session.json") && is_candidate("session.jsonl"));
        for name in ["session.jsonl.tmp-17", "session.jsonl.unreadable-1767700000000", "GEMINI.md", "logs"] {
            assert!(!is_candidate(name), "{name}");
        }
        assert!(is_context_file("x/GEMINI.md") && !is_context_file("x/MY-GEMINI.md"));
    }
}
