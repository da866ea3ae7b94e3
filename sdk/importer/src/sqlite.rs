//! Reads databases of SQLite 3, in which programs keep their conversations: rows of tables, in order and by their rowid, with what is
//! in the write-ahead log.
//!
//! The format is that of <https://www.sqlite.org/fileformat2.html>. Indexes, views and tables without rowids are not read. A database
//! is hostile input: a page that is damaged or used twice costs only its own rows.

mod btree;
mod default;
mod object;
mod pages;
mod payload;
mod row;
mod rows;
mod schema;
mod sql;
#[cfg(test)]
mod tests;
mod wal;

use pages::Pages;
use schema::Schema;

pub use object::ObjectText;
pub use row::{Row, Value};
pub use rows::Rows;
pub use schema::Table;

use crate::{Bundle, ErrorKind, ImportError};

/// The first bytes of every database.
pub const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Bytes of one value that are read. A sandbox has 128 MiB, and a value is copied a few times on its way.
pub const MAX_VALUE: u64 = 24 * 1024 * 1024;

/// Bytes of a write-ahead log that are read to recognise a database.
const MAX_SAMPLED_LOG: u64 = 8 * 1024 * 1024;

/// A database that is open for reading.
pub struct Database {
    pages: Pages,
    schema: Schema,
}

/// The database at `path` and the files beside it that belong to it, as far as the export has them: `-wal`, `-shm` and `-journal`.
pub fn files(bundle: &Bundle, path: &str) -> Vec<String> {
    let names = ["", "-wal", "-shm", "-journal"].map(|suffix| format!("{path}{suffix}"));
    names.into_iter().filter(|name| bundle.entry(name).is_some()).collect()
}

impl Database {
    /// Opens the database at `path` with its write-ahead log, `path-wal`, if the export has it.
    ///
    /// # Errors
    /// [`ErrorKind::NotThisFormat`] if it is no database of SQLite 3, [`ErrorKind::Malformed`] if its header or the list of its tables
    /// is damaged, or if a transaction was interrupted and has to be rolled back first; [`ErrorKind::Limit`] and [`ErrorKind::Io`].
    pub fn open(bundle: &Bundle, path: &str) -> Result<Self, ImportError> {
        let database = Self::with_log(bundle, path, u64::MAX);
        // An interrupted transaction may be the reason for what is malformed.
        if !matches!(&database, Err(error) if error.kind == ErrorKind::NotThisFormat) {
            pages::refuse_interrupted(bundle, path)?;
        }
        database
    }

    /// Opens a database to recognise it: a write-ahead log of more than 8 MiB is left aside. None if it is no database, or one that
    /// [`Database::open`] refuses; one with an interrupted transaction is recognised, so that `open` can say what is to be done.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] and [`ErrorKind::Cancelled`].
    pub fn sample(bundle: &Bundle, path: &str) -> Result<Option<Self>, ImportError> {
        match Self::with_log(bundle, path, MAX_SAMPLED_LOG) {
            Ok(database) => Ok(Some(database)),
            Err(error) if matches!(error.kind, ErrorKind::Io | ErrorKind::Cancelled) => Err(error),
            Err(_) => Ok(None),
        }
    }

    fn with_log(bundle: &Bundle, path: &str, max_log: u64) -> Result<Self, ImportError> {
        let pages = Pages::open(bundle, path, max_log)?;
        let schema = schema::read(&pages)?;
        Ok(Self { pages, schema })
    }

    /// The tables that have rowids, in the order in which they were created.
    pub fn tables(&self) -> &[Table] {
        &self.schema.tables
    }

    /// The table `name`; upper and lower case are the same.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables().iter().find(|table| table.name().eq_ignore_ascii_case(name))
    }

    /// The rows of a table, ordered by rowid. A page that cannot be read gives one error of kind [`ErrorKind::Malformed`], and the rows
    /// of the other pages follow. Any other error is the last item.
    pub fn rows<'d>(&'d self, table: &'d Table) -> Rows<'d> {
        Rows::new(&self.pages, table)
    }

    /// The row with this rowid; none if there is none.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if a page on the way to it is damaged, and [`ErrorKind::Io`].
    pub fn row<'d>(&'d self, table: &'d Table, rowid: i64) -> Result<Option<Row<'d>>, ImportError> {
        rows::find(&self.pages, table, rowid)
    }
}
