//! JSON values that borrow from their text and keep numbers and objects as written.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use super::{
    JsonError, Problem,
    lexer::{Lexer, Token},
};
use crate::jcs::{Numeral, Tree, View};

/// Objects with at most this many keys are checked for duplicates pair by pair, larger ones by sorting.
const PAIRWISE_KEYS: usize = 16;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    String(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    Object(Object<'a>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Object<'a> {
    pub(crate) entries: Vec<(Cow<'a, str>, Node<'a>)>,
    /// The text of the object, braces included.
    pub(crate) text: &'a str,
}

/// Problems of the text that the values no longer show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// Byte offsets of the ends of objects with a duplicate key, and that key; at most [`MAX_NOTES`].
    pub(crate) duplicates: Vec<(usize, String)>,
    /// Byte offsets of strings with a lone surrogate; at most [`MAX_NOTES`].
    pub(crate) surrogates: Vec<usize>,
}

/// Notes of each kind at most: enough to find the errors, bounded for hostile texts.
const MAX_NOTES: usize = 100;

impl Notes {
    fn duplicate(&mut self, offset: usize, key: &str) {
        if self.duplicates.len() < MAX_NOTES {
            self.duplicates.push((offset, key.to_owned()));
        }
    }

    fn surrogate(&mut self, offset: usize) {
        if self.surrogates.len() < MAX_NOTES {
            self.surrogates.push(offset);
        }
    }
}

enum Frame<'a> {
    Array(Vec<Node<'a>>),
    Object { entries: Vec<(Cow<'a, str>, Node<'a>)>, key: Cow<'a, str>, start: usize },
}

/// Values in one value at any depth: an empty object takes three bytes in a text but sixteen times as much in memory.
const MAX_VALUES: usize = 1 << 20;

/// Reads the next value; none, with its end consumed, if the open container ends here.
pub(crate) fn next_value<'a>(
    lexer: &mut Lexer<'a>,
    notes: &mut Notes,
) -> Result<Option<Node<'a>>, JsonError> {
    let mut stack: Vec<Frame<'a>> = Vec::new();
    let mut count = 0_usize;
    loop {
        let Some(token) = lexer.next()? else { return Ok(None) };
        let node = match token {
            Token::BeginArray => {
                stack.push(Frame::Array(Vec::new()));
                continue;
            }
            Token::BeginObject => {
                stack.push(Frame::Object {
                    entries: Vec::new(),
                    key: Cow::Borrowed(""),
                    start: lexer.offset() - 1,
                });
                continue;
            }
            Token::Key(quoted) => {
                let text = decode(quoted, lexer, notes);
                if let Some(Frame::Object { key, .. }) = stack.last_mut() {
                    *key = text;
                }
                continue;
            }
            Token::EndArray | Token::EndObject => match stack.pop() {
                Some(frame) => close(frame, lexer, notes),
                None => return Ok(None),
            },
            Token::String(quoted) => Node::String(decode(quoted, lexer, notes)),
            Token::Number(text) => Node::Number(text),
            Token::Bool(value) => Node::Bool(value),
            Token::Null => Node::Null,
        };
        count += 1;
        if count > MAX_VALUES {
            return Err(lexer.error(Problem::TooMany(MAX_VALUES)));
        }
        match stack.last_mut() {
            None => return Ok(Some(node)),
            Some(Frame::Array(items)) => items.push(node),
            Some(Frame::Object { entries, key, .. }) => entries.push((std::mem::take(key), node)),
        }
    }
}

/// Reads a text that consists of one value.
pub(crate) fn parse<'a>(text: &'a str, limit: usize, notes: &mut Notes) -> Result<Node<'a>, JsonError> {
    let mut lexer = Lexer::new(text, limit);
    let node = next_value(&mut lexer, notes)?;
    lexer.next()?;
    node.ok_or_else(|| lexer.error(Problem::CutOff))
}

