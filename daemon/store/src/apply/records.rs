//! The changes of each kind of record.

use satchel_pam::hash::Sha256Digest;

use super::{
    Applier, CommitContext,
    lists::{list_conversation, list_memory, put_old_version},
};
use crate::{
    change::EvidenceWrite,
    codec::{ByteReader, canonical_uuid},
    engine::Changes,
    entry::{ConversationEntry, EmbeddingEntry, Facets, MemoryEntry, RelationEntry, Summary, content_digest},
    error::StoreError,
    journal::ChangeLocation,
    keys::{self, Id16},
    ledger::LedgerWrite,
    record::{ChangeKind, ChangeOp},
    value::{
        self, ConversationValue, LedgerValue, MemoryValue, PlainValue, RecordMeta, RelationValue, counter,
    },
};

/// If the heads of a conversation take more bytes than this, its parts are written before the batch that makes them visible.
const SEPARATE_PARTS_BYTES: usize = 256 << 10;

impl Applier {
    pub(super) fn memory(
        &mut self,
        entry: MemoryEntry,
        by: CommitContext<'_>,
    ) -> Result<Changes, StoreError> {
        let id = keys::id16(&entry.id);
        let key = keys::object(keys::MEMORY, id);
        let old = self.read_old(&key, || format!("memory {:?}", entry.id), MemoryValue::take)?;
        let (previous, withdrawn) = (old.as_ref().map(|old| &old.stored), entry.withdrawn);
        if self.already_applied(ChangeKind::Memory, &entry.id, previous, withdrawn, by) {
            return Ok(Changes::default());
        }
        let share =
            visible_share(withdrawn, || content_digest(keys::MEMORY, entry.id.as_bytes(), &[&entry.json]));
        self.update_digest(&key, previous.map(|old| &old.share), &share);
        let mut stored = self.next_version(ChangeKind::Memory, &entry.id, previous, by, share, withdrawn);
        let mut changes = Changes::default();
        match &old {
            Some(old) => {
                let mut entries = Vec::new();
                if !old.withdrawn {
                    self.count_memory(&old.facets, true);
                    let engine = self.engine.as_ref();
                    let revision = old.stored.revision;
                    entries = list_memory(engine, &mut changes, id, &old.facets, revision, by.revision);
                }
                put_old_version(&mut changes, keys::OLD_MEMORY, id, &old.stored, by.origin, entries);
                stored.listed =
                    self.drop_expired(&mut changes, keys::OLD_MEMORY, id, &old.stored, by.origin)?;
            }
            // Ids that are canonical UUIDs need no entry of their own: the keys of their records already sort by id.
            None if canonical_uuid(&entry.id).is_some() => {}
            None => changes.put(keys::memory_id(&entry.id), [value::plain(), id.to_vec()].concat()),
        }
        if !withdrawn {
            self.count_memory(&entry.facets, false);
            list_memory(self.engine.as_ref(), &mut changes, id, &entry.facets, by.revision, 0);
        }
        let MemoryEntry { id, withdrawn, facets, json } = entry;
        let json = value::inline(json);
        changes.put(key, MemoryValue { id, withdrawn, stored, facets, json }.encode());
        Ok(changes)
    }

