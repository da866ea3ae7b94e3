//! Where an export holds records: its folders, and the members of root objects.

use std::io::BufRead;

use satchel_importer::{Arena, Bundle, ImportError, Parser, names};

use crate::record_type::RecordType;

/// Subfolders of an export for records of one type.
const RECORD_FOLDERS: [&str; 4] = ["memories", "memory_contents", "conversations", "sessions"];

/// Members of a root object that hold records, and the type of those without a type of their own.
const TABLES: [(&str, RecordType); 6] = [
    ("memories", RecordType::Memory),
    ("memory", RecordType::Memory),
    ("data", RecordType::Memory),
    ("memory_contents", RecordType::Contents),
    ("conversations", RecordType::Conversation),
    ("conversation", RecordType::Conversation),
];

/// Members of a root object that hold records of another generation.
const OTHER_TABLES: [&str; 3] = ["categories", "memory_items", "related_memories"];

/// Further names are ignored; a dump has three.
const MAX_NAMES: usize = 64;
/// Bytes of a name; none of ours is longer.
const MAX_NAME_BYTES: usize = 256;

/// Whether a file of this name may hold records.
pub(crate) fn may_hold_records(path: &str) -> bool {
    let json =
        names::is_json(path) || names::has_extension(path, "jsonl") || names::has_extension(path, "ndjson");
    json && !names::is_junk(path)
}

/// Whether a file of this name may be a database.
pub(crate) fn may_be_database(path: &str) -> bool {
    ["db", "sqlite", "sqlite3"].iter().any(|known| names::has_extension(path, known)) && !names::is_junk(path)
}

/// The folder of the export that the file belongs to, with its final `/`.
pub(crate) fn root(path: &str) -> &str {
    let (folder, _) = names::split(path);
    let inner = folder.strip_suffix('/').unwrap_or(folder);
    let (above, last) = names::split(inner);
    if RECORD_FOLDERS.contains(&last) { above } else { folder }
}

/// The type of the records in the member `key` of a root object; none if it holds none.
pub(crate) fn table(key: &str) -> Option<RecordType> {
    TABLES.iter().find(|(name, _)| *name == key).map(|(_, kind)| *kind)
}

/// All members of a root object that may hold records.
pub(crate) fn record_members() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|(name, _)| *name).chain(OTHER_TABLES)
}

/// The members of a root object.
pub(crate) struct RootMembers {
    /// In the order of the file.
    pub(crate) names: Vec<String>,
    /// The object does not break off.
    pub(crate) whole: bool,
}

/// Scans the member names of the object that is the root of the file, without reading the values.
pub(crate) fn root_members(bundle: &Bundle, path: &str) -> Result<RootMembers, ImportError> {
    let mut reader = bundle.open(path)?;
    let mut scan = Scan::default();
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(RootMembers { names: scan.names, whole: scan.whole });
        }
        for byte in bytes {
            scan.add(*byte);
        }
        let length = bytes.len();
        reader.consume(length);
    }
}

/// Tracks strings and braces to find the names at depth 1.
#[derive(Default)]
struct Scan {
    depth: usize,
    string: StringState,
    /// The next string at depth 1 is a name.
    expecting: bool,
    /// The string that may be a name, without its first quote.
    text: Vec<u8>,
    names: Vec<String>,
    /// The root has ended.
    whole: bool,
}

/// Where the next byte is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum StringState {
    #[default]
    Outside,
    /// In a string.
    Inside,
    /// In a string, behind a backslash.
    Escaped,
}

impl Scan {
    fn add(&mut self, byte: u8) {
        if self.string != StringState::Outside {
            self.add_to_string(byte);
            return;
        }
        match byte {
            b'"' => {
                self.string = StringState::Inside;
                self.text.clear();
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.expecting = self.depth == 1 && byte == b'{';
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.whole |= self.depth == 0;
            }
            b',' if self.depth == 1 => self.expecting = true,
            b':' if self.depth == 1 => self.expecting = false,
            _ => {}
        }
    }

    fn add_to_string(&mut self, byte: u8) {
        let ends = byte == b'"' && self.string == StringState::Inside;
        self.string = match (self.string, byte) {
            (StringState::Inside, b'\\') => StringState::Escaped,
            (StringState::Inside, b'"') => StringState::Outside,
            _ => StringState::Inside,
        };
        if self.expecting && self.depth == 1 && self.text.len() <= MAX_NAME_BYTES {
            self.text.push(byte);
        }
        if ends {
            self.end_string();
        }
    }

    fn end_string(&mut self) {
        if !self.expecting || self.depth != 1 || self.names.len() >= MAX_NAMES {
            return;
        }
        let quoted = format!("\"{}", String::from_utf8_lossy(&self.text));
        let arena = Arena::new();
        if let Ok(name) = Parser::new(&quoted, &arena).string()
            && !self.names.iter().any(|known| known == name)
        {
            self.names.push(name.to_owned());
        }
        self.expecting = false;
    }
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
    fn only_json_files_may_hold_records() {
        for path in ["a.json", "b/C.JSON", "rows.jsonl", "rows.ndjson"] {
            assert!(may_hold_records(path), "{path}");
        }
        for path in ["a.md", "photo.png", "__MACOSX/a.json", "a/._b.json", ".DS_Store"] {
            assert!(!may_hold_records(path), "{path}");
        }
    }

    fn names(text: &str) -> Vec<String> {
        members(text).names
    }

    fn members(text: &str) -> RootMembers {
        let bundle = Bundle::from_files([("a.json", text.as_bytes().to_vec())]);
        root_members(&bundle, "a.json").expect("the file can be read")
    }

    #[test]
    fn names_are_in_the_order_of_the_file() {
        let text = r#"{"b\u0061":[{"x":"y, \"z\": {"}],"c":"d","e" : {"f":[1,2]},"ba":null}"#;
        assert_eq!(names(text), ["ba", "c", "e"]);
        assert!(members(text).whole);
    }

    #[test]
    fn a_truncated_file_gives_the_names_before_the_cut() {
        assert_eq!(names(r#"{"memories":[{"a":1},{"b"#), ["memories"]);
        assert_eq!(names(r#"{"memories":[],"conv"#), ["memories"]);
        assert!(!members(r#"{"memories":[],"conv"#).whole);
        assert!(names("").is_empty());
        assert!(names("[[\"a\"]]").is_empty());
    }
}
