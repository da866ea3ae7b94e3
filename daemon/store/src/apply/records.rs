//! How each kind of record, its lists and its history change.

use super::Applier;
use crate::{
    change::{EvidenceWrite, Origin},
    codec::Take,
    engine::Changes,
    entry::{ConversationEntry, EmbeddingEntry, Facets, MemoryEntry, RelationEntry, Summary, content_digest},
    error::StoreError,
    journal::Place,
    keys::{self, Id16, List},
    ledger::LedgerWrite,
    read::read,
    record::{ChangeKind, ChangeOp},
    value::{
        self, ConversationValue, LedgerValue, MemoryValue, OldVersion, PlainValue, RelationValue, Stored,
        counter,
    },
};

/// Entries of lists that ended are kept for this time, in microseconds: a week. A page token pins its revision for 24 hours, and
/// each page gives a new one.
const PINNED: u64 = 7 * 24 * 3_600 * 1_000_000;
/// Versions dropped from lists by one commit of their record: more than one, so that what a busy week left is worked off.
const DROPPED_AT_ONCE: usize = 16;

/// Parts of a conversation with more bytes of heads than this are written before the batch that shows them.
const PARTS_APART: usize = 256 << 10;

impl Applier {
    pub(super) fn memory(
        &mut self,
        entry: MemoryEntry,
        revision: u64,
        place: Place,
        origin: &Origin,
    ) -> Result<Changes, StoreError> {
        let id = keys::id16(&entry.id);
        let key = keys::object(keys::MEMORY, id);
        let old = self.read(&key, || format!("memory {:?}", entry.id), MemoryValue::take)?;
        if let Some(old) = old.as_ref().filter(|old| old.stored.revision >= revision) {
            self.log_again(ChangeKind::Memory, &entry.id, &old.stored, false);
            return Ok(Changes::default());
        }
        let share = content_digest(keys::MEMORY, entry.id.as_bytes(), &[&entry.json]);
        let mut stored = self.next(
            ChangeKind::Memory,
            &entry.id,
            old.as_ref().map(|old| &old.stored),
            revision,
            place,
            origin,
            share,
            false,
        );
        let mut changes = Changes::default();
        match &old {
            Some(old) => {
                self.count_memory(&old.facets, true);
                let entries = list_memory(&mut changes, id, &old.facets, old.stored.revision, revision);
                history(&mut changes, keys::OLD_MEMORY, id, &old.stored, origin, entries);
                stored.listed = self.unlist(&mut changes, keys::OLD_MEMORY, id, &old.stored, origin)?;
            }
            None => changes.put(keys::memory_id(&entry.id), [value::plain(), id.to_vec()].concat()),
        }
        self.count_memory(&entry.facets, false);
        list_memory(&mut changes, id, &entry.facets, revision, 0);
        let MemoryEntry { id, facets, json } = entry;
        changes.put(key, MemoryValue { id, stored, facets, json: value::inline(json) }.encode());
        Ok(changes)
    }

    pub(super) fn conversation(
        &mut self,
        entry: ConversationEntry,
        revision: u64,
        place: Place,
        origin: &Origin,
    ) -> Result<Changes, StoreError> {
        let ConversationEntry { summary, header, current, opaque, parts, digest } = entry;
        let id = keys::id16(&summary.id);
        let key = keys::object(keys::CONVERSATION, id);
        let old = self.read(&key, || format!("conversation {:?}", summary.id), ConversationValue::take)?;
        if let Some(old) = old.as_ref().filter(|old| old.stored.revision >= revision) {
            self.log_again(ChangeKind::Conversation, &summary.id, &old.stored, false);
            return Ok(Changes::default());
        }
        let count = u16::try_from(parts.len()).map_err(|_| StoreError::TooLarge {
            what: format!("the list of messages of conversation {:?}", summary.id),
            size: parts.len() as u64,
            limit: u64::from(u16::MAX),
        })?;
        let mut changes = self.parts(id, revision, parts)?;
        let share = content_digest(keys::CONVERSATION, summary.id.as_bytes(), &[&digest]);
        let mut stored = self.next(
            ChangeKind::Conversation,
            &summary.id,
            old.as_ref().map(|old| &old.stored),
            revision,
            place,
            origin,
            share,
            false,
        );
        if let Some(old) = &old {
            for part in 0..old.parts {
                changes.delete(keys::part(id, old.stored.revision, part));
            }
            let entry = list_conversation(&mut changes, id, &old.summary, old.stored.revision, revision);
            history(&mut changes, keys::OLD_CONVERSATION, id, &old.stored, origin, vec![entry]);
            stored.listed = self.unlist(&mut changes, keys::OLD_CONVERSATION, id, &old.stored, origin)?;
            self.count_conversation(&old.summary.platform, old.summary.messages, true);
        }
        self.count_conversation(&summary.platform, summary.messages, false);
        list_conversation(&mut changes, id, &summary, revision, 0);
        let record = ConversationValue {
            stored,
            summary,
            current,
            opaque,
            parts: count,
            header: value::inline(header),
        };
        changes.put(key, record.encode());
        Ok(changes)
    }

