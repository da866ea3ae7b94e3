//! Collects the fields that have no place in PAM, verbatim, for `raw_metadata`.

use std::{borrow::Cow, collections::BTreeMap, fmt::Write as _};

use super::{
    JsonError, Kind, Number, Object, Parser, Value,
    keys::{self, FEW},
};
use crate::{Arena, pam::prose};

/// Collects the fields of one object that have no place elsewhere, in the order of the export.
///
/// The typed methods (`text`, `number`, …) read known keys: they return a value of the expected type, treat `null` as
/// absent, and keep a value of any other type verbatim instead of failing. If a key is repeated, its last value counts.
///
/// Reuse one `Leftover` for all messages ([`Leftover::take_json`]) to avoid allocations.
#[derive(Debug, Default)]
pub struct Leftover<'a> {
    /// The object so far, without its last brace.
    text: String,
    keys: Vec<&'a str>,
    slots: u64,
    repeated: bool,
    /// Removed keys: each with the number of `keys` to which the removal applies.
    removed: Vec<(&'a str, usize)>,
    unread: Option<&'a str>,
}

impl<'a> Leftover<'a> {
    /// Keeps the next value under `key`, except null and `{}`, which count as absent.
    pub fn keep(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let raw = json.raw_value()?;
        self.add_unless_empty(key, raw);
        Ok(())
    }

    /// Like [`Leftover::keep`], for a key that the importer does not know. Also calls [`Leftover::note_unknown`].
    pub fn keep_unknown(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let raw = json.raw_value()?;
        self.note_unknown(key, Value::Raw(raw));
        self.add_unless_empty(key, raw);
        Ok(())
    }

    /// Makes `key` the result of [`Leftover::unread`] if its value contains natural language and there is no result yet.
    pub fn note_unknown(&mut self, key: &'a str, value: Value<'_>) {
        let found = || match value {
            Value::Null => false,
            Value::Text(text) => prose::is_prose(text),
            Value::Raw(raw) => contains_prose(raw),
        };
        if self.unread.is_none() && found() {
            self.unread = Some(key);
        }
    }

    /// Makes `key` the result of [`Leftover::unread`], whatever its value is, if there is no result yet.
    pub fn mark_unread(&mut self, key: &'a str) {
        self.unread = self.unread.or(Some(key));
    }

