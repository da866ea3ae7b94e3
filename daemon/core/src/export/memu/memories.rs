//! Memories as MemU's lists `profile`, `event` and `mind`, and as rows of `memory_contents` with their vectors.

use std::collections::{BTreeMap, BTreeSet};

use satchel_merge::evidence::{StoredEvidence, items_of, memory_id};
use satchel_pam::{
    hash::ContentHash,
    memory::{Memory, MemoryType, Status},
    raw::RawObject,
    record::Item,
    time::Timestamp,
};
use serde_json::{Value, json};

use super::{LISTS, Object, PLATFORM, put};

/// The data that the view needs from the store besides the evidence.
pub struct MemuSources<'s> {
    /// Returns the text that the store shows for a memory, or `None` if it is not active or must not be exported.
    pub shown: &'s dyn Fn(&str) -> Option<String>,
    /// Returns the vector of a memory.
    pub vector: &'s dyn Fn(&str) -> Option<Vec<f64>>,
}

/// The result of converting MemU's own evidence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemuLists {
    /// For `memories.json`: one object for each agent of each user, as the API returns it.
    pub memories: Vec<Object>,
    /// For `memory_contents.json`: the rows that were read as rows.
    pub rows: Vec<Object>,
    /// The memories that are contained in either of them.
    pub exported: BTreeSet<String>,
    /// The memories that were derived from conversations; they are exported with the results of those conversations.
    pub concluded: BTreeSet<String>,
}

/// The owner of a list: `user_id`, `agent_id`, `memory_id`.
type ListOwner = [Option<String>; 3];

/// One list at its newest time.
#[derive(Default)]
struct MemuList<'a> {
    at: i64,
    /// Keyed by position in the list and by text, so that different texts at one position are kept apart.
    entries: BTreeMap<(u64, &'a str), MemuEntry<'a>>,
    /// The text of the whole list, if that is a memory of its own.
    whole: Option<&'a Item>,
}

struct MemuEntry<'a> {
    item: &'a Item,
    origin: Object,
}

/// Returns MemU's most recent lists, each with all the metadata recorded next to it.
#[must_use]
pub fn lists(evidence: &[StoredEvidence], sources: &MemuSources<'_>) -> MemuLists {
    let mut owners: BTreeMap<ListOwner, BTreeMap<String, MemuList<'_>>> = BTreeMap::new();
    let mut found = MemuLists::default();
    for one in evidence.iter().filter(|one| one.platform == PLATFORM) {
        for item in items_of(&one.claim) {
            let origin = origin(item);
            if origin.contains_key("index") || origin.contains_key("whole") {
                add_item(one.at, item, origin, &mut owners);
            } else if origin.contains_key("content_type") {
                found.concluded.insert(memory_id(item));
            }
            // What comes from another generation is sorted into the lists like data of other platforms.
        }
    }
    for (owner, lists) in &owners {
        found.add(owner, lists, sources);
    }
    found
}

/// Returns the metadata that the importer recorded with an item.
fn origin(item: &Item) -> Object {
    let mut metadata = item.metadata.as_ref().map(RawObject::to_map).unwrap_or_default();
    match metadata.remove(PLATFORM) {
        Some(Value::Object(origin)) => origin,
        _ => Object::new(),
    }
}

fn add_item<'a>(
    at: i64,
    item: &'a Item,
    origin: Object,
    owners: &mut BTreeMap<ListOwner, BTreeMap<String, MemuList<'a>>>,
) {
    let text = |key: &str| origin.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
    let (Some(kind), index) = (text("content_type"), origin.get("index").and_then(Value::as_u64)) else {
        return;
    };
    let owner = [text("user_id"), text("agent_id"), text("memory_id")];
    let list = owners.entry(owner).or_default().entry(kind).or_default();
    if at > list.at || (list.entries.is_empty() && list.whole.is_none()) {
        *list = MemuList { at, ..MemuList::default() };
    }
    if at < list.at {
        return;
    }
    match index {
        Some(index) => {
            list.entries.insert((index, &item.content), MemuEntry { item, origin });
        }
        None => list.whole = Some(item),
    }
}

impl MemuLists {
    fn add(&mut self, owner: &ListOwner, lists: &BTreeMap<String, MemuList<'_>>, sources: &MemuSources<'_>) {
        let mut memory = Object::new();
        let [user, agent, id] = owner;
        let owned = owner.iter().any(Option::is_some);
        for (key, value) in [("memory_id", id), ("agent_id", agent), ("user_id", user)] {
            put(&mut memory, key, value.clone());
        }
        let newest = lists.values().max_by_key(|list| list.at).and_then(|list| list.metadata("record"));
        memory.extend(newest.cloned().unwrap_or_default());
        for (bare, column) in LISTS {
            let list = lists.get(bare);
            let name = if owned { column } else { bare };
            match list {
                Some(list) => {
                    let value = self.list(list, name, sources);
                    memory.insert(name.to_owned(), value);
                }
                None if owned => {
                    memory.entry(name).or_insert_with(|| json!([]));
                }
                None => {}
            }
        }
        self.memories.push(memory);
        for (kind, list) in lists {
            if let Some(row) = self.row(kind, id.as_deref(), list, sources) {
                self.rows.push(row);
            }
        }
    }

