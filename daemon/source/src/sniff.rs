//! Recognises what a file seems to be by its first bytes, to tell the user why nothing reads it.

use std::fmt;

use super::formats;

/// The number of bytes at the start of a file that are examined.
pub const HEAD_BYTES: usize = 4 << 10;
/// The maximum number of keys or columns that are named.
const MAX_NAMES: usize = 8;
/// The maximum number of characters that are shown of a name.
const NAME_CHARACTERS: usize = 40;
/// The maximum number of lists around the first object.
const MAX_OUTER_LISTS: usize = 1;

/// The apparent content of a file. Files that are displayed alike are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SniffedContent {
    /// No bytes.
    Empty,
    /// A format of a known program that no importer reads.
    Format(&'static str),
    /// JSON: the keys of the first object, as far as the head contains them.
    Json(Vec<String>),
    /// Lines of cells below a header line.
    Table(Vec<String>),
    /// An HTML page.
    Html,
    /// Other text.
    Text,
    /// A known media type, such as `image/jpeg`.
    MediaType(&'static str),
    /// Anything else.
    Binary,
}

impl SniffedContent {
    /// Examines the first bytes of a file.
    #[must_use]
    pub fn of(head: &[u8]) -> Self {
        if head.is_empty() {
            return Self::Empty;
        }
        let kind = infer::get(head).map(|kind| kind.mime_type());
        if let Some(kind) = kind.filter(|kind| !kind.starts_with("text/")) {
            return Self::MediaType(kind);
        }
        let Some(text) = text(head) else { return Self::Binary };
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let start: String = text.chars().take(15).collect::<String>().to_ascii_lowercase();
        let json = text.starts_with(['{', '[']);
        let keys = if json { first_keys(text) } else { Vec::new() };
        if let Some(what) = formats::of(text, &keys) {
            return Self::Format(what);
        }
        // A line of a chat may begin like a JSON list.
        if json {
            return Self::Json(keys.iter().take(MAX_NAMES).map(|key| quoted(key)).collect());
        }
        if ["<!doctype html", "<html"].iter().any(|tag| start.starts_with(tag)) {
            return Self::Html;
        }
        columns(text).map_or(Self::Text, Self::Table)
    }
}

impl fmt::Display for SniffedContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("empty"),
            Self::Format(what) => write!(f, "{what}, which Satchel does not read"),
            Self::Json(keys) if keys.is_empty() => f.write_str("JSON"),
            Self::Json(keys) => write!(f, "JSON with the keys {}", keys.join(", ")),
            Self::Table(columns) => write!(f, "table with the columns {}", columns.join(", ")),
            Self::Html => f.write_str("HTML page"),
            Self::Text => f.write_str("text"),
            Self::MediaType(kind) => f.write_str(kind),
            Self::Binary => f.write_str("bytes of no known type"),
        }
    }
}

/// Returns the head as text, if it is text; the last character may be cut off.
fn text(head: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    (!text.contains('\0')).then_some(text)
}

/// Returns the keys of the first object at the root or in a list there.
fn first_keys(text: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let (mut lists, mut objects) = (0_usize, 0_usize);
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}', '[', ']', '"']) {
        let sign = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        match sign {
            b'{' => objects += 1,
            b'[' => lists += 1,
            b']' => lists = lists.saturating_sub(1),
            b'}' if objects <= 1 => return keys,
            b'}' => objects -= 1,
            _ => {
                let Some(end) = string_end(rest) else { return keys };
                let (name, after) = (&rest[..end], &rest[end + 1..]);
                let named = objects == 1 && lists <= MAX_OUTER_LISTS && after.trim_start().starts_with(':');
                if named {
                    keys.push(name.to_owned());
                }
                rest = after;
            }
        }
    }
    keys
}

/// Returns where the string ends that starts at the beginning of `rest`.
fn string_end(rest: &str) -> Option<usize> {
    let mut escaped = false;
    rest.bytes().position(|byte| {
        let end = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        end
    })
}

/// Returns the cells of the first line, if the second line has at least as many.
fn columns(text: &str) -> Option<Vec<String>> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let (head, row) = (lines.next()?, lines.next()?);
    let separator = [',', ';', '\t'].into_iter().max_by_key(|separator| head.matches(*separator).count())?;
    let cells = |line: &str| line.matches(separator).count();
    let table = cells(head) > 0 && cells(row) >= cells(head);
    table.then(|| head.split(separator).take(MAX_NAMES).map(|cell| quoted(cell.trim_matches('"'))).collect())
}

fn quoted(name: &str) -> String {
    format!("{:?}", name.chars().take(NAME_CHARACTERS).collect::<String>())
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn content_is_recognised_by_its_first_bytes() {
        let cases: [(&[u8], &str); 12] = [
            (b"", "empty"),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
            (b"%PDF-1.7\n", "application/pdf"),
            (br#"{"a": {"x": 1}, "b": [{"y": 2}], "c": "d"#, r#"JSON with the keys "a", "b", "c""#),
            (br#"[{"id": "{[\"", "text": 1}, {"more": 2}]"#, r#"JSON with the keys "id", "text""#),
            (b"[1, 2]", "JSON"),
            ("\u{feff}name,time\nAna,3\n".as_bytes(), r#"table with the columns "name", "time""#),
            (b"Dear Ana, thank you.\nYours\n", "text"),
            (b"  <!DOCTYPE html><p>", "HTML page"),
            ("ni\u{f1}o".as_bytes().get(..3).unwrap_or_default(), "text"),
            (b"\xfe\x00\x01\x02", "bytes of no known type"),
            (b"a\0b", "bytes of no known type"),
        ];
        for (head, expected) in cases {
            assert_eq!(SniffedContent::of(head).to_string(), expected, "{:?}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn only_some_keys_are_named_and_those_are_cut() {
        let keys: Vec<String> = (0..20).map(|at| format!("\"{at}{}\": 1", "x".repeat(90))).collect();
        let shown = SniffedContent::of(format!("{{{}}}", keys.join(",")).as_bytes()).to_string();
        assert!(shown.len() < 420 && shown.matches("xxx\"").count() == MAX_NAMES, "{shown}");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(head in vec(any::<u8>(), 0..200), text in r#"[\[\]{}":,\\a]{0,60}"#) {
            for head in [head.as_slice(), text.as_bytes()] {
                prop_assert!(!SniffedContent::of(head).to_string().is_empty());
            }
        }
    }
}
