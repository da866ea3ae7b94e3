//! Canvas documents: the state of the canvas after each call that created or changed one.

use std::{borrow::Cow, rc::Rc};

use regex_lite::{Regex, RegexBuilder};
use satchel_importer::{Arena, Content, Message, Part, PartKind, ToolInput, json::Object};

/// Prefix of canvas tools.
pub(crate) const TOOL: &str = "canmore.";
const CREATE: &str = "canmore.create_textdoc";
const UPDATE: &str = "canmore.update_textdoc";
/// Calls of one conversation that are replayed.
const MAX_CALLS: usize = 1000;
/// Bytes of all document versions in one conversation; each change makes a new version.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of a pattern times bytes of the document in which it is searched.
const MAX_WORK: usize = 20_000_000;
/// Bytes of a compiled pattern.
const MAX_PATTERN: usize = 256 * 1024;

/// A document after one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Document {
    kind: String,
    text: String,
}

/// The document on the canvas, if any.
type State = Option<Rc<Document>>;

/// The text of a document of the type `kind`: prose, or code of a language.
pub(crate) fn document_content<'a>(text: Cow<'a, str>, kind: Option<&str>) -> Content<'a> {
    let Some(language) = kind.and_then(|kind| kind.strip_prefix("code")) else { return Content::Text(text) };
    let language = language.trim_start_matches('/');
    Content::Multipart(vec![Part {
        kind: PartKind::Code,
        text: Some(text),
        language: (!language.is_empty()).then(|| Cow::Owned(language.to_owned())),
        ..Part::default()
    }])
}

/// Whether a tool creates or changes documents.
pub(crate) fn is_edit(tool: &str) -> bool {
    matches!(tool, CREATE | UPDATE)
}

/// Adds the resulting document to the message of each of the `calls`. `above` maps the index of a call to that of the call whose
/// document it changes.
pub(crate) fn replay(messages: &mut [Message<'_>], calls: &[usize], above: impl Fn(usize) -> Option<usize>) {
    let calls = calls.get(..MAX_CALLS).unwrap_or(calls);
    // The state after each call; a failed change keeps the state before it.
    let mut canvas: Vec<Option<State>> = vec![None; calls.len()];
    let (mut left, mut bytes) = ((0..calls.len()).collect::<Vec<_>>(), 0);
    loop {
        let before = left.len();
        left.retain(|&number| {
            let base = match above(number).and_then(|base| canvas.get(base)) {
                // The call above comes later in the file and is not replayed yet.
                Some(None) => return true,
                Some(Some(state)) => state.clone(),
                None => None,
            };
            let message = calls.get(number).and_then(|at| messages.get_mut(*at));
            let document = message.as_deref().and_then(|call| apply_call(call, base.as_deref()));
            bytes += document.as_ref().map_or(0, |document| document.text.len());
            let document = document.filter(|_| bytes <= MAX_BYTES);
            if let (Some(document), Some(message)) = (&document, message) {
                message.content.get_or_insert_with(|| {
                    document_content(document.text.clone().into(), Some(&document.kind))
                });
            }
            canvas[number] = Some(document.map(Rc::new).or(base));
            false
        });
        if left.len() == before || left.is_empty() {
            return;
        }
    }
}

/// The document after a call on `base`.
fn apply_call(call: &Message<'_>, base: Option<&Document>) -> Option<Document> {
    let call = call.tool_calls.first()?;
    let Some(ToolInput::Object(input)) = &call.input else { return None };
    let arena = Arena::new();
    let input = Object::parse(input, &arena);
    match call.name.as_ref() {
        CREATE => Some(Document {
            kind: input.text("type").unwrap_or("document").to_owned(),
            text: input.text("content")?.to_owned(),
        }),
        UPDATE => {
            let mut document = base?.clone();
            for update in input.objects("updates", &arena) {
                let pattern = update.text("pattern")?;
                let replacement = update.get("replacement").text()?;
                let multiple = update.get("multiple").is_true();
                document.text = apply_update(&document.text, pattern, replacement, multiple)?;
            }
            Some(document)
        }
        _ => None,
    }
}

/// `text` after one update; none if the pattern does not match or is not supported.
fn apply_update(text: &str, pattern: &str, replacement: &str, multiple: bool) -> Option<String> {
    // The usual update replaces the whole text literally.
    if matches!(pattern, ".*" | "(?s).*" | "^.*$" | "[\\s\\S]*") {
        return Some(replacement.to_owned());
    }
    if !pattern.contains(['\\', '.', '+', '*', '?', '(', ')', '|', '[', ']', '{', '}', '^', '$']) {
        let count = if multiple { usize::MAX } else { 1 };
        return text.contains(pattern).then(|| text.replacen(pattern, replacement, count));
    }
    if pattern.len().saturating_mul(text.len()) > MAX_WORK {
        return None;
    }
    let mut builder = RegexBuilder::new(pattern);
    let regex = builder.dot_matches_new_line(true).size_limit(MAX_PATTERN).build().ok()?;
    replace_matches(text, &regex, replacement, multiple)
}

fn replace_matches(text: &str, regex: &Regex, replacement: &str, multiple: bool) -> Option<String> {
    let (mut out, mut end) = (String::with_capacity(text.len()), 0);
    for captures in regex.captures_iter(text).take(if multiple { usize::MAX } else { 1 }) {
        let whole = captures.get(0)?;
        out.push_str(text.get(end..whole.start())?);
        expand(replacement, |group| captures.get(group).map_or("", |found| found.as_str()), &mut out);
        end = whole.end();
        if out.len() > MAX_BYTES {
            return None;
        }
    }
    if end == 0 && out.is_empty() && !regex.is_match(text) {
        return None;
    }
    out.push_str(text.get(end..)?);
    Some(out)
}

/// Appends `replacement`, in which `\1` is a group as in Python.
fn expand<'g>(replacement: &str, group: impl Fn(usize) -> &'g str, out: &mut String) {
    let mut rest = replacement;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let digit = escape.as_bytes().get(1).filter(|byte| byte.is_ascii_digit());
        if let Some(digit) = digit {
            out.push_str(group(usize::from(digit - b'0')));
            rest = &escape[2..];
        } else {
            out.push('\\');
            rest = &escape[1..];
        }
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_match_those_of_the_canvas() {
        let once = |text, pattern, replacement| apply_update(text, pattern, replacement, false);
        assert_eq!(once("a\nb", ".*", r"print('\n')").as_deref(), Some(r"print('\n')"));
        assert_eq!(once("tea, tea", "tea", "rye").as_deref(), Some("rye, tea"));
        assert_eq!(apply_update("tea, tea", "tea", "rye", true).as_deref(), Some("rye, rye"));
        assert_eq!(once("x = 1\ny = 2", r"(\w) = 2", r"\1 = 3").as_deref(), Some("x = 1\ny = 3"));
        assert_eq!(apply_update("a1b2", r"\d", "-", true).as_deref(), Some("a-b-"));
        assert_eq!(once("abc", "z+", "y"), None, "no match");
        assert_eq!(once("abc", "(", "y"), None, "invalid pattern");
        assert_eq!(once("abc", r"(?=b)", "y"), None, "unsupported");
    }
}