    /// Returns the list in its original form: as a list, or as one text. It is returned verbatim if nobody changed it.
    fn list(&mut self, list: &MemuList<'_>, name: &str, sources: &MemuSources<'_>) -> Value {
        let (values, intact) = self.values(list, sources);
        let verbatim = list.metadata("record").and_then(|record| record.get(name));
        match verbatim {
            Some(verbatim) if intact => verbatim.clone(),
            _ if list.joined() => joined(&values).into(),
            _ => values.into(),
        }
    }

    fn row(
        &mut self,
        kind: &str,
        memory: Option<&str>,
        list: &MemuList<'_>,
        sources: &MemuSources<'_>,
    ) -> Option<Object> {
        let mut row = list.metadata("row")?.clone();
        let (values, intact) = self.values(list, sources);
        let text = row.remove("content_text").filter(|_| intact).unwrap_or_else(|| joined(&values).into());
        let only = list.entries.values().next().map(|entry| entry.item);
        let holder = list.whole.or(only.filter(|_| list.entries.len() == 1));
        let vector = holder.filter(|_| intact).and_then(|item| (sources.vector)(&memory_id(item)));
        put(&mut row, "memory_id", memory);
        put(&mut row, "content_type", Some(kind));
        row.entry("content_data").or_insert(if list.joined() { Value::Null } else { values.into() });
        row.insert("content_text".to_owned(), text);
        row.entry("content_vector").or_insert_with(|| vector.map_or(Value::Null, Value::from));
        if let Some(whole) = list.whole {
            self.exported.insert(memory_id(whole));
        }
        Some(row)
    }

    /// Returns the entries in order, and whether all of them are unchanged since they were read. An entry that the user
    /// changed is returned in its changed form, and an entry that is no longer active, or must not be exported, is left
    /// out.
    fn values(&mut self, list: &MemuList<'_>, sources: &MemuSources<'_>) -> (Vec<Value>, bool) {
        let (mut values, mut intact) = (Vec::new(), true);
        for entry in list.entries.values() {
            let id = memory_id(entry.item);
            let Some(shown) = (sources.shown)(&id) else {
                intact = false;
                continue;
            };
            self.exported.insert(id);
            let same = ContentHash::of(&shown) == ContentHash::of(&entry.item.content);
            intact &= same;
            // The store shows the first of two spellings of one statement; here the list's own spelling is used.
            let text = if same { entry.item.content.clone() } else { shown };
            values.push(entry.value(text));
        }
        (values, intact)
    }
}

impl MemuList<'_> {
    /// Returns the metadata of the whole list; the list's first entry carries it.
    fn metadata(&self, key: &str) -> Option<&Object> {
        self.entries.values().find_map(|entry| entry.origin.get(key)).and_then(Value::as_object)
    }

    fn joined(&self) -> bool {
        self.entries.values().any(|entry| entry.origin.get("joined") == Some(&Value::Bool(true)))
    }
}

impl MemuEntry<'_> {
    /// Returns the text, or the object that contained it.
    fn value(&self, text: String) -> Value {
        match self.origin.get("entry") {
            Some(Value::Object(rest)) => {
                let mut object = rest.clone();
                let name = if rest.contains_key("content") { "text" } else { "content" };
                object.insert(name.to_owned(), text.into());
                object.into()
            }
            _ => text.into(),
        }
    }
}

fn joined(values: &[Value]) -> String {
    let texts: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
    texts.join("\n")
}

/// The memories of other assistants, collected one by one.
///
/// Contexts, projects and goals become events. Custom memories of type `mind` (a model's conclusions) stay in `mind`.
/// All others become the profile.
#[derive(Debug, Default)]
pub struct OtherMemories {
    lists: [Vec<Value>; 3],
    times: Option<(Timestamp, Timestamp)>,
}

impl OtherMemories {
    /// Adds a memory, if it is active and may be exported.
    pub fn add(&mut self, memory: &Memory) {
        if memory.status != Status::Active || !memory.exportable() {
            return;
        }
        let [profile, event, mind] = &mut self.lists;
        let list = match memory.memory_type {
            MemoryType::Context | MemoryType::Project | MemoryType::Goal => event,
            MemoryType::Custom if memory.custom_type.as_deref() == Some("mind") => mind,
            _ => profile,
        };
        list.push(memory.content.clone().into());
        let first = memory.temporal.created_at;
        let last = memory.temporal.updated_at.unwrap_or(first).max(first);
        let (earliest, latest) = self.times.unwrap_or((first, last));
        self.times = Some((earliest.min(first), latest.max(last)));
    }

    /// Returns the number of memories.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lists.iter().map(Vec::len).sum()
    }

    /// Returns one memory object for the user `user`, or `None` if there are no memories.
    #[must_use]
    pub fn object(self, user: &str) -> Option<Object> {
        let (first, last) = self.times?;
        let mut object = Object::new();
        put(&mut object, "memory_id", Some(format!("satchel-{user}")));
        put(&mut object, "agent_id", Some("satchel"));
        put(&mut object, "user_id", Some(user));
        put(&mut object, "created_at", Some(first.to_string()));
        put(&mut object, "updated_at", Some(last.to_string()));
        for ((_, column), list) in LISTS.into_iter().zip(self.lists) {
            object.insert(column.to_owned(), list.into());
        }
        Some(object)
    }
}

#[cfg(test)]
mod tests;
