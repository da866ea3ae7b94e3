//! Finds sessions by the fields of their first lines, and files with memories by a heading or by their folder.

use std::collections::BTreeMap;

use satchel_importer::{
    Arena, Bundle, Detection, Element, Fields, ImportError, JsonError, Parser, json::Value, names,
};

use crate::{layout, line::is_message, memory, record::KINDS};

/// A file to which the program has added memories.
pub(crate) const MEMORIES: &str = "gemini-cli-importer/2025.06";
/// One JSON object for each session.
pub(crate) const SAVED: &str = "gemini-cli-importer/2025.09";
/// A log of lines for each session.
pub(crate) const LINES: &str = "gemini-cli-importer/2026.04";
/// The formats, oldest first.
pub(crate) const FORMATS: [&str; 3] = [MEMORIES, SAVED, LINES];

/// Bytes sampled from the start of a file: first few, and if those do not decide, more. The host allows 16 MiB.
const SAMPLE_SIZES: [usize; 2] = [64 * 1024, 8 * 1024 * 1024];
/// Lines of one head that are sampled.
const MAX_ELEMENTS: u64 = 16;
/// Messages of one list that are looked at.
const MAX_MESSAGES: usize = 16;
/// Fields of the lines of other programs that also have a `sessionId`.
const FOREIGN: [&str; 4] = ["uuid", "parentUuid", "message", "payload"];
/// Types of the answers of programs that were made from this one and write the same fields.
const FOREIGN_TYPES: [&str; 2] = ["qwen", "assistant"];

/// Every export among the files: the sessions and memories of one project, or a context file.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let mut projects = Projects { bundle, found: BTreeMap::new() };
    for path in candidates(bundle) {
        if let Some(format) = format_of(bundle, path)? {
            projects.add(path, format);
        }
    }
    let mut others = Vec::new();
    for path in memory::files(bundle)? {
        if layout::memory_folder(path).is_some() {
            projects.add(path, MEMORIES);
        } else {
            others.push((MEMORIES, vec![path.to_owned()]));
        }
    }
    let format = |newest| FORMATS.get(newest).copied().unwrap_or(LINES);
    let own = projects.found.into_values().map(|(newest, files)| (format(newest), files));
    Ok(own
        .chain(others)
        .map(|(format, files)| Detection { format: format.to_owned(), confidence: 95, files, account: None })
        .collect())
}

/// The projects among the files.
struct Projects<'b> {
    bundle: &'b Bundle,
    /// By their folder: the newest format, and the files.
    found: BTreeMap<String, (usize, Vec<String>)>,
}

impl Projects<'_> {
    fn add(&mut self, path: &str, format: &str) {
        let root = layout::project_root(path);
        let folder = root.clone().unwrap_or_else(|| names::split(path).0.to_owned());
        let is_new = !self.found.contains_key(&folder);
        let (newest, files) = self.found.entry(folder).or_default();
        *newest = (*newest).max(FORMATS.iter().position(|own| *own == format).unwrap_or_default());
        files.push(path.to_owned());
        files.extend(root.filter(|root| is_new && self.bundle.entry(root).is_some()));
    }
}

/// The files that may be sessions by their name.
pub(crate) fn candidates(bundle: &Bundle) -> impl Iterator<Item = &str> {
    bundle.entries().iter().map(|entry| entry.path.as_str()).filter(|path| layout::is_candidate(path))
}

/// The format of a file; none if it is no session.
pub(crate) fn format_of(bundle: &Bundle, path: &str) -> Result<Option<&'static str>, ImportError> {
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    for bytes in SAMPLE_SIZES {
        let mut head = Head::default();
        layout::elements(path).sample(bundle, bytes, |element| {
            head.add(&element, names::has_extension(path, "jsonl"));
            // The answers of another program may follow a first line like those of this one.
            !head.foreign && element.index() + 1 < MAX_ELEMENTS
        })?;
        if head.foreign {
            return Ok(None);
        }
        if head.format.is_some() || size <= bytes as u64 {
            return Ok(head.format);
        }
    }
    Ok(None)
}

/// What the first lines of a file show.
#[derive(Default)]
struct Head {
    format: Option<&'static str>,
    /// The lines belong to another program.
    foreign: bool,
    /// A line changes fields of the session or takes messages back.
    update: bool,
    /// A line is a message.
    message: bool,
}

/// The members of a line that decide.
#[derive(Default)]
struct Members<'a> {
    keys: Vec<&'a str>,
    /// Those whose values have the right type.
    valid: Vec<&'a str>,
    /// Its list of messages, as far as it was read.
    messages: Vec<&'a str>,
}

impl Head {
    fn add(&mut self, element: &Element<'_>, lines: bool) {
        let mut members = Members::default();
        // A sample may end inside the element; what was read before counts.
        let (Ok(()) | Err(_)) = members.read(&mut element.parser());
        let arena = element.arena();
        let has = |key| members.valid.contains(&key);
        let messages = if has("messages") { members.messages.as_slice() } else { &[element.text()] };
        let kinds: Vec<Kind> = messages.iter().map(|raw| kind_of(raw, arena)).collect();
        let other = self.format.is_none() && FOREIGN.iter().any(|key| members.keys.contains(key));
        self.foreign = other || kinds.contains(&Kind::Foreign);
        if self.foreign || self.format.is_some() {
            return;
        }
        if has("sessionId") && has("projectHash") {
            let saved = has("messages") && !lines && element.index() == 0;
            if !has("messages") || messages.is_empty() || kinds.contains(&Kind::Own) {
                self.format = Some(if saved { SAVED } else { LINES });
            }
            return;
        }
        self.update |= has("$set") || has("$rewindTo");
        self.message |= has("id") && kinds.contains(&Kind::Own);
        // The first line may be lost.
        if self.update && self.message {
            self.format = Some(LINES);
        }
    }
}

