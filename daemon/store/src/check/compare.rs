//! Compares the engine with the journal, commit by commit.

use std::collections::BTreeMap;

use crate::{
    apply::lists,
    change::EvidenceWrite,
    codec::{batch, heads},
    entry::{self, ConversationEntry, EmbeddingEntry, JournalEntry, MemoryEntry, RelationEntry},
    error::StoreError,
    journal::{ChangeLocation, frame::FrameKind, scan::VisitedFrame},
    keys::{self, List},
    ledger::LedgerWrite,
    store::Store,
    value::{ConversationValue, LedgerValue, MemoryValue, OldVersion, PlainValue, RelationValue, decode},
};

/// One pass over the journal that compares it with the engine.
pub(super) struct Comparer<'a> {
    store: &'a Store,
    /// The last revision that is compared; later commits happen during the check.
    until: u64,
    /// The unpacked length of each body frame; takes about 40 bytes per 20 KiB of journal.
    bodies: BTreeMap<(u32, u64), usize>,
    /// Keys of what the engine does not have, and what it is. A later write may have removed it.
    absent: BTreeMap<Vec<u8>, &'static str>,
    pub(super) records: u64,
    pub(super) problems: Vec<String>,
}

/// How the engine's record relates to the place in the journal that is being compared.
#[derive(Clone, Copy)]
enum RecordState {
    /// This place wrote the record.
    Here,
    /// A later commit wrote the record.
    Later,
    Missing,
}

impl<'a> Comparer<'a> {
    pub(super) fn new(store: &'a Store, until: u64) -> Self {
        Self {
            store,
            until,
            bodies: BTreeMap::new(),
            absent: BTreeMap::new(),
            records: 0,
            problems: Vec::new(),
        }
    }

    pub(super) fn frame(
        &mut self,
        visit: &VisitedFrame<'_>,
        seen: &mut dyn FnMut(&[u8]),
    ) -> Result<(), StoreError> {
        let (segment, offset) = (visit.start.segment, visit.start.offset);
        let what = || format!("the frame at byte {offset} of segment {segment}");
        let revision = visit.header.revision;
        if visit.header.kind == FrameKind::Seal {
            return Ok(());
        }
        let payload = match visit.unpack() {
            Ok(payload) => payload,
            Err(error) => {
                self.problems.push(format!("{} {error}", what()));
                return Ok(());
            }
        };
        seen(&payload);
        if visit.header.kind == FrameKind::Body {
            self.bodies.insert((segment, offset), payload.len());
            return Ok(());
        }
        match batch::decode(&payload) {
            Err(error) => self.problems.push(format!("{} {error}", what())),
            Ok((_, entries)) => {
                for (change, entry) in (0_u32..).zip(entries) {
                    self.entry(entry, revision, ChangeLocation { segment, offset, change })?;
                }
            }
        }
        Ok(())
    }

    fn entry(&mut self, entry: JournalEntry, revision: u64, place: ChangeLocation) -> Result<(), StoreError> {
        match entry {
            JournalEntry::Memory(memory) => self.memory(&memory, revision, place),
            JournalEntry::Conversation(conversation) => self.conversation(&conversation, revision, place),
            JournalEntry::Relation(relation) => self.relation(&relation, false, revision, place),
            JournalEntry::Withdraw(relation) => self.relation(&relation, true, revision, place),
            JournalEntry::Embedding(embedding) => self.embedding(&embedding, place),
            JournalEntry::Evidence(evidence) => self.evidence(&evidence, place),
            JournalEntry::Ledger(write) => self.ledger(&write, place),
        }
    }

    fn memory(
        &mut self,
        entry: &MemoryEntry,
        revision: u64,
        place: ChangeLocation,
    ) -> Result<(), StoreError> {
        let id = keys::id16(&entry.id);
        let found = self.get(&keys::object(keys::MEMORY, id), "a memory", MemoryValue::take)?;
        let what = format!("memory {:?}", entry.id);
        let stored = found.as_ref().map(|value| value.stored.place);
        match record_state(stored, place) {
            RecordState::Missing => self.missing(&what),
            RecordState::Later => self.check_old_version(&what, keys::OLD_MEMORY, id, revision, place)?,
            RecordState::Here => {
                let Some(value) = found else { return Ok(()) };
                let json = value.json.as_ref().is_none_or(|json| *json == entry.json);
                let mut listed = true;
                for (list, sort) in
                    lists(self.store.engine(), &entry.facets).into_iter().filter(|_| !entry.withdrawn)
                {
                    listed &= self.entry_valid(&list.entry(sort, id, revision))?;
                }
                let same = json && value.facets == entry.facets && value.withdrawn == entry.withdrawn;
                self.report_record(&what, same, listed);
            }
        }
        Ok(())
    }