    /// Many parts go ahead of their record: nothing shows them yet, and replaying writes the same keys again.
    fn parts(&mut self, id: Id16, revision: u64, parts: Vec<Vec<u8>>) -> Result<Changes, StoreError> {
        let apart = parts.iter().map(Vec::len).sum::<usize>() > PARTS_APART;
        let mut changes = Changes::default();
        for (number, part) in (0_u16..).zip(parts) {
            changes.put(keys::part(id, revision, number), [value::plain(), part].concat());
            if apart && changes.full() {
                self.engine.apply(std::mem::take(&mut changes))?;
            }
        }
        Ok(changes)
    }

    pub(super) fn relation(
        &mut self,
        entry: RelationEntry,
        withdrawn: bool,
        revision: u64,
        place: Place,
        origin: &Origin,
    ) -> Result<Changes, StoreError> {
        let id = keys::id16(&entry.id);
        let key = keys::object(keys::RELATION, id);
        let old = self.read(&key, || format!("relation {:?}", entry.id), RelationValue::take)?;
        if let Some(old) = old.as_ref().filter(|old| old.stored.revision >= revision) {
            self.log_again(ChangeKind::Relation, &entry.id, &old.stored, old.withdrawn);
            return Ok(Changes::default());
        }
        let share =
            content_digest(keys::RELATION, entry.id.as_bytes(), &[&entry.json, &[u8::from(withdrawn)]]);
        let stored = self.next(
            ChangeKind::Relation,
            &entry.id,
            old.as_ref().map(|old| &old.stored),
            revision,
            place,
            origin,
            share,
            withdrawn,
        );
        let mut changes = Changes::default();
        if let Some(old) = &old {
            history(&mut changes, keys::OLD_RELATION, id, &old.stored, origin, Vec::new());
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
        revision: u64,
        place: Place,
        origin: &Origin,
    ) -> Result<Changes, StoreError> {
        let EmbeddingEntry { memory, model, json } = entry;
        let key = keys::pair(keys::EMBEDDING, keys::id16(&memory), keys::blind(&model));
        let old =
            self.read(&key, || format!("embedding of {memory:?}"), PlainValue::take)?.map(|old| old.stored);
        if let Some(old) = old.as_ref().filter(|old| old.revision >= revision) {
            self.log_again(ChangeKind::Embedding, &memory, old, false);
            return Ok(Changes::default());
        }
        let share = content_digest(keys::EMBEDDING, memory.as_bytes(), &[model.as_bytes(), &json]);
        if old.is_none() {
            self.meta.count(counter::EMBEDDINGS, "", 1, false);
        }
        let stored =
            self.next(ChangeKind::Embedding, &memory, old.as_ref(), revision, place, origin, share, false);
        let mut changes = Changes::default();
        // A vector is some 30 KiB of JSON and read rarely: it stays in the journal.
        changes.put(key, PlainValue { stored, bytes: None }.encode());
        Ok(changes)
    }

    pub(super) fn evidence(
        &mut self,
        evidence: EvidenceWrite,
        place: Place,
        origin: &Origin,
    ) -> Result<Changes, StoreError> {
        let EvidenceWrite { id, json } = evidence;
        let key = keys::object(keys::EVIDENCE, id);
        let old =
            self.read(&key, || "a piece of evidence".to_owned(), PlainValue::take)?.map(|old| old.stored);
        let share = content_digest(keys::EVIDENCE, &id, &[&json]);
        match &old {
            Some(old) => self.meta.digest.remove(&old.share),
            None => self.meta.count(counter::EVIDENCE, "", 1, false),
        }
        self.meta.digest.add(&share);
        let origin = origin.clone();
        let stored =
            Stored { created: 0, revision: 0, previous: 0, version: 1, listed: 0, place, origin, share };
        let mut changes = Changes::default();
        changes.put(key, PlainValue { stored, bytes: value::inline(json) }.encode());
        Ok(changes)
    }

    pub(super) fn ledger(&mut self, write: LedgerWrite, place: Place) -> Result<Changes, StoreError> {
        let mut changes = Changes::default();
        match write {
            LedgerWrite::Entry { ledger, id, at_micros, value } => {
                let key = keys::ledger(ledger, &id);
                let id16 = keys::id16(&id);
                let old = self.read(&key, || format!("ledger entry {id:?}"), LedgerValue::take)?;
                if let Some(old) = old.filter(|old| old.at != at_micros) {
                    changes.delete(keys::ledger_time(ledger, old.at, id16));
                }
                changes.put(keys::ledger_time(ledger, at_micros, id16), Vec::new());
                changes
                    .put(key, LedgerValue { id, at: at_micros, place, bytes: value::inline(value) }.encode());
            }
            LedgerWrite::Issues { import, page, value } => {
                let record = LedgerValue { id: String::new(), at: 0, place, bytes: value::inline(value) };
                changes.put(keys::issues(import, page), record.encode());
            }
        }
        Ok(changes)
    }

    fn read<T>(
        &mut self,
        key: &[u8],
        what: impl Fn() -> String,
        take: impl FnOnce(Take<'_>) -> Result<T, crate::codec::Malformed>,
    ) -> Result<Option<T>, StoreError> {
        let Some(bytes) = self.old(key)? else { return Ok(None) };
        let value = take(value::open(&bytes, &what)?);
        value.map(Some).map_err(|error| StoreError::BadValue { what: what(), problem: error.to_string() })
    }

    /// Counts, logs and numbers the next version of a record.
    #[expect(clippy::too_many_arguments, reason = "the facts of one version, named at each call")]
    fn next(
        &mut self,
        kind: ChangeKind,
        id: &str,
        old: Option<&Stored>,
        revision: u64,
        place: Place,
        origin: &Origin,
        share: [u8; 32],
        withdrawn: bool,
    ) -> Stored {
        if let Some(old) = old {
            self.meta.digest.remove(&old.share);
        }
        self.meta.digest.add(&share);
        let stored = Stored {
            created: old.map_or(revision, |old| old.created),
            revision,
            previous: old.map_or(0, |old| old.revision),
            version: old.map_or(1, |old| old.version.saturating_add(1)),
            listed: revision,
            place,
            origin: origin.clone(),
            share,
        };
        self.log_again(kind, id, &stored, withdrawn);
        stored
    }

    /// Drops the entries of versions that were replaced so long before `by` that no reader is pinned to them. Returns the revision of
    /// the oldest version that is still listed. Depends on nothing but the journal, so that a rebuild gives the same keys.
    fn unlist(
        &self,
        changes: &mut Changes,
        kind: u8,
        id: Id16,
        old: &Stored,
        by: &Origin,
    ) -> Result<u64, StoreError> {
        let (from, until) = (keys::version(kind, id, old.listed), keys::version(kind, id, old.revision));
        let mut listed = old.listed;
        for (key, value) in self.engine.scan(&from, &until, DROPPED_AT_ONCE, false)? {
            let mut version = read(&value, "an older version", OldVersion::take)?;
            listed = keys::entry_tail(&key).map_or(listed, |(_, revision)| revision);
            // A time far ahead is one of a clock that was set back.
            if version.ended_at.abs_diff(by.at_micros) < PINNED {
                return Ok(listed);
            }
            for entry in std::mem::take(&mut version.entries) {
                changes.delete(entry);
            }
            changes.put(key, version.encode());
            listed += 1;
        }
        Ok(listed)
    }

    /// Logs a change whose record stands already: a replay after a kill meets those.
    fn log_again(&mut self, kind: ChangeKind, id: &str, stored: &Stored, withdrawn: bool) {
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

/// Puts the version that is replaced under its own key; `entries` are those that it has in lists.
fn history(changes: &mut Changes, kind: u8, id: Id16, old: &Stored, by: &Origin, entries: Vec<Vec<u8>>) {
    let Stored { version, place, .. } = *old;
    let ended = OldVersion { version, place, ended_at: by.at_micros, entries };
    changes.put(keys::version(kind, id, old.revision), ended.encode());
}

/// Puts the entries of a version in its lists, ended at revision `end` or, if 0, holding still; returns their keys.
fn list_memory(changes: &mut Changes, id: Id16, facets: &Facets, revision: u64, end: u64) -> Vec<Vec<u8>> {
    let mut entries = Vec::new();
    for (list, sort) in lists(facets) {
        let value = value::list_entry(end, |out| {
            // With the other tags in each, a memory of n tags would take n² bytes.
            if !matches!(list, List::MemoriesTagged(_)) {
                facets.put(out);
            }
        });
        let entry = list.entry(sort, id, revision);
        changes.put(entry.clone(), value);
        entries.push(entry);
    }
    entries
}

fn list_conversation(changes: &mut Changes, id: Id16, summary: &Summary, revision: u64, end: u64) -> Vec<u8> {
    let entry = List::Conversations.entry(keys::descending(summary.updated), id, revision);
    changes.put(entry.clone(), value::list_entry(end, |out| summary.put(out)));
    entry
}

/// The lists that a memory stands in, and where.
pub(crate) fn lists(facets: &Facets) -> Vec<(List, u64)> {
    let newest = keys::descending(facets.updated);
    let mut lists = vec![
        (List::MemoriesUpdated, newest),
        (List::MemoriesCreated, keys::ascending(facets.created)),
        (List::MemoriesHashed(keys::blind(&facets.content_hash)), newest),
    ];
    if let Some(conversation) = &facets.conversation {
        lists.push((List::MemoriesOf(keys::id16(conversation)), newest));
    }
    let mut tags: Vec<_> = facets.tags.iter().map(|tag| keys::blind(tag)).collect();
    tags.sort_unstable();
    tags.dedup();
    lists.extend(tags.into_iter().map(|tag| (List::MemoriesTagged(tag), newest)));
    lists
}
