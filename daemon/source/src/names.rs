//! Classifies files by their names: a possible export, an unfinished download, or neither.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
};

/// The file that every backup of a data directory has.
pub const BACKUP_MANIFEST: &str = "satchel-backup.json";
/// Extensions of the files that the importers read.
const EXPORTS: [&str; 9] = ["zip", "json", "jsonl", "ndjson", "csv", "tsv", "html", "htm", "txt"];
/// The file in which Gemini CLI names the folder of a project, beside the folder with its sessions.
pub const PROJECT_FILE: &str = ".project_root";
/// Extensions of databases of SQLite.
const DATABASES: [&str; 4] = ["db", "sqlite", "sqlite3", "vscdb"];
/// What SQLite appends to the name of a database for its write-ahead log, which has the newest changes.
pub(crate) const DATABASE_LOG: &str = "-wal";
/// The same for the journal, which has what an unfinished transaction has replaced.
pub(crate) const DATABASE_JOURNAL: &str = "-journal";
/// The same for the index of the log, which has nothing of its own.
pub(crate) const DATABASE_INDEX: &str = "-shm";
/// Extensions of files with one JSON value in each line.
const LINES: [&str; 2] = ["jsonl", "ndjson"];
/// Extensions that browsers and other programs use until a file is complete.
const UNFINISHED: [&str; 9] =
    ["crdownload", "part", "tmp", "download", "partial", "opdownload", "filepart", "aria2", "!ut"];
/// Characters that change the writing direction and can make one name look like another.
const BIDI_CONTROLS: [std::ops::RangeInclusive<char>; 3] =
    ['\u{200e}'..='\u{200f}', '\u{202a}'..='\u{202e}', '\u{2066}'..='\u{2069}'];
/// Names that operating systems leave behind.
const LITTER: [&str; 4] = ["Thumbs.db", "desktop.ini", "__MACOSX", "lost+found"];

/// Returns whether this cannot be the name of an export because it is hidden or was left behind by an operating system.
pub fn hidden(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    bytes.starts_with(b".") || bytes.ends_with(b"~") || LITTER.iter().any(|litter| bytes == litter.as_bytes())
}

/// Returns whether an importer might read a file with this name.
pub fn importable(name: &OsStr) -> bool {
    ends_in_one(name, &EXPORTS).is_some() || is_database(name)
}

/// Returns whether this is the name of a database, to which a program may write all the time.
pub fn is_database(name: &OsStr) -> bool {
    ends_in_one(name, &DATABASES).is_some()
}

/// Returns the name of the database to which the file `name` belongs, if that is the name of a log or a journal.
pub fn database_of_log(name: &OsStr) -> Option<&OsStr> {
    let suffixes = [DATABASE_LOG, DATABASE_JOURNAL];
    let stem = suffixes.iter().find_map(|suffix| name.as_bytes().strip_suffix(suffix.as_bytes()))?;
    Some(OsStr::from_bytes(stem)).filter(|stem| is_database(stem))
}

/// Returns the names of the files beside the database `name` that have its newest changes.
pub fn beside_database(name: &OsStr) -> impl Iterator<Item = OsString> {
    [DATABASE_LOG, DATABASE_JOURNAL].into_iter().map(move |suffix| {
        let mut file = name.to_owned();
        file.push(suffix);
        file
    })
}

/// Returns whether a file with this name has one JSON value in each line.
pub fn has_lines(name: &OsStr) -> bool {
    ends_in_one(name, &LINES).is_some()
}

/// Returns whether this is the name of an unfinished download.
pub fn unfinished_download(name: &OsStr) -> bool {
    ends_in_one(name, &UNFINISHED).is_some()
}

/// Returns whether this is a name that operating systems leave behind.
pub(crate) fn system_file(name: &str) -> bool {
    name == ".DS_Store"
        || name == "Thumbs.db"
        || name == "desktop.ini"
        || name == "__MACOSX"
        || name.starts_with("._")
}

/// Returns the name without the extension of an unfinished download.
pub fn completed_name(name: &OsStr) -> Option<&OsStr> {
    ends_in_one(name, &UNFINISHED).map(OsStr::from_bytes)
}

