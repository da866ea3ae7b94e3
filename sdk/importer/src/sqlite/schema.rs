//! The tables of a database, read from the table `sqlite_schema`, whose root is the first page.

use super::{Rows, Value, pages::Pages, sql};
use crate::{ErrorKind, ImportError};

/// Entries of the schema that are read: tables, indexes, views and triggers.
const MAX_ENTRIES: usize = 10_000;
/// Columns of all tables. Each takes about a hundred bytes of memory.
const MAX_COLUMNS: usize = 200_000;
/// Bytes of the statement that created a table.
const MAX_STATEMENT: usize = 256 * 1024;

/// A table with rowids.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    name: String,
    root: u32,
    columns: Vec<Column>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    pub(super) name: String,
    /// Whether it is the rowid, which no row stores again.
    pub(super) is_rowid: bool,
    /// Whether whole numbers in it are of type [`Value::Real`].
    pub(super) is_real: bool,
    /// Its place in a row; none if it is computed from others.
    pub(super) stored: Option<usize>,
    /// The value in rows from the time before it was added.
    pub(super) default: Value,
}

/// What is known about the tables.
pub(super) struct Schema {
    pub(super) tables: Vec<Table>,
}

impl Table {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of its columns, in order.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// Whether it has all of these columns; upper and lower case are the same.
    pub fn has(&self, columns: &[&str]) -> bool {
        columns.iter().all(|name| self.column(name).is_some())
    }

    pub(super) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
    }

    pub(super) fn root(&self) -> u32 {
        self.root
    }

    /// The number of columns that a row stores.
    pub(super) fn stored(&self) -> usize {
        self.columns.iter().filter(|column| column.stored.is_some()).count()
    }

    /// The table that lists all others.
    fn of_schema() -> Self {
        let column = |(index, name): (usize, &str)| Column {
            name: name.to_owned(),
            is_rowid: false,
            is_real: false,
            stored: Some(index),
            default: Value::Null,
        };
        let names = ["type", "name", "tbl_name", "rootpage", "sql"];
        Self {
            name: "sqlite_schema".to_owned(),
            root: 1,
            columns: names.into_iter().enumerate().map(column).collect(),
        }
    }
}

pub(super) fn read(pages: &Pages) -> Result<Schema, ImportError> {
    let list = Table::of_schema();
    let (mut tables, mut all_columns) = (Vec::new(), 0);
    for (index, row) in Rows::new(pages, &list).enumerate() {
        if index >= MAX_ENTRIES {
            let message = format!("the database has more than {MAX_ENTRIES} tables and indexes");
            return Err(ImportError::new(ErrorKind::Limit, message).at(&pages.path));
        }
        let row = row?;
        if row.text("type")?.as_deref() != Some("table") {
            continue;
        }
        let root =
            row.integer("rootpage")?.and_then(|root| u32::try_from(root).ok()).filter(|root| *root > 0);
        let (Some(name), Some(root), Some(sql)) = (row.text("name")?, root, row.text("sql")?) else {
            continue;
        };
        if sql.len() > MAX_STATEMENT {
            continue;
        }
        if let Some(columns) = sql::columns(&sql) {
            all_columns += columns.len();
            if all_columns > MAX_COLUMNS {
                let message = format!("the tables of the database have more than {MAX_COLUMNS} columns");
                return Err(ImportError::new(ErrorKind::Limit, message).at(&pages.path));
            }
            tables.push(Table { name, root, columns });
        }
    }
    Ok(Schema { tables })
}