impl<'a> Members<'a> {
    fn read(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            self.keys.push(key);
            let valid = match key {
                "sessionId" | "id" => Value::read(json)?.nonempty_text().is_some(),
                "projectHash" | "$rewindTo" => Value::read(json)?.text().is_some(),
                "$set" => Value::read(json)?.raw().is_some_and(|raw| raw.starts_with('{')),
                "messages" if json.enter_array()? => {
                    // The sample may end inside the list.
                    self.valid.push(key);
                    self.read_messages(json)?;
                    false
                }
                _ => {
                    json.skip_value()?;
                    false
                }
            };
            self.valid.extend(valid.then_some(key));
        }
        Ok(())
    }

    fn read_messages(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        while json.item()? {
            let message = json.raw_value()?;
            if self.messages.len() < MAX_MESSAGES {
                self.messages.push(message);
            }
        }
        Ok(())
    }
}

/// Whose message it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Own,
    Foreign,
    Unknown,
}

/// A message of this program has a type that it writes, or else the other fields that all messages have.
fn kind_of(raw: &str, arena: &Arena) -> Kind {
    let raw: &str = arena.alloc_str(raw);
    let Ok(fields) = Fields::read(&mut Parser::new(raw, arena)) else { return Kind::Unknown };
    let text = |key| fields.get(key).nonempty_text();
    match text("type") {
        Some(kind) if FOREIGN_TYPES.contains(&kind) && text("id").is_some() => Kind::Foreign,
        Some(kind) if KINDS.contains(&kind) && is_message(&fields) => Kind::Own,
        Some(_) if text("id").is_some() && text("timestamp").is_some() && !fields.has("role") => Kind::Own,
        _ => Kind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(name: &str, text: impl Into<Vec<u8>>) -> Option<&'static str> {
        let bundle = Bundle::from_files([(name, text)]);
        format_of(&bundle, name).expect("memory can be read")
    }
    const HEADER: &str = r#"{"sessionId":"s","projectHash":"p","startTime":"2026-01-01T00:00:00Z""#;
    const MESSAGE: &str = r#"{"id":"m","timestamp":"2026-01-01T00:00:00Z","type":"user","content":"x"}"#;
    const SET: &str = r#"{"$set":{"lastUpdated":"2026-01-01T00:00:00Z"}}"#;

    #[test]
    fn the_layouts_are_told_apart() {
        assert_eq!(format("a.jsonl", format!("{HEADER}}}\n")), Some(LINES));
        assert_eq!(format("a.jsonl", format!("{HEADER},\"messages\":[{MESSAGE}]}}\n")), Some(LINES));
        assert_eq!(format("a.jsonl", format!("{MESSAGE}\n{SET}\n")), Some(LINES), "the first line is lost");
        assert_eq!(format("a.json", format!("{HEADER}}}\n{MESSAGE}\n")), Some(LINES), "another extension");
        assert_eq!(format("a.json", format!("{HEADER},\"messages\":[\n{MESSAGE}]}}")), Some(SAVED));
        assert_eq!(format("a.json", format!("{HEADER},\"messages\":[]}}")), Some(SAVED));
        assert_eq!(format("a.json", format!("{HEADER},\"messages\":[{MESSAGE},{{\"id\":")), Some(SAVED));
        let unknown = MESSAGE.replace("user", "system");
        assert_eq!(format("a.json", format!("{HEADER},\"messages\":[{unknown},{MESSAGE}]}}")), Some(SAVED));
        assert_eq!(format("a.json", format!("{HEADER},\"messages\":[null,{MESSAGE}]}}")), Some(SAVED));
    }

    #[test]
    fn files_of_other_programs_are_no_sessions() {
        for text in [
            r#"{"type":"user","uuid":"u","sessionId":"s","projectHash":"p","message":{"role":"user"}}"#,
            r#"{"sessionId":"s","messageId":0,"type":"user","message":"x","timestamp":"2026-01-01T00:00:00Z"}"#,
            r#"{"sessionId":"s","messages":[{"role":"user","content":"x"}]}"#,
            r#"{"sessionId":"s","projectHash":"p","messages":[{"role":"user","content":"x"}]}"#,
            r#"{"sessionId":"s","projectHash":7}"#,
            &format!("{HEADER},\"messages\":[{MESSAGE},{}]}}", MESSAGE.replace("user", "qwen")),
            &format!("{HEADER}}}\n{MESSAGE}\n{}\n", MESSAGE.replace("user", "qwen")),
            MESSAGE,
            SET,
            "[]",
            "",
        ] {
            assert_eq!((format("a.json", text), format("a.jsonl", text)), (None, None), "{text}");
        }
    }
}
