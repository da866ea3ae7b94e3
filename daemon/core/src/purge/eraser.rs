//! Recognises erased text wherever the journal has it.

use std::collections::BTreeSet;

use satchel_merge::body::Body;
use satchel_store::{ConversationRecord, Eraser, Ledger, OpaqueEntry, Store, StoreError};
use satchel_sync::{SignedChange, payload::unsalted};
use serde_json::Value;

use super::{PURGED, REVOKED, plan::sha256};
use crate::edits::QuarantinedMemory;
use crate::provenance::{
    ConversationProvenance, ProvenanceError, PurgeRecord, PurgedData, RevokedData, vectors,
};
use crate::series::{entries, large, payload::is_erased};

/// Replaces the text in a receipt that mentioned something erased.
const INSTEAD: &str = "(erased)";
/// Minimum length of a name, in characters; a shorter one occurs in too many other words.
const SHORTEST: usize = 4;
/// The fields of a receipt that may mention a title or a file.
const LISTS: [&str; 5] = ["skipped", "warnings", "differences", "reason", "files"];

/// The text that pending erasures remove from the disk.
pub(super) struct ErasedContent {
    purged: PurgedData,
    records: Vec<PurgeRecord>,
    /// Ids of the lineage entries that hold what imports said about the conversations.
    contribution_ids: BTreeSet<String>,
    /// Titles, file names and memory texts that receipts may repeat.
    names: BTreeSet<String>,
    /// The entries of the parts of large payloads that are erased.
    exchanged_parts: BTreeSet<String>,
    attachments: BTreeSet<[u8; 32]>,
}

impl ErasedContent {
    pub(super) fn of(store: &Store, records: Vec<PurgeRecord>) -> Result<Self, ProvenanceError> {
        let purged = PurgedData::from_records(&records);
        let attachments = records.iter().flat_map(|record| &record.attachments);
        let attachments = attachments.filter_map(|hex| sha256(hex)).collect();
        let exchanged_parts = large::erased_parts(store, |kind, content| is_erased(&purged, kind, content));
        let exchanged_parts =
            exchanged_parts.map_err(|_| ProvenanceError::Unreadable { what: "a series of changes" })?;
        let (contribution_ids, names) = (BTreeSet::new(), BTreeSet::new());
        let mut content = Self { purged, records, contribution_ids, names, exchanged_parts, attachments };
        content.name_all(store)?;
        Ok(content)
    }

    fn name_all(&mut self, store: &Store) -> Result<(), ProvenanceError> {
        let records = std::mem::take(&mut self.records);
        // What a peer has taken back is in no receipt of this store, and its receipts would not come back with it.
        for record in records.iter().filter(|record| record.revoked.is_none()) {
            for id in record.memories.keys() {
                for version in store.memory_versions(id)? {
                    self.name(version.memory.content);
                }
            }
            for id in &record.conversations {
                let versions = store.conversation(id, None)?.map_or(0, |stored| stored.version);
                for version in 1..=versions {
                    if let Some(stored) = store.conversation_version(id, version)? {
                        self.names_of(store, stored)?;
                    }
                }
            }
        }
        self.records = records;
        Ok(())
    }

    fn names_of(&mut self, store: &Store, stored: ConversationRecord) -> Result<(), ProvenanceError> {
        for body in store.all_bodies(&stored) {
            let Ok(body) = Body::decode(&body?.1) else { continue };
            for file in body.attachments {
                file.name.into_iter().for_each(|name| self.name(name));
            }
        }
        stored.header.title.into_iter().for_each(|title| self.name(title));
        Ok(())
    }

    fn name(&mut self, name: String) {
        if name.chars().count() >= SHORTEST {
            self.names.insert(name);
        }
    }

    fn named(&self, text: &str) -> bool {
        self.names.iter().any(|name| text.contains(name.as_str()))
    }

