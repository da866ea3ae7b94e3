//! One JSON object kept as its text: a provider's own fields, carried without being understood.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::{Map, Value, value::RawValue};

use crate::json::{
    JsonError,
    lexer::{Lexer, Quoted, Token},
    tree::{self, Node, Notes},
};

/// Levels of nesting in a [`RawObject`]; leaves room for the document around it, which may have 128.
pub const MAX_DEPTH: usize = 100;

/// What JSON takes for white space.
const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// The text of one JSON object, at most [`MAX_DEPTH`] levels deep, each key once, no lone surrogates.
///
/// Checked once, when made; so it can be written into any document as it is, and read back by any reader.
#[derive(Clone, PartialEq, Eq)]
pub struct RawObject(Box<str>);

/// Why a text is no [`RawObject`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RawError {
    /// Not JSON, or too deep, or with a number that no double can hold.
    #[error("not a JSON object: {0}")]
    Json(#[from] JsonError),
    /// JSON, but a list or a scalar.
    #[error("JSON, but not an object")]
    NotAnObject,
}

/// What was changed to make a text safe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    /// Some object had a key twice; the last value stayed.
    pub duplicate_keys: bool,
    /// Some string had a lone surrogate; it became U+FFFD.
    pub lone_surrogates: bool,
}

impl RawObject {
    /// Takes the text of one JSON object. Of equal keys the last stays; lone surrogates become U+FFFD.
    ///
    /// # Errors
    /// If the text is no JSON object, is too deep, or holds a number that no double can hold.
    pub fn parse(text: String) -> Result<Self, RawError> {
        Self::parse_noting(text).map(|(object, _)| object)
    }

    /// Like [`RawObject::parse`], and says what had to be changed.
    ///
    /// # Errors
    /// As [`RawObject::parse`].
    pub fn parse_noting(mut text: String) -> Result<(Self, Repairs), RawError> {
        let repairs = repair(&mut text)?;
        let bare = text.trim_matches(SPACE);
        Ok((Self(if bare.len() == text.len() { text.into() } else { bare.into() }), repairs))
    }

    /// The text of a map.
    ///
    /// # Errors
    /// If it is deeper than [`MAX_DEPTH`].
    pub fn from_map(map: &Map<String, Value>) -> Result<Self, RawError> {
        Self::parse(Value::Object(map.clone()).to_string())
    }

    /// The text, without white space around it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The object, parsed.
    #[must_use]
    pub fn to_map(&self) -> Map<String, Value> {
        match tree::parse(self.as_str(), MAX_DEPTH, &mut Notes::default()) {
            Ok(Node::Object(object)) => object.to_map(),
            // Not reached: the constructors have read the same text with the same limit.
            Ok(_) | Err(_) => Map::new(),
        }
    }

    /// The same object with one key added, or its value replaced; nothing else is touched.
    ///
    /// `value` nested too deep for [`MAX_DEPTH`] is written as its JSON text, in a string.
    #[must_use]
    pub fn with(&self, key: &str, value: &Value) -> Self {
        let text = splice(self.as_str(), key, &value.to_string());
        Self::parse(text)
            .or_else(|_| {
                Self::parse(splice(self.as_str(), key, &Value::String(value.to_string()).to_string()))
            })
            .unwrap_or_else(|_| self.clone())
    }
}

impl RawObject {
    /// The same object without one key: what [`RawObject::with`] added is taken off to the byte.
    #[must_use]
    pub fn without(&self, key: &str) -> Self {
        let text = self.as_str();
        let Some((start, end)) = member_span(text, key) else { return self.clone() };
        let (before, after) = (text[..start].trim_end(), text[end..].trim_start());
        let rest = match (before.strip_suffix(','), after.strip_prefix(',')) {
            (Some(before), _) => [before, after].concat(),
            (None, Some(after)) => [before, after.trim_start()].concat(),
            (None, None) => [before, after].concat(),
        };
        Self(rest.into())
    }
}

/// The empty object.
impl Default for RawObject {
    fn default() -> Self {
        Self("{}".into())
    }
}

/// What a scan found that must be repaired.
struct Scan {
    duplicate_keys: bool,
    /// Byte offsets of the escapes.
    lone_surrogates: Vec<usize>,
}

fn scan(text: &str) -> Result<Scan, RawError> {
    let mut lexer = Lexer::new(text, MAX_DEPTH);
    let mut found = Scan { duplicate_keys: false, lone_surrogates: Vec::new() };
    // Keys of all open objects, and where those of each begin.
    let mut keys: Vec<Quoted<'_>> = Vec::new();
    let mut starts: Vec<usize> = Vec::new();
    let mut first = true;
    while let Some(token) = lexer.next()? {
        if std::mem::take(&mut first) && token != Token::BeginObject {
            return Err(RawError::NotAnObject);
        }
        match token {
            Token::BeginObject => starts.push(keys.len()),
            Token::EndObject => {
                let start = starts.pop().unwrap_or(0);
                found.duplicate_keys |= has_duplicate(&keys[start..]);
                keys.truncate(start);
            }
            Token::Key(quoted) => {
                note_surrogates(&mut found, text, quoted);
                keys.push(quoted);
            }
            Token::String(quoted) => note_surrogates(&mut found, text, quoted),
            Token::BeginArray | Token::EndArray | Token::Number(_) | Token::Bool(_) | Token::Null => {}
        }
    }
    Ok(found)
}

