//! Permanently erased data: the ids and hashes by which it is recognised if it is imported again.

use std::collections::{BTreeMap, BTreeSet};

use satchel_merge::evidence::{
    DocumentEvidence, EditAction, EditStep, MemoryField, MemoryPatch, RelationEvidence, StoredEvidence,
    VectorEvidence, memory_id,
};
use satchel_pam::{
    hash::{ContentHash, Sha256Digest},
    memory::Memory,
    record::{Claim, Edit, Item},
};
use satchel_store::{Change, Cursor, Ledger, LedgerWrite, Store, empty_memory};
use serde::{Deserialize, Serialize};

use super::{PAGE, ProvenanceError, RevokedData, decode, encode};
use crate::each_row;

/// Prefix of the ids of these ledger entries; the ledger also has others.
const KIND: &str = "purge ";
const WHAT: &str = "the record of an erasure";

/// The record of one erasure. It contains nothing of the erased data except what is needed to recognise it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeRecord {
    /// A UUID.
    pub id: String,
    /// Microseconds since the Unix epoch.
    pub at: i64,
    /// Who erased the data.
    pub actor: String,
    /// Whether the data is gone from the disk too. An erasure first writes false, so that an interrupted one is
    /// detected.
    pub done: bool,
    /// The erased memories, each with the hashes of all texts that it ever had.
    pub memories: BTreeMap<String, BTreeSet<String>>,
    /// The erased conversations.
    pub conversations: BTreeSet<String>,
    /// Messages that were grouped from rows; another export may group them differently.
    pub rows: BTreeSet<String>,
    /// The keys under which the lineage of the conversations is stored.
    pub families: BTreeSet<String>,
    /// Attachments of the conversations, by the hash of their bytes, in hex.
    pub attachments: BTreeSet<String>,
    /// Set if nobody erased the data: a peer has taken back what it had given. It may come again, so that nothing is left of the record when
    /// the data is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<RevokedData>,
}

impl PurgeRecord {
    /// Returns the digests of the attachments.
    pub(crate) fn attachment_digests(&self) -> impl Iterator<Item = Sha256Digest> {
        self.attachments.iter().filter_map(|hex| format!("sha256:{hex}").parse().ok())
    }

    /// Returns the records of all erasures.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn list(store: &Store) -> Result<Vec<Self>, ProvenanceError> {
        let mut all = Vec::new();
        let page = |after: Option<&Cursor>| Ok(store.ledger_list(Ledger::Audit, after, PAGE)?);
        each_row::<_, ProvenanceError>(page, |entry| {
            if entry.id.starts_with(KIND) {
                all.push(decode(&entry.value, WHAT)?);
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// Returns the erasures whose data is not yet gone from the disk.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn pending(store: &Store) -> Result<Vec<Self>, ProvenanceError> {
        Ok(Self::list(store)?.into_iter().filter(|record| !record.done).collect())
    }

    /// Returns the change that stores the record.
    ///
    /// # Errors
    /// None in practice.
    pub fn to_change(&self) -> Result<Change, ProvenanceError> {
        let (ledger, id, at_micros) = (Ledger::Audit, format!("{KIND}{}", self.id), self.at);
        Ok(Change::Ledger(LedgerWrite::Entry { ledger, id, at_micros, value: encode(self, WHAT)? }))
    }

    /// Returns the ledger entry of this erasure after it is completed on disk, empty if there is none then; or `None` if `id` belongs to
    /// another entry.
    #[must_use]
    pub fn completed_entry(&self, id: &str) -> Option<Vec<u8>> {
        let same = id.strip_prefix(KIND) == Some(self.id.as_str());
        same.then(|| match self.revoked {
            Some(_) => Some(Vec::new()),
            None => encode(&Self { done: true, ..self.clone() }, WHAT).ok(),
        })
        .flatten()
    }
}

/// Everything that was ever erased.
#[derive(Clone, Debug, Default)]
pub struct PurgedData {
    memories: BTreeSet<String>,
    texts: BTreeSet<String>,
    /// Memories that ever had one of the erased texts, whatever their text is now: their vectors may belong to that
    /// text.
    former_holders: BTreeSet<String>,
    conversations: BTreeSet<String>,
    rows: BTreeSet<String>,
}

impl PurgedData {
    /// Returns everything that was erased from the store.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn load(store: &Store) -> Result<Self, ProvenanceError> {
        Ok(Self::from_records(&PurgeRecord::list(store)?))
    }

    /// Returns everything that `records` name. What a peer has taken back was not erased by the owner, and may be imported here.
    #[must_use]
    pub fn from_records(records: &[PurgeRecord]) -> Self {
        let mut all = Self::default();
        for record in records.iter().filter(|record| record.revoked.is_none()) {
            all.memories.extend(record.memories.keys().cloned());
            all.texts.extend(record.memories.values().flatten().cloned());
            all.conversations.extend(record.conversations.iter().cloned());
            all.rows.extend(record.rows.iter().cloned());
        }
        all
    }

    /// Returns whether nothing was erased.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.memories.is_empty() && self.conversations.is_empty()
    }

    /// Returns whether a memory was erased: by its id, or because another memory had the same text.
    #[must_use]
    pub fn contains_memory(&self, id: &str, content_hash: &str) -> bool {
        self.memories.contains(id) || self.texts.contains(content_hash)
    }