    /// Replaces all texts in `value` that contain an erased name; returns whether there was one.
    fn clear(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) if self.named(text) => {
                INSTEAD.clone_into(text);
                true
            }
            Value::Array(items) => items.iter_mut().fold(false, |any, item| self.clear(item) | any),
            Value::Object(fields) => fields.values_mut().fold(false, |any, item| self.clear(item) | any),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }

    fn receipt(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut receipt: Value = serde_json::from_slice(bytes).ok()?;
        let lists = LISTS.into_iter();
        let cleared =
            lists.fold(false, |any, list| receipt.get_mut(list).is_some_and(|list| self.clear(list)) | any);
        cleared.then(|| serde_json::to_vec(&receipt).ok()).flatten()
    }

    /// Returns whether a memory that an agent wrote is erased. An entry without a value was removed before.
    fn quarantined(&self, value: &[u8]) -> Result<bool, StoreError> {
        if value.is_empty() {
            return Ok(false);
        }
        let entry = QuarantinedMemory::parse(value);
        let mut entry = entry.ok_or_else(|| StoreError::BadValue {
            what: "a memory that an agent wrote".to_owned(),
            problem: "it cannot be read".to_owned(),
        })?;
        Ok(self.purged.redact_stored(&mut entry.evidence))
    }

    fn revoked_records(&self) -> impl Iterator<Item = &PurgeRecord> {
        self.records.iter().filter(|record| record.revoked.is_some())
    }

    fn revoked(&self) -> impl Iterator<Item = &RevokedData> {
        self.records.iter().filter_map(|record| record.revoked.as_ref())
    }

    /// Returns whether the payload of a change is erased. One that cannot be read stays: it has no effect in any store.
    fn exchanged(&self, change: &SignedChange) -> bool {
        let at = change.change();
        if self.revoked().any(|data| data.contains_change(at.origin, at.counter)) {
            return true;
        }
        let content = change.payload().and_then(unsalted);
        content.is_some_and(|content| is_erased(&self.purged, change.change().kind, content))
    }

    /// Returns whether an entry of the lineage is erased.
    fn lineage(&self, id: &str, value: &[u8]) -> Result<bool, StoreError> {
        let memory =
            vectors::stored_vector_memory(id, value).map_err(|error| bad("a vector that is kept", &error))?;
        Ok(memory.is_some_and(|memory| self.erases_vectors(&memory))
            || self.contribution_ids.contains(id)
            || self.records.iter().any(|record| record.families.contains(id)))
    }
}

fn bad(what: &str, error: &ProvenanceError) -> StoreError {
    StoreError::BadValue { what: what.to_owned(), problem: error.to_string() }
}

impl Eraser for ErasedContent {
    fn erases_memory(&self, id: &str, content_hash: &str) -> bool {
        self.purged.contains_memory(id, content_hash)
            || self.revoked_records().any(|record| record.memories.contains_key(id))
    }

    fn erases_vectors(&self, memory: &str) -> bool {
        self.purged.contains_vectors_of(memory)
            || self.revoked_records().any(|record| record.memories.contains_key(memory))
    }

    fn erases_conversation(&self, id: &str) -> bool {
        self.purged.contains_conversation(id)
            || self.revoked_records().any(|record| record.conversations.contains(id))
    }

    fn visit(&mut self, text: OpaqueEntry<'_>) {
        match text {
            OpaqueEntry::ErasedMemory(memory) => self.purged.add_former_holder(memory),
            OpaqueEntry::Entry { ledger: Ledger::Provenance, id, value }
                if self.records.iter().any(|record| record.families.contains(id)) =>
            {
                // Earlier states of the lineage count as well, as parts may have left it since.
                self.contribution_ids.extend(ConversationProvenance::stored_entry_ids_in(value));
            }
            OpaqueEntry::Evidence { .. } | OpaqueEntry::Entry { .. } | OpaqueEntry::Issues(_) => {}
        }
    }

    fn redact(&self, text: OpaqueEntry<'_>) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(match text {
            OpaqueEntry::Evidence { id, .. } if self.revoked().any(|data| data.evidence.contains(&id)) => {
                Some(Vec::new())
            }
            OpaqueEntry::Evidence { json, .. } => {
                self.purged.redact_evidence(json).map_err(|error| bad("a piece of evidence", &error))?
            }
            OpaqueEntry::Entry { ledger: Ledger::Provenance, id, value } => {
                self.lineage(id, value)?.then(Vec::new)
            }
            OpaqueEntry::Entry { ledger: Ledger::Audit, id, .. } => {
                self.records.iter().find_map(|record| record.completed_entry(id))
            }
            OpaqueEntry::Entry { ledger: Ledger::Import, value, .. } => self.receipt(value),
            OpaqueEntry::Entry { ledger: Ledger::Sync, id, value } => {
                let change = entries::without_erased(id, value, |change| {
                    self.exchanged_parts.contains(id) || self.exchanged(change)
                });
                change.map_err(|error| StoreError::BadValue {
                    what: "a change of a series".to_owned(),
                    problem: error.to_string(),
                })?
            }
            OpaqueEntry::Entry { ledger: Ledger::Quarantine | Ledger::Review, id, .. }
                if self.revoked().any(|data| data.agent_memories.contains(id)) =>
            {
                Some(Vec::new())
            }
            OpaqueEntry::Entry { ledger: Ledger::Quarantine | Ledger::Review, value, .. } => {
                self.quarantined(value)?.then(Vec::new)
            }
            OpaqueEntry::Entry { .. } | OpaqueEntry::ErasedMemory(_) => None,
            OpaqueEntry::Issues(value) => {
                let mut issues: Value = serde_json::from_slice(value).unwrap_or_default();
                if self.clear(&mut issues) { serde_json::to_vec(&issues).ok() } else { None }
            }
        })
    }

    fn redact_reason(&self, reason: &str) -> String {
        // A reason that a person typed may quote what was erased.
        if matches!(reason, PURGED | REVOKED) { reason.to_owned() } else { String::new() }
    }

    fn attachments(&self) -> &BTreeSet<[u8; 32]> {
        &self.attachments
    }
}
