//! Removes memories that must not be exported, and all references to them.

use std::collections::BTreeSet;

use super::fields::remove_where;
use crate::{embedding::EmbeddingsDocument, store::MemoryStore};

/// The number of records that [`withhold`] removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Withheld {
    /// Memories whose `access.exportable` is false.
    pub memories: u64,
    /// Relations from or to them.
    pub relations: u64,
    /// References to them in `derived_memories` and `superseded_by`.
    pub mentions: u64,
    /// Their embeddings.
    pub embeddings: u64,
}

/// Removes memories that are not exportable from a store, with their relations, references and embeddings.
///
/// If anything is removed, so are checksum and signature. A memory whose successor is removed stays superseded, without a successor.
pub fn withhold(store: &mut MemoryStore, embeddings: Option<&mut EmbeddingsDocument>) -> Withheld {
    let gone: BTreeSet<String> =
        store.memories.iter().filter(|memory| !memory.exportable()).map(|memory| memory.id.clone()).collect();
    if gone.is_empty() {
        return Withheld::default();
    }
    let mut withheld = Withheld {
        memories: remove_where(&mut store.memories, |memory| gone.contains(&memory.id)),
        relations: remove_where(&mut store.relations, |one| {
            gone.contains(&one.from) || gone.contains(&one.to)
        }),
        ..Withheld::default()
    };
    for memory in &mut store.memories {
        let successor = &mut memory.temporal.superseded_by;
        withheld.mentions += u64::from(successor.take_if(|id| gone.contains(id)).is_some());
    }
    for entry in &mut store.conversations_index {
        withheld.mentions += remove_where(&mut entry.derived_memories, |id| gone.contains(id));
    }
    if let Some(document) = embeddings {
        withheld.embeddings = remove_where(&mut document.embeddings, |one| gone.contains(&one.memory_id));
    }
    store.integrity = None;
    store.signature = None;
    withheld
}
