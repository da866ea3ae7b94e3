//! Which item is in which category.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use satchel_importer::{ImportError, RelationRecord, Sink, pam::relation::RelationType, sqlite::Table};

use super::{
    Source,
    categories::{self, Categories},
    id, items, table,
};

/// Links that are remembered, 16 bytes each.
const MAX_LINKS: usize = 2_000_000;
/// Items that are remembered, eight bytes each.
const MAX_ITEMS: usize = 2_000_000;
/// Relations that are emitted at once.
const CHUNK: usize = 1_000;

/// The links, and the items that were emitted.
pub(super) struct Links<'d> {
    table: Option<&'d Table>,
    /// The hash of an item's id and the number of a category, sorted.
    links: Vec<(u64, u32)>,
    /// Hashes of ids, sorted before they are used.
    emitted: Vec<u64>,
}

impl<'d> Links<'d> {
    pub(super) fn find(
        source: &Source<'d>,
        categories: &Categories<'_>,
        sink: &mut Sink,
    ) -> Result<Self, ImportError> {
        let table = table(source.database, "category_items", &["item_id", "category_id"]);
        let mut it = Self { table, links: Vec::new(), emitted: Vec::new() };
        let Some(table) = table else { return Ok(it) };
        let (mut unknown, mut more) = (0_u64, 0_u64);
        source.each(table, sink, |row, _, _| {
            let (item, category) = (id(row, "item_id")?, id(row, "category_id")?);
            let number = category.and_then(|id| categories.number(&id));
            match item.zip(number) {
                Some(_) if it.links.len() == MAX_LINKS => more += 1,
                Some((item, number)) => it.links.push((hash(&item), number)),
                None => unknown += 1,
            }
            Ok(())
        })?;
        it.links.sort_unstable();
        if unknown > 0 {
            sink.warn(
                source.path,
                &format!("links to categories that the database does not have: {unknown}"),
            );
        }
        if more > 0 {
            sink.warn(source.path, &format!("links of items and categories that are too many: {more}"));
        }
        Ok(it)
    }

    /// The numbers of the categories of an item.
    pub(super) fn of_item(&self, item: &str) -> impl Iterator<Item = u32> {
        let hash = hash(item);
        let start = self.links.partition_point(|(own, _)| *own < hash);
        let links = self.links.get(start..).unwrap_or_default();
        links.iter().take_while(move |(own, _)| *own == hash).map(|(_, number)| *number)
    }

    /// Remembers that an item is a memory.
    pub(super) fn add_item(&mut self, item: &str) {
        if self.emitted.len() < MAX_ITEMS {
            self.emitted.push(hash(item));
        }
    }

    /// Emits that the texts of categories were derived from their items.
    pub(super) fn emit(
        mut self,
        source: &Source<'d>,
        categories: &Categories<'_>,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let Some(table) = self.table else { return Ok(()) };
        self.emitted.sort_unstable();
        let (mut relations, mut absent) = (Vec::new(), 0_u64);
        source.each_readable(table, |row| {
            let (Some(item), Some(category)) = (id(row, "item_id")?, id(row, "category_id")?) else {
                return Ok(());
            };
            if self.emitted.binary_search(&hash(&item)).is_err() {
                absent += 1;
                return Ok(());
            }
            let number = categories.number(&category);
            if number.and_then(|number| categories.get(number)).is_some_and(|category| category.is_memory) {
                relations.push(RelationRecord {
                    source: categories::key(&category),
                    target: items::key(&item),
                    relation_type: RelationType::DerivedFrom,
                    confidence: None,
                    created_at: super::time(row, "created_at")?,
                });
            }
            if relations.len() == CHUNK {
                sink.relations(&std::mem::take(&mut relations))?;
            }
            Ok(())
        })?;
        sink.relations(&relations)?;
        if absent > 0 {
            sink.warn(
                source.path,
                &format!("links to items that are not in the database or were skipped: {absent}"),
            );
        }
        Ok(())
    }
}

fn hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}
