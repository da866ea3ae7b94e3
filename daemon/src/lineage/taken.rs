//! Conversations that were taken back where a document comes from, and therefore here: which import did it, and what tells that
//! nobody else had said anything of them.

use std::collections::{BTreeMap, BTreeSet};

use satchel_store::{Change, ConversationRecord, Ledger, Store};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Key, LineageError, REST, Undone, decode, encode, put};
use crate::plan::evidence::Exported;

const WHAT: &str = "what was taken back";

/// Which document an import read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    /// PAM `export_id`.
    pub export: String,
    /// PAM `base_export_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

impl Read {
    /// That of `import`; none: it was no document, or one without an id.
    ///
    /// # Errors
    /// When the ledger does not read.
    pub fn of(store: &Store, import: Uuid) -> Result<Option<Self>, LineageError> {
        get(store, &Self::key(import))
    }

    /// What stores it.
    ///
    /// # Errors
    /// None in practice.
    pub fn change(&self, import: Uuid) -> Result<Change, LineageError> {
        Ok(put(Self::key(import), REST, encode(self, WHAT)?))
    }

    /// Whether it is `base`, or changes since that.
    #[must_use]
    pub fn builds_on(&self, base: &str) -> bool {
        self.export == base || self.base.as_deref() == Some(base)
    }

    fn key(import: Uuid) -> String {
        format!("document {import}")
    }
}

/// That an import took a conversation back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// The last that did.
    pub import: Uuid,
    /// When its document was exported, which tells it from documents that are older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exported: Option<Exported>,
}

impl Taken {
    /// Whether the conversation `id` ever was.
    ///
    /// # Errors
    /// When the ledger does not read.
    pub fn of(store: &Store, id: &str) -> Result<Option<Self>, LineageError> {
        get(store, &Self::key(id))
    }

    /// What stores it.
    ///
    /// # Errors
    /// None in practice.
    pub fn change(&self, id: &str) -> Result<Change, LineageError> {
        Ok(put(Self::key(id), REST, encode(self, WHAT)?))
    }

    /// Whether it is for this that the conversation is shown no more.
    #[must_use]
    pub fn stands(&self, stored: Option<&ConversationRecord>) -> bool {
        stored.is_some_and(|stored| stored.withdrawn && stored.origin.import == Some(self.import))
    }

    fn key(id: &str) -> String {
        format!("taken back {id}")
    }
}

/// The imports that count and said one of `keys`, for each of these.
///
/// # Errors
/// When the ledger does not read.
pub fn said_by(
    store: &Store,
    keys: &BTreeSet<Key>,
    undone: &Undone,
) -> Result<BTreeMap<Key, BTreeSet<Uuid>>, LineageError> {
    let mut said: BTreeMap<Key, BTreeSet<Uuid>> = BTreeMap::new();
    super::pages::each_import(store, |import| {
        if !undone.contains(&import) {
            for key in super::brought(store, super::Brought::Parts, import)? {
                if keys.contains(&key) {
                    said.entry(key).or_default().insert(import);
                }
            }
        }
        Ok(())
    })?;
    Ok(said)
}

fn get<T: serde::de::DeserializeOwned>(store: &Store, key: &str) -> Result<Option<T>, LineageError> {
    let entry = store.ledger_get(Ledger::Lineage, key)?.filter(|entry| !entry.value.is_empty());
    entry.map(|entry| decode(&entry.value, WHAT)).transpose()
}