    /// Records that a memory once had an erased text.
    pub fn add_former_holder(&mut self, id: &str) {
        self.former_holders.insert(id.to_owned());
    }

    /// Returns whether the vectors of a memory were erased.
    #[must_use]
    pub fn contains_vectors_of(&self, memory: &str) -> bool {
        self.memories.contains(memory) || self.former_holders.contains(memory)
    }

    /// Returns whether this text belonged to an erased memory.
    #[must_use]
    pub fn contains_text(&self, content: &str) -> bool {
        !self.texts.is_empty() && self.texts.contains(&ContentHash::of(content).to_string())
    }

    /// Returns whether a conversation was erased.
    #[must_use]
    pub fn contains_conversation(&self, id: &str) -> bool {
        self.conversations.contains(id)
    }

    /// Returns whether a message that was grouped from rows was erased.
    #[must_use]
    pub fn contains_row(&self, id: &str) -> bool {
        self.rows.contains(id)
    }

    /// Removes erased data from a piece of evidence. Returns whether there was any. An erased item leaves an empty item
    /// in its list, so that the order of the others is kept.
    pub fn redact_stored(&self, evidence: &mut StoredEvidence) -> bool {
        let mut redacted = false;
        let mut item = |item: &mut Item| {
            if !item.content.is_empty() && self.contains_memory(&memory_id(item), &hash(&item.content)) {
                *item = Item { status: item.status, ..Item::new("", item.memory_type) };
                redacted = true;
            }
        };
        match &mut evidence.claim {
            Claim::Statement(one)
            | Claim::Edit { edit: Edit::Add(one) | Edit::Replace { item: one, .. }, .. } => {
                item(one);
            }
            Claim::Snapshot { items, .. } => items.iter_mut().for_each(item),
            Claim::Edit { edit: Edit::Remove { .. }, .. } => {}
        }
        if let Claim::Edit { edit: Edit::Replace { target, .. } | Edit::Remove { target, .. }, .. } =
            &mut evidence.claim
            && let Some(target) = target.as_mut().filter(|target| self.contains_text(target))
        {
            // The line that the target refers to is empty now.
            target.clear();
            redacted = true;
        }
        redacted
    }

    /// Returns the replacement for a stored piece of evidence, or `None` if it is unchanged.
    ///
    /// # Errors
    /// The bytes cannot be decoded.
    pub fn redact_evidence(&self, json: &[u8]) -> Result<Option<Vec<u8>>, ProvenanceError> {
        const WHAT: &str = "a stored piece of evidence";
        if DocumentEvidence::is(json) {
            let mut document: DocumentEvidence = decode(json, WHAT)?;
            return self.redact_document(&mut document).then(|| encode(&document, WHAT)).transpose();
        }
        if RelationEvidence::is(json) {
            return Ok(None);
        }
        if VectorEvidence::is(json) {
            let vector: VectorEvidence = decode(json, WHAT)?;
            let purged = self.contains_vectors_of(&vector.identity.memory) && !vector.is_erased();
            return purged.then(|| encode(&vector.erased(), WHAT)).transpose();
        }
        if EditStep::is(json) {
            let mut step: EditStep = decode(json, WHAT)?;
            return self.redact_edit(&mut step).then(|| encode(&step, WHAT)).transpose();
        }
        let mut evidence: StoredEvidence = decode(json, WHAT)?;
        self.redact_stored(&mut evidence).then(|| encode(&evidence, WHAT)).transpose()
    }

    /// Removes erased data from a memory of a document. Returns whether there was any.
    pub fn redact_document(&self, document: &mut DocumentEvidence) -> bool {
        let purged = self.is_purged(&document.memory);
        if purged {
            document.memory = empty_memory(&document.memory);
        }
        purged
    }

    /// Removes erased data from a change that the user made by hand. Returns whether there was any.
    pub fn redact_edit(&self, step: &mut EditStep) -> bool {
        match &mut step.action {
            EditAction::AddMemory(evidence) => self.redact_stored(evidence),
            EditAction::Patch(setting) => self.redact_setting(setting),
            EditAction::AddRelation(_) | EditAction::WithdrawRelation(_) | EditAction::Undo(_) => false,
        }
    }

    fn redact_setting(&self, setting: &mut MemoryPatch) -> bool {
        let purged = self.is_purged(&setting.to);
        if purged {
            let itself = self.memories.contains(&setting.to.id);
            let (status, by) = (setting.to.status, setting.to.temporal.superseded_by.take());
            setting.to = empty_memory(&setting.to);
            // If the memory itself was not erased, only its text, its status is kept.
            (setting.to.status, setting.to.temporal.superseded_by) = (status, by);
            setting.fields.retain(|field| !itself && *field == MemoryField::Status);
        }
        // A superseded memory stays superseded (PAM §7.1), but its successor is no longer named.
        let successor = &mut setting.to.temporal.superseded_by;
        successor.take_if(|id| self.memories.contains(id)).is_some() || purged
    }

    fn is_purged(&self, memory: &Memory) -> bool {
        !memory.content.is_empty() && self.contains_memory(&memory.id, &memory.content_hash.to_string())
            || self.memories.contains(&memory.id) && !satchel_store::erased(memory)
    }
}

fn hash(content: &str) -> String {
    ContentHash::of(content).to_string()
}
