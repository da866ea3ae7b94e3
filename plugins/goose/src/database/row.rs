//! The rows of sessions and messages as an export has them, so that both become the same records.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Fields, ImportError, Parser,
    json::Value as Json,
    sqlite::{ObjectText, Row, Value},
};

use super::tables::List;
use crate::{session::Session, transcript::MAX_LENGTH};

/// Columns with the JSON text of what an export has under another name.
const JSON_COLUMNS: [(&str, &str); 6] = [
    ("extension_data", "extension_data"),
    ("recipe_json", "recipe"),
    ("user_recipe_values_json", "user_recipe_values"),
    ("model_config_json", "model_config"),
    ("metadata_json", "metadata"),
    ("parent_delegation", "parent_delegation"),
];
/// Columns with a time.
const TIMES: [&str; 3] = ["created_at", "updated_at", "archived_at"];
/// Columns with counts of tokens, which an export of the same version has in objects, and their names there.
const TOKENS: [(&str, &str); 5] = [
    ("input_tokens", "input_tokens"),
    ("output_tokens", "output_tokens"),
    ("total_tokens", "total_tokens"),
    ("cache_read_tokens", "cache_read_input_tokens"),
    ("cache_write_tokens", "cache_write_input_tokens"),
];
/// The column that the versions have which put those counts into objects.
const HAS_OBJECTS: &str = "cache_read_tokens";
const ACCUMULATED: &str = "accumulated_";
/// Columns of messages that say where and when the row was written.
const OF_ROWS: [&str; 4] = ["id", "session_id", "thread_id", "timestamp"];

/// A session in a row.
pub(crate) struct SessionRow {
    pub(crate) session: Session,
    /// The thread to which it belongs.
    pub(crate) thread: Option<String>,
    /// The JSON text that an export has of it.
    pub(crate) text: String,
}

/// The session in a row.
pub(crate) fn session(row: &Row<'_>, list: &List<'_>, arena: &Arena) -> Result<SessionRow, ImportError> {
    let (mut object, mut left_out) = (ObjectText::default(), Vec::new());
    let counts_in_objects = list.sessions.has(&[HAS_OBJECTS]);
    for column in list.sessions.columns() {
        let bare = column.strip_prefix(ACCUMULATED).unwrap_or(column);
        if counts_in_objects && TOKENS.iter().any(|(name, _)| *name == bare) {
            continue;
        }
        let value = row.get(column)?;
        if !add_field(&mut object, column, value, arena) {
            left_out.push(column);
        }
    }
    if counts_in_objects {
        object.json("usage", &counts(row, "")?);
        object.json("accumulated_usage", &counts(row, ACCUMULATED)?);
    }
    let text = object.finish();
    let mut session = Session::read(&Fields::parse(&text, arena)?)?;
    for column in left_out {
        session.leave_out(column);
    }
    Ok(SessionRow { session, thread: row.text("thread_id")?, text })
}

/// Adds a column of a session. False if its value cannot be read.
fn add_field(object: &mut ObjectText, column: &str, value: Value, arena: &Arena) -> bool {
    if value == Value::Null {
        return true;
    }
    if let Some((_, name)) = JSON_COLUMNS.iter().find(|(json, _)| *json == column) {
        // A text that is no JSON may have credentials that nobody finds.
        let text = json_text(value).filter(|text| is_json(text, arena));
        if let Some(text) = &text {
            object.json(name, text);
        }
        return text.is_some();
    }
    match value {
        Value::Integer(number) if column == "user_set_name" => {
            object.json(column, if number == 0 { "false" } else { "true" });
            true
        }
        Value::Text(text) if TIMES.contains(&column) => {
            object.string(column, &exported_time(&text));
            true
        }
        value => object.value(column, &value),
    }
}

fn is_json(text: &str, arena: &Arena) -> bool {
    let mut json = Parser::new(text, arena);
    json.skip_value().and_then(|()| json.end()).is_ok()
}