    fn conversation(
        &mut self,
        entry: &ConversationEntry,
        revision: u64,
        place: ChangeLocation,
    ) -> Result<(), StoreError> {
        let id = keys::id16(&entry.summary.id);
        let found =
            self.get(&keys::object(keys::CONVERSATION, id), "a conversation", ConversationValue::take)?;
        let what = format!("conversation {:?}", entry.summary.id);
        self.check_bodies(entry, &what)?;
        let stored = found.as_ref().map(|value| value.stored.place);
        match record_state(stored, place) {
            RecordState::Missing => self.missing(&what),
            RecordState::Later => {
                self.check_old_version(&what, keys::OLD_CONVERSATION, id, revision, place)?;
            }
            RecordState::Here => {
                let Some(value) = found else { return Ok(()) };
                let mut same = value.withdrawn == entry.withdrawn
                    && value.summary == entry.summary
                    && usize::from(value.parts) == entry.parts.len();
                same &= value.header.as_ref().is_none_or(|header| *header == entry.header);
                for (number, part) in (0_u16..).zip(&entry.parts) {
                    let key = keys::part(id, revision, number);
                    same &=
                        self.get(&key, "messages", |take| Ok(take.0 == part.as_slice()))?.unwrap_or(false);
                }
                let sort = keys::descending(entry.summary.updated);
                let listed =
                    entry.withdrawn || self.entry_valid(&List::Conversations.entry(sort, id, revision))?;
                self.report_record(&what, same, listed);
            }
        }
        Ok(())
    }

    /// Checks that the heads can be read, that they hash to the conversation's digest, and that they refer to existing bodies.
    fn check_bodies(&mut self, entry: &ConversationEntry, what: &str) -> Result<(), StoreError> {
        let (mut found, mut places) = (Vec::new(), Vec::new());
        for part in &entry.parts {
            if let Err(error) = heads::read_part(part, &mut found, &mut places) {
                self.problems.push(format!("the journal's list of messages of {what} {error}"));
                return Ok(());
            }
        }
        let mut header = serde_json::from_slice(&entry.header)
            .map_err(|source| StoreError::Json { what: what.to_owned(), source })?;
        let digest =
            entry::conversation_digest(&mut header, entry.current.as_deref(), &heads::digest(&found))?;
        if digest != entry.digest {
            self.problems.push(format!("the journal's {what} does not hash to its digest"));
        }
        let lost = places.iter().filter(|place| {
            let length = self.bodies.get(&(place.segment, place.offset)).copied().unwrap_or(0);
            place.start as usize + place.length as usize > length
        });
        let lost = lost.count();
        if lost > 0 {
            self.problems.push(format!("{lost} messages of {what} have no body"));
        }
        Ok(())
    }

    fn relation(
        &mut self,
        entry: &RelationEntry,
        withdrawn: bool,
        revision: u64,
        place: ChangeLocation,
    ) -> Result<(), StoreError> {
        let id = keys::id16(&entry.id);
        let found = self.get(&keys::object(keys::RELATION, id), "a relation", RelationValue::take)?;
        let what = format!("relation {:?}", entry.id);
        let stored = found.as_ref().map(|value| value.stored.place);
        match record_state(stored, place) {
            RecordState::Missing => self.missing(&what),
            RecordState::Later => self.check_old_version(&what, keys::OLD_RELATION, id, revision, place)?,
            RecordState::Here => {
                let Some(value) = found else { return Ok(()) };
                let same = value.withdrawn == withdrawn && value.json.as_ref() == Some(&entry.json);
                let ends = [(keys::RELATION_FROM, &entry.from), (keys::RELATION_TO, &entry.to)];
                let mut listed = true;
                for (kind, end) in ends {
                    listed &= self.store.engine().get(&keys::pair(kind, keys::id16(end), id))?.is_some();
                }
                self.report_record(&what, same, listed);
            }
        }
        Ok(())
    }

