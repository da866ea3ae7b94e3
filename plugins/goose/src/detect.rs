//! Finds sessions by the fields of their first lines or members, and files with memories by their folder.

use std::collections::BTreeMap;

use satchel_importer::{
    Bundle, Detection, Element, ImportError, JsonArray, JsonError, Parser,
    json::Value,
    names,
    sqlite::{self, Database},
};

use crate::{
    database, layout, memory,
    session::{KNOWN, LISTS},
};

/// A file for each session, with one message in each line.
pub(crate) const LINES: &str = "goose-importer/2025.01";
/// The files of the memory extension.
pub(crate) const MEMORIES: &str = "goose-importer/2025.02";
/// The database with all sessions.
pub(crate) const DATABASE: &str = "goose-importer/2025.09";
/// A session that was exported as JSON.
pub(crate) const EXPORT: &str = "goose-importer/2025.10";
/// The formats, oldest first.
pub(crate) const FORMATS: [&str; 4] = [LINES, MEMORIES, DATABASE, EXPORT];

/// Bytes of a head that are sampled: first few, and if those do not decide, more. The host allows 16 MiB.
const SAMPLE_SIZES: [usize; 2] = [16 * 1024, 8 * 1024 * 1024];
/// Lines that are looked at.
const MAX_LINES: u64 = 8;
/// Parts of a message that are looked at.
const MAX_PARTS: usize = 8;
/// Fields that a message has, and no others.
const OF_MESSAGES: [&str; 5] = ["id", "role", "created", "content", "metadata"];
/// Types of parts.
const PARTS: [&str; 14] = [
    "text",
    "image",
    "toolRequest",
    "toolResponse",
    "toolConfirmationRequest",
    "frontendToolRequest",
    "actionRequired",
    "thinking",
    "redactedThinking",
    "reasoning",
    "systemNotification",
    "contextLengthExceeded",
    "summarizationRequested",
    "conversationCompacted",
];

/// Every export among the files: the sessions of one folder in one format, and the memories of one folder.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let mut exports: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for path in candidates(bundle) {
        if let Some(format) = format_of(bundle, path)? {
            let files = if format == DATABASE { sqlite::files(bundle, path) } else { vec![path.to_owned()] };
            exports.entry((names::split(path).0, format)).or_default().extend(files);
        }
    }
    for path in memory::files(bundle, false) {
        exports.entry((names::split(path).0, MEMORIES)).or_default().push(path.to_owned());
    }
    let detection = |((_, format), files): ((&str, &str), Vec<String>)| Detection {
        format: format.to_owned(),
        confidence: 95,
        files,
        account: None,
    };
    Ok(exports.into_iter().map(detection).collect())
}

/// The files that may be sessions by their name.
pub(crate) fn candidates(bundle: &Bundle) -> impl Iterator<Item = &str> {
    bundle.entries().iter().map(|entry| entry.path.as_str()).filter(|path| layout::may_be_session(path))
}

/// The format of a file; none if it is no session.
pub(crate) fn format_of(bundle: &Bundle, path: &str) -> Result<Option<&'static str>, ImportError> {
    if layout::is_database(path) {
        let database = Database::sample(bundle, path)?;
        return Ok(database.filter(database::is_of_goose).map(|_| DATABASE));
    }
    let lines = layout::is_lines(path);
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    for bytes in SAMPLE_SIZES {
        let answer =
            if lines { look_at_lines(bundle, path, bytes)? } else { look_at_export(bundle, path, bytes)? };
        match answer {
            Some(true) => return Ok(Some(if lines { LINES } else { EXPORT })),
            Some(false) => return Ok(None),
            None if size <= bytes as u64 => return Ok(None),
            None => {}
        }
    }
    Ok(None)
}

/// Whether the lines are a session and messages; none if only more of the file can say so.
fn look_at_lines(bundle: &Bundle, path: &str, bytes: usize) -> Result<Option<bool>, ImportError> {
    let (mut head, mut messages, mut others, mut cut) = (false, 0, 0, false);
    JsonArray::new(path).lines().sample(bundle, bytes, |element| {
        let line = Line::read(&element);
        cut = !element.whole();
        match line {
            Line::Session if element.index() == 0 => head = true,
            Line::Message => messages += 1,
            Line::Strange if head => messages += 1,
            // What is cut off may still become a message.
            _ if cut => {}
            _ => others += 1,
        }
        element.index() + 1 < MAX_LINES
    })?;
    // A broken line among messages does not matter, but those of other programs do.
    if messages > others || (head && (messages > 0 || others == 0)) {
        return Ok(Some(true));
    }
    Ok(if others == 0 && cut { None } else { Some(false) })
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Session,
    Message,
    /// A message without any part of a known type.
    Strange,
    Other,
}

