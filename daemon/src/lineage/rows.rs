//! Which parts may belong together where rows have no conversation's id: those that ever shared a row have one family.

use std::collections::{BTreeMap, BTreeSet};

use satchel_store::{Change, Ledger, Store};

use super::{Family, LineageError, REST, put};
use crate::plan::evidence::{Derived, Document, Witness};

/// Families of one row that are looked through: each join makes the smaller one point to the larger, so a way of so many
/// steps would need more rows than there can be.
const STEPS: usize = 64;

/// Everything that was said of some rows, and of all rows that anything said of them is about.
pub struct Clan {
    /// The key of the family.
    pub key: String,
    /// The family.
    pub family: Family,
    /// Families that have become part of it.
    gone: BTreeSet<String>,
    /// Rows that nobody spoke of before.
    fresh: Vec<String>,
}

impl Clan {
    /// That of `rows`; a new one is named by the conversation `id` that has them.
    ///
    /// # Errors
    /// When the ledger does not read.
    pub fn of<'a>(
        store: &Store,
        id: &str,
        rows: impl Iterator<Item = &'a str>,
    ) -> Result<Self, LineageError> {
        let mut keys = BTreeSet::new();
        let mut fresh = Vec::new();
        for row in rows {
            match store.ledger_get(Ledger::Lineage, &row_name(row))? {
                Some(entry) => drop(keys.insert(String::from_utf8_lossy(&entry.value).into_owned())),
                None => fresh.push(row.to_owned()),
            }
        }
        let mut families: Vec<(String, Family)> = Vec::new();
        for key in keys {
            let (key, family) = settled(store, key)?;
            if !families.iter().any(|(known, _)| *known == key) {
                families.push((key, family));
            }
        }
        families.sort_by_key(|(_, family)| family.parts.len());
        let (key, mut family) = families.pop().unwrap_or_else(|| (format!("rows {id}"), Family::default()));
        let mut gone = BTreeSet::new();
        for (key, other) in families {
            family.parts.extend(other.parts);
            family.show(other.shown);
            gone.insert(key);
        }
        Ok(Self { key, family, gone, fresh })
    }

    /// Whether it is one family that was known before.
    #[must_use]
    pub fn alone(&self) -> bool {
        self.gone.is_empty()
    }

    /// The keys of all families that it touches.
    pub fn keys(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.key).chain(&self.gone)
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
        let mut families: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for row in witnesses.filter_map(|witness| witness.row.as_deref()).chain(named) {
            if let Some(entry) = store.ledger_get(Ledger::Lineage, &row_name(row))? {
                let key = String::from_utf8_lossy(&entry.value).into_owned();
                families.entry(key).or_default().insert(row);
            }
        }
        let mut places = BTreeMap::new();
        for (key, rows) in families {
            for id in settled(store, key)?.1.shown {
                let shown = store.conversation(&id, None)?.filter(|stored| !stored.withdrawn);
                let heads = shown.iter().flat_map(|stored| &stored.heads);
                let here = heads.filter(|head| rows.contains(head.id.as_str()));
                places.extend(here.map(|head| (head.id.clone(), id.clone())));
            }
        }
        Ok(Self(places))
    }

    /// Takes what `other` knows too.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
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
