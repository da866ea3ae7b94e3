//! Where the list of records is in a file: at the root, below a key, or in the script of a page.

use std::io::Read;

use satchel_importer::{
    Bundle, Element, ImportError, JsonArray, JsonError, JsonLists, Parser, RecordKind, Sink, json::Kind,
    names,
};

/// Bytes of a head in which the key of a list is searched. Together with those that detection reads they stay below the
/// 16 MiB that the host allows.
const HEADS: [usize; 2] = [64 * 1024, 2 * 1024 * 1024];
/// Bytes at the head of a page in which its script begins.
const PAGE_HEAD: u64 = 512 * 1024;
/// Bytes at the end of a page that contain the table of its files.
const PAGE_END: u64 = 4 * 1024 * 1024;
/// Bytes of the largest file that can be empty, white space included.
const EMPTY: u64 = 64;

/// The list of records in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordList {
    path: String,
    pointer: &'static str,
    start: Option<u64>,
}

impl RecordList {
    /// The conversations of the file `path`; none for a page without any.
    pub(crate) fn find(bundle: &Bundle, path: &str) -> Result<Option<Self>, ImportError> {
        if !names::has_extension(path, "html") {
            return Self::below(bundle, path, "/conversations").map(Some);
        }
        let start = find_in_page(bundle, path)?;
        Ok(start.map(|start| Self { path: path.to_owned(), pointer: "", start: Some(start) }))
    }

    /// The list at `pointer`, a member of the root, or the root if it has no such list.
    pub(crate) fn below(bundle: &Bundle, path: &str, pointer: &'static str) -> Result<Self, ImportError> {
        let wrapped = is_wrapped(bundle, path, pointer)?;
        Ok(Self { path: path.to_owned(), pointer: if wrapped { pointer } else { "" }, start: None })
    }

    /// Calls `each` with every record, all of which are of `kind`; warns about members beside the list.
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
        let lists = [(key_of(self.pointer), kind)];
        let lists = JsonLists::new(&self.path, &lists);
        let walked = lists.each(bundle, sink, |_, element, sink| each(element, sink))?;
        for name in &walked.others {
            let locator = format!("{}.{name}", self.path);
            sink.warn(&locator, "it stands beside the list that is read; it is not imported");
        }
        walked.warn_of_more_others(&self.path, sink);
        Ok(())
    }

    /// The list as an array, for sampling its first records.
    pub(crate) fn array(&self) -> JsonArray<'_> {
        let array = JsonArray::new(&self.path).pointer(self.pointer);
        self.start.map_or(array, |start| array.embedded_at(start))
    }
}

fn key_of(pointer: &str) -> &str {
    pointer.trim_start_matches('/')
}

/// Whether the root of the file is an object with a list at `pointer`.
fn is_wrapped(bundle: &Bundle, path: &str, pointer: &str) -> Result<bool, ImportError> {
    let key = key_of(pointer);
    for bytes in HEADS {
        let mut wrapped = Ok(false);
        JsonArray::new(path).sample(bundle, bytes, |element| {
            wrapped = if element.index() == 0 { has_list(&mut element.parser(), key) } else { Ok(false) };
            false
        })?;
        match wrapped {
            // The first element of a list may contain such a list too, as Perplexity's threads do: it is not the root's.
            Ok(true) => {
                return Ok(JsonArray::new(path).pointer(pointer).sample(bundle, bytes, |_| false).is_ok());
            }
            Ok(false) => break,
            // The head ends before the key.
            Err(_) => {}
        }
    }
    Ok(false)
}

fn has_list(json: &mut Parser<'_>, name: &str) -> Result<bool, JsonError> {
    if !json.enter_object()? {
        return Ok(false);
    }
    while let Some(key) = json.key()? {
        if key == "mapping" {
            return Ok(false);
        }
        if key == name {
            return Ok(json.kind()? == Kind::Array);
        }
    }
    Ok(false)
}

/// Whether a file has no records: `[]`, `{}`, `{"chats": []}`.
pub(crate) fn is_empty(bundle: &Bundle, path: &str) -> bool {
    if bundle.entry(path).is_none_or(|entry| entry.size > EMPTY) {
        return false;
    }
    let Ok(bytes) = bundle.read(path, EMPTY) else { return false };
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    text.retain(|c| !c.is_whitespace());
    matches!(text.as_str(), "" | "[]" | "{}" | "null" | r#"{"chats":[]}"# | r#"{"memories":[]}"#)
}

/// Offset of the list of conversations in the script of a page: `var jsonData = […]`.
fn find_in_page(bundle: &Bundle, path: &str) -> Result<Option<u64>, ImportError> {
    let mut head = Vec::new();
    bundle.open(path)?.take(PAGE_HEAD).read_to_end(&mut head)?;
    Ok(find_assigned(&head, b"jsonData", b'[').map(|at| at as u64))
}

/// The table `pointer → path` of a page, `var assetsJson = {…}`, which follows its conversations.
pub(crate) fn assets_in_page(bundle: &Bundle, path: &str) -> Option<String> {
    let mut reader = bundle.open(path).ok()?;
    reader.seek(reader.size().saturating_sub(PAGE_END)).ok()?;
    let mut end = Vec::new();
    reader.take(PAGE_END).read_to_end(&mut end).ok()?;
    let at = find_assigned(&end, b"assetsJson", b'{')?;
    Some(String::from_utf8_lossy(end.get(at..)?).into_owned())
}

/// Offset of the value that is assigned to the variable `name` and begins with `opener`.
fn find_assigned(text: &[u8], name: &[u8], opener: u8) -> Option<usize> {
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
    fn assigned_values_are_found_in_scripts() {
        assert_eq!(find_assigned(b"jsonData; var jsonData = [1]", b"jsonData", b'['), Some(25));
        assert_eq!(find_assigned(b"var jsonData = {}", b"jsonData", b'['), None);
        assert_eq!(find_assigned(b"", b"jsonData", b'['), None);
    }

    #[test]
    fn the_list_may_follow_long_members() {
        let text = format!(r#"{{"about":"{}","conversations":[1]}}"#, "x".repeat(200_000));
        let bundle = Bundle::from_files([("a.json", text.as_str()), ("b.json", r#"[{"conversations":1}]"#)]);
        assert_eq!(is_wrapped(&bundle, "a.json", "conversations"), Ok(true));
        assert_eq!(is_wrapped(&bundle, "b.json", "conversations"), Ok(false));
    }
}
