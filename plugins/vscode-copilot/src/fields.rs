//! How the fields of objects are read, and which values are ids and times.

use satchel_importer::{
    Fields,
    json::{FieldReader, Value, time_of_text},
};

/// Answers of agents have thousands of parts.
pub(crate) const FIELD_READER: FieldReader = FieldReader::new().max_members(100_000);

/// Takes the id at `key`. An empty one is removed.
pub(crate) fn take_id<'a>(fields: &mut Fields<'a>, key: &str) -> Option<&'a str> {
    fields.remove_text(key, "");
    fields.take_id(key)
}

/// Takes the time at `key`, in microseconds. A value that is no time stays.
pub(crate) fn take_time(fields: &mut Fields<'_>, key: &str) -> Option<i64> {
    let time = time(fields.get(key))?;
    fields.take(key);
    Some(time)
}

/// The time in `value`, in microseconds: milliseconds as a number, or a date-time.
pub(crate) fn time(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Raw(raw) if raw.starts_with(|first: char| first.is_ascii_digit()) => time_of_text(raw),
        Value::Text(text) => time_of_text(text).filter(|(_, note)| note.is_none()),
        Value::Raw(_) | Value::Null => None,
    }
    .map(|(micros, _)| micros)
}
