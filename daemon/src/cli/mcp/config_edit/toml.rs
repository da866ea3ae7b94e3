//! Configuration files in TOML.

use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value};

use super::{EditError, Edited, EntryLocation, ServerEntry};

/// The end of a line on Windows. The library writes only the other one.
const CRLF: &str = "\r\n";

pub(super) fn install(
    text: &str,
    key: &str,
    place: EntryLocation<'_>,
    entry: &ServerEntry,
) -> Result<Edited, EditError> {
    let mut document = parse(text)?;
    let servers = document.entry(key).or_insert_with(|| {
        let mut table = Table::new();
        // Only the tables below it have a header.
        table.set_implicit(true);
        Item::Table(table)
    });
    let servers = table(servers, key)?;
    let before = if let Some(known) = servers.get_mut(place.name) {
        let known = table(known, place.name)?;
        let found = read_own(known, place)?;
        write(known, entry);
        Some(found)
    } else {
        let mut table = Table::new();
        write(&mut table, entry);
        servers.insert(place.name, Item::Table(table));
        None
    };
    Ok(Edited { text: with_line_ends_of(text, &document)?, before })
}

pub(super) fn uninstall(text: &str, key: &str, place: EntryLocation<'_>) -> Result<Edited, EditError> {
    let mut document = parse(text)?;
    let absent = || Ok(Edited { text: text.to_owned(), before: None });
    let Some(servers) = document.get_mut(key) else { return absent() };
    let servers = table(servers, key)?;
    let Some(known) = servers.get_mut(place.name) else { return absent() };
    let before = read_own(table(known, place.name)?, place)?;
    servers.remove(place.name);
    Ok(Edited { text: with_line_ends_of(text, &document)?, before: Some(before) })
}

/// Reads an entry, if it is ours.
fn read_own(known: &dyn TableLike, place: EntryLocation<'_>) -> Result<ServerEntry, EditError> {
    let found = read(known);
    if found.is_ours(place.executable) { Ok(found) } else { Err(EditError::Foreign(place.name.to_owned())) }
}

fn write(table: &mut dyn TableLike, entry: &ServerEntry) {
    table.insert("command", value(&entry.command));
    table.insert("args", value(entry.args.iter().collect::<Array>()));
}

fn parse(text: &str) -> Result<DocumentMut, EditError> {
    text.parse::<DocumentMut>().map_err(|error| EditError::Syntax(error.to_string()))
}

/// Writes a document with the line ends of `text`.
fn with_line_ends_of(text: &str, document: &DocumentMut) -> Result<String, EditError> {
    let written = document.to_string();
    match (text.matches(CRLF).count(), text.matches('\n').count()) {
        (0, _) => Ok(written),
        (windows, all) if windows == all => Ok(written.replace('\n', CRLF)),
        _ => Err(EditError::Syntax("it has line ends of two kinds".to_owned())),
    }
}

fn table<'a>(item: &'a mut Item, name: &str) -> Result<&'a mut dyn TableLike, EditError> {
    item.as_table_like_mut().ok_or_else(|| EditError::WrongType(format!("{name:?}"), "a table"))
}

/// Reads an entry. What is not a text counts as empty, so that the entry is not ours.
fn read(entry: &dyn TableLike) -> ServerEntry {
    let string = |value: &toml_edit::Value| value.as_str().unwrap_or_default().to_owned();
    let args = entry.get("args").and_then(Item::as_array);
    ServerEntry {
        command: entry.get("command").and_then(Item::as_str).unwrap_or_default().to_owned(),
        args: args.map(|args| args.iter().map(string).collect()).unwrap_or_default(),
    }
}
