//! Values as raw text, and values passed over; both are checked against the grammar.

use super::{
    JsonError, MAX_DEPTH, Parser, State, number,
    string::{UNICODE_ESCAPE, character_escape},
};
use crate::lanes::plain_length;

/// What a walk over a value met.
#[derive(Clone, Copy, Default)]
struct Walked {
    /// A lone surrogate escape, a raw control character, or a number that no double holds: not taken by strict readers.
    odd: bool,
}

impl<'a> Parser<'a> {
    /// Passes over the next value.
    pub fn skip_value(&mut self) -> Result<(), JsonError> {
        self.walk()?;
        self.state = State::Taken;
        Ok(())
    }

    /// The next value verbatim, always valid JSON: what strict parsers refuse inside strings (lone surrogate escapes,
    /// raw control characters) is rewritten, and a number that no double holds is its text in a string.
    pub fn raw_value(&mut self) -> Result<&'a str, JsonError> {
        self.peek();
        let start = self.at;
        let walked = self.walk()?;
        self.state = State::Taken;
        let raw = self.slice(start, self.at);
        Ok(if walked.odd { self.arena.alloc_str(&repair(raw, self.arena)) } else { raw })
    }

    fn walk(&mut self) -> Result<Walked, JsonError> {
        let mut walked = Walked::default();
        // Bit 0 says whether the innermost open container is an object.
        let mut objects: u128 = 0;
        let mut open: u32 = 0;
        loop {
            match self.peek() {
                Some(opener @ (b'{' | b'[')) => {
                    if self.depth + open >= MAX_DEPTH {
                        return Err(self.error("nested too deeply"));
                    }
                    self.at += 1;
                    let object = opener == b'{';
                    if self.peek() != Some(opener + 2) {
                        objects = objects << 1 | u128::from(object);
                        open += 1;
                        if object {
                            self.pass_key(&mut walked)?;
                        }
                        continue;
                    }
                    self.at += 1;
                }
                Some(b'"') => self.pass_string(&mut walked)?,
                Some(b'-' | b'0'..=b'9') => {
                    let start = self.at;
                    self.pass_number()?;
                    walked.odd |= !number::fits(self.slice(start, self.at));
                }
                Some(b't') => self.pass_word("true")?,
                Some(b'f') => self.pass_word("false")?,
                Some(b'n') => self.pass_word("null")?,
                Some(_) => return Err(self.error("expected a value")),
                None => return Err(self.error("the text ends where a value is expected")),
            }
            if !self.pass_behind_value(&mut objects, &mut open, &mut walked)? {
                return Ok(walked);
            }
        }
    }

    /// Passes what stands behind a value up to the next one; false if the outermost value is over.
    fn pass_behind_value(
        &mut self,
        objects: &mut u128,
        open: &mut u32,
        walked: &mut Walked,
    ) -> Result<bool, JsonError> {
        while *open > 0 {
            let object = *objects & 1 == 1;
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    if object {
                        self.pass_key(walked)?;
                    }
                    return Ok(true);
                }
                Some(b'}') if object => {}
                Some(b']') if !object => {}
                Some(_) => return Err(self.error("expected \",\" or the end of the container")),
                None => return Err(self.error("the text ends inside a container")),
            }
            self.at += 1;
            *objects >>= 1;
            *open -= 1;
        }
        Ok(false)
    }

    fn pass_key(&mut self, walked: &mut Walked) -> Result<(), JsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.error("expected a key"));
        }
        self.pass_string(walked)?;
        if self.peek() != Some(b':') {
            return Err(self.error("expected \":\""));
        }
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn pass_string(&mut self, walked: &mut Walked) -> Result<(), JsonError> {
        self.at += 1;
        self.at += plain_length(self.text.as_bytes().get(self.at..).unwrap_or_default());
        if self.byte() == Some(b'"') {
            self.at += 1;
            return Ok(());
        }
        self.pass_odd_string(walked)
    }

    /// Goes on where a string has an escape or a raw control character.
    fn pass_odd_string(&mut self, walked: &mut Walked) -> Result<(), JsonError> {
        loop {
            while character_escape(self.text.as_bytes(), self.at).is_some() {
                self.at += UNICODE_ESCAPE;
            }
            match self.byte() {
                Some(b'\\') => {
                    walked.odd |= self.read_escape()?.is_none();
                    continue;
                }
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(0..b' ') => {
                    walked.odd = true;
                    self.at += 1;
                }
                Some(_) => {}
                None => return Err(self.error("the text ends inside a string")),
            }
            self.at += plain_length(self.text.as_bytes().get(self.at..).unwrap_or_default());
        }
    }

    pub(super) fn pass_word(&mut self, word: &str) -> Result<(), JsonError> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return Err(self.error("expected a value"));
        }
        self.at += word.len();
        Ok(())
    }

    pub(super) fn pass_number(&mut self) -> Result<(), JsonError> {
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        let leading_zero = self.byte() == Some(b'0');
        let whole = self.pass_digits()?;
        if leading_zero && whole > 1 {
            return Err(self.error("a number begins with 0"));
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.pass_digits()?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.pass_digits()?;
        }
        Ok(())
    }

    fn pass_digits(&mut self) -> Result<usize, JsonError> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return Err(self.error("expected a digit"));
        }
        self.at += count;
        Ok(count)
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

/// Rewrites a checked value so that strict parsers take it.
fn repair(raw: &str, arena: &crate::Arena) -> String {
    let mut repaired = String::with_capacity(raw.len());
    let mut json = Parser::new(raw, arena);
    let (mut copied, mut inside) = (0, false);
    while let Some(byte) = json.byte() {
        let start = json.at;
        let rewritten = match byte {
            b'"' => {
                inside = !inside;
                None
            }
            // The value was walked before, so every escape is a good one.
            b'\\' if matches!(json.read_escape(), Ok(None)) => Some("\\ufffd".to_owned()),
            b'-' | b'0'..=b'9' if !inside && json.pass_number().is_ok() => {
                let number = json.slice(start, json.at);
                (!number::fits(number)).then(|| format!("\"{number}\""))
            }
            control @ 0..b' ' if inside => Some(format!("\\u{control:04x}")),
            _ => None,
        };
        if json.at == start {
            json.at += 1;
        }
        if let Some(rewritten) = rewritten {
            repaired.push_str(json.slice(copied, start));
            repaired.push_str(&rewritten);
            copied = json.at;
        }
    }
    repaired.push_str(json.slice(copied, raw.len()));
    repaired
}
