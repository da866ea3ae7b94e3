//! Groups contributions that may belong together if rows have no conversation id: contributions that ever shared a row
//! are in one group.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use satchel_merge::{
    disjoint_sets::DisjointSets,
    evidence::{DerivedMemories, DocumentEvidence, StoredEvidence},
};
use satchel_store::{Change, Ledger, Store};

use super::{ConversationProvenance, OTHER_ENTRIES, ProvenanceError, put};

/// Maximum number of merge links that are followed from one row. Each merge makes the smaller group point to the
/// larger one, so a chain of this length would need more rows than can exist.
const MAX_MERGE_LINKS: usize = 64;

/// Everything that was reported about some rows, and about all rows that are connected to them by reports.
pub struct RowGroup {
    /// The ledger key of the group.
    pub key: String,
    /// What was reported about the rows.
    pub provenance: ConversationProvenance,
    /// Indices of the requested conversations that contain these rows.
    pub conversations: Vec<usize>,
    /// Keys of the groups that were merged into this one.
    merged: BTreeSet<String>,
    /// Rows that were not reported before.
    new_rows: Vec<String>,
}

impl RowGroup {
    /// Returns the groups of the rows of several conversations, each given with its id. Every row and every group is
    /// looked up once. A new group is named after the first conversation that contains its rows.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn load_all(
        store: &Store,
        conversations: &[(&str, Vec<&str>)],
    ) -> Result<Vec<Self>, ProvenanceError> {
        let (mut families, mut new_rows) = (RowGroupLoader::new(store), Vec::new());
        let mut sets = DisjointSets::new(conversations.len());
        let mut rows: HashMap<&str, usize> = HashMap::new();
        let mut owners: HashMap<String, usize> = HashMap::new();
        for (at, row) in
            conversations.iter().zip(0..).flat_map(|((_, rows), at)| rows.iter().map(move |row| (at, *row)))
        {
            if let Some(other) = rows.insert(row, at) {
                sets.join(at, other);
                continue;
            }
            match families.key_of(row)? {
                Some(key) => {
                    let owner = *owners.entry(key).or_insert(at);
                    sets.join(at, owner);
                }
                None => new_rows.push((at, row.to_owned())),
            }
        }
        let mut groups: BTreeMap<usize, RowGroupParts> = BTreeMap::new();
        for at in 0..conversations.len() {
            groups.entry(sets.find(at)).or_default().conversations.push(at);
        }
        for (key, at) in owners {
            groups.entry(sets.find(at)).or_default().keys.push(key);
        }
        for (at, row) in new_rows {
            groups.entry(sets.find(at)).or_default().new_rows.push(row);
        }
        let groups =
            groups.into_iter().map(|(first, RowGroupParts { conversations: indices, keys, new_rows })| {
                let name = format!("rows {}", conversations[first].0);
                Self { conversations: indices, new_rows, ..families.merge(name, keys) }
            });
        Ok(groups.collect())
    }

    /// Returns whether it consists of a single group, so that no other was merged into it.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.merged.is_empty()
    }

    /// Returns the changes that store it.
    ///
    /// # Errors
    /// None in practice.
    pub fn changes(&self) -> Result<Vec<Change>, ProvenanceError> {
        let mut changes = vec![self.provenance.to_change(&self.key)?];
        for merged in &self.merged {
            changes.push(
                ConversationProvenance {
                    merged_into: Some(self.key.clone()),
                    ..ConversationProvenance::default()
                }
                .to_change(merged)?,
            );
        }
        let new_rows = self.new_rows.iter();
        changes
            .extend(new_rows.map(|row| put(row_entry_id(row), OTHER_ENTRIES, self.key.clone().into_bytes())));
        Ok(changes)
    }
}

/// The conversations that show the rows named in evidence.
#[derive(Default)]
pub struct RowLocations(BTreeMap<String, String>);

impl RowLocations {
    /// Returns the current locations of the rows that `evidence` and the memories of `documents` name.
    ///
    /// # Errors
    /// The store or the ledger cannot be read.
    pub fn load<'a>(
        store: &Store,
        evidence: impl Iterator<Item = &'a StoredEvidence>,
        documents: &[DocumentEvidence],
    ) -> Result<Self, ProvenanceError> {
        let named = documents.iter().filter_map(|document| document.memory.provenance.message_ref.as_deref());
        let mut lookup = RowLookup::new(store);
        for row in evidence.filter_map(|item| item.row.as_deref()).chain(named) {
            lookup.add(row)?;
        }
        lookup.finish()
    }

    /// Makes the memories of `documents` refer to the conversation that contains their row.
    pub fn locate_memories<'d>(
        &self,
        derived: &mut DerivedMemories,
        documents: impl Iterator<Item = &'d DocumentEvidence>,
    ) {
        for document in documents {
            let Some(memory) = derived.memories.get_mut(&document.memory.id) else { continue };
            if let Some(place) = memory.provenance.message_ref.as_ref().and_then(|row| self.0.get(row)) {
                memory.provenance.conversation_ref = Some(place.clone());
            }
        }
    }

    /// Makes a piece of evidence refer to the conversation that contains its row.
    pub fn locate_evidence(&self, evidence: &mut StoredEvidence) {
        if let Some(place) = evidence.row.as_ref().and_then(|row| self.0.get(row)) {
            evidence.conversation = Some(place.clone());
        }
    }

    /// Returns those of `evidence` that name rows, each with the conversation that shows its row.
    pub fn located_evidence<'a>(
        &self,
        evidence: impl Iterator<Item = &'a StoredEvidence>,
    ) -> Vec<StoredEvidence> {
        let placed = evidence.filter_map(|item| {
            let place = self.0.get(item.row.as_ref()?);
            let conversation = place.or(item.conversation.as_ref()).cloned();
            Some(StoredEvidence { conversation, ..item.clone() })
        });
        placed.collect()
    }
}

