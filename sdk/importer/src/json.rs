//! A pull parser for one element: reads typed values in order, and any value as raw text.
//!
//! It reads strict JSON, but it also accepts what real exports contain: lone surrogate escapes (decoded as U+FFFD) and raw
//! control characters in strings. It does not recurse, and nesting is limited to [`MAX_DEPTH`].

use crate::Arena;
use keys::Keys;

mod fields;
mod keys;
mod leftover;
mod number;
mod raw;
mod string;
mod time;
mod value;

pub use fields::{EMPTY_OBJECT, FieldReader, Fields, MAX_ID_BYTES, ValueFields, array_of, parse_items};
pub(crate) use keys::RepeatedKeys;
pub use leftover::{Leftover, quote, with_members};
pub use number::Number;
pub use time::{time_of_date, time_of_text};
pub use value::{Object, Value, items, objects, texts};

/// Deepest nesting of arrays and objects. PAM allows 100 levels in raw metadata; the rest is for objects that contain a
/// raw value.
pub const MAX_DEPTH: u32 = 96;

/// Why a JSON text cannot be read, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} (byte {offset} of the element)")]
pub struct JsonError {
    /// Offset in bytes from the start of the element.
    pub offset: usize,
    /// Lower-case, without the offset.
    pub problem: &'static str,
}

/// The type of the next value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// `[…]`
    Array,
    /// `{…}`
    Object,
}

/// Reads the values of one JSON text in order.
///
/// ```
/// use satchel_importer::{Arena, Leftover, Parser};
/// # fn main() -> Result<(), satchel_importer::JsonError> {
/// let arena = Arena::new();
/// let mut json = Parser::new(r#"{"title":"Tea","n":[1,2],"odd":{"x":1}}"#, &arena);
/// let (mut title, mut sum, mut rest) = (None, 0, Leftover::default());
/// if json.enter_object()? {
///     while let Some(key) = json.key()? {
///         match key {
///             "title" => title = rest.text(key, &mut json)?,
///             "n" if json.enter_array()? => {
///                 while json.item()? {
///                     sum += json.number()?.as_i64().unwrap_or(0);
///                 }
///             }
///             _ => rest.keep(key, &mut json)?,
///         }
///     }
/// }
/// json.end()?;
/// assert_eq!((title, sum, rest.into_json().as_deref()), (Some("Tea"), 3, Some(r#"{"odd":{"x":1}}"#)));
/// # Ok(())
/// # }
/// ```
pub struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    state: State,
    arena: &'a Arena,
    /// Buffer for strings whose escapes are decoded.
    scratch: Vec<u8>,
    /// The keys of the open objects, if repeated keys are reported.
    keys: Option<Keys<'a>>,
    /// Whether something was read that [`Parser::raw_value`] rewrites.
    irregular: bool,
}

/// The position between two calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Directly behind `[` or `{`.
    Opened,
    /// Before a value that was not taken yet.
    Pending,
    /// Behind a value that was taken.
    Taken,
}

