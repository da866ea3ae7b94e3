//! How the fields of objects are read, and which values are times.

use satchel_importer::json::{FieldReader, Value, time_of_text};

/// An empty text counts as no value, and is not kept.
pub(crate) const FIELD_READER: FieldReader = FieldReader::new().without_empty_texts();

/// A time in microseconds; zero says that there is none yet.
pub(crate) fn time_of(value: Value<'_>) -> Option<i64> {
    let text = value.text().or(value.raw())?;
    time_of_text(text).map(|(micros, _)| micros).filter(|micros| *micros > 0)
}