    fn embedding(&mut self, entry: &EmbeddingEntry, place: ChangeLocation) -> Result<(), StoreError> {
        let key =
            keys::pair(keys::EMBEDDING, keys::id16(&entry.memory), self.store.engine().blind(&entry.model));
        let found = self.get(&key, "an embedding", PlainValue::take)?.map(|value| value.stored.place);
        self.report_unlisted(
            &format!("the embedding of {:?}", entry.memory),
            record_state(found, place),
            true,
        );
        Ok(())
    }

    fn evidence(&mut self, evidence: &EvidenceWrite, place: ChangeLocation) -> Result<(), StoreError> {
        let key = keys::object(keys::EVIDENCE, evidence.id);
        if evidence.json.is_empty() {
            self.absent.remove(key.as_slice());
            return Ok(());
        }
        let found = self.get(&key, "evidence", PlainValue::take)?;
        if found.is_none() {
            self.absent.insert(key.clone(), "a piece of evidence");
            return Ok(());
        }
        let same =
            found.as_ref().and_then(|value| value.bytes.as_ref()).is_none_or(|bytes| *bytes == evidence.json);
        let stored = found.map(|value| value.stored.place);
        self.report_unlisted("a piece of evidence", record_state(stored, place), same);
        Ok(())
    }

    fn ledger(&mut self, write: &LedgerWrite, place: ChangeLocation) -> Result<(), StoreError> {
        let (key, what, value) = match write {
            LedgerWrite::Entry { ledger, id, value, .. } => {
                (keys::ledger(*ledger, id), "a ledger entry", value)
            }
            LedgerWrite::Issues { import, page, value } => {
                (keys::issues(*import, *page), "a page of issues", value)
            }
            LedgerWrite::Piece { digest, value } => (keys::piece(digest), "a known piece", value),
        };
        let found = self.get(&key, what, LedgerValue::take)?;
        if value.is_empty() {
            self.absent.remove(&key);
            return Ok(());
        }
        if found.is_none() {
            self.absent.insert(key, what);
            return Ok(());
        }
        let same = found.as_ref().and_then(|found| found.bytes.as_ref()).is_none_or(|bytes| bytes == value);
        self.report_unlisted(what, record_state(found.map(|found| found.place), place), same);
        Ok(())
    }

    /// Reports what is missing, once the whole journal was read.
    pub(super) fn finish(&mut self) {
        self.problems.extend(self.absent.values().map(|what| format!("{what} is missing")));
    }

    fn report_unlisted(&mut self, what: &str, state: RecordState, same: bool) {
        match state {
            RecordState::Missing => self.missing(what),
            RecordState::Later => {}
            RecordState::Here => self.report_record(what, same, true),
        }
    }

    fn report_record(&mut self, what: &str, same: bool, listed: bool) {
        self.records += 1;
        if !same {
            self.problems.push(format!("{what} differs from the journal"));
        }
        if !listed {
            self.problems.push(format!("{what} is not in all its lists"));
        }
    }

    fn missing(&mut self, what: &str) {
        self.problems.push(format!("{what} is missing"));
    }

    fn check_old_version(
        &mut self,
        what: &str,
        kind: u8,
        id: keys::Id16,
        revision: u64,
        place: ChangeLocation,
    ) -> Result<(), StoreError> {
        let old = self.get(&keys::version(kind, id, revision), "an older version", OldVersion::take)?;
        if old.is_none_or(|old| old.place != place) {
            self.problems.push(format!("the version of revision {revision} of {what} is missing"));
        }
        Ok(())
    }

    /// Returns whether an index entry is still valid, or ended only after the check began.
    fn entry_valid(&self, key: &[u8]) -> Result<bool, StoreError> {
        let end = self.get(key, "an entry of a list", |mut take| take.u64())?;
        Ok(end.is_some_and(|end| end == 0 || end > self.until))
    }

    fn get<T>(
        &self,
        key: &[u8],
        what: &str,
        take: impl FnOnce(crate::codec::ByteReader<'_>) -> Result<T, crate::codec::Malformed>,
    ) -> Result<Option<T>, StoreError> {
        self.store.engine().get(key)?.map(|value| decode(&value, what, take)).transpose()
    }
}

fn record_state(stored: Option<ChangeLocation>, place: ChangeLocation) -> RecordState {
    match stored {
        Some(stored) if stored == place => RecordState::Here,
        Some(stored) if (stored.segment, stored.offset) > (place.segment, place.offset) => RecordState::Later,
        // A record that is older than a commit that wrote it: that commit was not applied.
        Some(_) | None => RecordState::Missing,
    }
}
