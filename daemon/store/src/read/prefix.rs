//! Finds the ids of all records, withdrawn or not, that begin with a text, for a user who copied only the beginning of an id.

use crate::{
    engine::{Pairs, SCAN},
    error::StoreError,
    keys,
    revision::Revision,
    store::Store,
    value::{ConversationValue, MemoryValue, decode},
};

impl Store {
    /// Returns the ids of memories that begin with `prefix` and were created by `at`, in order. Letter case is ignored. Withdrawn
    /// and erased memories are included.
    ///
    /// # Errors
    /// [`StoreError::FutureRevision`] if the store has not reached this revision; any error of the engine.
    pub fn memory_ids(&self, prefix: &str, at: Revision) -> Result<Vec<String>, StoreError> {
        self.ids(keys::MEMORY, prefix, at, |value| {
            decode(value, "a memory", |take| {
                MemoryValue::take(take).map(|value| (value.id, value.stored.created))
            })
        })
    }

    /// Returns the ids of conversations, as [`Store::memory_ids`] does for memories.
    ///
    /// # Errors
    /// The errors of [`Store::memory_ids`].
    pub fn conversation_ids(&self, prefix: &str, at: Revision) -> Result<Vec<String>, StoreError> {
        self.ids(keys::CONVERSATION, prefix, at, |value| {
            let what = "a conversation";
            decode(value, what, |take| {
                ConversationValue::take(take).map(|value| (value.summary.id, value.stored.created))
            })
        })
    }

    /// Searches all records of a kind, because ids that are not UUIDs are sorted by their digest among the others.
    fn ids(
        &self,
        kind: u8,
        prefix: &str,
        at: Revision,
        id: impl Fn(&[u8]) -> Result<(String, u64), StoreError>,
    ) -> Result<Vec<String>, StoreError> {
        let at = self.at(Some(at))?.get();
        let mut found = Vec::new();
        let mut pairs = Pairs::new(self.engine(), vec![kind], vec![kind + 1], SCAN);
        while let Some((_, value)) = pairs.next()? {
            let (id, created) = id(&value)?;
            if created <= at && starts_with(&id, prefix) {
                found.push(id);
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}

/// Compares without regard to letter case, because users copy ids from various places.
fn starts_with(id: &str, prefix: &str) -> bool {
    id.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}
