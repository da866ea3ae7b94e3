//! Tags in the syntax that nearly all pages use.

use std::borrow::Cow;

use super::text::{Text, decode};

/// One step of a walk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event<'e> {
    /// A start tag; its name is in lower case.
    Open(&'e str, &'e Attributes<'e>),
    /// An end tag.
    Close(&'e str),
    /// Text outside scripts and styles. The text between two tags may come in several parts.
    Text(Text<'e>),
}

/// The name of a tag.
pub(super) enum Tag<'h> {
    Open(&'h str),
    Close(&'h str),
}

/// The attributes of one tag.
#[derive(Debug, Default)]
pub(crate) struct Attributes<'h>(Vec<(Cow<'h, str>, Cow<'h, str>)>);

impl<'h> Attributes<'h> {
    /// The value of the attribute `name` (lower case).
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_ref())
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn push(&mut self, name: Cow<'h, str>, value: Cow<'h, str>) {
        self.0.push((name, value));
    }

    pub(super) fn set_last(&mut self, value: Cow<'h, str>) {
        if let Some((_, last)) = self.0.last_mut() {
            *last = value;
        }
    }
}

/// Reads the tag at the start of `html` and its attributes. Returns the tag and the HTML behind it, or `None` if only the
/// tokenizer can read the tag.
pub(super) fn read<'h>(html: &'h str, attributes: &mut Attributes<'h>) -> Option<(Tag<'h>, &'h str)> {
    let inside = html.strip_prefix('<')?;
    if let Some(inside) = inside.strip_prefix('/') {
        let (name, rest) = name(inside)?;
        return Some((Tag::Close(name), trim_space(rest).strip_prefix('>')?));
    }
    let (tag, mut rest) = name(inside)?;
    if switches_tokenizer(tag) {
        return None;
    }
    attributes.clear();
    loop {
        let next = trim_space(rest);
        if let Some(behind) = next.strip_prefix('>').or_else(|| next.strip_prefix("/>")) {
            return Some((Tag::Open(tag), behind));
        }
        if next.len() == rest.len() {
            return None;
        }
        let (key, behind) = name(next)?;
        let (value, behind) = match behind.strip_prefix('=') {
            Some(quoted) => value(quoted)?,
            None => (Cow::Borrowed(""), behind),
        };
        attributes.push(Cow::Borrowed(key), value);
        rest = behind;
    }
}

/// Whether the text behind the tag is not plain HTML.
fn switches_tokenizer(tag: &str) -> bool {
    matches!(
        tag,
        "script"
            | "style"
            | "title"
            | "textarea"
            | "plaintext"
            | "iframe"
            | "xmp"
            | "noembed"
            | "noframe"
            | "noscript"
    )
}

/// Splits off a name in lower case.
fn name(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let end = bytes.iter().position(|byte| !matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))?;
    bytes.first().filter(|byte| byte.is_ascii_lowercase())?;
    text.split_at_checked(end)
}

/// Splits off a value in quotes.
fn value(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let quote = *text.as_bytes().first().filter(|byte| matches!(byte, b'"' | b'\''))?;
    let inside = text.get(1..)?;
    let end = memchr::memchr(quote, inside.as_bytes())?;
    Some((decode(inside.get(..end)?)?, inside.get(end + 1..)?))
}

fn trim_space(text: &str) -> &str {
    text.trim_start_matches([' ', '\n', '\t', '\u{c}'])
}
