//! Reads values as raw text and skips values; both check the grammar.

use super::{
    JsonError, MAX_DEPTH, Parser, State, number,
    string::{UNICODE_ESCAPE, character_escape, simple_escape},
};
use crate::simd::{plain_length, plain_length_between};

impl<'a> Parser<'a> {
    /// Skips the next value.
    pub fn skip_value(&mut self) -> Result<(), JsonError> {
        self.walk()?;
        self.state = State::Taken;
        Ok(())
    }

    /// Takes the next value as JSON text. It is verbatim except for what strict parsers refuse: lone surrogate escapes and
    /// raw control characters in strings are rewritten, and a number out of the range of a double becomes a string.
    pub fn raw_value(&mut self) -> Result<&'a str, JsonError> {
        self.peek();
        let start = self.at;
        let irregular = self.walk()?;
        self.irregular |= irregular;
        self.state = State::Taken;
        let raw = self.slice(start, self.at);
        Ok(if irregular { self.arena.alloc_str(&repair(raw, self.arena)) } else { raw })
    }

    /// Skips a value; true if it is irregular: it has a lone surrogate escape, a raw control character, or a number out of the
    /// range of a double.
    fn walk(&mut self) -> Result<bool, JsonError> {
        let mut irregular = false;
        // Bit 0: whether the innermost open container is an object.
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
                            self.skip_key(&mut irregular)?;
                        }
                        continue;
                    }
                    self.at += 1;
                }
                Some(b'"') => self.skip_string(&mut irregular)?,
                Some(b'-' | b'0'..=b'9') => {
                    let start = self.at;
                    self.skip_number()?;
                    irregular |= !number::fits(self.slice(start, self.at));
                }
                Some(b't') => self.skip_literal("true")?,
                Some(b'f') => self.skip_literal("false")?,
                Some(b'n') => self.skip_literal("null")?,
                Some(_) => return Err(self.error("expected a value")),
                None => return Err(self.error("the text ends where a value is expected")),
            }
            if !self.next_value(&mut objects, &mut open, &mut irregular)? {
                return Ok(irregular);
            }
        }
    }

    /// Skips from the end of a value to the next one; false at the end of the outermost value.
    fn next_value(
        &mut self,
        objects: &mut u128,
        open: &mut u32,
        irregular: &mut bool,
    ) -> Result<bool, JsonError> {
        while *open > 0 {
            let object = *objects & 1 == 1;
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    if object {
                        self.skip_key(irregular)?;
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

    fn skip_key(&mut self, irregular: &mut bool) -> Result<(), JsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.error("expected a key"));
        }
        self.skip_string(irregular)?;
        if self.peek() != Some(b':') {
            return Err(self.error("expected \":\""));
        }
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn skip_string(&mut self, irregular: &mut bool) -> Result<(), JsonError> {
        self.at += 1;
        self.at += plain_length(self.text.as_bytes().get(self.at..).unwrap_or_default());
        if self.byte() == Some(b'"') {
            self.at += 1;
            return Ok(());
        }
        self.skip_escaped_string(irregular)
    }

    /// Continues a string at its first escape or raw control character.
    fn skip_escaped_string(&mut self, irregular: &mut bool) -> Result<(), JsonError> {
        let bytes = self.text.as_bytes();
        // A local variable stays in a register.
        let mut at = self.at;
        loop {
            while character_escape(bytes, at).is_some() {
                at += UNICODE_ESCAPE;
            }
            match bytes.get(at) {
                Some(b'\\') if simple_escape(bytes.get(at + 1)).is_some() => at += 2,
                Some(b'\\') => {
                    self.at = at;
                    *irregular |= self.read_escape()?.is_none();
                    at = self.at;
                }
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok(());
                }
                Some(0..b' ') => {
                    *irregular = true;
                    at += 1;
                }
                Some(_) => {}
                None => {
                    self.at = at;
                    return Err(self.error("the text ends inside a string"));
                }
            }
            at += plain_length_between(bytes.get(at..).unwrap_or_default());
        }
    }

    pub(super) fn skip_literal(&mut self, word: &str) -> Result<(), JsonError> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return Err(self.error("expected a value"));
        }
        self.at += word.len();
        Ok(())
    }

    pub(super) fn skip_number(&mut self) -> Result<(), JsonError> {
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        let leading_zero = self.byte() == Some(b'0');
        let whole = self.skip_digits()?;
        if leading_zero && whole > 1 {
            return Err(self.error("a number begins with 0"));
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.skip_digits()?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.skip_digits()?;
        }
        Ok(())
    }

    fn skip_digits(&mut self) -> Result<usize, JsonError> {
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

/// Rewrites a checked value for strict parsers.
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
            // The value was checked before, so every escape is valid.
            b'\\' if matches!(json.read_escape(), Ok(None)) => Some("\\ufffd".to_owned()),
            b'-' | b'0'..=b'9' if !inside && json.skip_number().is_ok() => {
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
