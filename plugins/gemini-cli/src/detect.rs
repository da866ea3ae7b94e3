//! Finds sessions by the fields of their first lines, and context files with memories by a heading.

use std::collections::BTreeMap;

use satchel_importer::{
    Arena, Bundle, Detection, Element, ImportError, JsonError, Parser, json::Value, names,
};

use crate::{fields::Fields, layout, line::is_message, memory, record::KINDS};

/// A context file to which the program has added memories.
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
/// Fields of the lines of other programs that also have a `sessionId`.
const FOREIGN: [&str; 4] = ["uuid", "parentUuid", "message", "payload"];

/// Every export among the files: the sessions of one project, or a context file.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let mut projects: BTreeMap<String, (usize, Vec<String>)> = BTreeMap::new();
    for path in candidates(bundle) {
        let Some(format) = format_of(bundle, path)? else { continue };
        let root = layout::project_root(path);
        let folder = root.clone().unwrap_or_else(|| names::split(path).0.to_owned());
        let (newest, files) = projects.entry(folder).or_default();
        *newest = (*newest).max(FORMATS.iter().position(|own| *own == format).unwrap_or_default());
        files.push(path.to_owned());
        files.extend(root.filter(|root| bundle.entry(root).is_some() && !files.contains(root)));
    }
    let detection = |format: &str, files: Vec<String>| Detection {
        format: format.to_owned(),
        confidence: 95,
        files,
        account: None,
    };
    let mut found: Vec<Detection> = projects
        .into_values()
        .map(|(newest, files)| detection(FORMATS.get(newest).copied().unwrap_or(LINES), files))
        .collect();
    for path in memory::files(bundle)? {
        found.push(detection(MEMORIES, vec![path.to_owned()]));
    }
    Ok(found)
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
            head.format.is_none() && !head.foreign && element.index() + 1 < MAX_ELEMENTS
        })?;
        if head.format.is_some() || head.foreign || size <= bytes as u64 {
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
    /// The first one in its list of messages.
    first: Option<&'a str>,
}

impl Head {
    fn add(&mut self, element: &Element<'_>, lines: bool) {
        let mut members = Members::default();
        // A sample may end inside the element; what was read before counts.
        let (Ok(()) | Err(_)) = members.read(&mut element.parser());
        let arena = element.arena();
        let has = |key| members.valid.contains(&key);
        if FOREIGN.iter().any(|key| members.keys.contains(key)) {
            self.foreign = true;
        } else if has("sessionId") && has("projectHash") {
            let saved = has("messages") && !lines && element.index() == 0;
            if members.first.is_none_or(|first| is_known_message(first, arena)) {
                self.format = Some(if saved { SAVED } else { LINES });
            }
        } else {
            self.update |= has("$set") || has("$rewindTo");
            self.message |= has("id") && is_known_message(element.text(), arena);
            // The first line may be lost.
            if self.update && self.message {
                self.format = Some(LINES);
            }
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
        if json.item()? {
            self.first = Some(json.raw_value()?);
            while json.item()? {
                json.skip_value()?;
            }
        }
        Ok(())
    }
}

/// Whether it is a message of a type that the program writes.
fn is_known_message(raw: &str, arena: &Arena) -> bool {
    let raw: &str = arena.alloc_str(raw);
    Fields::parse(raw, arena).is_ok_and(|fields| {
        is_message(&fields) && fields.get("type").text().is_some_and(|kind| KINDS.contains(&kind))
    })
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
    }

    #[test]
    fn files_of_other_programs_are_no_sessions() {
        for text in [
            r#"{"type":"user","uuid":"u","sessionId":"s","projectHash":"p","message":{"role":"user"}}"#,
            r#"{"sessionId":"s","messageId":0,"type":"user","message":"x","timestamp":"2026-01-01T00:00:00Z"}"#,
            r#"{"sessionId":"s","messages":[{"role":"user","content":"x"}]}"#,
            r#"{"sessionId":"s","projectHash":"p","messages":[{"role":"user","content":"x"}]}"#,
            r#"{"sessionId":"s","projectHash":7}"#,
            MESSAGE,
            SET,
            "[]",
            "",
        ] {
            assert_eq!((format("a.json", text), format("a.jsonl", text)), (None, None), "{text}");
        }
    }
}