impl<'a> Parser<'a> {
    /// Starts at the first byte of `text`. Decoded strings are allocated in `arena`.
    pub fn new(text: &'a str, arena: &'a Arena) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            state: State::Pending,
            arena,
            scratch: Vec::new(),
            keys: None,
            irregular: false,
        }
    }

    /// Like [`Parser::new`], and adds to `repeated` the keys that [`Parser::key`] returns twice for one object.
    pub(crate) fn reporting(text: &'a str, arena: &'a Arena, repeated: &'a RepeatedKeys) -> Self {
        Self { keys: Some(Keys::new(repeated)), ..Self::new(text, arena) }
    }

    /// The type of the next value, by its first byte.
    pub fn kind(&mut self) -> Result<Kind, JsonError> {
        match self.peek() {
            Some(b'"') => Ok(Kind::String),
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b't' | b'f') => Ok(Kind::Bool),
            Some(b'n') => Ok(Kind::Null),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(_) => Err(self.error("expected a value")),
            None => Err(self.error("the text ends where a value is expected")),
        }
    }

    /// Enters the next value if it is an object; otherwise returns false and does not take it. Call [`Parser::key`] until it
    /// returns `None`.
    pub fn enter_object(&mut self) -> Result<bool, JsonError> {
        let entered = self.enter(b'{')?;
        if entered && let Some(keys) = &mut self.keys {
            keys.open();
        }
        Ok(entered)
    }

    /// Enters the next value if it is an array; otherwise returns false and does not take it. Call [`Parser::item`] until it
    /// returns false.
    pub fn enter_array(&mut self) -> Result<bool, JsonError> {
        self.enter(b'[')
    }

    /// The next key of the object that was entered last, or `None` at its end. Skips the value before it if you did not take it.
    #[inline]
    pub fn key(&mut self) -> Result<Option<&'a str>, JsonError> {
        if !self.advance(b'}')? {
            if let Some(keys) = &mut self.keys {
                keys.close();
            }
            return Ok(None);
        }
        if self.peek() != Some(b'"') {
            return Err(self.error("expected a key"));
        }
        let key = self.read_string()?;
        if self.peek() != Some(b':') {
            return Err(self.error("expected \":\""));
        }
        self.at += 1;
        self.state = State::Pending;
        if let Some(keys) = &mut self.keys {
            keys.note(key);
        }
        Ok(Some(key))
    }

    /// Goes to the next item of the array that was entered last; false at its end. Skips the item before it if you did not
    /// take it.
    #[inline]
    pub fn item(&mut self) -> Result<bool, JsonError> {
        let more = self.advance(b']')?;
        if more {
            self.state = State::Pending;
        }
        Ok(more)
    }

    /// Takes the next value, which must be a string.
    #[inline]
    pub fn string(&mut self) -> Result<&'a str, JsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.error("expected a string"));
        }
        let text = self.read_string()?;
        self.state = State::Taken;
        Ok(text)
    }

    /// Takes the next value, which must be a number.
    pub fn number(&mut self) -> Result<Number<'a>, JsonError> {
        if !matches!(self.peek(), Some(b'-' | b'0'..=b'9')) {
            return Err(self.error("expected a number"));
        }
        let start = self.at;
        self.skip_number()?;
        self.state = State::Taken;
        Ok(Number::new(self.slice(start, self.at)))
    }

    /// Takes the next value, which must be `true` or `false`.
    pub fn bool(&mut self) -> Result<bool, JsonError> {
        let value = match self.peek() {
            Some(b't') => true,
            Some(b'f') => false,
            _ => return Err(self.error("expected true or false")),
        };
        self.skip_literal(if value { "true" } else { "false" })?;
        self.state = State::Taken;
        Ok(value)
    }

    /// Takes the next value if it is `null`; otherwise returns false and does not take it.
    #[inline]
    pub fn null(&mut self) -> Result<bool, JsonError> {
        if self.peek() != Some(b'n') {
            return Ok(false);
        }
        self.skip_literal("null")?;
        self.state = State::Taken;
        Ok(true)
    }

    /// Whether the value behind the last key or item has not been taken yet.
    #[inline]
    pub fn pending(&self) -> bool {
        self.state == State::Pending
    }

    /// Lets `read` try to take the next value in its most common form. If `read` fails or returns `None`, the parser goes back
    /// to the value. Repeated keys in it are not reported, as with [`Parser::raw_value`].
    pub fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<Option<T>, JsonError>) -> Option<T> {
        let (at, depth, state, keys) = (self.at, self.depth, self.state, self.keys.take());
        let found = read(self).unwrap_or_default();
        self.keys = keys;
        if found.is_none() {
            (self.at, self.depth, self.state) = (at, depth, state);
        }
        found
    }

    /// Checks that only white space follows the root value; skips that value if you did not take it.
    pub fn end(&mut self) -> Result<(), JsonError> {
        if self.state == State::Pending {
            self.skip_value()?;
        }
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error("expected the end of the text")),
        }
    }

    /// The arena for decoded strings. You may allocate in it too.
    pub fn arena(&self) -> &'a Arena {
        self.arena
    }

    /// Offset in bytes of the next byte from the start of the text.
    pub fn offset(&self) -> usize {
        self.at
    }

    fn enter(&mut self, opener: u8) -> Result<bool, JsonError> {
        if self.kind()? != (if opener == b'{' { Kind::Object } else { Kind::Array }) {
            return Ok(false);
        }
        if self.depth == MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        self.at += 1;
        self.depth += 1;
        self.state = State::Opened;
        Ok(true)
    }

    /// Moves to the next entry of the container that ends with `closer`; false behind its end.
    #[inline]
    fn advance(&mut self, closer: u8) -> Result<bool, JsonError> {
        if self.state == State::Pending {
            self.skip_value()?;
        }
        let next = self.peek();
        if next == Some(closer) {
            self.at += 1;
            self.depth = self.depth.saturating_sub(1);
            self.state = State::Taken;
            return Ok(false);
        }
        if self.state == State::Opened {
            return if next.is_some() {
                Ok(true)
            } else {
                Err(self.error("the text ends inside a container"))
            };
        }
        if next != Some(b',') {
            return Err(self.error("expected \",\" or the end of the container"));
        }
        self.at += 1;
        Ok(true)
    }

    /// The next byte that is not white space.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        let byte = *self.text.as_bytes().get(self.at)?;
        if byte > b' ' { Some(byte) } else { self.peek_behind_space() }
    }

    /// Usually there is only one space: no loop for it.
    #[inline]
    fn peek_behind_space(&mut self) -> Option<u8> {
        if let Some([b' ', byte @ b'!'..=u8::MAX]) = self.text.as_bytes().get(self.at..self.at + 2) {
            self.at += 1;
            return Some(*byte);
        }
        self.peek_in_loop()
    }

    #[cold]
    fn peek_in_loop(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// The text between two offsets of ASCII bytes.
    #[inline]
    fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    fn error(&self, problem: &'static str) -> JsonError {
        JsonError { offset: self.at, problem }
    }
}

#[cfg(test)]
mod tests;
