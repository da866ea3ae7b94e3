//! Determines what is erased together with a memory or a conversation.

use std::collections::{BTreeMap, BTreeSet};

use satchel_merge::{
    evidence::{EditStep, VectorEvidence},
    groups,
};
use satchel_store::{ChangeKind, ChangePosition, Ledger, Revision, Store, erased};
use uuid::Uuid;

use crate::{
    each_row,
    edits::QuarantinedMemory,
    provenance::{ConversationProvenance, ProvenanceError, PurgeRecord, PurgedData, resolve, row_provenance},
};

/// Changes that are read per page.
const PAGE: usize = 5_000;
/// How a message refers to the bytes of a file; the hash follows.
const REFERENCE: &str = "attachments/";
/// Hex digits of a SHA-256.
const DIGITS: usize = 64;

/// What the owner wants to erase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A memory, and every other with the same content.
    Memory(String),
    /// A conversation, with the memories derived from it unless they are kept.
    Conversation {
        /// The id of the conversation.
        id: String,
        /// Whether the memories are kept.
        keep_memories: bool,
    },
}

/// A memory or a conversation that is to be erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The id of the record.
    pub id: String,
    /// The platform from which it comes.
    pub platform: String,
    /// When it was created, in microseconds since the Unix epoch.
    pub created_at: i64,
    /// The number of versions in the history.
    pub versions: u32,
    /// The number of messages of a conversation.
    pub messages: u64,
}

/// Everything that is to be erased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The record of the erasure, for the ledger.
    pub record: PurgeRecord,
    /// The memories.
    pub memories: Vec<Line>,
    /// The conversations.
    pub conversations: Vec<Line>,
    /// The number of pieces of evidence from exports and documents.
    pub evidence: u64,
    /// The number of pieces of evidence that the user made by hand.
    pub edits: u64,
    /// Conversations from which erased memories came and which are kept: they may contain the same text.
    pub stay: BTreeSet<String>,
}

/// Returns what would be erased with `target`; `None` if nothing has this id, or if it was erased before.
///
/// # Errors
/// The error of the store.
pub fn planned(store: &Store, target: &Target, now: i64) -> Result<Option<Plan>, ProvenanceError> {
    let record = PurgeRecord {
        id: Uuid::new_v4().to_string(),
        at: now,
        actor: "owner".to_owned(),
        ..PurgeRecord::default()
    };
    let mut plan = Plan { record, ..Plan::default() };
    match target {
        Target::Memory(id) => {
            plan.memory(store, id)?;
            plan.same(store, &BTreeSet::new())?;
        }
        Target::Conversation { id, keep_memories } => {
            plan.conversation(store, id)?;
            if !keep_memories {
                let conversations = plan.record.conversations.clone();
                plan.same(store, &conversations)?;
            }
        }
    }
    if plan.memories.is_empty() && plan.conversations.is_empty() {
        return Ok(None);
    }
    plan.stay.retain(|id| !plan.record.conversations.contains(id));
    plan.count(store)?;
    Ok(Some(plan))
}

/// Returns what an erasure of another store means here: its record as it is stored here, and an erasure of what belongs to it only in
/// this store, such as another memory that has had one of the texts.
///
/// # Errors
/// The error of the store.
pub(crate) fn planned_elsewhere(
    store: &Store,
    elsewhere: PurgeRecord,
) -> Result<(PurgeRecord, Option<PurgeRecord>), ProvenanceError> {
    let mut plan = Plan::default();
    for id in elsewhere.memories.keys() {
        plan.memory(store, id)?;
    }
    for (id, hashes) in &elsewhere.memories {
        plan.record.memories.entry(id.clone()).or_default().extend(hashes.iter().cloned());
    }
    plan.same(store, &BTreeSet::new())?;
    for id in &elsewhere.conversations {
        plan.conversation(store, id)?;
    }
    for row in &elsewhere.rows {
        for id in row_provenance(store, row)?.map(|(_, family)| family.shown).into_iter().flatten() {
            plan.conversation(store, &id)?;
        }
    }
    let here = plan.record;
    let more = PurgeRecord {
        id: Uuid::new_v4().to_string(),
        at: elsewhere.at,
        actor: elsewhere.actor.clone(),
        memories: here
            .memories
            .into_iter()
            .filter(|(id, hashes)| elsewhere.memories.get(id).is_none_or(|known| !known.is_superset(hashes)))
            .collect(),
        conversations: &here.conversations - &elsewhere.conversations,
        rows: &here.rows - &elsewhere.rows,
        ..PurgeRecord::default()
    };
    let is_more = !(more.memories.is_empty() && more.conversations.is_empty() && more.rows.is_empty());
    let (families, attachments) = (here.families, here.attachments);
    Ok((PurgeRecord { families, attachments, done: false, ..elsewhere }, is_more.then_some(more)))
}

