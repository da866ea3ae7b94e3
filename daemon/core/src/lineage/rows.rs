//! Groups parts that may belong together if rows have no conversation id: parts that ever shared a row are in one
//! family.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use satchel_merge::{
    evidence::{Derived, Document, Witness},
    sets::Sets,
};
use satchel_store::{Change, Ledger, Store};

use super::{Family, LineageError, REST, put};

/// Maximum number of family links that are followed from one row. Each merge makes the smaller family point to the
/// larger one, so a chain of this length would need more rows than can exist.
const STEPS: usize = 64;

/// Everything that was reported about some rows, and about all rows that are connected to them by reports.
pub struct Clan {
    /// The key of the family.
    pub key: String,
    /// The family.
    pub family: Family,
    /// Indices of the requested conversations that contain these rows.
    pub said: Vec<usize>,
    /// Families that were merged into this one.
    gone: BTreeSet<String>,
    /// Rows that were not reported before.
    fresh: Vec<String>,
}

impl Clan {
    /// Returns the clans of the rows of several conversations, each given with its id. Every row and every family is
    /// looked up once. A new family is named after the first conversation that contains its rows.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn all(store: &Store, conversations: &[(&str, Vec<&str>)]) -> Result<Vec<Self>, LineageError> {
        let (mut families, mut fresh) = (Families::new(store), Vec::new());
        let mut sets = Sets::new(conversations.len());
        let mut rows: HashMap<&str, usize> = HashMap::new();
        let mut owners: HashMap<String, usize> = HashMap::new();
        for (at, row) in
            conversations.iter().zip(0..).flat_map(|((_, rows), at)| rows.iter().map(move |row| (at, *row)))
        {
            if let Some(other) = rows.insert(row, at) {
                sets.join(at, other);
                continue;
            }
            match families.of(row)? {
                Some(key) => {
                    let owner = *owners.entry(key).or_insert(at);
                    sets.join(at, owner);
                }
                None => fresh.push((at, row.to_owned())),
            }
        }
        let mut clans: BTreeMap<usize, Gathered> = BTreeMap::new();
        for at in 0..conversations.len() {
            clans.entry(sets.first(at)).or_default().said.push(at);
        }
        for (key, at) in owners {
            clans.entry(sets.first(at)).or_default().keys.push(key);
        }
        for (at, row) in fresh {
            clans.entry(sets.first(at)).or_default().fresh.push(row);
        }
        let clans = clans.into_iter().map(|(first, Gathered { said, keys, fresh })| {
            let name = format!("rows {}", conversations[first].0);
            Self { said, fresh, ..families.united(name, keys) }
        });
        Ok(clans.collect())
    }

    /// Returns whether it consists of a single family, so that no other family was merged into it.
    #[must_use]
    pub fn alone(&self) -> bool {
        self.gone.is_empty()
    }

    /// Returns the changes that store it.
    ///
    /// # Errors
    /// None in practice.
    pub fn changes(&self) -> Result<Vec<Change>, LineageError> {
        let mut changes = vec![self.family.change(&self.key)?];
        for gone in &self.gone {
            changes.push(Family { moved: Some(self.key.clone()), ..Family::default() }.change(gone)?);
        }
        let fresh = self.fresh.iter();
        changes.extend(fresh.map(|row| put(row_name(row), REST, self.key.clone().into_bytes())));
        Ok(changes)
    }
}

/// The conversations that show the rows named in evidence.
#[derive(Default)]
pub struct Places(BTreeMap<String, String>);

impl Places {
    /// Returns the current places of the rows that `witnesses` and the memories of `documents` name.
    ///
    /// # Errors
    /// The store or the ledger cannot be read.
    pub fn of<'a>(
        store: &Store,
        witnesses: impl Iterator<Item = &'a Witness>,
        documents: &[Document],
    ) -> Result<Self, LineageError> {
        let named = documents.iter().filter_map(|document| document.memory.provenance.message_ref.as_deref());
        let mut placing = Placing::new(store);
        for row in witnesses.filter_map(|witness| witness.row.as_deref()).chain(named) {
            placing.note(row)?;
        }
        placing.places()
    }

    /// Makes the memories of `documents` refer to the conversation that contains their row.
    pub fn place<'d>(&self, derived: &mut Derived, documents: impl Iterator<Item = &'d Document>) {
        for document in documents {
            let Some(memory) = derived.memories.get_mut(&document.memory.id) else { continue };
            if let Some(place) = memory.provenance.message_ref.as_ref().and_then(|row| self.0.get(row)) {
                memory.provenance.conversation_ref = Some(place.clone());
            }
        }
    }

    /// Makes a piece of evidence refer to the conversation that contains its row.
    pub fn set(&self, witness: &mut Witness) {
        if let Some(place) = witness.row.as_ref().and_then(|row| self.0.get(row)) {
            witness.conversation = Some(place.clone());
        }
    }

    /// Returns those of `witnesses` that name rows, each with the conversation that shows its row.
    pub fn placed<'a>(&self, witnesses: impl Iterator<Item = &'a Witness>) -> Vec<Witness> {
        let placed = witnesses.filter_map(|witness| {
            let place = self.0.get(witness.row.as_ref()?);
            let conversation = place.or(witness.conversation.as_ref()).cloned();
            Some(Witness { conversation, ..witness.clone() })
        });
        placed.collect()
    }
}

