//! A pull parser over one element: typed values in order, raw text where it is wanted, lenient where exports are odd.
//!
//! It reads strict JSON, except that it takes lone surrogate escapes (decoded as U+FFFD) and raw control characters in
//! strings, which exports hold. Nothing recurses, and nesting is bounded by [`MAX_DEPTH`].

use crate::Arena;
use keys::Keys;

mod error;
mod keys;
mod leftover;
mod number;
mod raw;
mod string;
mod time;
mod value;

pub use error::JsonError;
pub(crate) use keys::Repeated;
pub use leftover::{Leftover, quote, with_members};
pub use number::Number;
pub use time::{day, time_of_text};
pub use value::{Object, Value, items, objects, texts};

/// Deepest nesting of arrays and objects. PAM takes 100 levels of raw metadata; what is built around a raw value needs
/// the rest.
pub const MAX_DEPTH: u32 = 96;

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
    /// Holds a string while its escapes are decoded.
    scratch: Vec<u8>,
    /// The keys of open objects, where repeated ones are told of.
    keys: Option<Keys<'a>>,
}

/// What stands between the last call and the next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Just behind `[` or `{`.
    Opened,
    /// A value that nobody has taken yet.
    Pending,
    /// A value that was taken.
    Taken,
}

impl<'a> Parser<'a> {
    /// Starts at the first byte of `text`; decoded strings live in `arena`.
    pub fn new(text: &'a str, arena: &'a Arena) -> Self {
        Self { text, at: 0, depth: 0, state: State::Pending, arena, scratch: Vec::new(), keys: None }
    }

    /// Like [`Parser::new`]; `repeated` hears of keys that stand twice in an object walked with [`Parser::key`].
    pub(crate) fn noting(text: &'a str, arena: &'a Arena, repeated: &'a Repeated) -> Self {
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

    /// Goes into the next value if it is an object; any other value stays where it is. Walk it with [`Parser::key`] to
    /// its end.
    pub fn enter_object(&mut self) -> Result<bool, JsonError> {
        let entered = self.enter(b'{')?;
        if entered && let Some(keys) = &mut self.keys {
            keys.open();
        }
        Ok(entered)
    }

    /// Goes into the next value if it is an array; any other value stays where it is. Walk it with [`Parser::item`] to
    /// its end.
    pub fn enter_array(&mut self) -> Result<bool, JsonError> {
        self.enter(b'[')
    }

    /// The next key of the object that was entered last; none at its end. A value that was not taken is passed over.
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

    /// Whether the array that was entered last has another item, which is next then. One that was not taken is passed
    /// over.
    #[inline]
    pub fn item(&mut self) -> Result<bool, JsonError> {
        let more = self.advance(b']')?;
        if more {
            self.state = State::Pending;
        }
        Ok(more)
    }

    /// The next value, which must be a string.
    #[inline]
    pub fn string(&mut self) -> Result<&'a str, JsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.error("expected a string"));
        }
        let text = self.read_string()?;
        self.state = State::Taken;
        Ok(text)
    }

    /// The next value, which must be a number.
    pub fn number(&mut self) -> Result<Number<'a>, JsonError> {
        if !matches!(self.peek(), Some(b'-' | b'0'..=b'9')) {
            return Err(self.error("expected a number"));
        }
        let start = self.at;
        self.pass_number()?;
        self.state = State::Taken;
        Ok(Number::new(self.slice(start, self.at)))
    }

    /// The next value, which must be `true` or `false`.
    pub fn bool(&mut self) -> Result<bool, JsonError> {
        let value = match self.peek() {
            Some(b't') => true,
            Some(b'f') => false,
            _ => return Err(self.error("expected true or false")),
        };
        self.pass_word(if value { "true" } else { "false" })?;
        self.state = State::Taken;
        Ok(value)
    }

    /// Takes the next value if it is `null`; any other value stays where it is.
    #[inline]
    pub fn null(&mut self) -> Result<bool, JsonError> {
        if self.peek() != Some(b'n') {
            return Ok(false);
        }
        self.pass_word("null")?;
        self.state = State::Taken;
        Ok(true)
    }

    /// Whether the value behind the last key or item has not been taken yet.
    #[inline]
    pub fn pending(&self) -> bool {
        self.state == State::Pending
    }

    /// Lets `read` take the next value in a form that it nearly always has. Where that gives none, the value has not been
    /// taken. Keys that repeat are not told of, as with [`Parser::raw_value`].
    pub fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<Option<T>, JsonError>) -> Option<T> {
        let (at, depth, state, keys) = (self.at, self.depth, self.state, self.keys.take());
        let found = read(self).unwrap_or_default();
        self.keys = keys;
        if found.is_none() {
            (self.at, self.depth, self.state) = (at, depth, state);
        }
        found
    }

    /// Checks that nothing but white space follows the root value.
    pub fn end(&mut self) -> Result<(), JsonError> {
        if self.state == State::Pending {
            self.skip_value()?;
        }
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error("expected the end of the text")),
        }
    }

    /// The arena in which decoded strings live; a place for the caller's own, too.
    pub fn arena(&self) -> &'a Arena {
        self.arena
    }

    /// Bytes from the start of the text to the next one.
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

    /// Moves to the next entry of the container that `closer` ends, or out of it.
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

    /// Usually one space or none: straight on before the loop.
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

    /// The text between two offsets that both stand at ASCII bytes.
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
