//! A JSON object that keeps its text, for the fields of providers that PAM does not define (PAM 1.0 §25.8).

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::{Map, Value, value::RawValue};

use crate::json::{
    JsonError,
    lexer::{Lexer, Quoted, Token},
    tree::{self, Node, Notes},
};

/// Maximum nesting of a [`RawObject`]; less than the 128 levels of a document, to leave room around it.
pub const MAX_DEPTH: usize = 100;

/// White space in JSON.
const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// The text of a JSON object with at most [`MAX_DEPTH`] levels, unique keys and no lone surrogates.
///
/// The text is checked on construction, so it can be written into any document unchanged and read by any reader.
#[derive(Clone, PartialEq, Eq)]
pub struct RawObject(Box<str>);

/// Why a text is not a [`RawObject`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RawError {
    /// Not JSON, nested too deeply, or with a number beyond the range of a double.
    #[error("not a JSON object: {0}")]
    Json(#[from] JsonError),
    /// JSON, but an array or a scalar.
    #[error("JSON, but not an object")]
    NotAnObject,
}

/// What [`RawObject::parse_noting`] changed in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    /// An object had a duplicate key; the last value was kept.
    pub duplicate_keys: bool,
    /// A string had a lone surrogate, which became U+FFFD.
    pub lone_surrogates: bool,
}

impl RawObject {
    /// Parses the text of a JSON object. Of equal keys the last is kept; lone surrogates become U+FFFD.
    ///
    /// # Errors
    /// If the text is not a JSON object, is nested too deeply, or has a number beyond the range of a double.
    pub fn parse(text: String) -> Result<Self, RawError> {
        Self::parse_noting(text).map(|(object, _)| object)
    }

    /// Like [`RawObject::parse`], and returns what was changed.
    ///
    /// # Errors
    /// As [`RawObject::parse`].
    pub fn parse_noting(mut text: String) -> Result<(Self, Repairs), RawError> {
        let repairs = repair(&mut text)?;
        let bare = text.trim_matches(SPACE);
        Ok((Self(if bare.len() == text.len() { text.into() } else { bare.into() }), repairs))
    }

    /// Writes a map as text.
    ///
    /// # Errors
    /// If it is nested deeper than [`MAX_DEPTH`].
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
            // Unreachable: the constructors parsed the same text with the same limit.
            Ok(_) | Err(_) => Map::new(),
        }
    }

    /// Returns the object with one key added or its value replaced; the rest of the text is unchanged.
    ///
    /// A `value` that is nested too deeply for [`MAX_DEPTH`] is written as a string with its JSON text.
    #[must_use]
    pub fn with(&self, key: &str, value: &Value) -> Self {
        let text = value.to_string();
        Self::parse(splice(self.as_str(), key, &text))
            .or_else(|_| Self::parse(splice(self.as_str(), key, &Value::String(text).to_string())))
            .unwrap_or_else(|_| self.clone())
    }

    /// Returns the object without one key; it reverts [`RawObject::with`] to the byte.
    #[must_use]
    pub fn without(&self, key: &str) -> Self {
        let text = self.as_str();
        let Some((start, _, end)) = member_span(text, key) else { return self.clone() };
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

/// The problems of a text that must be repaired.
struct Scan {
    duplicate_keys: bool,
    /// Byte offsets of the escapes.
    lone_surrogates: Vec<usize>,
}

fn scan(text: &str) -> Result<Scan, RawError> {
    let mut lexer = Lexer::new(text, MAX_DEPTH);
    let mut found = Scan { duplicate_keys: false, lone_surrogates: Vec::new() };
    // The keys of all open objects, and the index of the first key of each.
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
                add_surrogates(&mut found, text, quoted);
                keys.push(quoted);
            }
            Token::String(quoted) => add_surrogates(&mut found, text, quoted),
            Token::BeginArray | Token::EndArray | Token::Number(_) | Token::Bool(_) | Token::Null => {}
        }
    }
    Ok(found)
}

fn add_surrogates(found: &mut Scan, text: &str, quoted: Quoted<'_>) {
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

/// Writes the object anew from its parse, which keeps the last of equal keys and the text of numbers.
fn rewrite(text: &str) -> Result<String, RawError> {
    let node = tree::parse(text, MAX_DEPTH, &mut Notes::default())?;
    let mut out = String::with_capacity(text.len());
    write_node(&mut out, &node);
    Ok(out)
}

/// The recursion is bounded by [`MAX_DEPTH`].
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
    if let Some((_, start, end)) = member_span(text, key) {
        return [&text[..start], value, &text[end..]].concat();
    }
    let quoted = Value::String(key.to_owned()).to_string();
    let body = text[..text.rfind('}').unwrap_or(text.len())].trim_end();
    let comma = if body.ends_with('{') { "" } else { "," };
    [body, comma, &quoted, ":", value, "}"].concat()
}

/// Byte offsets of the start of a top-level key, the end of its colon, and the end of its value.
fn member_span(text: &str, wanted: &str) -> Option<(usize, usize, usize)> {
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
        // This reader and serde_json accept the same grammar; a property test compares them.
        serde_json::from_str::<&RawValue>(&self.0).map_err(ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Box::<str>::from(Box::<RawValue>::deserialize(deserializer)?);
        Self::parse(value.into()).map_err(de::Error::custom)
    }
}
