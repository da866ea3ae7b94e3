//! Strings: borrowed where nothing is escaped, decoded into the arena otherwise.

use super::{JsonError, Parser};
use crate::lanes::plain_length;

impl<'a> Parser<'a> {
    /// The string whose opening quote is next.
    #[inline]
    pub(super) fn read_string(&mut self) -> Result<&'a str, JsonError> {
        let start = self.at + 1;
        self.at = start + plain_length(self.text.as_bytes().get(start..).unwrap_or_default());
        match self.text.as_bytes().get(self.at) {
            Some(b'"') => {
                let text = self.slice(start, self.at);
                self.at += 1;
                Ok(text)
            }
            Some(_) => self.decode_string(start),
            None => Err(self.error("the text ends inside a string")),
        }
    }

    /// Goes on with the string from `start` at the first escape or raw control character.
    fn decode_string(&mut self, start: usize) -> Result<&'a str, JsonError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.push_str(self.slice(start, self.at));
        let decoded = self.decode_into(&mut scratch).map(|()| &*self.arena.alloc_str(&scratch));
        self.scratch = scratch;
        decoded
    }

    fn decode_into(&mut self, decoded: &mut String) -> Result<(), JsonError> {
        loop {
            // Escapes come in runs: many exports write all but ASCII so.
            while self.text.as_bytes().get(self.at) == Some(&b'\\') {
                decoded.push(self.read_escape()?.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            match self.text.as_bytes().get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(&control @ 0..b' ') => {
                    decoded.push(char::from(control));
                    self.at += 1;
                }
                Some(_) => {}
                None => return Err(self.error("the text ends inside a string")),
            }
            let start = self.at;
            self.at += plain_length(self.text.as_bytes().get(start..).unwrap_or_default());
            decoded.push_str(self.slice(start, self.at));
        }
    }

    /// The character of the escape that is next, a pair of surrogate escapes together; none for a lone surrogate.
    #[inline]
    pub(super) fn read_escape(&mut self) -> Result<Option<char>, JsonError> {
        let letter = self.text.as_bytes().get(self.at + 1);
        let simple = match letter {
            Some(b'n') => '\n',
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'u') => return self.read_unicode_escape(),
            _ => return Err(self.error("no such escape")),
        };
        self.at += 2;
        Ok(Some(simple))
    }

    #[inline]
    fn read_unicode_escape(&mut self) -> Result<Option<char>, JsonError> {
        let first = self.hex_at(self.at).ok_or_else(|| self.error("expected four hex digits"))?;
        self.at += 6;
        if !(0xd800..0xdc00).contains(&first) {
            return Ok(char::from_u32(first));
        }
        match self.hex_at(self.at) {
            Some(second @ 0xdc00..0xe000) => {
                self.at += 6;
                Ok(char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)))
            }
            // Whatever follows stands for itself.
            _ => Ok(None),
        }
    }

    /// The code unit of `\uXXXX` at `at`.
    #[inline]
    fn hex_at(&self, at: usize) -> Option<u32> {
        let &[b'\\', b'u', a, b, c, d] = self.text.as_bytes().get(at..)?.first_chunk::<6>()? else {
            return None;
        };
        let unit = digit(a) << 12 | digit(b) << 8 | digit(c) << 4 | digit(d);
        (unit < NO_DIGIT).then_some(unit)
    }
}

/// What a hexadecimal digit stands for.
#[inline]
fn digit(byte: u8) -> u32 {
    DIGITS[usize::from(byte)]
}

/// More than four digits can make, shifted or not.
const NO_DIGIT: u32 = 0x1_0000;

const DIGITS: [u32; 256] = {
    let mut digits = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 16 {
        let letter = b"0123456789abcdef"[value as usize];
        digits[letter as usize] = value;
        digits[letter.to_ascii_uppercase() as usize] = value;
        value += 1;
    }
    digits
};
