//! Where the files of one export stand, and which lists one file may hold.

use satchel_importer::names;

use crate::shape::Shape;

/// Folders whose files are records of one kind, one level below the export's own folder.
const RECORD_FOLDERS: [&str; 4] = ["memories", "memory_contents", "conversations", "sessions"];

/// Members of a root object that hold records, and what those are unless they show something else.
const TABLES: [(&str, Shape); 6] = [
    ("memories", Shape::Memory),
    ("memory", Shape::Memory),
    ("data", Shape::Memory),
    ("memory_contents", Shape::Contents),
    ("conversations", Shape::Conversation),
    ("conversation", Shape::Conversation),
];

/// Members of a root object in which another generation shows itself.
const OTHER_TABLES: [&str; 3] = ["categories", "memory_items", "related_memories"];

/// Whether a file of this name may hold records.
pub(crate) fn readable(path: &str) -> bool {
    let json = names::is_json(path) || names::ends_in(path, "jsonl") || names::ends_in(path, "ndjson");
    json && !names::is_junk(path)
}

/// The folder of the export that the file belongs to, with its final `/`.
pub(crate) fn root(path: &str) -> &str {
    let (folder, _) = names::split(path);
    let inner = folder.strip_suffix('/').unwrap_or(folder);
    let (above, last) = names::split(inner);
    if RECORD_FOLDERS.contains(&last) { above } else { folder }
}

/// What the records below the member `key` of a root object are; none if it holds none.
pub(crate) fn table(key: &str) -> Option<Shape> {
    TABLES.iter().find(|(name, _)| *name == key).map(|(_, shape)| *shape)
}

/// The members of a root object below which to look.
pub(crate) fn telling() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|(name, _)| *name).chain(OTHER_TABLES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_export_have_one_root() {
        for path in [
            "july/dump.json",
            "july/memories/a.json",
            "july/conversations/b.jsonl",
            "july/memory_contents/c.json",
        ] {
            assert_eq!(root(path), "july/", "{path}");
        }
        for path in ["dump.json", "memories/a.json"] {
            assert_eq!(root(path), "", "{path}");
        }
        assert_eq!(root("july/other/a.json"), "july/other/");
    }

    #[test]
    fn names_are_hints_only() {
        for path in ["a.json", "b/C.JSON", "rows.jsonl", "rows.ndjson"] {
            assert!(readable(path), "{path}");
        }
        for path in ["a.md", "photo.png", "__MACOSX/a.json", "a/._b.json", ".DS_Store"] {
            assert!(!readable(path), "{path}");
        }
    }
}