    pub(super) fn conversation(
        &mut self,
        entry: ConversationEntry,
        by: CommitContext<'_>,
    ) -> Result<Changes, StoreError> {
        let ConversationEntry { withdrawn, summary, header, current, opaque, parts, digest } = entry;
        let id = keys::id16(&summary.id);
        let key = keys::object(keys::CONVERSATION, id);
        let old =
            self.read_old(&key, || format!("conversation {:?}", summary.id), ConversationValue::take)?;
        let previous = old.as_ref().map(|old| &old.stored);
        if self.already_applied(ChangeKind::Conversation, &summary.id, previous, withdrawn, by) {
            return Ok(Changes::default());
        }
        let count = part_count(&summary, &parts)?;
        let mut changes = self.parts(id, by.revision, parts)?;
        let share = visible_share(withdrawn, || {
            content_digest(keys::CONVERSATION, summary.id.as_bytes(), &[&digest])
        });
        self.update_digest(&key, previous.map(|old| &old.share), &share);
        let mut stored =
            self.next_version(ChangeKind::Conversation, &summary.id, previous, by, share, withdrawn);
        if let Some(old) = &old {
            stored.listed = self.end_conversation(&mut changes, id, old, by)?;
        }
        if !withdrawn {
            self.count_conversation(&summary.platform, summary.messages, false);
            list_conversation(&mut changes, id, &summary, by.revision, 0);
        }
        let header = value::inline(header);
        let record = ConversationValue { withdrawn, stored, summary, current, opaque, parts: count, header };
        changes.put(key, record.encode());
        Ok(changes)
    }

    /// Ends the previous version of a conversation. Returns the oldest revision that is still listed.
    fn end_conversation(
        &mut self,
        changes: &mut Changes,
        id: Id16,
        old: &ConversationValue,
        by: CommitContext<'_>,
    ) -> Result<u64, StoreError> {
        let ConversationValue { withdrawn, stored, summary, parts, .. } = old;
        for part in 0..*parts {
            changes.delete(keys::part(id, stored.revision, part));
        }
        let mut entries = Vec::new();
        if !withdrawn {
            entries.push(list_conversation(changes, id, summary, stored.revision, by.revision));
            self.count_conversation(&summary.platform, summary.messages, true);
        }
        put_old_version(changes, keys::OLD_CONVERSATION, id, stored, by.origin, entries);
        self.drop_expired(changes, keys::OLD_CONVERSATION, id, stored, by.origin)
    }

    /// Writes the parts of a conversation ahead of its record if there are many. Nothing refers to them yet, and a replay writes
    /// the same keys again.
    fn parts(&mut self, id: Id16, revision: u64, parts: Vec<Vec<u8>>) -> Result<Changes, StoreError> {
        let apart = parts.iter().map(Vec::len).sum::<usize>() > SEPARATE_PARTS_BYTES;
        let mut changes = Changes::default();
        for (number, part) in (0_u16..).zip(parts) {
            changes.put(keys::part(id, revision, number), [value::plain(), part].concat());
            if apart && changes.full(true) {
                self.engine.apply(std::mem::take(&mut changes))?;
            }
        }
        Ok(changes)
    }

    pub(super) fn relation(
        &mut self,
        entry: RelationEntry,
        withdrawn: bool,
        by: CommitContext<'_>,
    ) -> Result<Changes, StoreError> {
        let id = keys::id16(&entry.id);
        let key = keys::object(keys::RELATION, id);
        let old = self.read_old(&key, || format!("relation {:?}", entry.id), RelationValue::take)?;
        let previous = old.as_ref().map(|old| &old.stored);
        if self.already_applied(ChangeKind::Relation, &entry.id, previous, withdrawn, by) {
            return Ok(Changes::default());
        }
        let share =
            content_digest(keys::RELATION, entry.id.as_bytes(), &[&entry.json, &[u8::from(withdrawn)]]);
        self.update_digest(&key, previous.map(|old| &old.share), &share);
        let stored = self.next_version(ChangeKind::Relation, &entry.id, previous, by, share, withdrawn);
        let mut changes = Changes::default();
        if let Some(old) = &old {
            put_old_version(&mut changes, keys::OLD_RELATION, id, &old.stored, by.origin, Vec::new());
        }
        if old.is_some_and(|old| !old.withdrawn) {
            self.meta.count(counter::RELATIONS, "", 1, true);
        }
        if !withdrawn {
            self.meta.count(counter::RELATIONS, "", 1, false);
        }
        changes.put(keys::pair(keys::RELATION_FROM, keys::id16(&entry.from), id), Vec::new());
        changes.put(keys::pair(keys::RELATION_TO, keys::id16(&entry.to), id), Vec::new());
        let RelationEntry { id, json, .. } = entry;
        changes.put(key, RelationValue { stored, withdrawn, json: value::inline(json), id }.encode());
        Ok(changes)
    }

