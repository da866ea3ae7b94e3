//! Names of session files: `rollout-<time>-<uuid>.jsonl`, in `sessions/` or in `archived_sessions/`.

use satchel_importer::{Element, ImportError, JsonArray, names};

/// Extensions of the files that are looked at.
const EXTENSIONS: [&str; 3] = ["jsonl", "json", "ndjson"];
/// The folder of archived sessions.
const ARCHIVE: &str = "archived_sessions";
/// Bytes of one line or item. The guest has 128 MiB, for the line, its decoded texts and its files.
const MAX_LENGTH: usize = 16 * 1024 * 1024;
/// Characters of a UUID.
const UUID_LENGTH: usize = 36;
/// Indexes of its hyphens.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// Whether the file may be a session by its name.
pub(crate) fn is_candidate(path: &str) -> bool {
    EXTENSIONS.iter().any(|extension| names::has_extension(path, extension)) && !names::is_junk(path)
}

/// The elements of a file: the lines of `.jsonl`; any other file is read as its first bytes show.
pub(crate) fn elements(path: &str) -> JsonArray<'_> {
    let file = object(path);
    if names::has_extension(path, "jsonl") { file.lines() } else { file }
}

/// A file with one object, whatever its name is.
pub(crate) fn object(path: &str) -> JsonArray<'_> {
    JsonArray::new(path).limit(MAX_LENGTH)
}

/// Refuses an item that is too long, in walks that have no limit of their own.
pub(crate) fn check_length(element: &Element<'_>) -> Result<(), ImportError> {
    if element.text().len() <= MAX_LENGTH {
        return Ok(());
    }
    Err(ImportError::malformed(format!("it is longer than {MAX_LENGTH} bytes")))
}

/// Whether the file is in a folder of archived sessions.
pub(crate) fn is_archived(path: &str) -> bool {
    names::split(path).0.split('/').any(|folder| folder == ARCHIVE)
}

/// The name of a file without its extension.
pub(crate) fn stem(path: &str) -> &str {
    let name = names::split(path).1;
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// The UUID at the end of a file's name.
pub(crate) fn uuid(path: &str) -> Option<&str> {
    let stem = stem(path);
    let uuid = stem.get(stem.len().checked_sub(UUID_LENGTH)?..)?;
    let valid = |(at, byte): (usize, u8)| {
        if HYPHENS.contains(&at) { byte == b'-' } else { byte.is_ascii_hexdigit() }
    };
    uuid.bytes().enumerate().all(valid).then_some(uuid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_session_is_at_the_end_of_its_name() {
        let id = "5973b6c0-94b8-487b-a530-2aeb6098ae0e";
        assert_eq!(uuid(&format!("a/rollout-2026-01-01T10-00-00-{id}.jsonl")), Some(id));
        assert_eq!(uuid("rollout-2026-01-01T10-00-00-fixture0002.jsonl"), None);
        assert_eq!(uuid("short.jsonl"), None);
        assert_eq!(uuid("é5973b6c0-94b8-487b-a530-2aeb6098ae0.jsonl"), None);
    }

    #[test]
    fn archived_sessions_are_recognised_by_their_folder() {
        assert!(is_archived("archived_sessions/a.jsonl") && is_archived(".codex/archived_sessions/a.jsonl"));
        assert!(!is_archived("archived_sessions.jsonl") && !is_archived("sessions/a.jsonl"));
    }
}