/// Completes the record of what a peer has taken back: the memories and conversations in `record` with what belongs to them. Also returns
/// the conversations that stay, as they cannot leave without one of those that `keeps` names.
///
/// # Errors
/// The error of the store.
pub(crate) fn planned_revocation(
    store: &Store,
    record: PurgeRecord,
    keeps: impl Fn(&str) -> bool,
) -> Result<(PurgeRecord, BTreeSet<String>), ProvenanceError> {
    let mut stay = BTreeSet::new();
    let mut whole = PurgeRecord { conversations: BTreeSet::new(), ..record };
    for id in record.conversations {
        let mut plan = Plan::default();
        // A group of rows is shown in other conversations.
        let (entry, family) = resolve(store, id.clone())?;
        for shown in family.shown.iter().chain([&id]) {
            plan.conversation(store, shown)?;
        }
        let mut found = plan.record;
        found.families.insert(entry);
        if found.conversations.iter().chain(&found.families).any(|id| keeps(id)) {
            stay.insert(id);
        } else {
            whole.conversations.extend(found.conversations);
            whole.families.extend(found.families);
            whole.attachments.extend(found.attachments);
        }
    }
    Ok((whole, stay))
}

impl Plan {
    /// Adds a memory with all its versions.
    fn memory(&mut self, store: &Store, id: &str) -> Result<(), ProvenanceError> {
        let versions = store.memory_versions(id)?;
        if versions.is_empty() {
            return self.quarantined(store, |entry_id, _| entry_id == id);
        }
        let Some(last) = versions.last().filter(|last| !erased(&last.memory)) else { return Ok(()) };
        self.memories.push(Line {
            id: id.to_owned(),
            platform: last.memory.provenance.platform.clone(),
            created_at: last.memory.temporal.created_at.micros(),
            versions: last.version,
            messages: 0,
        });
        self.stay.extend(versions.iter().filter_map(|one| one.memory.provenance.conversation_ref.clone()));
        let hashes = versions.iter().map(|version| version.memory.content_hash.to_string()).collect();
        self.record.memories.insert(id.to_owned(), hashes);
        Ok(())
    }

    /// Adds memories that agents wrote, and that are no records: they wait for review, or were rejected.
    fn quarantined(
        &mut self,
        store: &Store,
        selected: impl Fn(&str, &QuarantinedMemory) -> bool,
    ) -> Result<(), ProvenanceError> {
        for (id, entry) in QuarantinedMemory::all(store)? {
            let recorded = self.record.memories.contains_key(&id) || store.memory(&id, None)?.is_some();
            if recorded || !selected(&id, &entry) {
                continue;
            }
            self.memories.push(Line {
                id: id.clone(),
                platform: entry.evidence.platform.clone(),
                created_at: entry.written_at(),
                versions: 0,
                messages: 0,
            });
            let hashes = entry.content_hash().map(|hash| hash.to_string()).into_iter().collect();
            self.record.memories.insert(id, hashes);
        }
        Ok(())
    }

    /// Adds all memories that ever came from one of these conversations, or whose content was ever that of an erased
    /// one. Withdrawn memories of undone imports are included: their text is on the disk like any other.
    fn same(&mut self, store: &Store, conversations: &BTreeSet<String>) -> Result<(), ProvenanceError> {
        self.quarantined(store, |_, entry| {
            entry.evidence.conversation.as_ref().is_some_and(|from| conversations.contains(from))
        })?;
        loop {
            let known = self.record.memories.len();
            let mut hashes: BTreeSet<String> = self.record.memories.values().flatten().cloned().collect();
            for id in ever(store)? {
                if self.record.memories.contains_key(&id) {
                    continue;
                }
                let versions = store.memory_versions(&id)?;
                let goes = versions.iter().any(|version| {
                    let from = version.memory.provenance.conversation_ref.as_ref();
                    from.is_some_and(|from| conversations.contains(from))
                        || hashes.contains(&version.memory.content_hash.to_string())
                });
                if goes {
                    self.memory(store, &id)?;
                    hashes.extend(self.record.memories.get(&id).into_iter().flatten().cloned());
                }
            }
            // The last additions may have the content of a memory that was checked before them.
            if known == self.record.memories.len() {
                return Ok(());
            }
        }
    }

