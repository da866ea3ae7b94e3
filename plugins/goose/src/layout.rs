//! The names of the files that Goose writes.

use std::io::Read as _;

use satchel_importer::{Bundle, ImportError, names};

/// Bytes of the settings that are looked at.
const MAX_SETTINGS: u64 = 256 * 1024;
/// Folders below which the program keeps memories: of one project, of all of them, and of all of them on Windows.
const MEMORY_FOLDERS: [&str; 3] = [".goose/memory/", "goose/memory/", "goose/config/memory/"];
/// How the keys of the settings of the program begin.
const SETTING: &str = "GOOSE_";
/// Bytes before the first value of a file.
const MAX_SPACE: u64 = 1024;
/// Bytes of the name of a session.
const MAX_ID: usize = 256;

/// Whether a file may be a session by its name.
pub(crate) fn may_be_session(path: &str) -> bool {
    !names::is_junk(path) && (names::is_json(path) || is_lines(path) || is_database(path))
}

/// Whether a file is a database by its name.
pub(crate) fn is_database(path: &str) -> bool {
    ["db", "sqlite", "sqlite3"].iter().any(|extension| names::has_extension(path, extension))
}

/// Whether a file has one message in each line.
pub(crate) fn is_lines(path: &str) -> bool {
    names::has_extension(path, "jsonl")
}

/// The id of the session in a file: the name of the file, without what a browser or a file manager adds to that of a copy.
pub(crate) fn session_id(path: &str) -> String {
    let (_, name) = names::split(path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let own = without_copy(stem);
    if own.len() <= MAX_ID { own.to_owned() } else { satchel_importer::natural_key(&[Some(own)]) }
}

fn without_copy(stem: &str) -> &str {
    let numbered = stem.strip_suffix(')').and_then(|begin| begin.rsplit_once(" ("));
    let own = match numbered {
        Some((own, number)) if number.chars().all(|digit| digit.is_ascii_digit()) => own,
        _ => stem.strip_suffix(" copy").unwrap_or(stem),
    };
    if own.is_empty() { stem } else { own }
}

/// The category of the memories in a file: its name, without what a browser, a file manager or a program that synchronises folders adds to
/// that of a copy.
pub(crate) fn category(path: &str) -> &str {
    let (_, name) = names::split(path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let own = stem.split_once(".sync-conflict-").map_or(stem, |(own, _)| own);
    let conflict = |inside: &&str| inside.to_lowercase().contains("conflict");
    let marked = own.strip_suffix(')').and_then(|begin| begin.rsplit_once(" ("));
    let own = marked.filter(|(_, inside)| conflict(inside)).map_or(own, |(own, _)| own);
    without_copy(if own.is_empty() { stem } else { own })
}

/// Whether a file has memories of the program: by its folder, or by the settings beside its folder, which need not be there if the file
/// was `detected`.
pub(crate) fn is_memory(bundle: &Bundle, path: &str, detected: bool) -> bool {
    let (folder, name) = names::split(path);
    if !names::has_extension(name, "txt") || names::is_junk(path) {
        return false;
    }
    let is_in =
        |own: &str| folder.strip_suffix(own).is_some_and(|before| before.is_empty() || before.ends_with('/'));
    MEMORY_FOLDERS.iter().any(|own| is_in(own))
        || folder.strip_suffix("memory/").is_some_and(|before| {
            (before.is_empty() || before.ends_with('/')) && (detected || has_settings(bundle, before))
        })
}

/// Whether the first value of a file is an object, and not a list of them.
pub(crate) fn begins_with_object(bundle: &Bundle, path: &str) -> Result<bool, ImportError> {
    let mut head = Vec::new();
    bundle.open(path)?.take(MAX_SPACE).read_to_end(&mut head)?;
    let head = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&head);
    Ok(head.trim_ascii_start().first() == Some(&b'{'))
}

/// Whether the folder has the settings of the program.
fn has_settings(bundle: &Bundle, folder: &str) -> bool {
    let path = format!("{folder}config.yaml");
    let settings = bundle.entry(&path).and_then(|_| bundle.read(&path, MAX_SETTINGS).ok());
    settings
        .is_some_and(|bytes| String::from_utf8_lossy(&bytes).lines().any(|line| line.starts_with(SETTING)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_a_file_is_the_same_session() {
        for name in ["20250801_100315.jsonl", "a/20250801_100315 (2).jsonl", "20250801_100315 copy.jsonl"] {
            assert_eq!(session_id(name), "20250801_100315", "{name}");
        }
        for name in ["garden (may)", " (1)", "v1.2 beds", " copy"] {
            assert_eq!(session_id(&format!("{name}.jsonl")), name);
        }
    }

    #[test]
    fn a_copy_of_a_file_has_the_same_category() {
        for name in [
            "notes.txt",
            "a/notes (1).txt",
            "notes copy.txt",
            "notes.sync-conflict-20260102-030405-ABCDEFG.txt",
            "notes (Tomas's conflicted copy 2026-01-02).txt",
            "notes (conflict).txt",
        ] {
            assert_eq!(category(name), "notes", "{name}");
        }
        for name in ["notes (garden)", " (1)", ".sync-conflict-1"] {
            assert_eq!(category(&format!("{name}.txt")), name);
        }
    }

    #[test]
    fn memories_are_known_by_their_folder() {
        let bundle = Bundle::from_files([
            ("memory/a.txt", ""),
            ("config.yaml", "GOOSE_PROVIDER: x\n"),
            ("other/config.yaml", "provider: GOOSE_\n"),
        ]);
        for path in
            ["goose/memory/a.txt", "b/.goose/memory/a.txt", "x/goose/config/memory/a.txt", "memory/a.txt"]
        {
            assert!(is_memory(&bundle, path, false), "{path}");
        }
        for path in
            ["mongoose/memory/a.txt", "goose/memory/a.md", "goose/memory/b/a.txt", "other/memory/a.txt"]
        {
            assert!(!is_memory(&bundle, path, false), "{path}");
        }
    }
}
