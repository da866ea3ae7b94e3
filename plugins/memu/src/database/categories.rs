//! The table of categories. Each has a name, and a text that MemU wrote about all items in it.

use std::collections::BTreeMap;

use satchel_importer::{
    Evidence, ImportError, Item, Leftover, Sink,
    pam::memory::{ExtractionMethod, MemoryType},
    snapshot,
    sqlite::{Row, Table},
};

use super::{MAX_ID, Source, VECTORS, add_columns, id, metadata, table, text, time};

/// Categories of one database.
const MAX_CATEGORIES: usize = 20_000;
/// Columns that have a place of their own, or, as the vector, none: it is of the name and the description.
const OWN: [&str; 8] =
    ["summary", "content", "user_id", "created_at", "updated_at", "id", VECTORS[0], VECTORS[1]];

/// A category.
#[derive(Debug)]
pub(super) struct Category {
    pub(super) name: String,
    /// Whether it has a text, which is a memory.
    pub(super) is_memory: bool,
}

/// The categories by id.
pub(super) struct Categories<'d> {
    table: Option<&'d Table>,
    /// In the order of their numbers.
    pub(super) all: Vec<Category>,
    numbers: BTreeMap<String, u32>,
}

impl<'d> Categories<'d> {
    pub(super) fn find(source: &Source<'d>, sink: &mut Sink) -> Result<Self, ImportError> {
        let table = table(source.database, "memory_categories", &["id", "name"]);
        let mut it = Self { table, all: Vec::new(), numbers: BTreeMap::new() };
        let Some(table) = table else { return Ok(it) };
        let mut more = 0_u64;
        source.each_readable(table, |row| {
            let (Some(id), Some(name)) = (id(row, "id")?, text(row, "name")?) else { return Ok(()) };
            let number = u32::try_from(it.all.len()).unwrap_or(u32::MAX);
            if it.all.len() == MAX_CATEGORIES || name.len() > MAX_ID {
                more += 1;
                return Ok(());
            }
            it.numbers.insert(id, number);
            it.all.push(Category { name, is_memory: summary(row)?.is_some() });
            Ok(())
        })?;
        if more > 0 {
            sink.warn(
                source.path,
                &format!("categories that are too many, or whose names are too long: {more}"),
            );
        }
        Ok(it)
    }

    pub(super) fn number(&self, id: &str) -> Option<u32> {
        self.numbers.get(id).copied()
    }

    pub(super) fn get(&self, number: u32) -> Option<&Category> {
        self.all.get(usize::try_from(number).ok()?)
    }

    /// Emits the texts of all categories.
    pub(super) fn read(&self, source: &Source<'d>, sink: &mut Sink) -> Result<(), ImportError> {
        let Some(table) = self.table else { return Ok(()) };
        source.each(table, sink, |row, locator, sink| match evidence(table, row, locator)? {
            Some(evidence) => sink.evidence(&[evidence]),
            // A category without a text is only a name; the items in it have it.
            None => Ok(()),
        })
    }
}

/// The key of the memory that is the text of a category.
pub(super) fn key(id: &str) -> String {
    format!("category:{id}")
}

/// The text of a category; its column has another name since July 2026.
fn summary(row: &Row<'_>) -> Result<Option<String>, ImportError> {
    Ok(text(row, "summary")?.or(text(row, "content")?))
}

fn evidence(table: &Table, row: &Row<'_>, locator: &str) -> Result<Option<Evidence>, ImportError> {
    let Some(content) = summary(row)? else { return Ok(None) };
    let id = id(row, "id")?.ok_or_else(|| ImportError::malformed("it has no id"))?;
    let (created, updated) = (time(row, "created_at")?, time(row, "updated_at")?);
    let mut item = Item::new(content, MemoryType::Custom);
    item.custom_type = Some("category".to_owned());
    item.key = Some(key(&id));
    item.tags = vec!["memu-category".to_owned()];
    (item.created_at, item.updated_at) = (created, updated);
    let user = text(row, "user_id")?;
    let mut origin = Leftover::default();
    origin.add_text("category_id", &id);
    if let Some(user) = &user {
        origin.add_text("user_id", user);
    }
    add_columns(table, row, &OWN, &mut origin)?;
    item.metadata = metadata(origin)?;
    let mut evidence = snapshot(key(&id), vec![item], updated.or(created), locator.to_owned());
    (evidence.account, evidence.extraction_method) = (user, ExtractionMethod::LlmInference);
    Ok(Some(evidence))
}
