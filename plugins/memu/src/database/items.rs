//! The table of items, each of which is a memory.

use satchel_importer::{
    Arena, EmbeddingRecord, Evidence, ImportError, Item, Leftover, Parser, Sink,
    json::{array_of, quote},
    pam::memory::{ExtractionMethod, MemoryType},
    snapshot,
    sqlite::{Database, Row, Table},
};

use super::{
    Source, VECTORS, add_columns, categories::Categories, id, links::Links, metadata, resources::Resources,
    tag, text, time,
};

/// The model of MemU's vectors unless the person chose another one, and their length.
const MODEL: (&str, usize) = ("text-embedding-3-small", 1536);
/// Numbers of a vector. No model has so many.
const MAX_NUMBERS: usize = 65_536;
/// The model of a vector of another length.
const UNKNOWN_MODEL: &str = "unknown";
const NO_RESOURCE: &str = "the resource from which it was made is not in the database, or cannot be read";
/// Columns that have a place of their own.
const OWN: [&str; 9] = [
    "id",
    "user_id",
    "resource_id",
    "memory_type",
    "summary",
    "created_at",
    "updated_at",
    VECTORS[0],
    VECTORS[1],
];

/// The table of items, if the database has it.
pub(super) fn table(database: &Database) -> Option<&Table> {
    super::table(database, "memory_items", &["id", "resource_id", "memory_type", "summary"])
}

/// Emits all items.
pub(super) fn read(
    source: &Source<'_>,
    categories: &Categories<'_>,
    links: &mut Links<'_>,
    resources: &mut Resources<'_>,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let Some(table) = table(source.database) else { return Ok(()) };
    let (mut other_models, mut broken) = (0_u64, 0_u64);
    source.each(table, sink, |row, locator, sink| {
        let row = ItemRow { table, row, locator };
        let json = row.vector()?;
        let vector = json.as_deref().and_then(numbers);
        let unread = json.as_deref().filter(|_| vector.is_none());
        broken += u64::from(unread.is_some());
        let (id, evidence) = row.evidence(unread, categories, links, resources, sink)?;
        links.add_item(&id);
        let at = evidence.at;
        sink.evidence(&[evidence])?;
        let Some(vector) = vector else { return Ok(()) };
        other_models += u64::from(vector.len() != MODEL.1);
        sink.embeddings(&[embedding(key(&id), vector, at)])
    })?;
    if other_models > 0 {
        let message = format!(
            "vectors that have not {} numbers, so that their model is not known: {other_models}",
            MODEL.1
        );
        sink.warn(source.path, &message);
    }
    if broken > 0 {
        sink.warn(
            source.path,
            &format!("vectors that are no lists of numbers: {broken}; they are kept as they stand"),
        );
    }
    Ok(())
}

/// The key of the memory of an item.
pub(super) fn key(id: &str) -> String {
    format!("item:{id}")
}

struct ItemRow<'r> {
    table: &'r Table,
    row: &'r Row<'r>,
    locator: &'r str,
}

