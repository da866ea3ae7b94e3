//! Memories in memory.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use crate::{EmbeddingSource, MissingText, TextVector};

/// Clones share the memories.
#[derive(Clone, Default)]
pub(super) struct Memories(Arc<Mutex<Content>>);

#[derive(Default)]
pub(super) struct Content {
    /// The text of each memory, and its vector.
    memories: BTreeMap<String, (String, Option<Vec<f32>>)>,
    revision: u64,
    /// How often storing fails from now on.
    pub(super) failures: usize,
}

#[derive(Debug, thiserror::Error)]
#[error("the disk is full")]
pub(super) struct DiskFull;

impl Memories {
    pub(super) fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let memories = Self::default();
        for (number, text) in texts.into_iter().enumerate() {
            memories.write(&format!("memory-{number:03}"), text);
        }
        memories
    }

    /// Creates `count` memories with different texts.
    pub(super) fn numbered(count: usize) -> Self {
        let texts: Vec<String> = (0..count).map(|number| format!("text {number}")).collect();
        Self::new(texts.iter().map(String::as_str))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap()
    }

    /// Adds a memory, or changes its text.
    pub(super) fn write(&self, id: &str, text: &str) {
        let mut content = self.lock();
        content.memories.insert(id.to_owned(), (text.to_owned(), None));
        content.revision += 1;
    }

    pub(super) fn vector(&self, id: &str) -> Option<Vec<f32>> {
        self.lock().memories[id].1.clone()
    }

    /// Returns the texts that have their vectors.
    pub(super) fn embedded(&self) -> Vec<String> {
        let content = self.lock();
        let embedded = content.memories.values().filter(|(_, vector)| vector.is_some());
        embedded.map(|(text, _)| text.clone()).collect()
    }
}

fn hash(text: &str) -> String {
    format!("hash of {text}")
}

impl EmbeddingSource for Memories {
    type Error = DiskFull;

    fn missing(&self, model: &str, after: Option<&str>, limit: usize) -> Result<Vec<MissingText>, DiskFull> {
        assert_eq!(model, "test-model");
        let content = self.lock();
        let missing = content.memories.iter().filter(|(_, (_, vector))| vector.is_none());
        let missing = missing.filter(|(id, _)| after.is_none_or(|after| id.as_str() > after)).take(limit);
        Ok(missing
            .map(|(id, (text, _))| MissingText {
                memory_id: id.clone(),
                content_hash: hash(text),
                text: text.clone(),
            })
            .collect())
    }

    fn store(&self, model: &str, vectors: Vec<TextVector>) -> Result<(), DiskFull> {
        assert_eq!(model, "test-model");
        let mut content = self.lock();
        if content.failures > 0 {
            content.failures -= 1;
            return Err(DiskFull);
        }
        for vector in vectors {
            if let Some((text, place)) = content.memories.get_mut(&vector.memory_id)
                && hash(text) == vector.content_hash
            {
                assert!(place.is_none(), "{text:?} was embedded twice");
                *place = Some(vector.vector);
            }
        }
        Ok(())
    }

    fn revision(&self) -> u64 {
        self.lock().revision
    }

    fn count_missing(&self, _model: &str) -> Result<Option<u64>, DiskFull> {
        Ok(Some(self.lock().memories.values().filter(|(_, vector)| vector.is_none()).count() as u64))
    }
}
