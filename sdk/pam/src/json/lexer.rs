//! A pull reader of JSON: one token at a time, without recursion.

use std::borrow::Cow;

use super::{JsonError, Problem};

/// A token of a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    BeginObject,
    EndObject,
    BeginArray,
    EndArray,
    Key(Quoted<'a>),
    String(Quoted<'a>),
    Number(&'a str),
    Bool(bool),
    Null,
}

/// A string as written, without its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quoted<'a> {
    pub(crate) text: &'a str,
    pub(crate) escaped: bool,
}

pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Open objects (true) and arrays (false).
    open: Vec<bool>,
    expect: Expect,
    limit: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    CommaOrEnd,
    Done,
}

impl<'a> Lexer<'a> {
    /// `limit` is the maximum nesting of objects and arrays.
    pub(crate) fn new(text: &'a str, limit: usize) -> Self {
        Self { text, at: 0, open: Vec::new(), expect: Expect::Value, limit }
    }

    /// Bytes read so far.
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// The next token; none at the end of the text.
    pub(crate) fn next(&mut self) -> Result<Option<Token<'a>>, JsonError> {
        self.skip_space();
        if self.expect == Expect::CommaOrEnd && self.peek() == Some(b',') {
            self.at += 1;
            self.expect = if self.in_object() { Expect::Key } else { Expect::Value };
            self.skip_space();
        }
        let Some(byte) = self.peek() else {
            return if self.expect == Expect::Done { Ok(None) } else { Err(self.error(Problem::CutOff)) };
        };
        match (self.expect, byte) {
            (Expect::KeyOrEnd | Expect::CommaOrEnd, b'}') if self.in_object() => {
                Ok(Some(self.end(Token::EndObject)))
            }
            (Expect::ValueOrEnd | Expect::CommaOrEnd, b']') if !self.in_object() => {
                Ok(Some(self.end(Token::EndArray)))
            }
            (Expect::Key | Expect::KeyOrEnd, b'"') => self.key().map(Some),
            (Expect::Value | Expect::ValueOrEnd, _) => self.value(byte).map(Some),
            (Expect::Key | Expect::KeyOrEnd, _) => Err(self.error(Problem::Expected("a key in quotes"))),
            (Expect::CommaOrEnd, _) => Err(self.error(Problem::Expected("a comma or the end"))),
            (Expect::Done, _) => Err(self.error(Problem::Expected("the end of the text"))),
        }
    }

    pub(crate) fn error(&self, problem: Problem) -> JsonError {
        JsonError { offset: self.at, problem }
    }

    fn in_object(&self) -> bool {
        self.open.last().copied().unwrap_or(false)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn value(&mut self, first: u8) -> Result<Token<'a>, JsonError> {
        match first {
            b'{' => self.begin(Token::BeginObject, true),
            b'[' => self.begin(Token::BeginArray, false),
            b'"' => {
                let quoted = self.quoted()?;
                Ok(self.scalar(Token::String(quoted)))
            }
            b'-' | b'0'..=b'9' => {
                let number = self.number()?;
                Ok(self.scalar(Token::Number(number)))
            }
            b't' => self.word("true", Token::Bool(true)),
            b'f' => self.word("false", Token::Bool(false)),
            b'n' => self.word("null", Token::Null),
            b'N' | b'I' => Err(self.error(Problem::NotANumber)),
            _ => Err(self.error(Problem::Expected("a value"))),
        }
    }

    fn begin(&mut self, token: Token<'a>, object: bool) -> Result<Token<'a>, JsonError> {
        if self.open.len() == self.limit {
            return Err(self.error(Problem::Depth(self.limit)));
        }
        self.at += 1;
        self.open.push(object);
        self.expect = if object { Expect::KeyOrEnd } else { Expect::ValueOrEnd };
        Ok(token)
    }

    fn end(&mut self, token: Token<'a>) -> Token<'a> {
        self.at += 1;
        self.open.pop();
        self.scalar(token)
    }

    /// Sets what may follow a complete value: more of the same container, or the end.
    fn scalar(&mut self, token: Token<'a>) -> Token<'a> {
        self.expect = if self.open.is_empty() { Expect::Done } else { Expect::CommaOrEnd };
        token
    }

    fn word(&mut self, word: &'static str, token: Token<'a>) -> Result<Token<'a>, JsonError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.error(Problem::Expected("a value")));
        }
        self.at += word.len();
        Ok(self.scalar(token))
    }

    fn key(&mut self) -> Result<Token<'a>, JsonError> {
        let quoted = self.quoted()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            let problem = if self.peek().is_none() { Problem::CutOff } else { Problem::Expected("a colon") };
            return Err(self.error(problem));
        }
        self.at += 1;
        self.expect = Expect::Value;
        Ok(Token::Key(quoted))
    }

    fn quoted(&mut self) -> Result<Quoted<'a>, JsonError> {
        self.at += 1;
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut escaped = false;
        loop {
            self.at += plain_length(&bytes[self.at..]);
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(self.error(Problem::Control)),
                None => return Err(self.error(Problem::CutOff)),
            }
        }
        let text = &self.text[start..self.at];
        self.at += 1;
        Ok(Quoted { text, escaped })
    }

    fn escape(&mut self) -> Result<(), JsonError> {
        let bytes = self.text.as_bytes();
        match bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => match bytes.get(self.at + 2..self.at + 6) {
                Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => self.at += 6,
                Some(_) => return Err(self.error(Problem::Escape)),
                None => return Err(self.error(Problem::CutOff)),
            },
            Some(_) => return Err(self.error(Problem::Escape)),
            None => return Err(self.error(Problem::CutOff)),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<&'a str, JsonError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            Some(b'I') => return Err(self.error(Problem::NotANumber)),
            _ => return Err(self.error(Problem::Expected("a digit"))),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        let number = &self.text[start..self.at];
        // Only a number with an exponent or at least 309 digits can exceed the range of a double.
        let check_range = number.len() > 300 || number.bytes().any(|byte| byte | 0x20 == b'e');
        if check_range && !number.parse::<f64>().is_ok_and(f64::is_finite) {
            return Err(JsonError { offset: start, problem: Problem::NumberRange });
        }
        Ok(number)
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { Err(self.error(Problem::Expected("a digit"))) } else { Ok(()) }
    }
}

