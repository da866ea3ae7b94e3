//! The SQLite database of MemU version 1: items, the categories that they are in, and the resources from which they were made.

use satchel_importer::{
    Bundle, ErrorKind, ImportError, Leftover, RecordKind, Sink,
    json::time_of_text,
    pam::raw::RawObject,
    sqlite::{self, Row, Table, Value},
    unless_malformed,
};

mod categories;
mod items;
mod links;
mod resources;

use categories::Categories;
use links::Links;
use resources::Resources;

/// What stands before the names of all tables. SQLite refuses to create those of the releases 1.2 to 1.5, `sqlite_…`, so programs that use
/// them renamed the tables, as MemU did later.
const PREFIXES: [&str; 3] = ["memu_", "sqlite_", ""];
/// Bytes of an id or of the name of a category that are used; MemU's ids are UUIDs.
const MAX_ID: usize = 256;
/// Bytes of the values of a row, which are copied several times on their way. Rows of MemU have some kilobytes, mostly of the vector.
const MAX_ROW: u64 = 8 * 1024 * 1024;
/// Rows between two reports of progress.
const PROGRESS_STEP: usize = 256;
const RECALL_FILES: &str = "it also has recall files of version 2, which are not read";
/// The columns with a vector, as JSON: until June 2026, and since.
const VECTORS: [&str; 2] = ["embedding_json", "embedding"];

/// The generation of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Version 1.
    Items,
    /// Version 2.
    RecallFiles,
}

/// What the file at `path` has, by its tables; none if it is no database of MemU.
pub(crate) fn sample(bundle: &Bundle, path: &str) -> Result<Option<Contents>, ImportError> {
    let Some(database) = sqlite::Database::sample(bundle, path)? else { return Ok(None) };
    Ok(if items::table(&database).is_some() {
        Some(Contents::Items)
    } else {
        has_recall_files(&database).then_some(Contents::RecallFiles)
    })
}

/// Emits all memories of a database.
pub(crate) fn read(bundle: &Bundle, path: &str, sink: &mut Sink) -> Result<(), ImportError> {
    let database = sqlite::Database::open(bundle, path)?;
    let source = Source { bundle, database: &database, path };
    let categories = Categories::find(&source, sink)?;
    let mut links = Links::find(&source, &categories, sink)?;
    let mut resources = Resources::find(&source, sink)?;
    items::read(&source, &categories, &mut links, &mut resources, sink)?;
    resources.report(path, sink);
    categories.read(&source, sink)?;
    links.emit(&source, &categories, sink)?;
    if has_recall_files(&database) {
        sink.warn(path, RECALL_FILES);
    }
    Ok(())
}

fn has_recall_files(database: &sqlite::Database) -> bool {
    table(database, "recall_files", &["id", "name", "description"]).is_some()
        || table(database, "file_segments", &["id", "recall_file_id", "text"]).is_some()
}

/// The table `name` of this or that version, if it has these columns.
fn table<'d>(database: &'d sqlite::Database, name: &str, columns: &[&str]) -> Option<&'d Table> {
    let named = |prefix: &&str| database.table(&format!("{prefix}{name}"));
    PREFIXES.iter().filter_map(named).find(|table| table.has(columns))
}

/// A database that is read.
struct Source<'d> {
    bundle: &'d Bundle,
    database: &'d sqlite::Database,
    path: &'d str,
}

