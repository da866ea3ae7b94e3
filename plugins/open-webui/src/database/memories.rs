//! The table `memory`: what the person, or a model for the person, wrote down to be used in every chat.

use satchel_importer::json::time_of_text;
use satchel_importer::{
    Evidence, ImportError, Item, Leftover, RecordKind, Sink,
    pam::{memory::MemoryType, raw::RawObject},
    snapshot,
    sqlite::{Row, Table, Value},
};

use super::{Source, chats, compact::compact, text, value};

/// Columns that have a place of their own.
const OWN: [&str; 4] = ["user_id", "content", "updated_at", "created_at"];
/// Bytes of an id; those of the program are UUIDs.
const MAX_ID: usize = 256;

/// Reads every memory.
pub(super) fn read(source: &Source<'_>, sink: &mut Sink) -> Result<(), ImportError> {
    let table = source.database.table("memory").filter(|table| table.has(&["id", "user_id", "content"]));
    let Some(table) = table else { return Ok(()) };
    source.each(table, RecordKind::Memory, sink, |row, locator, sink| {
        sink.evidence(&[evidence(table, row, locator)?])
    })
}

/// A memory is a list of one entry, so that a later text of it replaces this one.
fn evidence(table: &Table, row: &Row<'_>, locator: &str) -> Result<Evidence, ImportError> {
    let content = text(row, "content")?.filter(|text| !text.trim().is_empty());
    let content = content.ok_or_else(|| ImportError::malformed("it has no text"))?;
    let id = text(row, "id")?.filter(|id| !id.is_empty() && id.len() <= MAX_ID);
    let id = id.ok_or_else(|| ImportError::malformed("it has no id"))?;
    let (created, updated) = (time(row, "created_at")?, time(row, "updated_at")?);
    let mut item = Item::new(content, MemoryType::Fact);
    (item.created_at, item.updated_at) = (created, updated);
    item.metadata = metadata(table, row)?;
    let mut evidence = snapshot(format!("memory/{id}"), vec![item], updated.or(created), locator.to_owned());
    evidence.account = text(row, "user_id")?.filter(|user| !user.is_empty());
    Ok(evidence)
}

/// Seconds, in whichever form they are stored.
fn time(row: &Row<'_>, column: &str) -> Result<Option<i64>, ImportError> {
    let text = match value(row, column)? {
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text,
        Value::Null | Value::Blob(_) => return Ok(None),
    };
    Ok(time_of_text(&text).map(|(time, _)| time))
}

/// The other columns.
fn metadata(table: &Table, row: &Row<'_>) -> Result<Option<RawObject>, ImportError> {
    let mut rest = Leftover::default();
    for column in table.columns().filter(|column| !OWN.contains(column)) {
        match value(row, column)? {
            Value::Text(text) if matches!(text.as_str(), "" | "null" | "{}") => {}
            Value::Text(text) if column == "meta" && chats::is_json(&text) => {
                rest.add_json(column, &compact(text));
            }
            Value::Text(text) => rest.add_text(column, &text),
            Value::Integer(number) => rest.add_json(column, &number.to_string()),
            Value::Real(number) if number.is_finite() => rest.add_json(column, &format!("{number:?}")),
            Value::Null => {}
            Value::Real(_) | Value::Blob(_) => {
                return Err(ImportError::malformed(format!("its column {column:?} is no text")));
            }
        }
    }
    let Some(json) = rest.into_json() else { return Ok(None) };
    let unfit = || ImportError::malformed("its other columns have a number that no program can hold");
    RawObject::parse(json.into_owned()).map(Some).map_err(|_| unfit())
}
