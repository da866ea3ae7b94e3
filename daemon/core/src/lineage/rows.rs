//! Which parts may belong together where rows have no conversation's id: those that ever shared a row have one family.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use satchel_merge::{
    evidence::{Derived, Document, Witness},
    sets::Sets,
};
use satchel_store::{Change, Ledger, Store};

use super::{Family, LineageError, REST, put};

/// Families of one row that are looked through: each join makes the smaller one point to the larger, so a way of so many
/// steps would need more rows than there can be.
const STEPS: usize = 64;

/// Everything that was said of some rows, and of all rows that anything said of them is about.
pub struct Clan {
    /// The key of the family.
    pub key: String,
    /// The family.
    pub family: Family,
    /// Those of the conversations asked about that are of these rows.
    pub said: Vec<usize>,
    /// Families that have become part of it.
    gone: BTreeSet<String>,
    /// Rows that nobody spoke of before.
    fresh: Vec<String>,
}

impl Clan {
    /// Those of the rows of several conversations, each with its id: every row and every family is looked up once. A new one is
    /// named by the first conversation that is of its rows.
    ///
    /// # Errors
    /// When the ledger does not read.
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

    /// Whether it is one family that was known before.
    #[must_use]
    pub fn alone(&self) -> bool {
        self.gone.is_empty()
    }

    /// What stores it.
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

/// Where rows are shown that evidence names.
#[derive(Default)]
pub struct Places(BTreeMap<String, String>);

impl Places {
    /// Of the rows that `witnesses` and the memories of `documents` name, as the store shows them now.
    ///
    /// # Errors
    /// When store or ledger do not read.
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

    /// Lets the memories of `documents` name the conversation that has their row.
    pub fn place<'d>(&self, derived: &mut Derived, documents: impl Iterator<Item = &'d Document>) {
        for document in documents {
            let Some(memory) = derived.memories.get_mut(&document.memory.id) else { continue };
            if let Some(place) = memory.provenance.message_ref.as_ref().and_then(|row| self.0.get(row)) {
                memory.provenance.conversation_ref = Some(place.clone());
            }
        }
    }

    /// Lets a piece of evidence name the conversation that has its row.
    pub fn set(&self, witness: &mut Witness) {
        if let Some(place) = witness.row.as_ref().and_then(|row| self.0.get(row)) {
            witness.conversation = Some(place.clone());
        }
    }

    /// Those of `witnesses` that name rows, each with the conversation where its row is shown.
    pub fn placed<'a>(&self, witnesses: impl Iterator<Item = &'a Witness>) -> Vec<Witness> {
        let placed = witnesses.filter_map(|witness| {
            let place = self.0.get(witness.row.as_ref()?);
            let conversation = place.or(witness.conversation.as_ref()).cloned();
            Some(Witness { conversation, ..witness.clone() })
        });
        placed.collect()
    }
}

/// Rows whose places are looked up, each family and each conversation once.
pub(super) struct Placing<'a> {
    store: &'a Store,
    families: Families<'a>,
    /// By the key of their family.
    wanted: BTreeMap<String, BTreeSet<String>>,
}

impl<'a> Placing<'a> {
    /// Of no rows yet.
    pub(super) fn new(store: &'a Store) -> Self {
        Self { store, families: Families::new(store), wanted: BTreeMap::new() }
    }

    /// Notes a row; tells whether anybody spoke of it.
    ///
    /// # Errors
    /// When the ledger does not read.
    pub(super) fn note(&mut self, row: &str) -> Result<bool, LineageError> {
        let Some(key) = self.families.of(row)? else { return Ok(false) };
        self.wanted.entry(key).or_default().insert(row.to_owned());
        Ok(true)
    }

    /// Where they are shown now.
    ///
    /// # Errors
    /// When store or ledger do not read.
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

/// What is known of a clan before its families are one.
#[derive(Default)]
struct Gathered {
    /// Conversations.
    said: Vec<usize>,
    /// Of families.
    keys: Vec<String>,
    /// Rows that nobody spoke of before.
    fresh: Vec<String>,
}

/// Families of rows, each read once.
struct Families<'a> {
    store: &'a Store,
    /// Under the keys that rows name, the keys where they stand now.
    settled: HashMap<String, String>,
    read: HashMap<String, Family>,
}

impl<'a> Families<'a> {
    fn new(store: &'a Store) -> Self {
        Self { store, settled: HashMap::new(), read: HashMap::new() }
    }

    /// The key of that of `row`; none: nobody spoke of it.
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

    /// Those under `keys` as one, which stands where the largest stood; a new one is called `name`.
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

/// The family under `key`, or that of which it has become part.
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

/// The family of the row `row`, and where it stands; none: nobody spoke of the row.
///
/// # Errors
/// When the ledger does not read.
pub fn family_of_row(store: &Store, row: &str) -> Result<Option<(String, Family)>, LineageError> {
    let entry = store.ledger_get(Ledger::Lineage, &row_name(row))?;
    entry.map(|entry| settled(store, String::from_utf8_lossy(&entry.value).into_owned())).transpose()
}

fn row_name(row: &str) -> String {
    format!("row {row}")
}

impl Family {
    /// Whether it is that of rows: it may come to several conversations.
    #[must_use]
    pub fn of_rows(&self) -> bool {
        !self.shown.is_empty()
    }

    /// Notes the conversations that it comes to; tells whether one of them is new.
    pub fn show(&mut self, ids: impl IntoIterator<Item = String>) -> bool {
        let before = self.shown.len();
        self.shown.extend(ids);
        before != self.shown.len()
    }
}
