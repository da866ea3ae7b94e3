//! Reads objects and arrays of a limited length.

use super::Fields;
use crate::{
    Arena,
    json::{JsonError, Kind, Parser, Value},
};

/// Reads [`Fields`] with limits of its own. Objects and arrays inside the fields are read by the same reader.
///
/// ```
/// use satchel_importer::{Arena, json::FieldReader};
/// /// Real ones have tens.
/// const FIELD_READER: FieldReader = FieldReader::new().max_members(1000);
/// let arena = Arena::new();
/// let fields = FIELD_READER.parse(r#"{"id":"a"}"#, &arena).expect("it is JSON");
/// assert_eq!(fields.id("id"), Some("a"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FieldReader {
    max_members: usize,
    empty_texts: bool,
}

/// A value, and its fields if it is an object.
#[derive(Clone, Debug)]
pub struct ValueFields<'a> {
    /// The value itself.
    pub value: Value<'a>,
    /// None if it is not an object; an error if it has too many fields.
    pub fields: Result<Option<Fields<'a>>, JsonError>,
}

impl FieldReader {
    /// Fields of one object, or items of one array, unless [`FieldReader::max_members`] says otherwise. Objects of real exports have
    /// fewer than a thousand; the limit bounds the memory that a damaged or hostile one takes.
    pub const MAX_MEMBERS: usize = 50_000;

    /// Reads up to [`FieldReader::MAX_MEMBERS`] fields or items.
    #[must_use]
    pub const fn new() -> Self {
        Self { max_members: Self::MAX_MEMBERS, empty_texts: true }
    }

    /// Reads up to `members` fields of one object, and items of one array.
    #[must_use]
    pub const fn max_members(self, members: usize) -> Self {
        Self { max_members: members, ..self }
    }

    /// Counts `""` among the empty values, which are not kept. For providers that write it for every field without a value.
    #[must_use]
    pub const fn without_empty_texts(self) -> Self {
        Self { empty_texts: false, ..self }
    }

    /// See [`Fields::none`].
    pub fn none(self, arena: &Arena) -> Fields<'_> {
        Fields { list: Vec::new(), arena, reader: self }
    }

    /// See [`Fields::read`].
    pub fn read<'a>(self, json: &mut Parser<'a>) -> Result<Fields<'a>, JsonError> {
        let mut fields = self.none(json.arena());
        if json.enter_object()? {
            while let Some(key) = json.key()? {
                self.check_length(fields.list.len(), json)?;
                fields.push(key, Value::read(json)?);
            }
        }
        Ok(fields)
    }

    /// Takes the next value if it is an object, without reading it twice: its fields, and its JSON text. Returns none, and does not take
    /// it, if it is something else, is invalid, or has what [`Parser::raw_value`] rewrites. Repeated keys in it are not reported.
    ///
    /// The same as [`Value::read`] and [`FieldReader::of`], which read all that this does not.
    pub fn attempt<'a>(self, json: &mut Parser<'a>) -> Option<(Fields<'a>, &'a str)> {
        let before = std::mem::take(&mut json.irregular);
        let found = json.attempt(|json| {
            if json.kind()? != Kind::Object {
                return Ok(None);
            }
            let start = json.at;
            let fields = self.read(json)?;
            Ok((!json.irregular).then(|| (fields, json.slice(start, json.at))))
        });
        json.irregular |= before;
        found
    }

    /// Takes the next value as [`Value::read`] does, and if it is an object, its fields too, as [`FieldReader::of`] returns them.
    ///
    /// # Errors
    /// If it is not valid JSON.
    pub fn read_value<'a>(self, json: &mut Parser<'a>) -> Result<ValueFields<'a>, JsonError> {
        if let Some((fields, raw)) = self.attempt(json) {
            return Ok(ValueFields { value: Value::Raw(raw), fields: Ok(Some(fields)) });
        }
        let value = Value::read(json)?;
        Ok(ValueFields { value, fields: self.of(value, json.arena()) })
    }

    /// The items of an array as [`FieldReader::items`] returns them, with the fields of those that are objects.
    ///
    /// # Errors
    /// Those of [`FieldReader::items`].
    pub fn item_fields<'a>(self, raw: &'a str, arena: &'a Arena) -> Result<Vec<ValueFields<'a>>, JsonError> {
        self.read_items(raw, arena, |json| self.read_value(json))
    }

    /// See [`Fields::parse`].
    pub fn parse<'a>(self, raw: &'a str, arena: &'a Arena) -> Result<Fields<'a>, JsonError> {
        let mut json = Parser::new(raw, arena);
        let fields = self.read(&mut json)?;
        // A value that is not an object was not taken.
        if !json.pending() {
            json.end()?;
        }
        Ok(fields)
    }

    /// See [`Fields::of`].
    pub fn of<'a>(self, value: Value<'a>, arena: &'a Arena) -> Result<Option<Fields<'a>>, JsonError> {
        value.object().map(|raw| self.parse(raw, arena)).transpose()
    }

    /// See [`parse_items`].
    pub fn items<'a>(self, raw: &'a str, arena: &'a Arena) -> Result<Vec<Value<'a>>, JsonError> {
        self.read_items(raw, arena, Value::read)
    }

    fn read_items<'a, T>(
        self,
        raw: &'a str,
        arena: &'a Arena,
        read: impl Fn(&mut Parser<'a>) -> Result<T, JsonError>,
    ) -> Result<Vec<T>, JsonError> {
        let mut json = Parser::new(raw, arena);
        let mut found = Vec::new();
        if json.enter_array()? {
            while json.item()? {
                self.check_length(found.len(), &json)?;
                found.push(read(&mut json)?);
            }
        }
        Ok(found)
    }

    pub(super) fn is_empty(self, value: Value<'_>) -> bool {
        match value {
            Value::Null | Value::Raw("{}" | "[]") => true,
            Value::Text(text) => text.is_empty() && !self.empty_texts,
            Value::Raw(_) => false,
        }
    }

    fn check_length(self, length: usize, json: &Parser<'_>) -> Result<(), JsonError> {
        if length < self.max_members {
            return Ok(());
        }
        Err(JsonError { offset: json.offset(), problem: "an object or a list in it has too many members" })
    }
}

impl Default for FieldReader {
    fn default() -> Self {
        Self::new()
    }
}

/// The items of an array given as JSON text, at most [`FieldReader::MAX_MEMBERS`]. Another value has no items, and is not
/// checked further than its first byte. [`crate::json::items`] returns the items before an error instead of the error.
///
/// # Errors
/// If the array is not valid JSON, or has too many items.
pub fn parse_items<'a>(raw: &'a str, arena: &'a Arena) -> Result<Vec<Value<'a>>, JsonError> {
    FieldReader::new().items(raw, arena)
}
