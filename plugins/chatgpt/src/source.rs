//! Where the conversations of a file are: at its root, below a key, or in the script of a page.

use std::io::Read;

use satchel_importer::{
    Bundle, Element, ImportError, JsonArray, JsonError, JsonLists, Parser, RecordKind, Sink,
    json::Kind as Json, names,
};

/// Bytes of a head in which the key of a list is looked for. With those that detection reads they stay below the 16 MiB
/// that the host allows.
const HEADS: [usize; 2] = [64 * 1024, 2 * 1024 * 1024];
/// Bytes at the head of a page in which its script begins, and at its end in which the table of its files stands.
const PAGE_END: u64 = 4 * 1024 * 1024;
const PAGE_HEAD: u64 = 512 * 1024;

/// One file of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) path: String,
    pointer: &'static str,
    start: Option<u64>,
}

impl Source {
    /// The conversations of the file `path`; none of a page without any.
    pub(crate) fn find(bundle: &Bundle, path: &str) -> Result<Option<Self>, ImportError> {
        if !names::ends_in(path, "html") {
            return Self::below(bundle, path, "/conversations").map(Some);
        }
        let start = in_page(bundle, path)?;
        Ok(start.map(|start| Self { path: path.to_owned(), pointer: "", start: Some(start) }))
    }

    /// The list at `pointer`, one member of the root, or where there is none the root.
    pub(crate) fn below(bundle: &Bundle, path: &str, pointer: &'static str) -> Result<Self, ImportError> {
        let wrapped = is_wrapped(bundle, path, pointer)?;
        Ok(Self { path: path.to_owned(), pointer: if wrapped { pointer } else { "" }, start: None })
    }

    /// Calls `each` with every record, each of which is a `kind`; tells of what stands beside their list.
    pub(crate) fn each(
        &self,
        bundle: &Bundle,
        kind: RecordKind,
        sink: &mut Sink,
        mut each: impl FnMut(Element<'_>, &mut Sink) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        if self.pointer.is_empty() {
            return self.array().kind(kind).each(bundle, sink, each).map(|_| ());
        }
        let lists = [(name_of(self.pointer), kind)];
        let lists = JsonLists::new(&self.path, &lists);
        let walked = lists.each(bundle, sink, |_, element, sink| each(element, sink))?;
        for name in &walked.others {
            let place = format!("{}.{name}", self.path);
            sink.warn(&place, "it stands beside the list that is read; it is not imported");
        }
        Ok(())
    }

    /// Its records, for a look at the first ones.
    pub(crate) fn array(&self) -> JsonArray<'_> {
        let array = JsonArray::new(&self.path).pointer(self.pointer);
        self.start.map_or(array, |start| array.embedded_at(start))
    }
}

fn name_of(pointer: &str) -> &str {
    pointer.trim_start_matches('/')
}

/// Whether the root of the file is an object with a list at `pointer`.
fn is_wrapped(bundle: &Bundle, path: &str, pointer: &str) -> Result<bool, ImportError> {
    let name = name_of(pointer);
    for bytes in HEADS {
        let mut held = Ok(false);
        JsonArray::new(path).sample(bundle, bytes, |element| {
            held = if element.index() == 0 { holds_list(&mut element.parser(), name) } else { Ok(false) };
            false
        })?;
        match held {
            // The first element of a list may hold such a list too, as Perplexity's threads do: it is not the root's.
            Ok(true) => {
                return Ok(JsonArray::new(path).pointer(pointer).sample(bundle, bytes, |_| false).is_ok());
            }
            Ok(false) => break,
            // The head ends before the object says what it is.
            Err(_) => {}
        }
    }
    Ok(false)
}

fn holds_list(json: &mut Parser<'_>, name: &str) -> Result<bool, JsonError> {
    if !json.enter_object()? {
        return Ok(false);
    }
    while let Some(key) = json.key()? {
        if key == "mapping" {
            return Ok(false);
        }
        if key == name {
            return Ok(json.kind()? == Json::Array);
        }
    }
    Ok(false)
}

/// Whether a file says nothing: `[]`, `{}`, `{"chats": []}`.
pub(crate) fn holds_nothing(bundle: &Bundle, path: &str) -> bool {
    if bundle.entry(path).is_none_or(|entry| entry.size > EMPTY) {
        return false;
    }
    let Ok(bytes) = bundle.read(path, EMPTY) else { return false };
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    text.retain(|c| !c.is_whitespace());
    matches!(text.as_str(), "" | "[]" | "{}" | "null" | r#"{"chats":[]}"# | r#"{"memories":[]}"#)
}

/// Bytes of the largest file that can hold nothing, white space included.
const EMPTY: u64 = 64;

/// Offset of the list of conversations in the script of a page: `var jsonData = […]`.
fn in_page(bundle: &Bundle, path: &str) -> Result<Option<u64>, ImportError> {
    let mut head = Vec::new();
    bundle.open(path)?.take(PAGE_HEAD).read_to_end(&mut head)?;
    Ok(behind_name(&head, b"jsonData", b'[').map(|at| at as u64))
}

/// The table `pointer → path` of a page, `var assetsJson = {…}`, which stands behind its conversations.
pub(crate) fn assets_in_page(bundle: &Bundle, path: &str) -> Option<String> {
    let mut reader = bundle.open(path).ok()?;
    reader.seek(reader.size().saturating_sub(PAGE_END)).ok()?;
    let mut end = Vec::new();
    reader.take(PAGE_END).read_to_end(&mut end).ok()?;
    let at = behind_name(&end, b"assetsJson", b'{')?;
    Some(String::from_utf8_lossy(end.get(at..)?).into_owned())
}

/// Where the value begins that is given to the variable `name`, if its first byte is `opener`.
fn behind_name(text: &[u8], name: &[u8], opener: u8) -> Option<usize> {
    let mut from = 0;
    while let Some(found) = text.get(from..)?.windows(name.len()).position(|window| window == name) {
        from += found + name.len();
        let rest = text.get(from..)?.trim_ascii_start();
        let Some(value) = rest.strip_prefix(b"=").map(<[u8]>::trim_ascii_start) else { continue };
        if value.first() == Some(&opener) {
            return Some(text.len() - value.len());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_of_a_script_is_found() {
        assert_eq!(behind_name(b"jsonData; var jsonData = [1]", b"jsonData", b'['), Some(25));
        assert_eq!(behind_name(b"var jsonData = {}", b"jsonData", b'['), None);
        assert_eq!(behind_name(b"", b"jsonData", b'['), None);
    }

    #[test]
    fn the_list_may_stand_behind_much_else() {
        let text = format!(r#"{{"about":"{}","conversations":[1]}}"#, "x".repeat(200_000));
        let bundle = Bundle::from_files([("a.json", text.as_str()), ("b.json", r#"[{"conversations":1}]"#)]);
        assert_eq!(is_wrapped(&bundle, "a.json", "conversations"), Ok(true));
        assert_eq!(is_wrapped(&bundle, "b.json", "conversations"), Ok(false));
    }
}
