//! Ids, times and values in the fields of objects.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Fields, JsonError, Parser,
    json::{MAX_ID_BYTES, time_of_text},
    natural_key,
};

/// The id that the name of a file gives; a name may be longer than an id.
pub(crate) fn id_of_name(name: &str) -> Cow<'_, str> {
    if name.len() <= MAX_ID_BYTES { Cow::Borrowed(name) } else { Cow::Owned(natural_key(&[Some(name)])) }
}

/// The time in milliseconds at `key`, in microseconds.
pub(crate) fn time_at(fields: &Fields<'_>, key: &str) -> Option<i64> {
    time_of_text(fields.get(key).raw()?).map(|(micros, _)| micros)
}

/// The JSON text of one value, checked as a whole.
pub(crate) fn value(text: &str, arena: &Arena) -> Result<String, JsonError> {
    let mut json = Parser::new(text, arena);
    let raw = json.raw_value()?.to_owned();
    json.end()?;
    Ok(raw)
}
