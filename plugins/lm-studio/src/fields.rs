//! How the fields of objects are read, and which values are times.

use satchel_importer::{
    Fields, JsonError,
    json::{EMPTY_OBJECT, FieldReader, Value, ValueFields, time_of_text},
};

/// An empty text counts as no value, and is not kept.
pub(crate) const FIELD_READER: FieldReader = FieldReader::new().without_empty_texts();

/// Removes `key`, and returns the items if its value is a list; any other value is the only item.
pub(crate) fn take_items<'a>(fields: &mut Fields<'a>, key: &str) -> Result<Vec<ValueFields<'a>>, JsonError> {
    Ok(match fields.take_array_fields(key)? {
        Some(items) => items,
        None => match fields.get(key) {
            Value::Null | Value::Text("") | Value::Raw(EMPTY_OBJECT) => Vec::new(),
            value => {
                fields.take(key);
                vec![ValueFields { value, fields: FIELD_READER.of(value, fields.arena()) }]
            }
        },
    })
}

/// A time in microseconds; zero says that there is none yet.
pub(crate) fn time_of(value: Value<'_>) -> Option<i64> {
    let text = value.text().or(value.raw())?;
    time_of_text(text).map(|(micros, _)| micros).filter(|micros| *micros > 0)
}