fn decode<'a>(quoted: super::lexer::Quoted<'a>, lexer: &Lexer<'a>, notes: &mut Notes) -> Cow<'a, str> {
    let mut lone = false;
    let text = quoted.decode(&mut lone);
    if lone {
        notes.surrogate(lexer.offset());
    }
    text
}

fn close<'a>(frame: Frame<'a>, lexer: &Lexer<'a>, notes: &mut Notes) -> Node<'a> {
    match frame {
        Frame::Array(items) => Node::Array(items),
        Frame::Object { entries, start, .. } => {
            let entries = match duplicate(entries.iter().map(|(key, _)| key.as_ref())) {
                None => entries,
                Some(key) => {
                    notes.duplicate(lexer.offset(), key);
                    last_wins(entries)
                }
            };
            Node::Object(Object { entries, text: &lexer.text()[start..lexer.offset()] })
        }
    }
}

/// A key that occurs twice.
pub(crate) fn duplicate<'k>(keys: impl ExactSizeIterator<Item = &'k str> + Clone) -> Option<&'k str> {
    if keys.len() <= PAIRWISE_KEYS {
        let mut rest = keys;
        while let Some(key) = rest.next() {
            if rest.clone().any(|other| other == key) {
                return Some(key);
            }
        }
        return None;
    }
    let mut sorted: Vec<&str> = keys.collect();
    sorted.sort_unstable();
    sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// Keeps the last of the entries with equal keys.
fn last_wins<'a>(mut entries: Vec<(Cow<'a, str>, Node<'a>)>) -> Vec<(Cow<'a, str>, Node<'a>)> {
    let mut seen = std::collections::BTreeSet::new();
    entries.reverse();
    entries.retain(|(key, _)| seen.insert(key.clone()));
    entries.reverse();
    entries
}

impl Node<'_> {
    /// Converts to an owned value; an integer beyond 64 bits becomes a float, as in `serde_json`.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(text) => number(text).map_or(Value::Null, Value::Number),
            Self::String(text) => Value::String(text.clone().into_owned()),
            Self::Array(items) => Value::Array(items.iter().map(Node::to_value).collect()),
            Self::Object(object) => Value::Object(object.to_map()),
        }
    }
}

/// Accessors for readers of whole documents.
#[cfg(feature = "documents")]
impl Node<'_> {
    /// The text of a string.
    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The text of a string under a key of an object.
    pub(crate) fn member(&self, key: &str) -> Option<&str> {
        match self {
            Self::Object(object) => object.get(key)?.as_str(),
            _ => None,
        }
    }

    /// The kind of value, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

impl<'a> Object<'a> {
    pub(crate) fn get(&self, name: &str) -> Option<&Node<'a>> {
        self.entries.iter().find(|(key, _)| key == name).map(|(_, node)| node)
    }

    pub(crate) fn to_map(&self) -> Map<String, Value> {
        self.entries.iter().map(|(key, node)| (key.clone().into_owned(), node.to_value())).collect()
    }
}

fn number(text: &str) -> Option<Number> {
    if let Ok(small) = text.parse::<i64>() {
        // Common JSON readers read `-0` as the float -0.0.
        return if text == "-0" { Number::from_f64(-0.0) } else { Some(small.into()) };
    }
    if let Ok(large) = text.parse::<u64>() {
        return Some(large.into());
    }
    text.parse().ok().and_then(Number::from_f64)
}

impl Tree for Node<'_> {
    fn view(&self) -> View<'_, Self> {
        match self {
            Self::Null => View::Null,
            Self::Bool(value) => View::Bool(*value),
            Self::Number(text) => View::Number(Numeral::Text(text)),
            Self::String(text) => View::String(text),
            Self::Array(items) => View::Array(items),
            Self::Object(object) => {
                View::Object(object.entries.iter().map(|(key, node)| (key.as_ref(), node)).collect())
            }
        }
    }
}
