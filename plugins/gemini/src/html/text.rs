//! Text between tags, and the character references in it.

use std::borrow::Cow;

use html5gum::{
    Span, Tokenizer,
    emitters::callback::{CallbackEmitter, CallbackEvent},
};

/// Text between tags. It is decoded only on demand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'e> {
    text: &'e str,
    /// The text is as in the page and may hold character references.
    encoded: bool,
}

/// A part of a decoded text. Each character reference is a part of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TextPart<'e> {
    Plain(&'e str),
    Character(char),
}

impl<'e> Text<'e> {
    pub(super) fn encoded(text: &'e str) -> Self {
        Self { text, encoded: true }
    }

    pub(super) fn decoded(text: &'e str) -> Self {
        Self { text, encoded: false }
    }

    /// Appends the decoded text to `out`.
    pub(crate) fn push_to(self, out: &mut String) {
        out.reserve(self.text.len());
        self.parts(|part| match part {
            TextPart::Plain(text) => out.push_str(text),
            TextPart::Character(character) => out.push(character),
        });
    }

    /// Calls `each` with the parts of the decoded text.
    pub(crate) fn parts(self, mut each: impl FnMut(TextPart<'_>)) {
        let mut rest = self.text;
        while let Some(at) = find_encoded(rest).filter(|_| self.encoded) {
            let (plain, reference) = rest.split_at(at);
            if !plain.is_empty() {
                each(TextPart::Plain(plain));
            }
            let Some((character, behind)) = decode_reference(reference) else {
                return tokenize(reference, |event| {
                    if let CallbackEvent::String { value } = event {
                        each(TextPart::Plain(&utf8_lossy(value)));
                    }
                });
            };
            each(TextPart::Character(character));
            rest = behind;
        }
        if !rest.is_empty() {
            each(TextPart::Plain(rest));
        }
    }
}

/// Runs the HTML5 tokenizer over `html`.
pub(super) fn tokenize(html: &str, mut each: impl FnMut(&CallbackEvent<'_>)) {
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| -> Option<()> {
        each(&event);
        None
    });
    emitter.naively_switch_states(true);
    for step in Tokenizer::new_with_emitter(html, emitter) {
        match step {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }
}

/// Decodes UTF-8, with U+FFFD for invalid bytes. Nearly all input is valid, and checking that first is cheap.
pub(crate) fn utf8_lossy(bytes: &[u8]) -> Cow<'_, str> {
    simdutf8::basic::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Decodes the value of an attribute. Returns `None` for references that [`decode_reference`] does not know.
pub(super) fn decode(text: &str) -> Option<Cow<'_, str>> {
    let Some(first) = find_encoded(text) else { return Some(Cow::Borrowed(text)) };
    let (plain, mut rest) = text.split_at(first);
    let mut decoded = plain.to_owned();
    loop {
        let (character, behind) = decode_reference(rest)?;
        decoded.push(character);
        let (plain, reference) = behind.split_at(find_encoded(behind).unwrap_or(behind.len()));
        decoded.push_str(plain);
        if reference.is_empty() {
            return Some(Cow::Owned(decoded));
        }
        rest = reference;
    }
}

/// The offset of the first byte that the tokenizer may replace.
fn find_encoded(text: &str) -> Option<usize> {
    memchr::memchr3(b'&', b'\r', 0, text.as_bytes())
}

/// Decodes the common references at the start of `text`. Returns the character and the text behind the reference, or
/// `None` if only the tokenizer can decode it.
fn decode_reference(text: &str) -> Option<(char, &str)> {
    /// Bytes in which the end of a reference is searched.
    const MAX_REFERENCE: usize = 10;
    let behind = text.strip_prefix('&')?;
    if !behind.starts_with(|c: char| c == '#' || c.is_ascii_alphanumeric()) {
        return Some(('&', behind));
    }
    let end = behind.bytes().take(MAX_REFERENCE).position(|byte| byte == b';')?;
    let character = match behind.get(..end)? {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        "emsp" => '\u{2003}',
        name => numeric_reference(name.strip_prefix('#')?)?,
    };
    Some((character, behind.get(end + 1..)?))
}

/// The character with this decimal number, unless HTML maps the number to another character.
fn numeric_reference(number: &str) -> Option<char> {
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let code = number.parse().ok().filter(|_| digits)?;
    matches!(code, 0x20..=0x7e | 0xa0..=0xd7ff | 0x1_0000..=0x1_fffd).then(|| char::from_u32(code)).flatten()
}
