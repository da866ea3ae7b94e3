//! Text between tags, and the references in it.

use std::borrow::Cow;

use super::{Event, full};

/// Text between tags, decoded only where it is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'e> {
    text: &'e str,
    /// As it stands in the page, with references.
    encoded: bool,
}

/// A part of a text: a character by itself where a reference stood.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece<'e> {
    Plain(&'e str),
    Character(char),
}

impl<'e> Text<'e> {
    /// As it stands in the page.
    pub(super) fn source(text: &'e str) -> Self {
        Self { text, encoded: true }
    }

    /// Without references.
    pub(super) fn plain(text: &'e str) -> Self {
        Self { text, encoded: false }
    }

    /// Appends the decoded text to `out`.
    pub(crate) fn push_to(self, out: &mut String) {
        out.reserve(self.text.len());
        self.pieces(|piece| match piece {
            Piece::Plain(text) => out.push_str(text),
            Piece::Character(character) => out.push(character),
        });
    }

    /// Hands the decoded text to `each`, in as many pieces as it takes.
    pub(crate) fn pieces(self, mut each: impl FnMut(Piece<'_>)) {
        let mut rest = self.text;
        while let Some(at) = special(rest).filter(|_| self.encoded) {
            let (plain, reference) = rest.split_at(at);
            if !plain.is_empty() {
                each(Piece::Plain(plain));
            }
            let Some((character, behind)) = decode(reference) else {
                return full::walk(reference, &mut |event| {
                    if let Event::Text(text) = event {
                        each(Piece::Plain(text.text));
                    }
                });
            };
            each(Piece::Character(character));
            rest = behind;
        }
        if !rest.is_empty() {
            each(Piece::Plain(rest));
        }
    }
}

/// The value of an attribute; none if it holds what [`decode`] does not know.
pub(super) fn decoded(text: &str) -> Option<Cow<'_, str>> {
    let Some(first) = special(text) else { return Some(Cow::Borrowed(text)) };
    let (plain, mut rest) = text.split_at(first);
    let mut decoded = plain.to_owned();
    loop {
        let (character, behind) = decode(rest)?;
        decoded.push(character);
        let (plain, reference) = behind.split_at(special(behind).unwrap_or(behind.len()));
        decoded.push_str(plain);
        if reference.is_empty() {
            return Some(Cow::Owned(decoded));
        }
        rest = reference;
    }
}

/// Where text begins that does not stand for itself.
fn special(text: &str) -> Option<usize> {
    memchr::memchr3(b'&', b'\r', 0, text.as_bytes())
}

/// The character for which the reference at the front of `text` stands, and what is behind it; none where that takes
/// the long list of names and exceptions.
fn decode(text: &str) -> Option<(char, &str)> {
    /// Bytes in which the end of a reference is looked for.
    const LONGEST: usize = 10;
    let behind = text.strip_prefix('&')?;
    if !behind.starts_with(|c: char| c == '#' || c.is_ascii_alphanumeric()) {
        return Some(('&', behind));
    }
    let end = behind.bytes().take(LONGEST).position(|byte| byte == b';')?;
    let character = match behind.get(..end)? {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        "emsp" => '\u{2003}',
        name => numbered(name.strip_prefix('#')?)?,
    };
    Some((character, behind.get(end + 1..)?))
}

/// Characters that are exactly what their number says.
fn numbered(number: &str) -> Option<char> {
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let code = number.parse().ok().filter(|_| digits)?;
    matches!(code, 0x20..=0x7e | 0xa0..=0xd7ff | 0x1_0000..=0x1_fffd).then(|| char::from_u32(code)).flatten()
}