/// The members of a line or of a message that decide.
#[derive(Default)]
struct Members<'a> {
    keys: Vec<&'a str>,
    role: Option<&'a str>,
    created: bool,
    /// The types of the first parts.
    parts: Option<Vec<Option<&'a str>>>,
    texts: Vec<&'a str>,
    counts: Vec<&'a str>,
}

impl Line {
    fn read(element: &Element<'_>) -> Self {
        let mut members = Members::default();
        // A sample may end inside the element; what was read before counts.
        let (Ok(()) | Err(_)) = members.read(&mut element.parser());
        if members.has_fields() {
            return if members.has_parts() { Self::Message } else { Self::Strange };
        }
        let has = |key| members.texts.contains(&key);
        let named = has("description") && !members.keys.contains(&"role");
        if named && members.counts.contains(&"message_count") { Self::Session } else { Self::Other }
    }
}

impl<'a> Members<'a> {
    fn read(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            self.keys.push(key);
            if key == "content" && json.enter_array()? {
                self.read_parts(json)?;
                continue;
            }
            let value = Value::read(json)?;
            match key {
                "role" => self.role = value.text(),
                "created" => self.created = value.raw().is_some_and(is_number),
                _ => {}
            }
            if value.text().is_some() {
                self.texts.push(key);
            }
            if value.as_u64().is_some() {
                self.counts.push(key);
            }
        }
        Ok(())
    }

    fn read_parts(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        self.parts = Some(Vec::new());
        while json.item()? {
            let full = self.parts.as_ref().is_none_or(|parts| parts.len() == MAX_PARTS);
            if full || !json.enter_object()? {
                json.skip_value()?;
                continue;
            }
            let mut kind = None;
            while let Some(key) = json.key()? {
                match key {
                    "type" => {
                        kind = Value::read(json)?.text();
                        // The sample may end inside of the part.
                        self.parts.get_or_insert_default().push(kind);
                    }
                    _ => json.skip_value()?,
                }
            }
            if kind.is_none() {
                self.parts.get_or_insert_default().push(None);
            }
        }
        Ok(())
    }

    /// Whether these are the fields of a message of the program, and no others.
    fn has_fields(&self) -> bool {
        matches!(self.role, Some("user" | "assistant"))
            && self.created
            && self.parts.is_some()
            && self.keys.iter().all(|key| OF_MESSAGES.contains(key))
    }

    /// Whether half of the parts are of types that the program writes.
    fn has_parts(&self) -> bool {
        let parts = self.parts.as_deref().unwrap_or_default();
        let own = parts.iter().filter(|kind| kind.is_some_and(|kind| PARTS.contains(&kind))).count();
        own * 2 >= parts.len()
    }
}

fn is_number(raw: &str) -> bool {
    raw.parse::<f64>().is_ok()
}

/// Whether the file is an exported session; none if only more of it can say so.
fn look_at_export(bundle: &Bundle, path: &str, bytes: usize) -> Result<Option<bool>, ImportError> {
    if !layout::begins_with_object(bundle, path)? {
        return Ok(Some(false));
    }
    let mut found = None;
    JsonArray::new(path).sample(bundle, bytes, |element| {
        let mut root = Root::default();
        let (Ok(()) | Err(_)) = root.read(&mut element.parser());
        found = Some((root.answer(), element.whole()));
        false
    })?;
    Ok(match found {
        Some((None, true)) | None => Some(false),
        Some((answer, _)) => answer,
    })
}

/// The members of an export that decide.
#[derive(Default)]
struct Root {
    id: bool,
    folder: bool,
    /// Fields that the sessions of other programs do not have.
    marks: usize,
    /// Whether the first message is one of this program; none if there is no list of messages yet.
    messages: Option<bool>,
    known: usize,
    others: usize,
}

