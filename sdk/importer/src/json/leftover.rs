//! Fields that have no place in PAM, kept verbatim for `raw_metadata`.

use std::{borrow::Cow, collections::BTreeMap, fmt::Write as _};

use super::{JsonError, Kind, Number, Parser};

/// Collects the fields of one object that have no place elsewhere, in the order of the export.
///
/// The typed takers (`text`, `number`, …) are for known keys: a value of the expected type is returned, `null` counts
/// as absent, and a value of any other type is kept as it stands instead of failing.
#[derive(Debug, Default)]
pub struct Leftover<'a> {
    pairs: Vec<(&'a str, Cow<'a, str>)>,
}

impl<'a> Leftover<'a> {
    /// Keeps the next value under `key`. A key given twice keeps its last value.
    pub fn keep(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let raw = json.raw_value()?;
        self.push(key, Cow::Borrowed(raw));
        Ok(())
    }

    /// Adds a value that is already JSON text.
    pub fn add_json(&mut self, key: &'a str, raw: impl Into<Cow<'a, str>>) {
        self.push(key, raw.into());
    }

    /// Adds a text.
    pub fn add_text(&mut self, key: &'a str, text: &str) {
        let mut quoted = String::with_capacity(text.len() + 2);
        quote(text, &mut quoted);
        self.push(key, Cow::Owned(quoted));
    }

    /// Adds a flag.
    pub fn add_bool(&mut self, key: &'a str, value: bool) {
        self.push(key, Cow::Borrowed(if value { "true" } else { "false" }));
    }

    /// Takes a string.
    #[inline]
    pub fn text(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<Option<&'a str>, JsonError> {
        self.take(key, json, Kind::String, Parser::string)
    }

    /// Takes a number.
    pub fn number(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<Option<Number<'a>>, JsonError> {
        self.take(key, json, Kind::Number, Parser::number)
    }

    /// Takes a flag.
    pub fn bool(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<Option<bool>, JsonError> {
        self.take(key, json, Kind::Bool, Parser::bool)
    }

    /// Goes into an object; true if it did. Walk it with [`Parser::key`].
    pub fn object(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<bool, JsonError> {
        Ok(json.enter_object()? || self.take_null_or_keep(key, json)?)
    }

    /// Goes into an array; true if it did. Walk it with [`Parser::item`].
    pub fn array(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<bool, JsonError> {
        Ok(json.enter_array()? || self.take_null_or_keep(key, json)?)
    }

    /// Whether nothing was kept.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The text of a JSON object with all that was kept; none if nothing was.
    pub fn into_json(mut self) -> Option<Cow<'a, str>> {
        if self.pairs.is_empty() {
            return None;
        }
        drop_repeated(&mut self.pairs);
        let length: usize = self.pairs.iter().map(|(key, raw)| key.len() + raw.len() + 4).sum();
        let mut object = String::with_capacity(length + 2);
        let mut separator = '{';
        for (key, raw) in &self.pairs {
            object.push(separator);
            quote(key, &mut object);
            object.push(':');
            object.push_str(raw);
            separator = ',';
        }
        object.push('}');
        Some(Cow::Owned(object))
    }

    fn push(&mut self, key: &'a str, raw: Cow<'a, str>) {
        if self.pairs.capacity() == 0 {
            self.pairs.reserve(FEW);
        }
        self.pairs.push((key, raw));
    }

    #[inline]
    fn take<T>(
        &mut self,
        key: &'a str,
        json: &mut Parser<'a>,
        kind: Kind,
        take: impl FnOnce(&mut Parser<'a>) -> Result<T, JsonError>,
    ) -> Result<Option<T>, JsonError> {
        if json.kind()? == kind {
            return take(json).map(Some);
        }
        self.take_null_or_keep(key, json)?;
        Ok(None)
    }

    /// Always false: nothing was entered.
    fn take_null_or_keep(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<bool, JsonError> {
        if !json.null()? {
            self.keep(key, json)?;
        }
        Ok(false)
    }
}

/// So many keys have place from the first on, and are compared with each other; more go through a map.
const FEW: usize = 16;

/// Leaves the last of several values of one key, at the place of that value.
fn drop_repeated(pairs: &mut Vec<(&str, Cow<str>)>) {
    let repeated = if pairs.len() <= FEW {
        pairs
            .iter()
            .enumerate()
            .any(|(index, (key, _))| pairs.iter().skip(index + 1).any(|(other, _)| other == key))
    } else {
        true
    };
    if !repeated {
        return;
    }
    let last: BTreeMap<&str, usize> =
        pairs.iter().enumerate().map(|(index, (key, _))| (*key, index)).collect();
    let mut index = 0;
    pairs.retain(|(key, _)| {
        index += 1;
        last.get(key) == Some(&(index - 1))
    });
}

/// Appends `text` as a JSON string.
pub(crate) fn quote(text: &str, json: &mut String) {
    json.push('"');
    let mut rest = text;
    loop {
        let (plain, special) = rest.split_at(crate::lanes::plain_length(rest.as_bytes()));
        json.push_str(plain);
        let Some(character) = special.chars().next() else { break };
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            // Writing to a string cannot fail.
            control => write!(json, "\\u{:04x}", u32::from(control)).unwrap_or_default(),
        }
        rest = special.get(1..).unwrap_or_default();
    }
    json.push('"');
}