impl<'a> Quoted<'a> {
    /// The string with its escapes decoded; a lone surrogate becomes U+FFFD and sets `lone`.
    pub(crate) fn decode(self, lone: &mut bool) -> Cow<'a, str> {
        if !self.escaped {
            return Cow::Borrowed(self.text);
        }
        let mut out = String::with_capacity(self.text.len());
        let mut rest = self.text;
        while let Some(at) = rest.find('\\') {
            out.push_str(&rest[..at]);
            let (c, length) = unescape(&rest[at..]);
            *lone |= c.is_none();
            out.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
            rest = &rest[at + length..];
        }
        out.push_str(rest);
        Cow::Owned(out)
    }

    /// Byte offsets in `text` of the escapes of lone surrogates, six bytes each.
    pub(crate) fn lone_surrogates(self) -> impl Iterator<Item = usize> {
        let mut at = 0;
        std::iter::from_fn(move || {
            while let Some(found) =
                self.text.get(at..).filter(|_| self.escaped).and_then(|rest| rest.find('\\'))
            {
                let place = at + found;
                let (c, length) = unescape(&self.text[place..]);
                at = place + length;
                if c.is_none() {
                    return Some(place);
                }
            }
            None
        })
    }
}

/// The character of the escape at the start of `text`, none if it is a lone surrogate, and its length in bytes.
fn unescape(text: &str) -> (Option<char>, usize) {
    let simple = match text.as_bytes().get(1) {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => {
            let high = unit(text);
            let low = text.get(6..).filter(|rest| rest.starts_with("\\u")).and_then(unit);
            let pair = char::decode_utf16([high, low].into_iter().flatten()).next();
            return match pair {
                Some(Ok(c)) => (Some(c), if c.len_utf16() == 2 { 12 } else { 6 }),
                _ => (None, 6),
            };
        }
        Some(other) => char::from(*other),
        None => char::REPLACEMENT_CHARACTER,
    };
    (Some(simple), 2)
}

/// The code unit of a `\uXXXX` at the start of `text`.
fn unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.get(2..6)?, 16).ok()
}

/// How many bytes at the start of `bytes` need no escape in a string.
pub(crate) fn plain_length(bytes: &[u8]) -> usize {
    let (words, tail) = bytes.as_chunks::<WORD>();
    for (index, word) in words.iter().enumerate() {
        let special = special(u64::from_le_bytes(*word));
        if special != 0 {
            return index * WORD + special.trailing_zeros() as usize / 8;
        }
    }
    let plain = tail.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..b' ')).count();
    bytes.len() - tail.len() + plain
}

/// Bytes that are tested at once.
const WORD: usize = 8;
/// The value 1 in each byte.
const ONES: u64 = u64::MAX / 0xff;

/// Sets the high bit of the lowest byte of `word` that needs an escape. Higher bits are unreliable, because the subtraction
/// borrows.
fn special(word: u64) -> u64 {
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, b' ') | equal(b'"') | equal(b'\\')) & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_length_stops_at_each_special_byte_wherever_it_stands() {
        for filler in [b' ', b'#', b'[', b']', 0x7f, 0x80, 0xa2, 0xff] {
            for length in 0..40 {
                let mut bytes = vec![filler; length];
                assert_eq!(plain_length(&bytes), length);
                for at in 0..length {
                    for special in (0..b' ').chain([b'"', b'\\']) {
                        bytes[at] = special;
                        assert_eq!(plain_length(&bytes), at, "{special} at {at} among {filler}");
                    }
                    bytes[at] = filler;
                }
            }
        }
    }
}