    /// The first unknown key with natural language, for [`crate::Message::unread`]. [`Leftover::clear`] resets it.
    pub fn unread(&self) -> Option<&'a str> {
        self.unread
    }

    /// Keeps the next value and returns it too.
    pub fn keep_and_read(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<Value<'a>, JsonError> {
        let value = Value::read(json)?;
        match value {
            Value::Null => self.remove(key),
            Value::Text(text) => self.add_text(key, text),
            Value::Raw(raw) => self.add_unless_empty(key, raw),
        }
        Ok(value)
    }

    /// Adds a value that is already JSON text.
    pub fn add_json(&mut self, key: &'a str, raw: &str) {
        self.add_key(key);
        self.text.push_str(raw);
    }

    /// Adds a string.
    pub fn add_text(&mut self, key: &'a str, text: &str) {
        self.add_key(key);
        quote(text, &mut self.text);
    }

    /// Adds a value of any type, except null, which counts as absent.
    pub fn add_value(&mut self, key: &'a str, value: Value<'_>) {
        match value {
            Value::Null => {}
            Value::Text(text) => self.add_text(key, text),
            Value::Raw(raw) => self.add_json(key, raw),
        }
    }

    /// Adds a boolean.
    pub fn add_bool(&mut self, key: &'a str, value: bool) {
        self.add_json(key, if value { "true" } else { "false" });
    }

    /// Reads a string.
    #[inline]
    pub fn text(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<Option<&'a str>, JsonError> {
        self.take(key, json, Kind::String, Parser::string)
    }

    /// Reads a string; an empty one counts as absent. For ids and the like.
    pub fn nonempty_text(
        &mut self,
        key: &'a str,
        json: &mut Parser<'a>,
    ) -> Result<Option<&'a str>, JsonError> {
        Ok(self.text(key, json)?.filter(|text| !text.is_empty()))
    }

    /// Reads a number.
    pub fn number(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<Option<Number<'a>>, JsonError> {
        self.take(key, json, Kind::Number, Parser::number)
    }

    /// Reads a non-negative integer; any other number is kept.
    pub fn count(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<Option<u64>, JsonError> {
        let Some(number) = self.number(key, json)? else { return Ok(None) };
        let count = number.as_u64();
        if count.is_none() {
            self.add_json(key, &number.json());
        }
        Ok(count)
    }

    /// Reads a boolean.
    pub fn bool(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<Option<bool>, JsonError> {
        self.take(key, json, Kind::Bool, Parser::bool)
    }

    /// Enters an object; any other value is kept, and the result is false. Walk the object with [`Parser::key`].
    pub fn object(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<bool, JsonError> {
        let entered = json.enter_object()?;
        self.keep_unless(entered, key, json)
    }

    /// Enters an array; any other value is kept, and the result is false. Walk the array with [`Parser::item`].
    pub fn array(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<bool, JsonError> {
        let entered = json.enter_array()?;
        self.keep_unless(entered, key, json)
    }

    /// Whether nothing was kept.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.text.clear();
        self.keys.clear();
        self.removed.clear();
        (self.slots, self.repeated, self.unread) = (0, false, None);
    }

    /// The text of a JSON object with everything that was kept; none if nothing was.
    pub fn into_json(mut self) -> Option<Cow<'a, str>> {
        if self.keys.is_empty() {
            return None;
        }
        self.text.push('}');
        if self.repeats() { self.without_repeated().map(Cow::Owned) } else { Some(Cow::Owned(self.text)) }
    }

    /// Like [`Leftover::into_json`], with the text in the arena. The `Leftover` is empty afterwards and can be reused.
    pub fn take_json(&mut self, arena: &'a Arena) -> Option<Cow<'a, str>> {
        if self.keys.is_empty() {
            return None;
        }
        self.text.push('}');
        let repaired = self.repeats().then(|| self.without_repeated());
        let object: Option<&'a str> = match &repaired {
            Some(repaired) => repaired.as_ref().map(|text| &*arena.alloc_str(text)),
            None => Some(arena.alloc_str(&self.text)),
        };
        self.clear();
        object.map(Cow::Borrowed)
    }

    fn add_unless_empty(&mut self, key: &'a str, raw: &str) {
        if matches!(raw, "null" | "{}") {
            self.remove(key);
        } else {
            self.add_json(key, raw);
        }
    }

    /// Removes what was kept under `key`, because a later value of it was read or is empty.
    #[inline]
    pub(super) fn remove(&mut self, key: &'a str) {
        if self.slots != 0 && self.slots & keys::slot(key) != 0 && keys::contains(&self.keys, key) {
            self.removed.push((key, self.keys.len()));
        }
    }

    fn add_key(&mut self, key: &'a str) {
        if self.keys.capacity() == 0 {
            self.keys.reserve(FEW_KEPT);
            self.text.reserve(FEW_KEPT * BYTES_PER_FIELD);
        }
        let slot = keys::slot(key);
        self.repeated |= self.slots & slot != 0 && self.keys.len() <= FEW && keys::contains(&self.keys, key);
        self.slots |= slot;
        self.text.push(if self.keys.is_empty() { '{' } else { ',' });
        self.keys.push(key);
        quote(key, &mut self.text);
        self.text.push(':');
    }

    fn repeats(&mut self) -> bool {
        self.repeated
            || !self.removed.is_empty()
            || (self.keys.len() > FEW && keys::repeated_among_many(&mut self.keys).next().is_some())
    }

    /// The object with only the last value of each key, in the position of that value.
    fn without_repeated(&self) -> Option<String> {
        let arena = Arena::new();
        let mut last: BTreeMap<&str, usize> = BTreeMap::new();
        let mut pairs = Vec::new();
        let mut json = Parser::new(&self.text, &arena);
        let mut read = || -> Result<(), JsonError> {
            if json.enter_object()? {
                while let Some(key) = json.key()? {
                    last.insert(key, pairs.len());
                    pairs.push((key, json.raw_value()?));
                }
            }
            Ok(())
        };
        // The object consists of valid values.
        read().unwrap_or_default();
        for (key, before) in &self.removed {
            if last.get(key).is_some_and(|at| at < before) {
                last.remove(key);
            }
        }
        let mut rest = Leftover::default();
        for (at, (key, raw)) in pairs.into_iter().enumerate() {
            if last.get(key) == Some(&at) {
                rest.add_json(key, raw);
            }
        }
        (!rest.is_empty()).then(|| rest.text + "}")
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
            self.remove(key);
            return take(json).map(Some);
        }
        self.keep(key, json)?;
        Ok(None)
    }

    fn keep_unless(&mut self, entered: bool, key: &'a str, json: &mut Parser<'a>) -> Result<bool, JsonError> {
        if entered {
            self.remove(key);
        } else {
            self.keep(key, json)?;
        }
        Ok(entered)
    }
}

/// Whether a JSON value contains natural language.
fn contains_prose(raw: &str) -> bool {
    // Most values are booleans, numbers and ids.
    let short = raw.len() < 4 || !raw.starts_with(['"', '[', '{']);
    let plain = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')).filter(|raw| !raw.contains('\\'));
    match plain {
        _ if short => false,
        Some(text) => prose::is_prose(text),
        None => prose::is_prose(&format!("[{raw}]")),
    }
}

/// Fields for which memory is reserved at first.
const FEW_KEPT: usize = 12;
/// Approximate bytes of a field with its key.
const BYTES_PER_FIELD: usize = 24;

/// Appends `text` as a JSON string.
pub fn quote(text: &str, json: &mut String) {
    json.reserve(text.len() + 3);
    json.push('"');
    let mut rest = text;
    loop {
        let (plain, special) = rest.split_at(crate::simd::plain_length(rest.as_bytes()));
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

/// Adds `members`, whose values are JSON text, to the end of a JSON object. Members that the object already has are not added.
pub fn with_members<'a>(object: Option<Cow<'a, str>>, members: &[(&str, String)]) -> Option<Cow<'a, str>> {
    let mut text = object.as_deref().unwrap_or("{}").to_owned();
    let arena = Arena::new();
    let own = Object::parse(&text, &arena);
    let new = members.iter().filter(|(key, _)| !own.fields().any(|(own, _)| own == *key));
    let new: Vec<&(&str, String)> = new.collect();
    if new.is_empty() || text.pop() != Some('}') {
        return object;
    }
    for (key, json) in new {
        text.push_str(if text.len() > 1 { "," } else { "" });
        quote(key, &mut text);
        text.push(':');
        text.push_str(json);
    }
    text.push('}');
    Some(Cow::Owned(text))
}
