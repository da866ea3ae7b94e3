//! Reads the sessions that older versions keep in a database of the program's state.
//!
//! The database has many keys, some of them with secrets. Only the value of one key is ever read.

use std::ops::Range;

use satchel_importer::{
    Bundle, ErrorKind, ImportError, RecordKind, Sink, names,
    sqlite::{Database, Row},
    unless_malformed,
};

use elements::Elements;

mod elements;

/// The table of keys and values, and the key of the list of sessions.
const TABLE: &str = "ItemTable";
const KEY: &str = "interactive.sessions";
/// Bytes of the list that are looked at together to find its sessions.
const CHUNK: u64 = 4 * 1024 * 1024;
/// Bytes of the list. The program keeps 25 sessions in it.
const MAX_LIST: u64 = 256 * 1024 * 1024;
/// Bytes of one session, which is in memory while it is read.
const MAX_SESSION: u64 = 24 * 1024 * 1024;
/// The end of the name of the copy that the program makes.
const BACKUP: &str = ".backup";

/// The databases among the files, by their names. A copy counts if the database itself is not there.
pub(crate) fn candidates(bundle: &Bundle) -> impl Iterator<Item = &str> {
    let fits = |path: &&str| {
        let copied = path.strip_suffix(BACKUP);
        names::has_extension(copied.unwrap_or(path), "vscdb")
            && copied.is_none_or(|original| bundle.entry(original).is_none())
            && !names::is_junk(path)
    };
    bundle.entries().iter().map(|entry| entry.path.as_str()).filter(fits)
}

/// The first bytes of the list of sessions; none if the database has no such list.
pub(crate) fn head(bundle: &Bundle, path: &str, bytes: u64) -> Result<Option<Vec<u8>>, ImportError> {
    let Some(database) = Database::sample(bundle, path)? else { return Ok(None) };
    match find(&database, |_| Ok(()))? {
        Some(row) => unless_malformed(row.part("value", 0..bytes)),
        None => Ok(None),
    }
}

/// Calls `each` for each session of the list, with a bundle that has its text at a path that says where it is.
pub(crate) fn sessions(
    bundle: &Bundle,
    path: &str,
    sink: &mut Sink,
    mut each: impl FnMut(&Bundle, &str, &mut Sink) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let Some(database) = or_skip(Database::open(bundle, path), RecordKind::File, path, sink)? else {
        return Ok(());
    };
    let row = find(&database, |error| {
        sink.skip(RecordKind::File, error.locator.as_deref().unwrap_or(path), &error.message)
    })?;
    let Some(row) = row else { return Ok(()) };
    let size = row.size("value").unwrap_or_default();
    if size > MAX_LIST {
        let problem = format!("the list of sessions has {size} bytes, which is more than {MAX_LIST}");
        return sink.skip(RecordKind::Conversation, &row.locator(), &problem);
    }
    // The newest session is the first one of the list.
    for (at, range) in ranges(&row, size, sink)?.into_iter().enumerate().rev() {
        let place = format!("{}[{at}]", row.locator());
        let length = range.end - range.start;
        if length > MAX_SESSION {
            sink.skip(RecordKind::Conversation, &place, &format!("it is longer than {MAX_SESSION} bytes"))?;
            continue;
        }
        let text = row.part("value", range);
        let Some(text) = or_skip(text, RecordKind::Conversation, &place, sink)? else { continue };
        let read = each(&Bundle::in_memory(&place, text), &place, sink);
        or_skip(read, RecordKind::Conversation, &place, sink)?;
    }
    Ok(())
}

/// Reports what cannot be read, and goes on without it.
fn or_skip<T>(
    result: Result<T, ImportError>,
    kind: RecordKind,
    place: &str,
    sink: &mut Sink,
) -> Result<Option<T>, ImportError> {
    match result {
        Err(error) if matches!(error.kind, ErrorKind::Malformed | ErrorKind::NotThisFormat) => {
            sink.skip(kind, place, &error.message)?;
            Ok(None)
        }
        other => other.map(Some),
    }
}

/// Where the sessions of the list are.
fn ranges(row: &Row<'_>, size: u64, sink: &mut Sink) -> Result<Vec<Range<u64>>, ImportError> {
    let mut elements = Elements::default();
    for start in (0..size).step_by(usize::try_from(CHUNK).unwrap_or(usize::MAX)) {
        let part = row.part("value", start..start + CHUNK);
        match or_skip(part, RecordKind::Conversation, &row.locator(), sink)? {
            Some(part) => elements.add(&part),
            // The sessions before the damaged place are read.
            None => return Ok(elements.finish().0),
        }
    }
    let (ranges, problem) = elements.finish();
    if let Some(problem) = problem {
        sink.skip(RecordKind::Conversation, &row.locator(), problem)?;
    }
    Ok(ranges)
}

/// The row with the list of sessions. Of the others, only the key is read.
fn find(
    database: &Database,
    mut damaged: impl FnMut(ImportError) -> Result<(), ImportError>,
) -> Result<Option<Row<'_>>, ImportError> {
    let Some(table) = database.table(TABLE).filter(|table| table.has(&["key", "value"])) else {
        return Ok(None);
    };
    for row in database.rows(table) {
        let row = row.and_then(|row| Ok(row.text("key")?.is_some_and(|key| key == KEY).then_some(row)));
        match row {
            Ok(Some(row)) => return Ok(Some(row)),
            Ok(None) => {}
            Err(error) if matches!(error.kind, ErrorKind::Malformed | ErrorKind::Limit) => damaged(error)?,
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
