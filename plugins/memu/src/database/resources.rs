//! The table of resources: the conversations, documents and pictures from which items were made.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{
    ImportError, Leftover, Sink,
    sqlite::{Database, Table},
    unless_malformed,
};

use super::{Source, VECTORS, add_columns, check_size, id, table};

/// Resources that are remembered.
const MAX_RESOURCES: usize = 200_000;
/// Columns that the item has itself, and the vector of the caption.
const OWN: [&str; 4] = ["id", "user_id", VECTORS[0], VECTORS[1]];

/// Where each resource is, and whether a memory names it.
pub(super) struct Resources<'d> {
    database: &'d Database,
    table: Option<&'d Table>,
    rows: BTreeMap<String, (i64, bool)>,
}

impl<'d> Resources<'d> {
    pub(super) fn find(source: &Source<'d>, sink: &mut Sink) -> Result<Self, ImportError> {
        let table = table(source.database, "resources", &["id", "url"]);
        let mut it = Self { database: source.database, table, rows: BTreeMap::new() };
        let Some(table) = table else { return Ok(it) };
        let mut more = 0_u64;
        source.each(table, sink, |row, _, _| {
            let id = id(row, "id")?.ok_or_else(|| ImportError::malformed("it has no id"))?;
            if it.rows.len() < MAX_RESOURCES {
                it.rows.insert(id, (row.rowid(), false));
            } else {
                more += 1;
            }
            Ok(())
        })?;
        if more > 0 {
            sink.warn(source.path, &format!("resources that are too many to be found again: {more}"));
        }
        Ok(it)
    }

    /// The columns of a resource, as a JSON object; none if the database does not have it or it cannot be read.
    pub(super) fn columns(&mut self, id: &str) -> Result<Option<String>, ImportError> {
        let (Some(table), Some((rowid, named))) = (self.table, self.rows.get_mut(id)) else {
            return Ok(None);
        };
        *named = true;
        // A damaged row was reported when all were looked at.
        let Some(row) = unless_malformed(self.database.row(table, *rowid))?.flatten() else {
            return Ok(None);
        };
        let mut rest = Leftover::default();
        let read = check_size(table, &row).and_then(|()| add_columns(table, &row, &OWN, &mut rest));
        let read = unless_malformed(read)?;
        Ok(read.and_then(|()| rest.into_json()).map(Cow::into_owned))
    }

    /// Reports the resources from which no memory was made.
    pub(super) fn report(&self, path: &str, sink: &mut Sink) {
        let unnamed = self.rows.values().filter(|(_, named)| !named).count();
        if unnamed > 0 {
            sink.warn(
                path,
                &format!("resources from which no memory was made: {unnamed}; they are not imported"),
            );
        }
    }
}
