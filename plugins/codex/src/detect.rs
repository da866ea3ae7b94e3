//! Finds session files, by the structure of their first lines.

use std::collections::BTreeMap;

use satchel_importer::{
    Arena, Bundle, Detection, Element, ImportError, JsonError, Parser,
    json::{Object, Value},
    names,
};

use crate::{layout, line};

/// One JSON object with all items.
pub(crate) const SAVED: &str = "codex-importer/2025.04";
/// A header, then one item in each line.
pub(crate) const BARE: &str = "codex-importer/2025.05";
/// Lines with a time, a type and a payload.
pub(crate) const WRAPPED: &str = "codex-importer/2025.09";
/// The formats, oldest first.
pub(crate) const FORMATS: [&str; 3] = [SAVED, BARE, WRAPPED];

/// Bytes sampled from the start of a file: first few, then more if those do not decide. The host allows 16 MiB.
const SAMPLE_SIZES: [usize; 2] = [64 * 1024, 8 * 1024 * 1024];
/// Lines of one head that are sampled.
const MAX_ELEMENTS: u64 = 16;
/// Fields of lines of Claude Code, which also have types.
const FOREIGN: [&str; 2] = ["sessionId", "uuid"];

/// Every export among the files: the sessions of one folder in one format.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let mut exports: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for path in candidates(bundle) {
        if let Some(format) = format_of(bundle, path)? {
            exports.entry((names::split(path).0, format)).or_default().push(path.to_owned());
        }
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
    bundle.entries().iter().map(|entry| entry.path.as_str()).filter(|path| layout::is_candidate(path))
}

/// The format of a file; none if it is not a session. Samples growing heads until one decides.
pub(crate) fn format_of(bundle: &Bundle, path: &str) -> Result<Option<&'static str>, ImportError> {
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    for bytes in SAMPLE_SIZES {
        let mut head = Head::default();
        layout::elements(path).sample(bundle, bytes, |element| {
            head.add(&element);
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
    /// The first line is the header of the bare layout.
    header: bool,
    /// The lines belong to another program.
    foreign: bool,
}

/// The members of a line that decide.
#[derive(Default)]
struct Members<'a> {
    keys: Vec<&'a str>,
    kind: Option<&'a str>,
    record_type: Option<&'a str>,
    session: Option<&'a str>,
    items: Option<&'a str>,
}

impl Head {
    fn add(&mut self, element: &Element<'_>) {
        let arena = element.arena();
        let mut members = Members::default();
        // A sample may end inside the element; what was read before counts.
        let (Ok(()) | Err(_)) = members.read(&mut element.parser());
        let has = |key| members.keys.contains(&key);
        let kind = members.kind.unwrap_or_default();
        let item = line::is_item_type(kind) && members.keys.len() > 1;
        if FOREIGN.iter().any(|key| has(*key)) {
            self.foreign = true;
        } else if (has("payload") && line::is_payload_type(kind)) || (kind == "session_meta" && has("id")) {
            self.format = Some(WRAPPED);
        } else if element.index() == 0 && members.is_saved(arena) {
            self.format = Some(SAVED);
        } else if element.index() == 0 {
            self.header = members.is_header();
        } else if self.header && (item || members.record_type == Some("state")) {
            self.format = Some(BARE);
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
            match key {
                "type" => self.kind = Value::read(json)?.text(),
                "record_type" => self.record_type = Value::read(json)?.text(),
                "session" => self.session = Value::read(json)?.raw(),
                // The sample may end inside the list.
                "items" if json.enter_array()? => {
                    self.items = Some("");
                    if json.item()? {
                        self.items = Some(json.raw_value()?);
                        while json.item()? {}
                    }
                }
                _ => json.skip_value()?,
            }
        }
        Ok(())
    }

    /// Whether it is the header of the bare layout.
    fn is_header(&self) -> bool {
        let has = |key| self.keys.contains(&key);
        has("id") && has("timestamp") && (has("instructions") || has("git")) && self.kind.is_none()
    }

    /// Whether it is a whole session in one object.
    fn is_saved(&self, arena: &'a Arena) -> bool {
        let session = Object::parse(self.session.unwrap_or_default(), arena);
        let known = |item: &'a str| Object::parse(item, arena).text("type").is_some_and(line::is_item_type);
        let of_items = self.items.is_some_and(|item| item.is_empty() || known(item));
        of_items && session.text("id").is_some() && session.text("timestamp").is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(text: impl Into<Vec<u8>>) -> Option<&'static str> {
        let bundle = Bundle::from_files([("a.jsonl", text)]);
        format_of(&bundle, "a.jsonl").expect("memory can be read")
    }
    const ITEM: &str = r#"{"type":"message","role":"user","content":[]}"#;
    const HEADER: &str = r#"{"id":"a","timestamp":"2025-07-01T00:00:00Z","instructions":null}"#;

    #[test]
    fn the_layouts_are_told_apart() {
        let wrapped = r#"{"timestamp":"2026-01-01T00:00:00Z","type":"event_msg","payload":{}}"#;
        let saved = r#"{"session":{"timestamp":"2025-04-01T00:00:00Z","id":"a"},"items":["#;
        assert_eq!(format(wrapped), Some(WRAPPED));
        assert_eq!(format(format!("{HEADER}\n{ITEM}\n")), Some(BARE));
        assert_eq!(format(format!("{HEADER}\n{{\"record_type\":\"state\"}}\n{ITEM}")), Some(BARE));
        assert_eq!(format(format!("{saved}]}}")), Some(SAVED));
        assert_eq!(format(format!("{saved}{ITEM},{{\"type\":")), Some(SAVED), "it is truncated");
    }

    #[test]
    fn files_of_other_programs_are_not_sessions() {
        for text in [
            r#"{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"x"}}"#,
            r#"{"type":"session_meta","id":"x","sessionId":"s","timestamp":"x"}"#,
            r#"{"session_id":"a","ts":1,"text":"x"}"#,
            r#"{"id":"a","thread_name":"x","updated_at":"2026-01-01T00:00:00Z"}"#,
            r#"{"id":"1","type":"PushEvent","payload":{}}"#,
            r#"{"session":{"id":"a"},"items":[]}"#,
            r#"{"session":{"id":"a","timestamp":"x"},"items":[{"type":"order"}]}"#,
            HEADER,
            ITEM,
            "[]",
            "",
        ] {
            assert_eq!(format(text), None, "{text}");
        }
    }

    #[test]
    fn a_first_line_longer_than_the_first_sample_is_read() {
        let text = format!(
            "{{\"payload\":{{\"base_instructions\":\"{}\"}},\"type\":\"session_meta\"}}\n",
            "x".repeat(SAMPLE_SIZES[0])
        );
        assert_eq!(format(text), Some(WRAPPED));
    }
}