    pub(super) fn embedding(
        &mut self,
        entry: EmbeddingEntry,
        by: CommitContext<'_>,
    ) -> Result<Changes, StoreError> {
        let EmbeddingEntry { withdrawn, memory, model, json } = entry;
        let key = keys::pair(keys::EMBEDDING, keys::id16(&memory), self.engine.blind(&model));
        let old = self.read_old(&key, || format!("embedding of {memory:?}"), PlainValue::take)?;
        let previous = old.as_ref().is_some_and(|old| !old.withdrawn_embedding());
        let old = old.map(|old| old.stored);
        if self.already_applied(ChangeKind::Embedding, &memory, old.as_ref(), withdrawn, by) {
            return Ok(Changes::default());
        }
        let share = visible_share(withdrawn, || {
            content_digest(keys::EMBEDDING, memory.as_bytes(), &[model.as_bytes(), &json])
        });
        if previous == withdrawn {
            self.meta.count(counter::EMBEDDINGS, "", 1, withdrawn);
        }
        self.update_digest(&key, old.as_ref().map(|old| &old.share), &share);
        let stored = self.next_version(ChangeKind::Embedding, &memory, old.as_ref(), by, share, withdrawn);
        let mut changes = Changes::default();
        // A vector takes about 30 KiB as JSON and is read rarely, so it stays in the journal.
        let bytes = withdrawn.then(Vec::new);
        changes.put(key, PlainValue { stored, bytes }.encode());
        Ok(changes)
    }

    pub(super) fn evidence(
        &mut self,
        evidence: EvidenceWrite,
        by: CommitContext<'_>,
    ) -> Result<Changes, StoreError> {
        let EvidenceWrite { id, json } = evidence;
        let key = keys::object(keys::EVIDENCE, id);
        let old =
            self.read_old(&key, || "a piece of evidence".to_owned(), PlainValue::take)?.map(|old| old.stored);
        if json.is_empty() {
            let mut changes = Changes::default();
            if let Some(old) = old {
                self.meta.count(counter::EVIDENCE, "", 1, true);
                self.update_digest(&key, Some(&old.share), &[0; 32]);
                changes.delete(key);
            }
            return Ok(changes);
        }
        let share = content_digest(keys::EVIDENCE, &id, &[&json]);
        if old.is_none() {
            self.meta.count(counter::EVIDENCE, "", 1, false);
        }
        self.update_digest(&key, old.as_ref().map(|old| &old.share), &share);
        let CommitContext { place, origin, .. } = by;
        let origin = origin.clone();
        let stored =
            RecordMeta { created: 0, revision: 0, previous: 0, version: 1, listed: 0, place, origin, share };
        let mut changes = Changes::default();
        changes.put(key, PlainValue { stored, bytes: value::inline(json) }.encode());
        Ok(changes)
    }

    pub(super) fn ledger(
        &mut self,
        write: LedgerWrite,
        place: ChangeLocation,
    ) -> Result<Changes, StoreError> {
        let mut changes = Changes::default();
        match write {
            LedgerWrite::Entry { ledger, id, at_micros, value } => {
                let key = keys::ledger(ledger, &id);
                let id16 = keys::id16(&id);
                let old = self.read_old(&key, || format!("ledger entry {id:?}"), LedgerValue::take)?;
                if let Some(old) = old.filter(|old| old.at != at_micros || value.is_empty()) {
                    changes.delete(keys::ledger_time(ledger, old.at, id16));
                }
                if value.is_empty() {
                    changes.delete(key);
                    return Ok(changes);
                }
                changes.put(keys::ledger_time(ledger, at_micros, id16), Vec::new());
                changes
                    .put(key, LedgerValue { id, at: at_micros, place, bytes: value::inline(value) }.encode());
            }
            LedgerWrite::Issues { import, page, value } => {
                let record = LedgerValue { id: String::new(), at: 0, place, bytes: value::inline(value) };
                changes.put(keys::issues(import, page), record.encode());
            }
            LedgerWrite::Piece { digest, value } => {
                let id = Sha256Digest::from_bytes(digest).to_hex();
                let record = LedgerValue { id, at: 0, place, bytes: value::inline(value) };
                changes.put(keys::piece(&digest), record.encode());
            }
        }
        Ok(changes)
    }