/// A time as an export has it. `SQLite` writes `2025-10-24 10:00:00`, and the program `2025-10-24T10:00:00+00:00`.
fn exported_time(text: &str) -> Cow<'_, str> {
    let bare = text.strip_suffix("+00:00").or(text.strip_suffix('Z')).unwrap_or(text);
    let (Some((day, time)), true) = (bare.split_once([' ', 'T']), bare.is_ascii()) else {
        return text.into();
    };
    let digits =
        |text: &str, others: &[u8]| text.bytes().all(|byte| byte.is_ascii_digit() || others.contains(&byte));
    if digits(day, b"-") && digits(time, b":.") { format!("{day}T{time}Z").into() } else { text.into() }
}

/// The counts of tokens whose columns begin with `prefix`, as an export has them.
fn counts(row: &Row<'_>, prefix: &str) -> Result<String, ImportError> {
    let mut object = ObjectText::default();
    for (column, name) in TOKENS {
        match row.get(&format!("{prefix}{column}"))? {
            Value::Null => object.json(name, "null"),
            value if object.value(name, &value) => {}
            _ => object.json(name, "null"),
        }
    }
    Ok(object.finish())
}

/// A message as the JSON text that an export has of it.
pub(crate) struct MessageText {
    pub(crate) text: String,
    /// A column whose value has no form in JSON.
    pub(crate) left_out: Option<String>,
}

/// The message in a row.
pub(crate) fn message(row: &Row<'_>, list: &List<'_>, arena: &Arena) -> Result<MessageText, ImportError> {
    let (mut object, mut left_out) = (ObjectText::default(), None);
    for column in list.messages.columns().filter(|column| !OF_ROWS.contains(column)) {
        let value = row.get(column)?;
        let kept = match column {
            "content_json" => {
                object.json("content", &content(value)?);
                true
            }
            "metadata_json" => add_metadata(&mut object, value, arena),
            "message_id" => object.value("id", &value),
            "created_timestamp" => object.value("created", &value),
            _ => object.value(column, &value),
        };
        if !kept {
            left_out = Some(column.to_owned());
        }
    }
    Ok(MessageText { text: object.finish(), left_out })
}

/// The JSON text with the parts of a message.
fn content(value: Value) -> Result<String, ImportError> {
    let text = json_text(value).ok_or_else(|| ImportError::malformed("its content is no text"))?;
    if text.len() > MAX_LENGTH {
        return Err(ImportError::malformed(format!("it is longer than {MAX_LENGTH} bytes")));
    }
    Ok(text)
}

/// Adds the metadata of a message. The program goes on without them if they are broken.
fn add_metadata(object: &mut ObjectText, value: Value, arena: &Arena) -> bool {
    if value == Value::Null {
        return true;
    }
    let text = json_text(value).filter(|text| is_json(text, arena));
    if let Some(text) = &text {
        object.json("metadata", text);
    }
    text.is_some()
}

/// A text, also if it was written as bytes.
fn json_text(value: Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text),
        Value::Blob(bytes) => String::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// The number by which messages are sorted. As for `SQLite`, those without one come first, and those with a text come last.
pub(crate) fn number(created: Json<'_>) -> i64 {
    match created {
        Json::Null => i64::MIN,
        // The parts of a second do not matter.
        Json::Raw(raw) => raw.split('.').next().and_then(|whole| whole.parse().ok()).unwrap_or(i64::MAX),
        Json::Text(_) => i64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_in_an_export() {
        for time in ["2025-10-24 10:00:00", "2025-10-24T10:00:00+00:00", "2025-10-24T10:00:00Z"] {
            assert_eq!(exported_time(time), "2025-10-24T10:00:00Z");
        }
        for other in ["", "in spring", "2025-10-24", "2025-10-24 10:00:00+02:00", "2025 um 10:00"] {
            assert_eq!(exported_time(other), other);
        }
    }
}