/// A set of rows whose places are looked up; each family and each conversation is read once.
pub(super) struct Placing<'a> {
    store: &'a Store,
    families: Families<'a>,
    /// Rows by the key of their family.
    wanted: BTreeMap<String, BTreeSet<String>>,
}

impl<'a> Placing<'a> {
    /// Creates an empty set.
    pub(super) fn new(store: &'a Store) -> Self {
        Self { store, families: Families::new(store), wanted: BTreeMap::new() }
    }

    /// Adds a row. Returns whether the row was ever reported.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub(super) fn note(&mut self, row: &str) -> Result<bool, LineageError> {
        let Some(key) = self.families.of(row)? else { return Ok(false) };
        self.wanted.entry(key).or_default().insert(row.to_owned());
        Ok(true)
    }

    /// Returns the current places of the rows.
    ///
    /// # Errors
    /// The store or the ledger cannot be read.
    pub(super) fn places(self) -> Result<Places, LineageError> {
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
        Ok(Places(places))
    }
}

/// The data of a clan before its families are merged.
#[derive(Default)]
struct Gathered {
    /// Indices of conversations.
    said: Vec<usize>,
    /// Keys of families.
    keys: Vec<String>,
    /// Rows that were not reported before.
    fresh: Vec<String>,
}

/// Families of rows, each read once.
struct Families<'a> {
    store: &'a Store,
    /// Maps the keys that rows name to the current keys of their families.
    settled: HashMap<String, String>,
    read: HashMap<String, Family>,
}

impl<'a> Families<'a> {
    fn new(store: &'a Store) -> Self {
        Self { store, settled: HashMap::new(), read: HashMap::new() }
    }

    /// Returns the key of the family of `row`, or `None` if the row was never reported.
    fn of(&mut self, row: &str) -> Result<Option<String>, LineageError> {
        let Some(entry) = self.store.ledger_get(Ledger::Lineage, &row_name(row))? else { return Ok(None) };
        let named = String::from_utf8_lossy(&entry.value).into_owned();
        if let Some(key) = self.settled.get(&named) {
            return Ok(Some(key.clone()));
        }
        let (key, family) = settled(self.store, named.clone())?;
        self.read.insert(key.clone(), family);
        self.settled.insert(named, key.clone());
        Ok(Some(key))
    }

    /// Merges the families under `keys` into the largest of them. A new family is called `name`.
    fn united(&mut self, name: String, mut keys: Vec<String>) -> Clan {
        keys.sort_unstable();
        let all = keys.into_iter().filter_map(|key| Some((self.read.remove(&key)?, key)));
        let mut families: Vec<(Family, String)> = all.collect();
        families.sort_by_key(|(family, _)| family.parts.len());
        let (mut family, key) = families.pop().unwrap_or((Family::default(), name));
        let mut gone = BTreeSet::new();
        for (other, key) in families {
            family.parts.extend(other.parts);
            family.show(other.shown);
            gone.insert(key);
        }
        Clan { key, family, said: Vec::new(), gone, fresh: Vec::new() }
    }
}

/// Returns the family under `key`, or the family that it was merged into.
fn settled(store: &Store, mut key: String) -> Result<(String, Family), LineageError> {
    for _ in 0..STEPS {
        let family = Family::of(store, &key, None)?;
        match family.moved {
            Some(next) => key = next,
            None => return Ok((key, family)),
        }
    }
    Err(LineageError::Unreadable { what: "the lineage of rows" })
}

/// Returns the family of the row `row` and its key, or `None` if the row was never reported.
///
/// # Errors
/// The ledger cannot be read.
pub fn family_of_row(store: &Store, row: &str) -> Result<Option<(String, Family)>, LineageError> {
    let entry = store.ledger_get(Ledger::Lineage, &row_name(row))?;
    entry.map(|entry| settled(store, String::from_utf8_lossy(&entry.value).into_owned())).transpose()
}

fn row_name(row: &str) -> String {
    format!("row {row}")
}

impl Family {
    /// Returns whether the family consists of rows; such a family may be shown in several conversations.
    #[must_use]
    pub fn of_rows(&self) -> bool {
        !self.shown.is_empty()
    }

    /// Adds conversations that the family is shown in. Returns whether one of them is new.
    pub fn show(&mut self, ids: impl IntoIterator<Item = String>) -> bool {
        let before = self.shown.len();
        self.shown.extend(ids);
        before != self.shown.len()
    }
}
