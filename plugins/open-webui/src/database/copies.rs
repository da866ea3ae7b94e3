//! Copies of chats that the program made for their links. Until 2026 they are rows of the table `chat`.

use std::collections::BTreeMap;

use satchel_importer::{
    ImportError,
    sqlite::{Row, Table},
};

use super::{Source, text, unless_damaged};
use crate::map::SHARED;

/// Copies that are compared with the other chats; further ones are imported like these.
const MAX_COPIES: usize = 50_000;
/// Bytes of an id; none of the program's is longer.
const MAX_ID: usize = 256;

/// The originals of the copies, and whether the database has them.
#[derive(Debug, Default)]
pub(super) struct Copies(BTreeMap<String, bool>);

impl Copies {
    /// Looks for copies, and then for their originals.
    pub(super) fn find(source: &Source<'_>, table: &Table) -> Result<Self, ImportError> {
        let mut originals = BTreeMap::new();
        for row in source.database.rows(table) {
            let user = unless_damaged(row.and_then(|row| text(&row, "user_id")))?.flatten();
            let original = user.as_deref().and_then(|user| user.strip_prefix(SHARED));
            if let Some(original) = original.filter(|id| id.len() <= MAX_ID && originals.len() < MAX_COPIES) {
                originals.insert(original.to_owned(), false);
            }
        }
        if originals.is_empty() {
            return Ok(Self::default());
        }
        for row in source.database.rows(table) {
            let id = unless_damaged(row.and_then(|row| text(&row, "id")))?.flatten();
            if let Some(known) = id.and_then(|id| originals.get_mut(&id)) {
                *known = true;
            }
        }
        Ok(Self(originals))
    }

    /// The chat of which this is a copy, if the database has it.
    pub(super) fn original(&self, row: &Row<'_>) -> Result<Option<String>, ImportError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let user = text(row, "user_id")?;
        let original = user.as_deref().and_then(|user| user.strip_prefix(SHARED));
        Ok(original.filter(|id| self.0.get(*id) == Some(&true)).map(ToOwned::to_owned))
    }
}