    fn read_old<T>(
        &mut self,
        key: &[u8],
        what: impl Fn() -> String,
        take: impl FnOnce(ByteReader<'_>) -> Result<T, crate::codec::Malformed>,
    ) -> Result<Option<T>, StoreError> {
        let Some(bytes) = self.current(key)? else { return Ok(None) };
        let value = take(value::open(&bytes, &what)?);
        value.map(Some).map_err(|error| StoreError::BadValue { what: what(), problem: error.to_string() })
    }

    /// Returns whether a record already has the revision of this commit or a later one. The change is then only logged. This
    /// happens in a replay after a kill.
    fn already_applied(
        &mut self,
        kind: ChangeKind,
        id: &str,
        previous: Option<&RecordMeta>,
        withdrawn: bool,
        by: CommitContext<'_>,
    ) -> bool {
        let previous = previous.filter(|previous| previous.revision >= by.revision);
        if let Some(previous) = previous {
            self.log_version(kind, id, previous, withdrawn);
        }
        previous.is_some()
    }

    /// Numbers and logs the next version of a record.
    fn next_version(
        &mut self,
        kind: ChangeKind,
        id: &str,
        old: Option<&RecordMeta>,
        by: CommitContext<'_>,
        share: [u8; 32],
        withdrawn: bool,
    ) -> RecordMeta {
        let CommitContext { revision, place, origin } = by;
        let stored = RecordMeta {
            created: old.map_or(revision, |old| old.created),
            revision,
            previous: old.map_or(0, |old| old.revision),
            version: old.map_or(1, |old| old.version.saturating_add(1)),
            listed: revision,
            place,
            origin: origin.clone(),
            share,
        };
        self.log_version(kind, id, &stored, withdrawn);
        stored
    }

    fn log_version(&mut self, kind: ChangeKind, id: &str, stored: &RecordMeta, withdrawn: bool) {
        let op = match (withdrawn, stored.previous) {
            (true, _) => ChangeOp::Withdrawn,
            (false, 0) => ChangeOp::Created,
            (false, _) => ChangeOp::Updated,
        };
        self.log(kind, op, id, stored.previous);
    }

    fn count_memory(&mut self, facets: &Facets, removed: bool) {
        self.meta.count(counter::MEMORIES, "", 1, removed);
        self.meta.count(counter::MEMORY_TYPE, &facets.memory_type, 1, removed);
        self.meta.count(counter::MEMORY_STATUS, &facets.status, 1, removed);
        self.meta.count(counter::MEMORY_PLATFORM, &facets.platform, 1, removed);
    }

    fn count_conversation(&mut self, platform: &str, messages: u32, removed: bool) {
        self.meta.count(counter::CONVERSATIONS, "", 1, removed);
        self.meta.count(counter::CONVERSATION_PLATFORM, platform, 1, removed);
        self.meta.count(counter::MESSAGES, "", u64::from(messages), removed);
    }
}

/// Returns the share of a record in the state digest: zeros if the record is not shown.
fn visible_share(withdrawn: bool, share: impl FnOnce() -> [u8; 32]) -> [u8; 32] {
    if withdrawn { [0; 32] } else { share() }
}

fn part_count(summary: &Summary, parts: &[Vec<u8>]) -> Result<u16, StoreError> {
    u16::try_from(parts.len()).map_err(|_| StoreError::TooLarge {
        what: format!("the list of messages of conversation {:?}", summary.id),
        size: parts.len() as u64,
        limit: u64::from(u16::MAX),
    })
}
