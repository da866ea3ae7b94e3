//! Evidence and embeddings.

use super::{memory::PageBuilder, parse};
use crate::{
    engine::{self, SCAN},
    entry::JournalEntry,
    error::StoreError,
    journal::ChangeLocation,
    keys,
    lookup::wrong_kind,
    query::{Cursor, Page},
    record::{EmbeddingRecord, EvidenceRecord},
    revision::Revision,
    store::Store,
    value::{PlainValue, decode},
};

impl Store {
    /// Returns a piece of evidence.
    ///
    /// # Errors
    /// Any error of the engine or the journal.
    pub fn evidence(&self, id: [u8; 16]) -> Result<Option<EvidenceRecord>, StoreError> {
        let value = self.engine().get(&keys::object(keys::EVIDENCE, id))?;
        value.map(|value| self.evidence_record(id, &value)).transpose()
    }

    /// Returns whether there is a piece of evidence with this id.
    ///
    /// # Errors
    /// Any error of the engine.
    pub fn has_evidence(&self, id: [u8; 16]) -> Result<bool, StoreError> {
        Ok(self.engine().get(&keys::object(keys::EVIDENCE, id))?.is_some())
    }

    /// Iterates over all evidence in the order of its ids, with a limited number of pieces in memory. Evidence that is written
    /// meanwhile may or may not be included.
    #[must_use]
    pub fn evidence_all(&self) -> EvidenceIter<'_> {
        EvidenceIter { store: self, page: Vec::new().into_iter(), last: None, done: false }
    }

    /// Returns how many pieces of evidence were written or removed since the store was opened.
    #[must_use]
    pub fn evidence_writes(&self) -> u64 {
        self.recent_evidence().count()
    }

    /// Returns the ids of the pieces that were written or removed after the first `writes`, the oldest first; `None` if that is so long
    /// ago that the store does not know them any more.
    #[must_use]
    pub fn evidence_written_after(&self, writes: u64) -> Option<Vec<[u8; 16]>> {
        self.recent_evidence().after(writes)
    }

    /// Returns the vector of a memory for a model.
    ///
    /// # Errors
    /// Any error of the engine or the journal.
    pub fn embedding(&self, memory: &str, model: &str) -> Result<Option<EmbeddingRecord>, StoreError> {
        let key = keys::pair(keys::EMBEDDING, keys::id16(memory), self.engine().blind(model));
        let value = self.engine().get(&key)?;
        value.map_or(Ok(None), |value| self.embedding_record(&value))
    }

    /// Returns a page of vectors, by memory, in a fixed order. Vectors have no history: the newest of each is shown.
    ///
    /// # Errors
    /// Any error of the engine or the journal.
    pub fn embeddings(
        &self,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page<EmbeddingRecord>, StoreError> {
        let mut rows = PageBuilder::new(limit);
        let after = after.map(Cursor::as_bytes);
        engine::walk::<StoreError>(self.engine(), &[keys::EMBEDDING], after, |key, value| {
            Ok(self.embedding_record(value)?.is_none_or(|record| rows.push(key, record)))
        })?;
        Ok(rows.page())
    }

    /// Visits all vectors in the order in which they were written. What was written in one commit is read once, so that this takes
    /// far less time than reading each vector by itself.
    ///
    /// # Errors
    /// Any error of the engine or the journal, and those of `visit`, which end it.
    pub fn each_embedding<E: From<StoreError>>(
        &self,
        mut visit: impl FnMut(EmbeddingRecord) -> Result<(), E>,
    ) -> Result<(), E> {
        let what = "an embedding";
        let mut places = self.embedding_places()?;
        places.sort_unstable_by_key(|(place, _)| (place.segment, place.offset, place.change));
        let commit = |(place, _): &(ChangeLocation, Revision)| (place.segment, place.offset);
        for together in places.chunk_by(|one, other| commit(one) == commit(other)) {
            let Some((segment, offset)) = together.first().map(commit) else { continue };
            let entries = self.changes_at(segment, offset, what)?;
            for (place, revision) in together {
                let entry = usize::try_from(place.change).ok().and_then(|at| entries.get(at));
                let Some(JournalEntry::Embedding(entry)) = entry else { return Err(wrong_kind(what).into()) };
                visit(EmbeddingRecord { embedding: parse(&entry.json, what)?, revision: *revision })?;
            }
        }
        Ok(())
    }

    /// Returns where each vector that is shown is in the journal.
    fn embedding_places(&self) -> Result<Vec<(ChangeLocation, Revision)>, StoreError> {
        let mut places = Vec::new();
        engine::walk::<StoreError>(self.engine(), &[keys::EMBEDDING], None, |_, value| {
            let value = decode(value, "an embedding", PlainValue::take)?;
            if !value.withdrawn_embedding() {
                places.push((value.stored.place, Revision::new(value.stored.revision)));
            }
            Ok(true)
        })?;
        Ok(places)
    }

    /// Returns the vectors of a memory, one for each model.
    ///
    /// # Errors
    /// Any error of the engine or the journal.
    pub fn embeddings_of(&self, memory: &str) -> Result<Vec<EmbeddingRecord>, StoreError> {
        let mut found = Vec::new();
        let prefix = keys::object(keys::EMBEDDING, keys::id16(memory));
        engine::walk::<StoreError>(self.engine(), &prefix, None, |_, value| {
            found.extend(self.embedding_record(value)?);
            Ok(true)
        })?;
        Ok(found)
    }

    /// Returns the models whose vector of a memory is hidden, each with the revision that hid it.
    ///
    /// # Errors
    /// Any error of the engine or the journal.
    pub fn withdrawn_embeddings_of(&self, memory: &str) -> Result<Vec<(String, Revision)>, StoreError> {
        let what = "an embedding";
        let mut found = Vec::new();
        let prefix = keys::object(keys::EMBEDDING, keys::id16(memory));
        engine::walk::<StoreError>(self.engine(), &prefix, None, |_, value| {
            let value = decode(value, what, PlainValue::take)?;
            let withdrawn = value.withdrawn_embedding();
            // A vector that was erased permanently has no name any more.
            if withdrawn
                && let (_, _, JournalEntry::Embedding(entry)) = self.change(value.stored.place, what)?
            {
                found.push((entry.model, Revision::new(value.stored.revision)));
            }
            Ok(true)
        })?;
        Ok(found)
    }

    /// Returns `None` if the embedding is hidden.
    fn embedding_record(&self, value: &[u8]) -> Result<Option<EmbeddingRecord>, StoreError> {
        let what = "an embedding";
        let value = decode(value, what, PlainValue::take)?;
        if value.withdrawn_embedding() {
            return Ok(None);
        }
        let stored = value.stored;
        let (_, _, JournalEntry::Embedding(entry)) = self.change(stored.place, what)? else {
            return Err(wrong_kind(what));
        };
        let embedding = parse(&entry.json, what)?;
        Ok(Some(EmbeddingRecord { embedding, revision: Revision::new(stored.revision) }))
    }

    fn evidence_record(&self, id: [u8; 16], value: &[u8]) -> Result<EvidenceRecord, StoreError> {
        let what = "a piece of evidence";
        let PlainValue { stored, bytes } = decode(value, what, PlainValue::take)?;
        let json = match bytes {
            Some(bytes) => bytes,
            None => match self.change(stored.place, what)? {
                (_, _, JournalEntry::Evidence(evidence)) => evidence.json,
                _ => return Err(wrong_kind(what)),
            },
        };
        Ok(EvidenceRecord { id, json, origin: stored.origin })
    }
}

/// An iterator over all evidence.
pub struct EvidenceIter<'a> {
    store: &'a Store,
    page: std::vec::IntoIter<engine::Pair>,
    last: Option<Vec<u8>>,
    done: bool,
}

impl EvidenceIter<'_> {
    fn fetch(&mut self) -> Result<(), StoreError> {
        let prefix = [keys::EVIDENCE];
        let mut page = Vec::new();
        engine::walk::<StoreError>(self.store.engine(), &prefix, self.last.as_deref(), |key, value| {
            page.push((key.to_vec(), value.to_vec()));
            Ok(page.len() < SCAN)
        })?;
        self.done = page.len() < SCAN;
        self.last = page.last().map(|(key, _)| key.clone());
        self.page = page.into_iter();
        Ok(())
    }
}

impl Iterator for EvidenceIter<'_> {
    type Item = Result<EvidenceRecord, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.len() == 0
            && !self.done
            && let Err(error) = self.fetch()
        {
            self.done = true;
            return Some(Err(error));
        }
        let (key, value) = self.page.next()?;
        let id = keys::last16(&key)?;
        Some(self.store.evidence_record(id, &value))
    }
}