    /// Adds a conversation. If it was grouped from rows, all conversations that ever had one of its rows are added,
    /// too.
    fn conversation(&mut self, store: &Store, id: &str) -> Result<(), ProvenanceError> {
        let mut left = vec![id.to_owned()];
        while let Some(id) = left.pop() {
            if self.record.conversations.contains(&id) {
                continue;
            }
            let Some(stored) = store.conversation(&id, None)? else { continue };
            if stored.withdrawn && stored.version > 0 && is_empty(&stored.header) {
                continue;
            }
            self.record.conversations.insert(id.clone());
            self.record.families.insert(id.clone());
            let header = &stored.header;
            let grouped =
                groups::grouped(header.provider.conversation_id.as_deref(), header.raw_metadata.as_ref());
            self.conversations.push(Line {
                id: id.clone(),
                platform: header.provider.name.clone(),
                created_at: header.temporal.created_at.micros(),
                versions: stored.version,
                messages: stored.heads.len() as u64,
            });
            for version in 1..=stored.version {
                let Some(stored) = store.conversation_version(&id, version)? else { continue };
                for body in store.all_bodies(&stored) {
                    self.attachments(&String::from_utf8_lossy(&body?.1));
                }
                for head in stored.heads.iter().filter(|_| grouped) {
                    self.record.rows.insert(head.id.clone());
                    if let Some((key, family)) = row_provenance(store, &head.id)? {
                        self.record.families.insert(key);
                        left.extend(family.shown);
                    }
                }
            }
        }
        if !self.record.rows.is_empty() {
            self.families(store)?;
        }
        for key in self.record.families.clone() {
            for name in ConversationProvenance::load(store, &key, None)?.stored_entry_ids() {
                if let Some(entry) = store.ledger_get(Ledger::Provenance, &name)? {
                    self.attachments(&String::from_utf8_lossy(&entry.value));
                }
            }
        }
        Ok(())
    }

    /// Adds the families that were merged into the erased ones.
    fn families(&mut self, store: &Store) -> Result<(), ProvenanceError> {
        let mut moved = BTreeMap::new();
        each_row(
            |after| ConversationProvenance::page(store, after),
            |(key, family)| {
                moved.extend(family.merged_into.map(|into| (key, into)));
                Ok(())
            },
        )?;
        loop {
            let known = self.record.families.len();
            let into = moved.iter().filter(|(_, to)| self.record.families.contains(*to));
            let more: Vec<String> = into.map(|(key, _)| key.clone()).collect();
            self.record.families.extend(more);
            if known == self.record.families.len() {
                return Ok(());
            }
        }
    }

    fn attachments(&mut self, text: &str) {
        for (at, _) in text.match_indices(REFERENCE) {
            let digits = text.get(at + REFERENCE.len()..at + REFERENCE.len() + DIGITS).unwrap_or_default();
            self.record.attachments.extend(sha256(digits).map(|_| digits.to_owned()));
        }
    }

    /// Counts the evidence on the memories.
    fn count(&mut self, store: &Store) -> Result<(), ProvenanceError> {
        let purged = PurgedData::from_records(std::slice::from_ref(&self.record));
        for record in store.evidence_all() {
            let json = record?.json;
            if !VectorEvidence::is(&json) && purged.redact_evidence(&json)?.is_some() {
                *(if EditStep::is(&json) { &mut self.edits } else { &mut self.evidence }) += 1;
            }
        }
        Ok(())
    }
}

fn is_empty(header: &satchel_pam::conversation::ConversationHeader) -> bool {
    *header == satchel_store::empty_conversation(header)
}

/// Returns the ids of all memories that ever existed.
fn ever(store: &Store) -> Result<BTreeSet<String>, ProvenanceError> {
    let (mut ids, mut after) = (BTreeSet::new(), ChangePosition::after(Revision::ZERO));
    loop {
        let changes = store.changes_since(after, PAGE)?;
        let Some(last) = changes.last() else { return Ok(ids) };
        after = last.position;
        ids.extend(changes.into_iter().filter(|one| one.kind == ChangeKind::Memory).map(|one| one.id));
    }
}

/// Decodes a hash from hex.
pub(super) fn sha256(hex: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if hex.len() != DIGITS || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}