impl Root {
    fn read(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            self.others += 1;
            return Ok(());
        }
        while let Some(key) = json.key()? {
            if KNOWN.contains(&key) || LISTS.contains(&key) {
                self.known += 1;
            } else {
                self.others += 1;
            }
            if self.others > 2 * self.known + 2 {
                return Ok(());
            }
            match key {
                "conversation" if json.enter_array()? => self.read_messages(json)?,
                "id" => self.id = Value::read(json)?.nonempty_text().is_some(),
                "working_dir" => self.folder = Value::read(json)?.text().is_some(),
                "extension_data"
                | "user_set_name"
                | "session_type"
                | "message_count"
                | "total_tokens"
                | "accumulated_total_tokens"
                | "accumulated_usage"
                | "schedule_id"
                | "goose_mode" => {
                    self.marks += 1;
                    json.skip_value()?;
                }
                _ => json.skip_value()?,
            }
        }
        Ok(())
    }

    fn read_messages(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        self.messages = Some(true);
        let mut first = true;
        while json.item()? {
            if std::mem::take(&mut first) {
                let mut members = Members::default();
                let read = members.read(json);
                let begun = read.is_err() && members.keys.iter().all(|key| OF_MESSAGES.contains(key));
                let whole = members.role.is_some() && (members.parts.is_some() || members.created);
                // The sample may end inside of the message.
                self.messages = Some(begun || whole);
                read?;
                if json.pending() {
                    json.skip_value()?;
                }
            } else {
                json.skip_value()?;
            }
        }
        Ok(())
    }

    fn answer(&self) -> Option<bool> {
        if self.others > 2 * self.known + 2 || self.messages == Some(false) {
            return Some(false);
        }
        if self.id && self.folder && self.marks >= 2 && self.messages == Some(true) {
            return Some(true);
        }
        // Exports of others may be large, so no more of them is read.
        if self.known > self.others { None } else { Some(false) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = r#"{"working_dir":"/x","description":"","message_count":1}"#;
    const MESSAGE: &str = r#"{"role":"user","created":1,"content":[{"type":"text","text":"x"}]}"#;
    const EXPORTED: &str = r#"{"id":"s","working_dir":"/x","name":"n","session_type":"user","extension_data":{},"conversation":["#;

    fn format(name: &str, text: impl Into<Vec<u8>>) -> Option<&'static str> {
        let bundle = Bundle::from_files([(name, text)]);
        format_of(&bundle, name).expect("memory can be read")
    }

    #[test]
    fn lines_are_known_by_their_first_line_or_their_messages() {
        for text in [
            SESSION.to_owned(),
            format!("{SESSION}\n{MESSAGE}\n"),
            format!("{MESSAGE}\n{MESSAGE}\n"),
            format!("{SESSION}\n{}", MESSAGE.replace("\"x\"", &format!("\"{}", "x".repeat(20_000)))),
            format!("{}\"}}]}}\n", MESSAGE.replace("\"x\"}]}", &format!("\"{}", "x".repeat(20_000)))),
        ] {
            assert_eq!(format("a.jsonl", text.as_bytes()), Some(LINES), "{}", &text[..60]);
            assert_eq!(format("a.txt", text.as_bytes()), Some(LINES).filter(|_| false));
        }
    }

    #[test]
    fn exports_are_known_by_their_members() {
        for text in [
            format!("{EXPORTED}]}}"),
            format!("\u{feff} {EXPORTED}{MESSAGE}]}}"),
            format!("{EXPORTED}{}", &MESSAGE[..30]),
            EXPORTED.replace("{}", &format!("{{\"a\":\"{}\"}}", "x".repeat(20_000))) + MESSAGE + "]}",
        ] {
            assert_eq!(format("a.json", text.as_bytes()), Some(EXPORT), "{}", &text[..60]);
        }
    }

    #[test]
    fn files_of_other_programs_are_no_sessions() {
        for text in [
            r#"{"role":"user","content":"x"}"#,
            r#"{"role":"user","created":1,"content":"x"}"#,
            r#"{"role":"user","created":1,"content":[{"type":"Text","text":"x"}]}"#,
            r#"{"role":"user","created":1,"sessionId":"s","content":[{"type":"text","text":"x"}]}"#,
            r#"{"description":"d","message_count":"3"}"#,
            r#"{"id":"s","working_dir":"/x","name":"n"}"#,
            r#"{"id":"s","working_dir":"/x","session_type":"user","total_tokens":1,"conversation":[{"a":1}]}"#,
            r#"{"id":"s","working_dir":"/x","session_type":"user","total_tokens":1,"messages":[]}"#,
            "[]",
            "7",
            "",
        ] {
            assert_eq!((format("a.json", text), format("a.jsonl", text)), (None, None), "{text}");
        }
        assert_eq!(format("a.json", format!("[{EXPORTED}{MESSAGE}]}}]")), None, "a list of them");
    }
}
