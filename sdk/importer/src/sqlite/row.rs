//! A row, and the values of its columns.

use std::ops::Range;

use super::{MAX_VALUE, Table, btree::varint, pages::Encoding, payload::Payload};
use crate::{ErrorKind, ImportError};

/// Bytes of the types of a row. A table has at most 32,767 columns.
const MAX_HEADER: u64 = 320 * 1024;

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// A whole number.
    Integer(i64),
    /// A number.
    Real(f64),
    /// A text. What is not valid in the encoding of the database is U+FFFD.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// A row of a table. Values are read when they are asked for.
pub struct Row<'d> {
    payload: Payload<'d>,
    table: &'d Table,
    /// For each stored column its type, and where in the row it begins.
    values: Vec<(u64, u64)>,
}

impl<'d> Row<'d> {
    pub(super) fn read(payload: Payload<'d>, table: &'d Table) -> Result<Self, ImportError> {
        let values = values(&payload, table.stored());
        let row = Self { payload, table, values: Vec::new() };
        let damaged = || ImportError::malformed("the row is damaged").at(row.locator());
        let values = values?.ok_or_else(damaged)?;
        Ok(Self { values, ..row })
    }

    /// The row's number in its table.
    pub fn rowid(&self) -> i64 {
        self.payload.rowid()
    }

    /// Bytes of the row, with those on overflow pages.
    pub(super) fn bytes(&self) -> u64 {
        self.payload.size()
    }

    /// Where the row is, for messages: `chats.db#message[rowid 17]`.
    pub fn locator(&self) -> String {
        format!("{}#{}[rowid {}]", self.payload.pages().path, self.table.name(), self.rowid())
    }

    /// The value of a column; [`Value::Null`] if the table has no such column.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if it is damaged, [`ErrorKind::Limit`] if it has more than [`MAX_VALUE`] bytes, and [`ErrorKind::Io`].
    pub fn get(&self, column: &str) -> Result<Value, ImportError> {
        let Some(column) = self.table.column(column) else { return Ok(Value::Null) };
        if column.is_rowid {
            return Ok(Value::Integer(self.rowid()));
        }
        let Some(index) = column.stored else { return Ok(Value::Null) };
        // A column that was added later is missing in the rows before.
        let Some((kind, start)) = self.values.get(index).copied() else { return Ok(column.default.clone()) };
        let value = self.value(kind, start).map_err(|error| error.at(self.locator()))?;
        Ok(match value {
            // It is stored as a whole number if it is one.
            #[expect(clippy::cast_precision_loss, reason = "it was a number of this kind before")]
            Value::Integer(number) if column.is_real => Value::Real(number as f64),
            value => value,
        })
    }

    /// The text of a column; none if it has something else.
    ///
    /// # Errors
    /// Those of [`Row::get`].
    pub fn text(&self, column: &str) -> Result<Option<String>, ImportError> {
        Ok(match self.get(column)? {
            Value::Text(text) => Some(text),
            _ => None,
        })
    }

    /// The whole number of a column; none if it has something else.
    ///
    /// # Errors
    /// Those of [`Row::get`].
    pub fn integer(&self, column: &str) -> Result<Option<i64>, ImportError> {
        Ok(match self.get(column)? {
            Value::Integer(number) => Some(number),
            _ => None,
        })
    }

    /// The bytes that the text or the bytes of a column have in the database; none if it has something else. With [`Row::part`], a value of
    /// any size is read in parts.
    pub fn size(&self, column: &str) -> Option<u64> {
        self.stored(column).map(|bytes| bytes.end - bytes.start)
    }

    /// A part of the text or the bytes of a column, as the database has it: `range` counts bytes, and ends with the value. It is empty
    /// if the column has something else.
    ///
    /// # Errors
    /// Those of [`Row::get`]; the limit is that of the part.
    pub fn part(&self, column: &str, range: Range<u64>) -> Result<Vec<u8>, ImportError> {
        let Some(bytes) = self.stored(column) else { return Ok(Vec::new()) };
        let start = bytes.start.saturating_add(range.start).min(bytes.end);
        let end = bytes.start.saturating_add(range.end).clamp(start, bytes.end);
        self.check(start..end).map_err(|error| error.at(self.locator()))?;
        self.payload.bytes(start..end).map_err(|error| error.at(self.locator()))
    }

