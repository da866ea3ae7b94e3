//! Fields of one object that have no place in PAM, kept as they stand.

use std::borrow::Cow;

use satchel_importer::{Arena, JsonError, Leftover, Parser, json::Kind};

use super::Value;

/// Collects fields as JSON text. Used again and again, so that keeping fields costs no allocation for each message.
#[derive(Debug, Default)]
pub(crate) struct Rest<'a> {
    /// The object so far, without its last brace.
    text: String,
    keys: Vec<&'a str>,
}

impl<'a> Rest<'a> {
    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.keys.clear();
    }

    /// Adds a value that is JSON text.
    pub(crate) fn add_json(&mut self, key: &'a str, raw: &str) {
        self.add_key(key);
        self.text.push_str(raw);
    }

    /// Adds a text.
    pub(crate) fn add_text(&mut self, key: &'a str, text: &str) {
        self.add_key(key);
        quote(text, &mut self.text);
    }

    /// Keeps the next value, unless it says nothing.
    pub(crate) fn keep(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let raw = json.raw_value()?;
        if !nothing(raw) {
            self.add_json(key, raw);
        }
        Ok(())
    }

    /// Takes the next value if it is a text; any other is kept.
    pub(crate) fn text(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<Option<&'a str>, JsonError> {
        if json.kind()? == Kind::String {
            return json.string().map(Some);
        }
        self.keep(key, json)?;
        Ok(None)
    }

    /// Takes the next value if it is a flag; any other is kept.
    pub(crate) fn flag(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<bool, JsonError> {
        if json.kind()? == Kind::Bool {
            return json.bool();
        }
        self.keep(key, json)?;
        Ok(false)
    }

    /// Keeps the next value, and reads it too.
    pub(crate) fn read(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<Value<'a>, JsonError> {
        let value = Value::read(json)?;
        match value {
            Value::Null => {}
            Value::Text(text) => self.add_text(key, text),
            Value::Raw(raw) if nothing(raw) => {}
            Value::Raw(raw) => self.add_json(key, raw),
        }
        Ok(value)
    }

    /// The object, if anything was kept; begins anew. Of a repeated key the last value stays.
    pub(crate) fn finish(&mut self, arena: &'a Arena) -> Option<Cow<'a, str>> {
        if self.keys.is_empty() {
            return None;
        }
        self.text.push('}');
        let object: &'a str = arena.alloc_str(&self.text);
        let repeated = self.has_repeated();
        self.clear();
        if repeated { without_repeated(object, arena) } else { Some(Cow::Borrowed(object)) }
    }

    fn add_key(&mut self, key: &'a str) {
        self.text.push(if self.keys.is_empty() { '{' } else { ',' });
        self.keys.push(key);
        quote(key, &mut self.text);
        self.text.push(':');
    }

    fn has_repeated(&mut self) -> bool {
        if self.keys.len() > FEW {
            self.keys.sort_unstable();
            return self.keys.windows(2).any(|pair| pair[0] == pair[1]);
        }
        self.keys.iter().enumerate().any(|(at, key)| self.keys[..at].contains(key))
    }
}

/// Up to so many keys are compared with each other.
const FEW: usize = 24;

/// Absent, null and `{}` are one.
fn nothing(raw: &str) -> bool {
    matches!(raw, "null" | "{}")
}

fn quote(text: &str, json: &mut String) {
    let plain = |byte: &u8| !matches!(byte, b'"' | b'\\' | 0..=0x1f);
    if text.as_bytes().iter().all(plain) {
        json.push('"');
        json.push_str(text);
        json.push('"');
    } else {
        json.push_str(&serde_json::Value::from(text).to_string());
    }
}

fn without_repeated<'a>(object: &'a str, arena: &'a Arena) -> Option<Cow<'a, str>> {
    let mut rest = Leftover::default();
    let mut json = Parser::new(object, arena);
    let mut read = || -> Result<(), JsonError> {
        if json.enter_object()? {
            while let Some(key) = json.key()? {
                rest.keep(key, &mut json)?;
            }
        }
        Ok(())
    };
    // The object was put together from checked values.
    read().unwrap_or_default();
    rest.into_json()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_repeated_keys_stays() {
        let arena = Arena::new();
        let mut rest = Rest::default();
        rest.add_json("a", "1");
        rest.add_text("q\"", "line\n");
        assert_eq!(rest.finish(&arena).as_deref(), Some("{\"a\":1,\"q\\\"\":\"line\\n\"}"));
        for number in ["1", "2", "3"] {
            rest.add_json("a", number);
        }
        assert_eq!(rest.finish(&arena).as_deref(), Some(r#"{"a":3}"#));
        assert_eq!(rest.finish(&arena), None);
    }
}