/// Returns the names that, if they exist beside `name`, show that it is still being downloaded.
pub fn partial_names(name: &OsStr) -> impl Iterator<Item = OsString> {
    UNFINISHED.iter().map(move |ending| {
        let mut bytes = name.as_bytes().to_vec();
        bytes.push(b'.');
        bytes.extend_from_slice(ending.as_bytes());
        OsString::from_vec(bytes)
    })
}

/// Returns the names of the files with lines that have the stem `stem`.
pub fn with_lines(stem: &OsStr) -> impl Iterator<Item = OsString> {
    LINES.iter().map(move |extension| {
        let mut name = stem.to_owned();
        name.push(".");
        name.push(extension);
        name
    })
}

/// Returns a name for display. Bytes that are not valid UTF-8 are shown as `\x` and two digits, and characters that
/// control a terminal or change the writing direction as `\u` and their number.
pub fn shown(name: &OsStr) -> String {
    let mut out = String::new();
    for c in text(name).chars() {
        if c.is_control() || BIDI_CONTROLS.iter().any(|range| range.contains(&c)) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// Returns a name as text; bytes that are not valid UTF-8 become `\x` and two digits.
pub fn text(name: &OsStr) -> String {
    let mut text = String::new();
    for chunk in name.as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

/// Returns the stem, if the extension is one of `endings`, ignoring case.
fn ends_in_one<'a>(name: &'a OsStr, endings: &[&str]) -> Option<&'a [u8]> {
    let bytes = name.as_bytes();
    let dot = bytes.iter().rposition(|byte| *byte == b'.')?;
    let (stem, ending) = (&bytes[..dot], &bytes[dot + 1..]);
    let known = endings.iter().any(|known| ending.eq_ignore_ascii_case(known.as_bytes()));
    (known && !stem.is_empty()).then_some(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_exports_from_downloads_and_litter() {
        let name = |text: &'static str| OsStr::new(text);
        for export in ["a.zip", "A.ZIP", "conversations.json", "b (1).zip", "x.tar.csv"] {
            assert!(importable(name(export)) && !unfinished_download(name(export)), "{export}");
        }
        for download in ["a.zip.crdownload", "x.part", "a.zip.tmp", "a.zip.download", "a.zip.Aria2"] {
            assert!(unfinished_download(name(download)) && !importable(name(download)), "{download}");
        }
        for other in ["photo.jpg", "zip", ".zip", "report.pdf", "a.zip.asc"] {
            assert!(!unfinished_download(name(other)) && !importable(name(other)), "{other}");
        }
        for (file, expected) in [("b.jsonl", true), ("b.NDJSON", true), ("b.json", false), ("jsonl", false)] {
            assert_eq!(has_lines(name(file)), expected, "{file}");
        }
        for (log, database) in [("a.db-wal", "a.db"), ("a.vscdb-journal", "a.vscdb")] {
            assert_eq!(database_of_log(name(log)), Some(name(database)), "{log}");
            assert!(!importable(name(log)) && importable(name(database)), "{log}");
        }
        for other in ["a.db", "a.db-shm", "a.txt-wal", "-wal"] {
            assert_eq!(database_of_log(name(other)), None, "{other}");
        }
        for litter in [".a.zip.Xy12", "a.json~", "__MACOSX", ".DS_Store"] {
            assert!(hidden(name(litter)), "{litter}");
        }
    }

    #[test]
    fn a_download_and_its_partial_file_have_matching_names() {
        assert_eq!(completed_name(OsStr::new("a.zip.part")), Some(OsStr::new("a.zip")));
        assert_eq!(completed_name(OsStr::new("a.zip")), None);
        assert!(partial_names(OsStr::new("a.zip")).any(|name| name == "a.zip.part"));
    }

    #[test]
    fn names_that_are_not_text_are_displayed_escaped() {
        assert_eq!(shown(OsStr::from_bytes(b"a\xff\xc3\xa9.zip")), "a\\xff\u{e9}.zip");
        assert_eq!(shown(OsStr::new("a\n\u{202e}\u{1b}.zip")), "a\\u{a}\\u{202e}\\u{1b}.zip");
    }
}