/// A set of rows whose locations are looked up; each group and each conversation is read once.
pub(super) struct RowLookup<'a> {
    store: &'a Store,
    families: RowGroupLoader<'a>,
    /// Rows by the key of their group.
    wanted: BTreeMap<String, BTreeSet<String>>,
}

impl<'a> RowLookup<'a> {
    /// Creates an empty set.
    pub(super) fn new(store: &'a Store) -> Self {
        Self { store, families: RowGroupLoader::new(store), wanted: BTreeMap::new() }
    }

    /// Adds a row. Returns whether the row was ever reported.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub(super) fn add(&mut self, row: &str) -> Result<bool, ProvenanceError> {
        let Some(key) = self.families.key_of(row)? else { return Ok(false) };
        self.wanted.entry(key).or_default().insert(row.to_owned());
        Ok(true)
    }

    /// Returns the current locations of the rows.
    ///
    /// # Errors
    /// The store or the ledger cannot be read.
    pub(super) fn finish(self) -> Result<RowLocations, ProvenanceError> {
        let mut places = BTreeMap::new();
        for (key, rows) in self.wanted {
            for id in self.families.read.get(&key).iter().flat_map(|family| &family.shown) {
                satchel_failpoints::reached("conversation of a row read");
                let shown = self.store.conversation(id, None)?.filter(|stored| !stored.withdrawn);
                let heads = shown.iter().flat_map(|stored| &stored.heads);
                let here = heads.filter(|head| rows.contains(&head.id));
                places.extend(here.map(|head| (head.id.clone(), id.clone())));
            }
        }
        Ok(RowLocations(places))
    }
}

/// The data of a group before it is merged with others.
#[derive(Default)]
struct RowGroupParts {
    /// Indices of conversations.
    conversations: Vec<usize>,
    /// Keys of groups.
    keys: Vec<String>,
    /// Rows that were not reported before.
    new_rows: Vec<String>,
}

/// Groups of rows, each read once.
struct RowGroupLoader<'a> {
    store: &'a Store,
    /// Maps the keys that rows name to the current keys of their groups.
    resolved: HashMap<String, String>,
    read: HashMap<String, ConversationProvenance>,
}

impl<'a> RowGroupLoader<'a> {
    fn new(store: &'a Store) -> Self {
        Self { store, resolved: HashMap::new(), read: HashMap::new() }
    }

    /// Returns the key of the group of `row`, or `None` if the row was never reported.
    fn key_of(&mut self, row: &str) -> Result<Option<String>, ProvenanceError> {
        let Some(entry) = self.store.ledger_get(Ledger::Provenance, &row_entry_id(row))? else {
            return Ok(None);
        };
        let named = String::from_utf8_lossy(&entry.value).into_owned();
        if let Some(key) = self.resolved.get(&named) {
            return Ok(Some(key.clone()));
        }
        let (key, family) = resolve(self.store, named.clone())?;
        self.read.insert(key.clone(), family);
        self.resolved.insert(named, key.clone());
        Ok(Some(key))
    }

    /// Merges the groups under `keys` into the largest of them. A new group is called `name`.
    fn merge(&mut self, name: String, mut keys: Vec<String>) -> RowGroup {
        keys.sort_unstable();
        let all = keys.into_iter().filter_map(|key| Some((self.read.remove(&key)?, key)));
        let mut families: Vec<(ConversationProvenance, String)> = all.collect();
        families.sort_by_key(|(family, _)| family.contributions.len());
        let (mut family, key) = families.pop().unwrap_or((ConversationProvenance::default(), name));
        let mut merged = BTreeSet::new();
        for (other, key) in families {
            family.contributions.extend(other.contributions);
            family.add_shown_in(other.shown);
            merged.insert(key);
        }
        RowGroup { key, provenance: family, conversations: Vec::new(), merged, new_rows: Vec::new() }
    }
}

/// Returns the provenance under `key`, or of the group of rows that it was merged into.
///
/// # Errors
/// The ledger cannot be read.
pub fn resolve(store: &Store, mut key: String) -> Result<(String, ConversationProvenance), ProvenanceError> {
    for _ in 0..MAX_MERGE_LINKS {
        let family = ConversationProvenance::load(store, &key, None)?;
        match family.merged_into {
            Some(next) => key = next,
            None => return Ok((key, family)),
        }
    }
    Err(ProvenanceError::Unreadable { what: "the provenance of rows" })
}

/// Returns the group of the row `row` and its key, or `None` if the row was never reported.
///
/// # Errors
/// The ledger cannot be read.
pub fn row_provenance(
    store: &Store,
    row: &str,
) -> Result<Option<(String, ConversationProvenance)>, ProvenanceError> {
    let entry = store.ledger_get(Ledger::Provenance, &row_entry_id(row))?;
    entry.map(|entry| resolve(store, String::from_utf8_lossy(&entry.value).into_owned())).transpose()
}

fn row_entry_id(row: &str) -> String {
    format!("row {row}")
}

impl ConversationProvenance {
    /// Returns whether this is a group of rows; such a group may be shown in several conversations.
    #[must_use]
    pub fn consists_of_rows(&self) -> bool {
        !self.shown.is_empty()
    }

    /// Adds conversations that the group is shown in. Returns whether one of them is new.
    pub fn add_shown_in(&mut self, ids: impl IntoIterator<Item = String>) -> bool {
        let before = self.shown.len();
        self.shown.extend(ids);
        before != self.shown.len()
    }
}
