//! Canvas documents, replayed: what stood on the canvas after each call that created or changed one.

use std::rc::Rc;

use regex_lite::{Regex, RegexBuilder};
use satchel_importer::{Arena, Message, ToolInput, json::Object};

use crate::textdoc;

/// What the names of canvas calls begin with.
pub(crate) const TOOL: &str = "canmore.";
const CREATE: &str = "canmore.create_textdoc";
const UPDATE: &str = "canmore.update_textdoc";
/// Calls of one conversation that are replayed.
const MOST_CALLS: usize = 1000;
/// Bytes of documents that one conversation may come to; each change writes its document anew.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of a pattern times bytes of the document that it is looked for in.
const MOST_WORK: usize = 20_000_000;
/// Bytes of a compiled pattern.
const PATTERN_SIZE: usize = 256 * 1024;

/// A document as it stood after one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Document {
    kind: String,
    text: String,
}

/// Whether a tool creates or changes documents.
pub(crate) fn writes(tool: &str) -> bool {
    matches!(tool, CREATE | UPDATE)
}

/// Puts the documents into the messages of the calls `calls`; `above` gives for each the call, by its place among them, whose
/// document it changes.
pub(crate) fn replay(messages: &mut [Message<'_>], calls: &[usize], above: impl Fn(usize) -> Option<usize>) {
    let calls = calls.get(..MOST_CALLS).unwrap_or(calls);
    // What stands on the canvas after each call; a change that fails leaves it as it was.
    let mut canvas: Vec<Option<State>> = vec![None; calls.len()];
    let (mut left, mut bytes) = ((0..calls.len()).collect::<Vec<_>>(), 0);
    loop {
        let before = left.len();
        left.retain(|&number| {
            let base = match above(number).and_then(|base| canvas.get(base)) {
                // The call that it changes comes later in the file: its turn comes.
                Some(None) => return true,
                Some(Some(state)) => state.clone(),
                None => None,
            };
            let message = calls.get(number).and_then(|at| messages.get_mut(*at));
            let document = message.as_deref().and_then(|call| after(call, base.as_deref()));
            bytes += document.as_ref().map_or(0, |document| document.text.len());
            let document = document.filter(|_| bytes <= MOST_BYTES);
            if let (Some(document), Some(message)) = (&document, message) {
                message.content.get_or_insert_with(|| {
                    textdoc::content(document.text.clone().into(), Some(&document.kind))
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

/// What stands on the canvas, if anything.
type State = Option<Rc<Document>>;

/// What a call makes of the document `base`.
fn after(call: &Message<'_>, base: Option<&Document>) -> Option<Document> {
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
                document.text =
                    changed(&document.text, pattern, replacement, update.get("multiple").is_true())?;
            }
            Some(document)
        }
        _ => None,
    }
}

/// `text` after one change; none if the pattern is not found or not understood.
fn changed(text: &str, pattern: &str, replacement: &str, multiple: bool) -> Option<String> {
    // The usual change: all of it anew, word for word.
    if matches!(pattern, ".*" | "(?s).*" | "^.*$" | "[\\s\\S]*") {
        return Some(replacement.to_owned());
    }
    if !pattern.contains(['\\', '.', '+', '*', '?', '(', ')', '|', '[', ']', '{', '}', '^', '$']) {
        let count = if multiple { usize::MAX } else { 1 };
        return text.contains(pattern).then(|| text.replacen(pattern, replacement, count));
    }
    if pattern.len().saturating_mul(text.len()) > MOST_WORK {
        return None;
    }
    let mut builder = RegexBuilder::new(pattern);
    let regex = builder.dot_matches_new_line(true).size_limit(PATTERN_SIZE).build().ok()?;
    replaced(text, &regex, replacement, multiple)
}

fn replaced(text: &str, regex: &Regex, replacement: &str, multiple: bool) -> Option<String> {
    let (mut out, mut end) = (String::with_capacity(text.len()), 0);
    for captures in regex.captures_iter(text).take(if multiple { usize::MAX } else { 1 }) {
        let whole = captures.get(0)?;
        out.push_str(text.get(end..whole.start())?);
        expand(replacement, |group| captures.get(group).map_or("", |found| found.as_str()), &mut out);
        end = whole.end();
        if out.len() > MOST_BYTES {
            return None;
        }
    }
    if end == 0 && out.is_empty() && !regex.is_match(text) {
        return None;
    }
    out.push_str(text.get(end..)?);
    Some(out)
}

/// `\1` stands for a group, as in Python.
fn expand<'g>(replacement: &str, group: impl Fn(usize) -> &'g str, out: &mut String) {
    let mut rest = replacement;
    while let Some(at) = rest.find('\\') {
        let (before, mark) = rest.split_at(at);
        out.push_str(before);
        let digit = mark.as_bytes().get(1).filter(|byte| byte.is_ascii_digit());
        if let Some(digit) = digit {
            out.push_str(group(usize::from(digit - b'0')));
            rest = &mark[2..];
        } else {
            out.push('\\');
            rest = &mark[1..];
        }
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_those_of_the_canvas() {
        let once = |text, pattern, replacement| changed(text, pattern, replacement, false);
        assert_eq!(once("a\nb", ".*", r"print('\n')").as_deref(), Some(r"print('\n')"));
        assert_eq!(once("tea, tea", "tea", "rye").as_deref(), Some("rye, tea"));
        assert_eq!(changed("tea, tea", "tea", "rye", true).as_deref(), Some("rye, rye"));
        assert_eq!(once("x = 1\ny = 2", r"(\w) = 2", r"\1 = 3").as_deref(), Some("x = 1\ny = 3"));
        assert_eq!(changed("a1b2", r"\d", "-", true).as_deref(), Some("a-b-"));
        assert_eq!(once("abc", "z+", "y"), None, "nothing is found");
        assert_eq!(once("abc", "(", "y"), None, "no pattern");
        assert_eq!(once("abc", r"(?=b)", "y"), None, "not understood");
    }
}