impl<'d> Source<'d> {
    /// Calls `read` with every row of a table. A row that cannot be read, or for which `read` returns [`ErrorKind::Malformed`], is reported
    /// as skipped.
    fn each(
        &self,
        table: &'d Table,
        sink: &mut Sink,
        mut read: impl FnMut(&Row<'_>, &str, &mut Sink) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        let size = self.bundle.entry(self.path).map_or(0, |entry| entry.size);
        for (index, row) in self.database.rows(table).enumerate() {
            let mut locator = self.path.to_owned();
            let outcome = row.and_then(|row| {
                locator = row.locator();
                check_size(table, &row)?;
                read(&row, &locator, sink)
            });
            match outcome {
                Err(error) if error.kind == ErrorKind::Malformed => {
                    let place = error.locator.as_deref().unwrap_or(&locator);
                    sink.skip(RecordKind::Memory, place, &error.message)?;
                }
                other => other?,
            }
            if index % PROGRESS_STEP == 0 {
                sink.progress(self.bundle.bytes_read().min(size), Some(size))?;
            }
        }
        Ok(())
    }

    /// Calls `read` with every row that can be read; for tables that are read a second time.
    fn each_readable(
        &self,
        table: &'d Table,
        mut read: impl FnMut(&Row<'_>) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        for row in self.database.rows(table) {
            unless_malformed(row.and_then(|row| check_size(table, &row).and_then(|()| read(&row))))?;
        }
        Ok(())
    }
}

/// Fails if a row is longer than what fits into memory several times.
fn check_size(table: &Table, row: &Row<'_>) -> Result<(), ImportError> {
    let bytes = table.columns().filter_map(|column| row.size(column)).fold(0, u64::saturating_add);
    if bytes > MAX_ROW {
        return Err(ImportError::malformed(format!("its values have more than {MAX_ROW} bytes")));
    }
    Ok(())
}

/// The value of a column. One that is too long costs only its row, as a damaged one does.
fn value(row: &Row<'_>, column: &str) -> Result<Value, ImportError> {
    row.get(column).map_err(|error| match error.kind {
        ErrorKind::Limit => ImportError { kind: ErrorKind::Malformed, ..error },
        _ => error,
    })
}

/// The text of a column; none if it is empty or has something else.
fn text(row: &Row<'_>, column: &str) -> Result<Option<String>, ImportError> {
    Ok(match value(row, column)? {
        Value::Text(text) if !text.trim().is_empty() => Some(text),
        _ => None,
    })
}

/// The id in a column; none if it is longer than those of MemU.
fn id(row: &Row<'_>, column: &str) -> Result<Option<String>, ImportError> {
    Ok(text(row, column)?.filter(|id| id.len() <= MAX_ID))
}

/// A time as the program writes it, in UTC.
fn time(row: &Row<'_>, column: &str) -> Result<Option<i64>, ImportError> {
    Ok(text(row, column)?.as_deref().and_then(time_of_text).map(|(time, _)| time))
}

/// Adds the columns of a row that are not `taken`: JSON as such, everything else as text or number.
fn add_columns<'t>(
    table: &'t Table,
    row: &Row<'_>,
    taken: &[&str],
    rest: &mut Leftover<'t>,
) -> Result<(), ImportError> {
    for column in table.columns().filter(|column| !taken.contains(column)) {
        match value(row, column)? {
            Value::Null => {}
            Value::Text(text) if matches!(text.as_str(), "" | "null" | "{}") => {}
            Value::Text(text) if text.starts_with('{') && RawObject::parse(text.clone()).is_ok() => {
                rest.add_json(column, &text);
            }
            Value::Text(text) => rest.add_text(column, &text),
            Value::Integer(number) => rest.add_json(column, &number.to_string()),
            Value::Real(number) if number.is_finite() => rest.add_json(column, &format!("{number:?}")),
            Value::Real(_) | Value::Blob(_) => {
                return Err(ImportError::malformed(format!("its column {column:?} is no text")));
            }
        }
    }
    Ok(())
}

/// The metadata of a memory: these fields under `memu`.
fn metadata(origin: Leftover<'_>) -> Result<Option<RawObject>, ImportError> {
    let Some(json) = origin.into_json() else { return Ok(None) };
    let mut metadata = Leftover::default();
    metadata.add_json("memu", &json);
    let json = metadata.into_json().unwrap_or_default().into_owned();
    let unfit = |_| ImportError::malformed("its other columns have something that no program can hold");
    RawObject::parse(json).map(Some).map_err(unfit)
}

/// A word in the form of a PAM tag; none if nothing of it is left.
fn tag(word: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let word = word.to_lowercase();
    let pieces: Vec<&str> = word.split(|c| !fits(c)).filter(|piece| !piece.is_empty()).collect();
    (!pieces.is_empty()).then(|| format!("memu-{}", pieces.join("-")))
}

#[cfg(test)]
mod tests {
    use super::tag;

    #[test]
    fn tags_have_the_form_of_pam() {
        assert_eq!(tag("Personal & Info").as_deref(), Some("memu-personal-info"));
        assert_eq!(tag("work_life").as_deref(), Some("memu-work_life"));
        assert_eq!(tag("趣味"), None);
    }
}