    /// Where the bytes of a text, or bytes, are in the row.
    fn stored(&self, column: &str) -> Option<Range<u64>> {
        let index = self.table.column(column).filter(|column| !column.is_rowid)?.stored?;
        let (kind, start) = self.values.get(index).copied().filter(|(kind, _)| *kind >= 12)?;
        Some(start..start.saturating_add(size_of(kind)))
    }

    /// Fails if a part of the row is not there, or is larger than what may be in memory.
    fn check(&self, part: Range<u64>) -> Result<(), ImportError> {
        if part.end > self.payload.size() {
            return Err(ImportError::malformed("the row is shorter than its values"));
        }
        let size = part.end - part.start;
        if size > MAX_VALUE {
            let message = format!("a value has {size} bytes, which is more than {MAX_VALUE}");
            return Err(ImportError::new(ErrorKind::Limit, message));
        }
        Ok(())
    }

    fn value(&self, kind: u64, start: u64) -> Result<Value, ImportError> {
        let end = start.saturating_add(size_of(kind));
        self.check(start..end)?;
        Ok(match kind {
            0 | 10 | 11 => Value::Null,
            8 => Value::Integer(0),
            9 => Value::Integer(1),
            7 => Value::Real(f64::from_bits(self.integer_at(start..end)?.cast_unsigned())),
            1..=6 => Value::Integer(self.integer_at(start..end)?),
            _ if kind.is_multiple_of(2) => Value::Blob(self.payload.bytes(start..end)?),
            _ => Value::Text(decoded(self.payload.bytes(start..end)?, self.payload.pages().encoding)),
        })
    }

    /// A big-endian integer of one to eight bytes.
    fn integer_at(&self, range: Range<u64>) -> Result<i64, ImportError> {
        let bytes = self.payload.bytes(range)?;
        let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
        let start = if negative { -1 } else { 0 };
        Ok(bytes.iter().fold(start, |number: i64, byte| number << 8 | i64::from(*byte)))
    }
}

/// The types of at most `count` values and where they begin. None if the header is damaged.
fn values(payload: &Payload<'_>, count: usize) -> Result<Option<Vec<(u64, u64)>>, ImportError> {
    let local = payload.local();
    let Some((header, mut at)) = varint(local) else { return Ok(None) };
    let max = payload.pages().max_bytes();
    if payload.size() > max || !(at as u64..=payload.size().min(MAX_HEADER)).contains(&header) {
        return Ok(None);
    }
    let long = if header > local.len() as u64 { payload.bytes(0..header)? } else { Vec::new() };
    let types =
        if long.is_empty() { local.get(..usize::try_from(header).unwrap_or_default()) } else { Some(&*long) };
    let types = types.unwrap_or_default();
    let (mut values, mut start) = (Vec::with_capacity(count.min(types.len())), header);
    while values.len() < count && at < types.len() {
        let Some((kind, bytes)) = types.get(at..).and_then(varint) else { return Ok(None) };
        values.push((kind, start));
        start = start.saturating_add(size_of(kind));
        at += bytes;
    }
    Ok(Some(values))
}

/// The bytes of a value of this type.
fn size_of(kind: u64) -> u64 {
    match kind {
        0 | 8..=11 => 0,
        1..=4 => kind,
        5 => 6,
        6 | 7 => 8,
        _ => (kind - 12) / 2,
    }
}

fn decoded(bytes: Vec<u8>, encoding: Encoding) -> String {
    let unit = match encoding {
        Encoding::Utf8 => {
            return String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        }
        Encoding::Utf16Le => u16::from_le_bytes,
        Encoding::Utf16Be => u16::from_be_bytes,
    };
    let units = bytes.as_chunks::<2>().0.iter().map(|pair| unit(*pair));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}
