//! Finds session files, by the structure of their first bytes.

use std::collections::BTreeMap;

use satchel_importer::{
    Bundle, Detection, Element, ImportError, JsonArray, JsonError, Parser, names, sqlite,
};

use crate::{database, workspace};

/// A database of the program's state, with a list of sessions.
pub(crate) const DATABASE: &str = "vscode-copilot-importer/2023.05";
/// One object with all requests: a session file until 2025, or an exported chat.
pub(crate) const DOCUMENT: &str = "vscode-copilot-importer/2023.10";
/// The first state of a session, then its changes line by line.
pub(crate) const LOG: &str = "vscode-copilot-importer/2026.01";
/// The formats, oldest first.
pub(crate) const FORMATS: [&str; 3] = [DATABASE, DOCUMENT, LOG];

/// Bytes sampled from the start of a file: first few, then more if those do not decide. The host allows 16 MiB.
const SAMPLE_SIZES: [usize; 2] = [64 * 1024, 8 * 1024 * 1024];
/// Members that hardly any other program has beside a list of requests.
const OWN_MARKS: [&str; 5] =
    ["creationDate", "initialLocation", "inputState", "requesterUsername", "responderUsername"];
/// Members that other programs have too.
const COMMON_MARKS: [&str; 3] = ["customTitle", "sessionId", "version"];

/// Every export among the files: the sessions of one folder, those in the database beside it, and the file that names the folder's
/// workspace.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let mut exports: BTreeMap<String, (&str, Vec<String>)> = BTreeMap::new();
    let mut add = |folder: String, format: &'static str, own: Vec<String>| {
        let (newest, files) = exports.entry(folder).or_insert((format, Vec::new()));
        *newest = format.max(newest);
        files.extend(own);
    };
    for path in database::candidates(bundle) {
        if has_sessions(bundle, path)? {
            add(workspace::sessions_beside(path), DATABASE, sqlite::files(bundle, path));
        }
    }
    for path in candidates(bundle) {
        if let Some(format) = format_of(bundle, path)? {
            add(names::split(path).0.to_owned(), format, vec![path.to_owned()]);
        }
    }
    let detection = |(folder, (format, mut files)): (String, (&str, Vec<String>))| {
        files.extend(workspace::file_of(&folder).filter(|path| bundle.entry(path).is_some()));
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

/// Whether a database has a list of sessions.
pub(crate) fn has_sessions(bundle: &Bundle, path: &str) -> Result<bool, ImportError> {
    for bytes in SAMPLE_SIZES {
        let Some(head) = database::head(bundle, path, bytes as u64)? else { return Ok(false) };
        let (whole, list) = (head.len() < bytes, Bundle::in_memory(path, head));
        if format_of(&list, path)? == Some(DOCUMENT) {
            return Ok(true);
        }
        if whole {
            break;
        }
    }
    Ok(false)
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
    own_marks: usize,
    common_marks: usize,
    /// Whether there is a list of requests.
    requests: bool,
    /// Whether the list has an object.
    objects: bool,
    /// Whether one of them has the members of a request.
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
                    self.read_requests(json)?;
                }
                key => {
                    self.own_marks += usize::from(OWN_MARKS.contains(&key));
                    self.common_marks += usize::from(COMMON_MARKS.contains(&key));
                }
            }
        }
        Ok(())
    }

    fn read_requests(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        while json.item()? {
            if self.request || !json.enter_object()? {
                continue;
            }
            self.objects = true;
            let (mut message, mut answer) = (false, false);
            while let Some(key) = json.key()? {
                message |= key == "message";
                answer |= key == "requestId" || key == "response";
                self.request |= message && answer;
            }
        }
        Ok(())
    }

    /// A sample may end before the requests, or inside the first one.
    fn is_session(&self) -> bool {
        let marks = self.own_marks + self.common_marks;
        let enough = match (self.requests, self.objects) {
            (true, true) => self.request,
            (true, false) => marks > 1,
            (false, _) => marks > 3,
        };
        enough && self.own_marks > 0
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
        assert_eq!(
            format(format!(r#"{{"requests":[{request}}}],"initialLocation":"panel"}}"#)),
            Some(DOCUMENT)
        );
        assert_eq!(
            format(format!(r#"{{"responderUsername":"x","requests":[{request}"#)),
            Some(DOCUMENT),
            "it is truncated"
        );
        assert_eq!(format(r#"{"kind":0,"v":{"version":3,"creationDate":1,"requests":[]}}"#), Some(LOG));
        assert_eq!(
            format(format!(r#"{{"kind":0,"v":{{"creationDate":1,"requests":[{request}"#)),
            Some(LOG),
            "it is truncated"
        );
    }

    #[test]
    fn files_of_other_programs_are_not_sessions() {
        for text in [
            r#"{"requests":[{"method":"GET","response":{}}],"info":{}}"#,
            r#"{"requests":[],"version":1}"#,
            r#"{"requests":[],"version":1,"sessionId":"s","customTitle":"x"}"#,
            r#"{"requests":[],"creationDate":1}"#,
            r#"{"requests":[{"message":"GET /users","response":"200 OK"}]}"#,
            r#"{"version":1,"sessionId":"abc","requests":[{"url":"https://example.org","method":"GET"}]}"#,
            r#"{"version":1,"creationDate":1,"requests":[{"requestId":"r","response":{}}]}"#,
            r#"{"kind":0,"v":{"version":3,"sessionId":"s","requests":[]}}"#,
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
