//! Finds session files, by the structure of their first bytes.

use std::collections::BTreeMap;

use satchel_importer::{Bundle, Detection, Element, ImportError, JsonArray, JsonError, Parser, names};

use crate::workspace;

/// One object with all requests: a session file until 2025, or an exported chat.
pub(crate) const DOCUMENT: &str = "vscode-copilot-importer/2023.10";
/// The first state of a session, then its changes line by line.
pub(crate) const LOG: &str = "vscode-copilot-importer/2026.01";
/// The formats, oldest first.
pub(crate) const FORMATS: [&str; 2] = [DOCUMENT, LOG];

/// Bytes sampled from the start of a file: first few, then more if those do not decide. The host allows 16 MiB.
const SAMPLE_SIZES: [usize; 2] = [64 * 1024, 8 * 1024 * 1024];
/// Members of a session besides its requests; two of them are enough to recognise one.
const MARKS: [&str; 8] = [
    "creationDate",
    "customTitle",
    "initialLocation",
    "inputState",
    "requesterUsername",
    "responderUsername",
    "sessionId",
    "version",
];

/// Every export among the files: the sessions of one folder, and the file that names the folder's workspace.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let mut exports: BTreeMap<&str, (&str, Vec<String>)> = BTreeMap::new();
    for path in candidates(bundle) {
        if let Some(format) = format_of(bundle, path)? {
            let (newest, files) = exports.entry(names::split(path).0).or_insert((format, Vec::new()));
            *newest = format.max(newest);
            files.push(path.to_owned());
        }
    }
    let detection = |(folder, (format, mut files)): (&str, (&str, Vec<String>))| {
        files.extend(workspace::file_of(folder).filter(|path| bundle.entry(path).is_some()));
        Detection { format: format.to_owned(), confidence: 95, files, account: None }
    };
    Ok(exports.into_iter().map(detection).collect())
}

/// The files that may be sessions by their name.
pub(crate) fn candidates(bundle: &Bundle) -> impl Iterator<Item = &str> {
    let fits = |path: &&str| {
        let extension = names::is_json(path) || names::has_extension(path, "jsonl");
        extension && !names::is_junk(path)
    };
    bundle.entries().iter().map(|entry| entry.path.as_str()).filter(fits)
}

/// The format of a file; none if it is not a session. Samples growing heads until one decides.
pub(crate) fn format_of(bundle: &Bundle, path: &str) -> Result<Option<&'static str>, ImportError> {
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    for bytes in SAMPLE_SIZES {
        let (mut format, mut whole) = (None, false);
        JsonArray::new(path).sample(bundle, bytes, |element| {
            (format, whole) = (format_of_element(&element), element.whole());
            false
        })?;
        if format.is_some() || whole || size <= bytes as u64 {
            return Ok(format);
        }
    }
    Ok(None)
}

/// What the first element of a file shows.
fn format_of_element(element: &Element<'_>) -> Option<&'static str> {
    let mut head = Head::default();
    // A sample may end inside the element; what was read before counts.
    let (Ok(()) | Err(_)) = head.read(&mut element.parser(), true);
    if head.kind == Some(0) {
        return head.state.filter(|state| state.is_session()).map(|_| LOG);
    }
    (head.kind.is_none() && head.is_session()).then_some(DOCUMENT)
}

/// The members of an object that decide.
#[derive(Default)]
struct Head {
    /// The number of the operation, if it is a line of a log.
    kind: Option<u64>,
    /// The state in the first line of a log.
    state: Option<Box<Self>>,
    marks: usize,
    requests: bool,
    /// Whether the first request has the members of one.
    request: bool,
}

impl Head {
    fn read(&mut self, json: &mut Parser<'_>, outside: bool) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            match key {
                "kind" if outside => self.kind = json.raw_value()?.parse().ok().or(Some(u64::MAX)),
                "v" if outside => {
                    let mut state = Self::default();
                    let read = state.read(json, false);
                    self.state = Some(Box::new(state));
                    read?;
                }
                "requests" if json.enter_array()? => {
                    self.requests = true;
                    self.read_first_request(json)?;
                }
                key if MARKS.contains(&key) => self.marks += 1,
                _ => {}
            }
        }
        Ok(())
    }

    fn read_first_request(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        while json.item()? {
            if self.request || !json.enter_object()? {
                continue;
            }
            let mut known = 0;
            while let Some(key) = json.key()? {
                known += usize::from(["message", "requestId", "response", "variableData"].contains(&key));
                self.request |= known > 1;
            }
        }
        Ok(())
    }

    fn is_session(&self) -> bool {
        self.request || (self.requests && self.marks > 1) || self.marks > 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(text: impl Into<Vec<u8>>) -> Option<&'static str> {
        let bundle = Bundle::from_files([("a.json", text)]);
        format_of(&bundle, "a.json").expect("memory can be read")
    }

    #[test]
    fn the_layouts_are_told_apart() {
        let request = r#"{"requestId":"r","message":{"text":"x"}"#;
        assert_eq!(
            format(r#"{"version":3,"responderUsername":"x","requests":[],"sessionId":"s"}"#),
            Some(DOCUMENT)
        );
        assert_eq!(format(format!(r#"{{"requests":[{request}}}]}}"#)), Some(DOCUMENT));
        assert_eq!(
            format(format!(r#"{{"version":3,"requests":[{request}"#)),
            Some(DOCUMENT),
            "it is truncated"
        );
        assert_eq!(format(r#"{"kind":0,"v":{"version":3,"sessionId":"s","requests":[]}}"#), Some(LOG));
        assert_eq!(
            format(format!(r#"{{"kind":0,"v":{{"requests":[{request}"#)),
            Some(LOG),
            "it is truncated"
        );
    }

    #[test]
    fn files_of_other_programs_are_not_sessions() {
        for text in [
            r#"{"requests":[{"method":"GET","response":{}}],"info":{}}"#,
            r#"{"requests":[],"version":1}"#,
            r#"{"kind":1,"v":{"version":3,"sessionId":"s","requests":[]}}"#,
            r#"{"kind":"0","v":{"version":3,"sessionId":"s","requests":[]}}"#,
            r#"{"kind":0,"v":{"a":1}}"#,
            r#"{"kind":0,"v":[]}"#,
            r#"{"sessionId":"s","message":{"text":"x"},"version":"1"}"#,
            "[]",
            "",
        ] {
            assert_eq!(format(text), None, "{text}");
        }
    }

    #[test]
    fn a_first_member_longer_than_the_first_sample_is_read() {
        let long = "x".repeat(SAMPLE_SIZES[0]);
        let text = format!(r#"{{"responderUsername":"{long}","requests":[],"version":3}}"#);
        assert_eq!(format(text), Some(DOCUMENT));
    }
}