impl ItemRow<'_> {
    /// The JSON of the vector.
    fn vector(&self) -> Result<Option<String>, ImportError> {
        let [older, newer] = VECTORS;
        let vector = text(self.row, older)?.or(text(self.row, newer)?);
        Ok(vector.filter(|vector| vector.trim() != "null"))
    }

    /// The id, and the memory as a list of one entry, so that a later text of it replaces this one. `vector` is one that is kept as text.
    fn evidence(
        &self,
        vector: Option<&str>,
        categories: &Categories<'_>,
        links: &Links<'_>,
        resources: &mut Resources<'_>,
        sink: &mut Sink,
    ) -> Result<(String, Evidence), ImportError> {
        let row = self.row;
        let id = id(row, "id")?.ok_or_else(|| ImportError::malformed("it has no id"))?;
        let content = text(row, "summary")?.ok_or_else(|| ImportError::malformed("it has no text"))?;
        let word = text(row, "memory_type")?.unwrap_or_else(|| "item".to_owned());
        let (created, updated) = (time(row, "created_at")?, time(row, "updated_at")?);
        let memory_type = memory_type(&word);
        let mut item = Item::new(content, memory_type);
        item.key = Some(key(&id));
        item.custom_type = (memory_type == MemoryType::Custom).then(|| word.clone());
        (item.created_at, item.updated_at) = (created, updated);
        let names: Vec<&str> =
            links.of_item(&id).filter_map(|number| Some(categories.get(number)?.name.as_str())).collect();
        for tag in std::iter::once(word.as_str()).chain(names.iter().copied()).filter_map(tag) {
            if !item.tags.contains(&tag) {
                item.tags.push(tag);
            }
        }
        let user = text(row, "user_id")?;
        let mut origin = Leftover::default();
        origin.add_text("item_id", &id);
        if let Some(user) = &user {
            origin.add_text("user_id", user);
        }
        origin.add_text("memory_type", &word);
        if !names.is_empty() {
            origin.add_json("categories", &array_of(names.iter().map(|name| quoted(name))));
        }
        self.add_resource(resources, &mut origin, sink)?;
        add_columns(self.table, row, &OWN, &mut origin)?;
        if let Some(vector) = vector {
            origin.add_text("embedding", vector);
        }
        item.metadata = metadata(origin)?;
        let mut evidence = snapshot(key(&id), vec![item], updated.or(created), self.locator.to_owned());
        (evidence.account, evidence.extraction_method) = (user, ExtractionMethod::LlmInference);
        Ok((id, evidence))
    }

    /// Adds the resource from which the item was made.
    fn add_resource(
        &self,
        resources: &mut Resources<'_>,
        origin: &mut Leftover<'_>,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let Some(resource) = text(self.row, "resource_id")? else { return Ok(()) };
        origin.add_text("resource_id", &resource);
        match resources.columns(&resource)? {
            Some(columns) => origin.add_json("resource", &columns),
            None => sink.warn(self.locator, NO_RESOURCE),
        }
        Ok(())
    }
}

fn memory_type(word: &str) -> MemoryType {
    match word {
        "profile" | "knowledge" => MemoryType::Fact,
        "event" => MemoryType::Context,
        _ => MemoryType::Custom,
    }
}

fn quoted(text: &str) -> String {
    let mut json = String::new();
    quote(text, &mut json);
    json
}

/// The numbers of a vector; none if it has anything else.
fn numbers(json: &str) -> Option<Vec<f64>> {
    let arena = Arena::new();
    let mut numbers = Vec::new();
    let mut read = |json: &mut Parser<'_>| {
        let is_list = json.enter_array()?;
        while is_list && json.item()? {
            let number = json.number()?;
            // Longer lists are not read; one number more shows that it is one.
            if numbers.len() <= MAX_NUMBERS {
                numbers.push(number.as_str().parse::<f64>().ok());
            }
        }
        json.end()
    };
    read(&mut Parser::new(json, &arena)).ok()?;
    let finite = numbers.into_iter().map(|number| number.filter(|number| number.is_finite()));
    finite.collect::<Option<Vec<f64>>>().filter(|numbers| (1..=MAX_NUMBERS).contains(&numbers.len()))
}

fn embedding(memory: String, vector: Vec<f64>, at: Option<i64>) -> EmbeddingRecord {
    let (model, length) = MODEL;
    EmbeddingRecord {
        memory,
        model: if vector.len() == length { model } else { UNKNOWN_MODEL }.to_owned(),
        dimensions: u32::try_from(vector.len()).unwrap_or(u32::MAX),
        created_at: at,
        vector: Some(vector),
        storage: None,
    }
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn vectors_have_numbers_only() {
        assert_eq!(numbers("[0.5, -1e-3, 2]"), Some(vec![0.5, -0.001, 2.0]));
        for text in ["[]", "[0.5, null]", "[\"1\"]", "0.5", "[0.5", "[NaN]", "[1e999]"] {
            assert_eq!(numbers(text), None, "{text}");
        }
        let list = |length: usize| format!("[{}]", vec!["1"; length].join(","));
        assert_eq!(numbers(&list(65_536)).map(|numbers| numbers.len()), Some(65_536));
        assert_eq!(numbers(&list(65_537)), None);
    }
}
