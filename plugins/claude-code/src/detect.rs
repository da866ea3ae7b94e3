//! Finds sessions among files, by the keys of their lines.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{Bundle, Detection, Element, ImportError, JsonArray, JsonError, json::Value, names};

use crate::layout;

/// A file for each session, one JSON object a line.
pub(crate) const SESSIONS: &str = "claude-code-importer/2026.08";
/// The formats.
pub(crate) const FORMATS: [&str; 1] = [SESSIONS];

/// The memory file of the person.
pub(crate) const OWN_MEMORY: &str = "CLAUDE.md";
/// Bytes of a head that are sampled: first, and if those do not decide. The host allows 16 MiB.
const SAMPLE_SIZES: [usize; 2] = [16 * 1024, 4 * 1024 * 1024];
/// Lines of one head that are sampled.
const MAX_ELEMENTS: u64 = 32;
/// Types of lines that have no author, tree or message, and a field that each has.
const LINES_WITHOUT_MESSAGE: [(&str, &str); 8] = [
    ("summary", "leafUuid"),
    ("file-history-snapshot", "snapshot"),
    ("custom-title", "customTitle"),
    ("ai-title", "aiTitle"),
    ("last-prompt", "sessionId"),
    ("queue-operation", "operation"),
    ("permission-mode", "permissionMode"),
    ("mode", "sessionId"),
];

/// Every export among the files: the sessions of one project, with the files that belong to them.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let mut projects: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut empty = Vec::new();
    for entry in bundle.entries() {
        let path = entry.path.as_str();
        if !layout::is_lines(path) || names::is_junk(path) {
            continue;
        }
        match sample_head(bundle, path)? {
            Head::Session => projects.entry(layout::project(path)).or_default().push(path.to_owned()),
            Head::Empty => empty.push(path),
            Head::Foreign => {}
        }
    }
    let roots: BTreeSet<&str> = projects.keys().filter_map(|project| layout::root(project)).collect();
    let mut first_below: BTreeMap<&str, &str> = BTreeMap::new();
    for project in projects.keys().copied().collect::<Vec<_>>() {
        if let Some(root) = layout::root(project) {
            first_below.entry(root).or_insert(project);
        }
    }
    for path in empty.into_iter().chain(companions(bundle, &roots)) {
        let owner = match path.strip_suffix(OWN_MEMORY).and_then(|root| first_below.get(root)) {
            Some(project) => project,
            None => layout::memory_file(path).map_or_else(|| layout::project(path), |(project, _)| project),
        };
        if let Some(files) = projects.get_mut(owner) {
            files.push(path.to_owned());
        }
    }
    Ok(projects.into_values().map(detection).collect())
}

fn detection(mut files: Vec<String>) -> Detection {
    files.sort();
    Detection { format: SESSIONS.to_owned(), confidence: 95, files, account: None }
}

/// The files beside sessions that are no sessions.
fn companions<'b>(bundle: &'b Bundle, roots: &BTreeSet<&str>) -> impl Iterator<Item = &'b str> {
    let belongs = |path: &&str| {
        !names::is_junk(path)
            && (layout::is_agent_description(path)
                || layout::is_tool_result(path)
                || layout::memory_file(path).is_some()
                || path.strip_suffix(OWN_MEMORY).is_some_and(|root| roots.contains(root)))
    };
    bundle.entries().iter().map(|entry| entry.path.as_str()).filter(belongs)
}

/// The contents of the head of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
    /// Lines of a session.
    Session,
    /// Other elements.
    Foreign,
    /// Nothing.
    Empty,
}

/// Samples growing heads of a file until one decides.
fn sample_head(bundle: &Bundle, path: &str) -> Result<Head, ImportError> {
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    let (mut head, mut whole) = (Head::Empty, true);
    for bytes in SAMPLE_SIZES {
        JsonArray::new(path).lines().sample(bundle, bytes, |element| {
            let found = classify(&element);
            // A line that is cut off may still show what it is.
            if found != Head::Empty && (element.whole() || found == Head::Session) {
                head = found;
            }
            whole = element.whole();
            head != Head::Session && element.index() + 1 < MAX_ELEMENTS
        })?;
        if head == Head::Session || (head == Head::Foreign && whole) || size <= bytes as u64 {
            break;
        }
    }
    Ok(head)
}

fn classify(element: &Element<'_>) -> Head {
    let (mut keys, mut kind, mut foreign) = (BTreeSet::new(), None, false);
    let mut read = || -> Result<(), JsonError> {
        let mut json = element.parser();
        if json.enter_object()? {
            while let Some(key) = json.key()? {
                keys.insert(key);
                match key {
                    "type" => kind = Value::read(&mut json)?.text(),
                    // Programs that came from Gemini CLI write lines with the same fields.
                    "message" if json.enter_object()? => {
                        while let Some(key) = json.key()? {
                            foreign |= key == "parts";
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    };
    // A sample may end inside the element; what was read before counts.
    let (Ok(()) | Err(_)) = read();
    let has = |key| keys.contains(key);
    let in_tree = has("uuid") && has("parentUuid") && (has("message") || has("sessionId"));
    let said = has("sessionId") && has("message") && (has("uuid") || has("type"));
    let aside = || {
        LINES_WITHOUT_MESSAGE.iter().any(|(name, field)| kind == Some(name) && has(field))
            && !has("messages")
            && !has("payload")
    };
    if !foreign && (in_tree || said || aside()) {
        Head::Session
    } else if keys.is_empty() && element.text().starts_with('{') {
        Head::Empty
    } else {
        Head::Foreign
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Head {
        let bundle = Bundle::from_files([("s.jsonl", text)]);
        sample_head(&bundle, "s.jsonl").expect("memory can be read")
    }

    #[test]
    fn sessions_are_recognised_by_their_lines() {
        for session in [
            r#"{"type":"summary","summary":"Bees","leafUuid":"a"}"#,
            "{\"odd\":1}\n{\"parentUuid\":null,\"uuid\":\"a\",\"message\":{}}\n",
            r#"{"type":"user","sessionId":"s","message":{"role":"user","content":"cut off"#,
            r#"{"type":"mode","mode":"normal","sessionId":"s"}"#,
        ] {
            assert_eq!(head(session), Head::Session, "{session}");
        }
        for other in [
            r#"{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{}}"#,
            r#"{"session_id":"s","ts":1,"text":"hi"}"#,
            r#"{"type":"started","key":"a","agentId":"b"}"#,
            r#"[{"uuid":"a","name":"b","chat_messages":[]}]"#,
            r#"{"uuid":"a","parentUuid":null,"sessionId":"s","type":"user","message":{"role":"user","parts":[]}}"#,
        ] {
            assert_eq!(head(other), Head::Foreign, "{other}");
        }
        assert_eq!(head(""), Head::Empty);
    }

    #[test]
    fn a_session_is_recognised_behind_an_unknown_line() {
        let long = "x".repeat(40_000);
        let line =
            format!(r#"{{"parentUuid":null,"message":{{"content":"{long}"}},"uuid":"a","sessionId":"s"}}"#);
        assert_eq!(head(&format!("{{\"type\":\"novelty\",\"sessionId\":\"s\"}}\n{line}\n")), Head::Session);
    }

    #[test]
    fn a_long_first_line_is_read_further() {
        let long = format!(
            "{{\"snapshot\":{{\"a\":\"{}\"}},\"type\":\"file-history-snapshot\"}}\n",
            "x".repeat(40_000)
        );
        assert_eq!(head(&long), Head::Session);
    }
}
