//! Recognises the databases of the program, and reads their sessions one after the other.

use std::collections::BTreeMap;

use satchel_importer::{
    Bundle, Entry, ErrorKind, ImportError, RecordKind, Sink,
    json::MAX_ID_BYTES,
    names,
    sqlite::{self, Database, Row},
};

use crate::{
    database_index::{DatabaseIndex, MAX_ROWS, RowKind, SESSION_TABLES, is_session_table, or_skip},
    database_session,
    layout::{self, Place},
    storage_index::StorageIndex,
};

/// Endings of the names of databases. Reading the first bytes of all files would take too long in a folder with many.
const ENDINGS: [&str; 4] = [".db", ".sqlite", ".sqlite3", ".bak"];
/// Projects whose rows are known by their ids.
const MAX_PROJECTS: usize = 50_000;

/// A database that is read.
pub(crate) struct OpenDatabase<'b> {
    pub(crate) bundle: &'b Bundle,
    pub(crate) path: &'b str,
    pub(crate) database: &'b Database,
    /// The rows of projects by their ids.
    pub(crate) projects: BTreeMap<String, i64>,
}

/// The databases of the program among the files.
pub(crate) fn databases(bundle: &Bundle) -> Result<Vec<&str>, ImportError> {
    let mut found = Vec::new();
    for entry in bundle.entries() {
        let path = entry.path.as_str();
        if may_be_database(path) && Database::sample(bundle, path)?.is_some_and(|database| is_own(&database))
        {
            found.push(path);
        }
    }
    Ok(found)
}

fn may_be_database(path: &str) -> bool {
    ENDINGS.iter().any(|ending| path.ends_with(ending)) && !names::is_junk(path)
}

/// Whether there are tables with sessions and with messages.
fn is_own(database: &Database) -> bool {
    let has = |kind: RowKind| database.table(kind.table()).is_some_and(|table| table.has(kind.columns()));
    let sessions = SESSION_TABLES.iter().filter_map(|name| database.table(name)).any(is_session_table);
    sessions && (has(RowKind::Projection) || (has(RowKind::Message) && has(RowKind::Part)))
}

/// The files of the database at `path`: its own, and the lists of changed files that the program keeps beside it for sessions of the
/// database. Those of sessions in the storage belong to the storage.
pub(crate) fn files(bundle: &Bundle, path: &str, index: &StorageIndex<'_>) -> Vec<String> {
    let mut files = sqlite::files(bundle, path);
    let root = storage_of(path);
    let own = |entry: &&Entry| match layout::place(&entry.path) {
        Some(Place::Changes { root: found, session }) => {
            found == root && !index.sessions.contains_key(&(found, session))
        }
        _ => false,
    };
    files.extend(bundle.entries().iter().filter(own).map(|entry| entry.path.clone()));
    files
}

/// The folder of the storage beside the database at `path`, with its last `/`.
pub(crate) fn storage_of(path: &str) -> String {
    let folder = path.rsplit_once('/').map(|(folder, _)| format!("{folder}/")).unwrap_or_default();
    format!("{folder}storage/")
}

/// Reads all sessions of the database at `path`.
pub(crate) fn read(bundle: &Bundle, path: &str, sink: &mut Sink) -> Result<(), ImportError> {
    read_in_batches(bundle, path, MAX_ROWS, sink)
}

fn read_in_batches(bundle: &Bundle, path: &str, max_rows: usize, sink: &mut Sink) -> Result<(), ImportError> {
    let database = match Database::open(bundle, path) {
        Err(error) if matches!(error.kind, ErrorKind::Malformed | ErrorKind::Limit) => {
            return sink.skip(RecordKind::File, path, &error.message);
        }
        database => database?,
    };
    let mut open = OpenDatabase { bundle, path, database: &database, projects: BTreeMap::new() };
    open.read_projects(sink)?;
    let mut index = DatabaseIndex::read(&database, max_rows, sink)?;
    while let Some(batch) = index.next_batch(sink)? {
        for at in batch {
            database_session::read(&open, index.take(at), sink)?;
        }
    }
    Ok(())
}

