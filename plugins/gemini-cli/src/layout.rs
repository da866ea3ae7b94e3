//! Names of the files that Gemini CLI writes below `~/.gemini`.

use std::io::BufRead as _;

use satchel_importer::{Bundle, Element, ImportError, JsonArray, names};

/// Extensions of the files that are looked at.
const EXTENSIONS: [&str; 3] = ["json", "jsonl", "ndjson"];
/// The folder of the sessions of a project.
const CHATS: &str = "chats";
/// The file with the memories of a project.
const MEMORY_FILE: &str = "memory/MEMORY.md";
/// The file that names the folder of a project.
const PROJECT_ROOT: &str = ".project_root";
/// Bytes of one line or message. A guest has 128 MiB for it, its decoded texts and its files.
const MAX_LENGTH: usize = 16 * 1024 * 1024;

/// Whether a file may be a session by its name.
pub(crate) fn is_candidate(path: &str) -> bool {
    EXTENSIONS.iter().any(|extension| names::has_extension(path, extension)) && !names::is_junk(path)
}

/// Whether a file may hold memories by its name. The person may choose another name than `GEMINI.md` in the settings.
pub(crate) fn is_context_file(path: &str) -> bool {
    names::has_extension(path, "md") && !names::is_junk(path)
}

/// The folder of the project whose memories are in a file with this name. Other programs have such a file, too.
pub(crate) fn memory_folder(path: &str) -> Option<&str> {
    path.strip_suffix(MEMORY_FILE).filter(|folder| folder.is_empty() || folder.ends_with('/'))
}

/// Whether a folder is one that the program has for a project.
pub(crate) fn is_project(bundle: &Bundle, folder: &str) -> bool {
    let above = names::split(folder.trim_end_matches('/')).0;
    let own = above == ".gemini/tmp/" || above.ends_with("/.gemini/tmp/");
    own || bundle.entry(&format!("{folder}{PROJECT_ROOT}")).is_some()
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

/// The offset of what stands behind the one object of a file; none if there is nothing.
pub(crate) fn behind_object(bundle: &Bundle, path: &str) -> Result<Option<u64>, ImportError> {
    let mut reader = bundle.open(path)?;
    let mut end = ObjectEnd::default();
    loop {
        let bytes = reader.fill_buf()?;
        let length = bytes.len();
        if length == 0 {
            return Ok(None);
        }
        if let Some(at) = end.find(bytes) {
            return Ok(Some(reader.position() + at as u64));
        }
        reader.consume(length);
    }
}

/// Looks for what stands behind an object.
#[derive(Default)]
struct ObjectEnd {
    depth: u64,
    inside_text: bool,
    escaped: bool,
    ended: bool,
}

impl ObjectEnd {
    fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        bytes.iter().position(|byte| self.ended && !byte.is_ascii_whitespace() || self.skip(*byte))
    }

    /// Goes on behind a byte of the object.
    fn skip(&mut self, byte: u8) -> bool {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.inside_text => self.escaped = true,
            b'"' => self.inside_text = !self.inside_text,
            b'{' if !self.inside_text => self.depth += 1,
            b'}' if !self.inside_text => {
                self.depth = self.depth.saturating_sub(1);
                self.ended |= self.depth == 0;
            }
            _ => {}
        }
        false
    }
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
    if let Some(folder) = memory_folder(path) {
        return Some(format!("{folder}{PROJECT_ROOT}"));
    }
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
    fn memories_of_projects_are_told_from_those_of_other_programs() {
        let bundle = Bundle::from_files([("a/.project_root", "x"), ("c/x.json", "x")]);
        for (path, expected) in [
            ("a/memory/MEMORY.md", true),
            ("c/memory/MEMORY.md", false),
            (".gemini/tmp/d/memory/MEMORY.md", true),
            ("x/.gemini/tmp/d/memory/MEMORY.md", true),
            ("projects/d/memory/MEMORY.md", false),
            ("a/inmemory/MEMORY.md", false),
            ("a/memory/other.md", false),
        ] {
            let found = memory_folder(path).is_some_and(|folder| is_project(&bundle, folder));
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn what_stands_behind_an_object_is_found() {
        for (text, expected) in [
            ("{}", None),
            ("\u{feff}{\"a\":{\"b\":\"}\\\"}\"}} \n", None),
            ("{\"a\":1", None),
            ("{\"a\":{}}\n{}", Some(9)),
            ("{} x", Some(3)),
        ] {
            let bundle = Bundle::from_files([("a.json", text)]);
            assert_eq!(behind_object(&bundle, "a.json").expect("memory can be read"), expected, "{text}");
        }
    }

    #[test]
    fn backups_and_unfinished_files_are_no_candidates() {
        assert!(is_candidate("a/session.json") && is_candidate("session.jsonl"));
        for name in ["session.jsonl.tmp-17", "session.jsonl.unreadable-1767700000000", "GEMINI.md", "logs"] {
            assert!(!is_candidate(name), "{name}");
        }
        assert!(
            is_context_file("x/GEMINI.md")
                && is_context_file("x/AGENTS.md")
                && !is_context_file("x/GEMINI.txt")
        );
    }
}
