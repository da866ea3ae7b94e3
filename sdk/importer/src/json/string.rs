//! Reads strings: borrowed if nothing is escaped, otherwise decoded into the arena.

use super::{JsonError, Parser};
use crate::simd::{COPY_STEP, copy_plain, plain_length};

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

    /// Continues the string from `start` at its first escape or raw control character.
    fn decode_string(&mut self, start: usize) -> Result<&'a str, JsonError> {
        let plain = self.slice(start, self.at).as_bytes();
        let mut scratch = std::mem::take(&mut self.scratch);
        // Decoded text is never longer than its source, but it is written in steps of fixed size.
        let room = self.text.len() - start + COPY_STEP;
        if scratch.len() < room {
            scratch.resize(room, 0);
        }
        let mut decoded = Decoded { buffer: &mut scratch, length: 0 };
        decoded.push(plain);
        let text =
            self.decode_into(&mut decoded).map(|()| match simdutf8::basic::from_utf8(decoded.bytes()) {
                Ok(text) => &*self.arena.alloc_str(text),
                // Not reached: only whole characters are written.
                Err(_) => &*self.arena.alloc_str(&String::from_utf8_lossy(decoded.bytes())),
            });
        self.scratch = scratch;
        text
    }

    fn decode_into(&mut self, decoded: &mut Decoded<'_>) -> Result<(), JsonError> {
        let bytes = self.text.as_bytes();
        // A local variable stays in a register.
        let mut at = self.at;
        loop {
            // Escapes come in runs: many exports escape everything but ASCII.
            while let Some(unit) = character_escape(bytes, at) {
                decoded.push_unit(unit);
                at += UNICODE_ESCAPE;
            }
            match bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok(());
                }
                Some(b'\\') if let Some(byte) = simple_escape(bytes.get(at + 1)) => {
                    decoded.push_byte(byte);
                    at += 2;
                }
                Some(b'\\') => {
                    self.at = at;
                    let character = self.read_escape()?;
                    self.irregular |= character.is_none();
                    let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
                    decoded.push(character.encode_utf8(&mut [0; 4]).as_bytes());
                    at = self.at;
                }
                Some(&control @ 0..b' ') => {
                    self.irregular = true;
                    decoded.push_byte(control);
                    at += 1;
                }
                Some(_) => {}
                None => {
                    self.at = at;
                    return Err(self.error("the text ends inside a string"));
                }
            }
            let plain = copy_plain(bytes.get(at..).unwrap_or_default(), decoded.room());
            decoded.length += plain;
            at += plain;
        }
    }

    /// Takes the next escape, or a pair of surrogate escapes, and decodes it; none for a lone surrogate.
    pub(super) fn read_escape(&mut self) -> Result<Option<char>, JsonError> {
        match self.text.as_bytes().get(self.at + 1) {
            Some(b'u') => self.read_unicode_escape(),
            letter => {
                let byte = simple_escape(letter).ok_or_else(|| self.error("no such escape"))?;
                self.at += 2;
                Ok(Some(char::from(byte)))
            }
        }
    }

    fn read_unicode_escape(&mut self) -> Result<Option<char>, JsonError> {
        let bytes = self.text.as_bytes();
        let first = unit_at(bytes, self.at).ok_or_else(|| self.error("expected four hex digits"))?;
        self.at += UNICODE_ESCAPE;
        if !(0xd800..0xdc00).contains(&first) {
            return Ok(char::from_u32(first));
        }
        match unit_at(bytes, self.at) {
            Some(second @ 0xdc00..0xe000) => {
                self.at += UNICODE_ESCAPE;
                Ok(char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)))
            }
            // What follows is read as if it stood alone.
            _ => Ok(None),
        }
    }
}

/// The ASCII character of a backslash and `letter`; none for `u`.
#[inline]
pub(super) fn simple_escape(letter: Option<&u8>) -> Option<u8> {
    Some(match letter? {
        b'n' => b'\n',
        byte @ (b'"' | b'\\' | b'/') => *byte,
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 0x8,
        b'f' => 0xc,
        _ => return None,
    })
}

/// Length of `\uXXXX` in bytes.
pub(super) const UNICODE_ESCAPE: usize = 6;

/// The character of the `\uXXXX` at `at`; none if there is no such escape or it is a surrogate.
#[inline]
pub(super) fn character_escape(bytes: &[u8], at: usize) -> Option<u32> {
    unit_at(bytes, at).filter(|unit| !(0xd800..0xe000).contains(unit))
}

/// The code unit of the `\uXXXX` at `at`.
#[inline]
fn unit_at(bytes: &[u8], at: usize) -> Option<u32> {
    let &[b'\\', b'u', a, b, c, d] = bytes.get(at..)?.first_chunk::<UNICODE_ESCAPE>()? else {
        return None;
    };
    let unit = digit(a) << 12 | digit(b) << 8 | digit(c) << 4 | digit(d);
    (unit < NO_DIGIT).then_some(unit)
}

/// Decoded text in a buffer that has room for all of it and for one more [`COPY_STEP`].
struct Decoded<'b> {
    buffer: &'b mut [u8],
    length: usize,
}

impl Decoded<'_> {
    fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }

    #[inline]
    fn room(&mut self) -> &mut [u8] {
        self.buffer.get_mut(self.length..).unwrap_or_default()
    }

    fn push(&mut self, bytes: &[u8]) {
        if let Some(room) = self.room().get_mut(..bytes.len()) {
            room.copy_from_slice(bytes);
            self.length += bytes.len();
        }
    }

    #[inline]
    fn push_byte(&mut self, byte: u8) {
        if let Some(room) = self.room().first_mut() {
            *room = byte;
            self.length += 1;
        }
    }

    /// Appends the character of one code unit as UTF-8.
    #[inline]
    fn push_unit(&mut self, unit: u32) {
        let high = |mark: u32, shift: u32| low_byte(mark | unit >> shift);
        let low = |shift: u32| low_byte(0x80 | unit >> shift & 0x3f);
        let (piece, length) = match unit {
            0..0x80 => ([low_byte(unit), 0, 0, 0], 1),
            0x80..0x800 => ([high(0xc0, 6), low(0), 0, 0], 2),
            _ => ([high(0xe0, 12), low(6), low(0), 0], 3),
        };
        // Always writes four bytes, a single store; the next write overwrites the excess.
        if let Some(room) = self.room().first_chunk_mut() {
            *room = piece;
            self.length += length;
        }
    }
}

#[inline]
fn low_byte(value: u32) -> u8 {
    let [byte, ..] = value.to_le_bytes();
    byte
}

/// The value of a hexadecimal digit.
#[inline]
fn digit(byte: u8) -> u32 {
    DIGITS[usize::from(byte)]
}

/// More than the value of four digits, even if shifted.
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