impl OpenDatabase<'_> {
    /// The row with this number, which was found when all rows were listed.
    pub(crate) fn row(&self, kind: RowKind, rowid: i64) -> Result<Option<Row<'_>>, ImportError> {
        let Some(table) = self.database.table(kind.table()) else { return Ok(None) };
        let row = self.database.row(table, rowid)?;
        // The rows of a damaged page may be out of order.
        let absent = || ImportError::malformed("its row cannot be found").at(self.locator(kind, rowid));
        row.map(Some).ok_or_else(absent)
    }

    /// Where a row is, for reports.
    pub(crate) fn locator(&self, kind: RowKind, rowid: i64) -> String {
        format!("{}#{}[rowid {rowid}]", self.path, kind.table())
    }

    fn read_projects(&mut self, sink: &mut Sink) -> Result<(), ImportError> {
        let Some(table) = self.database.table("project").filter(|table| table.has(&["id", "worktree"]))
        else {
            return Ok(());
        };
        for row in self.database.rows(table) {
            let Some(row) = or_skip(row, RecordKind::File, self.path, sink)? else { continue };
            let id = or_skip(row.text("id"), RecordKind::File, &row.locator(), sink)?.flatten();
            if self.projects.len() >= MAX_PROJECTS {
                sink.skip(RecordKind::File, &row.locator(), "the database has more projects than fit")?;
            } else if let Some(id) = id.filter(|id| id.len() <= MAX_ID_BYTES) {
                self.projects.insert(id, row.rowid());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use satchel_importer::Line;

    use super::*;

    const BYTES: &[u8] = include_bytes!("../fixtures/sessions-in-a-database/input/opencode.db");

    fn lines(max_rows: usize) -> Vec<Line> {
        lines_of(BYTES, max_rows)
    }

    fn lines_of(bytes: &[u8], max_rows: usize) -> Vec<Line> {
        let mut sink = Sink::collecting();
        let bundle = Bundle::from_files([("opencode.db", bytes)]);
        read_in_batches(&bundle, "opencode.db", max_rows, &mut sink).expect("it is a database");
        sink.into_lines()
    }

    #[test]
    fn rows_that_are_out_of_order_are_not_lost_without_a_report() {
        let is_report = |line: &&Line| matches!(line, Line::Skip(_) | Line::Warning(_));
        let reports = |lines: &[Line]| lines.iter().filter(is_report).count();
        let texts = |lines: &[Line]| {
            lines.iter().filter(|line| !is_report(line)).map(|line| format!("{line:?}").len()).sum::<usize>()
        };
        let before = lines(MAX_ROWS);
        let page_size = usize::from(u16::from_be_bytes([BYTES[16], BYTES[17]]));
        let mut lost = 0;
        for leaf in (page_size..BYTES.len()).step_by(page_size).filter(|page| BYTES[*page] == 0x0d) {
            let cells = usize::from(u16::from_be_bytes([BYTES[leaf + 3], BYTES[leaf + 4]]));
            let mut bytes = BYTES.to_vec();
            let list = &mut bytes[leaf + 8..][..2 * cells];
            list.as_chunks_mut::<2>().0.reverse();
            let lines = lines_of(&bytes, MAX_ROWS);
            let fewer = texts(&lines) < texts(&before);
            assert!(!fewer || reports(&lines) > reports(&before), "page {}", leaf / page_size + 1);
            lost += usize::from(fewer);
        }
        assert!(lost > 0);
    }

    #[test]
    fn a_database_with_more_rows_than_fit_is_read_in_several_batches() {
        let all = lines(MAX_ROWS);
        assert_eq!(all.len(), 5);
        // The largest session has 40 rows.
        for max_rows in [40, 50, 60, 90] {
            assert_eq!(lines(max_rows), all, "{max_rows}");
        }
    }

    #[test]
    fn rows_of_one_session_that_do_not_fit_are_reported() {
        let skips = lines(10).into_iter().filter(|line| matches!(line, Line::Skip(_))).count();
        assert!(skips > 20, "{skips}");
    }
}