fn note_surrogates(found: &mut Scan, text: &str, quoted: Quoted<'_>) {
    let start = quoted.text.as_ptr().addr() - text.as_ptr().addr();
    found.lone_surrogates.extend(quoted.lone_surrogates().map(|place| start + place));
}

fn has_duplicate(keys: &[Quoted<'_>]) -> bool {
    if !keys.iter().any(|key| key.escaped) {
        return tree::duplicate(keys.iter().map(|key| key.text)).is_some();
    }
    let decoded: Vec<_> = keys.iter().map(|key| key.decode(&mut false)).collect();
    tree::duplicate(decoded.iter().map(AsRef::as_ref)).is_some()
}

fn repair(text: &mut String) -> Result<Repairs, RawError> {
    let found = scan(text)?;
    let repairs =
        Repairs { duplicate_keys: found.duplicate_keys, lone_surrogates: !found.lone_surrogates.is_empty() };
    for place in found.lone_surrogates {
        text.replace_range(place..place + 6, "\\ufffd");
    }
    if repairs.duplicate_keys {
        *text = rewrite(text)?;
    }
    Ok(repairs)
}

/// The object written again from its parse, which keeps the last of equal keys and the text of numbers.
fn rewrite(text: &str) -> Result<String, RawError> {
    let node = tree::parse(text, MAX_DEPTH, &mut Notes::default())?;
    let mut out = String::with_capacity(text.len());
    write_node(&mut out, &node);
    Ok(out)
}

/// Recursion is bounded by the depth of the parse.
fn write_node(out: &mut String, node: &Node<'_>) {
    match node {
        Node::Null => out.push_str("null"),
        Node::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Node::Number(text) => out.push_str(text),
        Node::String(text) => out.push_str(&Value::String(text.clone().into_owned()).to_string()),
        Node::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write_node(out, item);
            }
            out.push(']');
        }
        Node::Object(object) => {
            out.push('{');
            for (index, (key, item)) in object.entries.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.push_str(&Value::String(key.clone().into_owned()).to_string());
                out.push(':');
                write_node(out, item);
            }
            out.push('}');
        }
    }
}

/// Sets one top-level key of the object `text` to the JSON `value`.
fn splice(text: &str, key: &str, value: &str) -> String {
    let close = text.rfind('}').unwrap_or(text.len());
    let quoted = Value::String(key.to_owned()).to_string();
    if let Some((start, end)) = value_span(text, key) {
        return [&text[..start], value, &text[end..]].concat();
    }
    let body = text[..close].trim_end();
    let comma = if body.ends_with('{') { "" } else { "," };
    [body, comma, &quoted, ":", value, "}"].concat()
}

/// Where the value of a top-level key stands, with the white space before it.
fn value_span(text: &str, wanted: &str) -> Option<(usize, usize)> {
    spans(text, wanted).map(|(_, start, end)| (start, end))
}

/// Where a top-level key stands, to the end of its value.
fn member_span(text: &str, wanted: &str) -> Option<(usize, usize)> {
    spans(text, wanted).map(|(key, _, end)| (key, end))
}

/// Where a top-level key begins, where its colon ends, and where its value ends.
fn spans(text: &str, wanted: &str) -> Option<(usize, usize, usize)> {
    let mut lexer = Lexer::new(text, MAX_DEPTH);
    let (mut depth, mut start) = (0_usize, None);
    while let Ok(Some(token)) = lexer.next() {
        match token {
            Token::BeginObject | Token::BeginArray => depth += 1,
            Token::EndObject | Token::EndArray => depth = depth.saturating_sub(1),
            Token::Key(quoted) => {
                if depth == 1 && quoted.decode(&mut false) == wanted {
                    let inside = quoted.text.as_ptr().addr() - text.as_ptr().addr();
                    start = Some((inside - 1, lexer.offset()));
                }
                continue;
            }
            Token::String(_) | Token::Number(_) | Token::Bool(_) | Token::Null => {}
        }
        if depth == 1
            && let Some((key, start)) = start
        {
            return Some((key, start, lexer.offset()));
        }
    }
    None
}

impl fmt::Debug for RawObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for RawObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Our reader and serde_json's agree on the grammar (a property test compares them).
        serde_json::from_str::<&RawValue>(&self.0).map_err(ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Box::<str>::from(Box::<RawValue>::deserialize(deserializer)?);
        Self::parse(value.into()).map_err(de::Error::custom)
    }
}
