//! Takes out of a document what must not leave, and every trace of it (rule ).

use std::collections::BTreeSet;

use crate::{embedding::EmbeddingsDocument, store::MemoryStore};

/// How much was taken out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Withheld {
    /// Memories whose `access.exportable` is false.
    pub memories: u64,
    /// Relations from or to one of them.
    pub relations: u64,
    /// Mentions: `derived_memories` and `superseded_by`.
    pub mentions: u64,
    /// Their vectors.
    pub embeddings: u64,
}

/// Takes memories that are not exportable out of a store, with their relations, mentions and vectors.
///
/// Checksum and signature go if anything went. A memory whose successor is withheld stays superseded, and names none.
pub fn withhold(store: &mut MemoryStore, embeddings: Option<&mut EmbeddingsDocument>) -> Withheld {
    let gone: BTreeSet<String> =
        store.memories.iter().filter(|memory| !memory.exportable()).map(|memory| memory.id.clone()).collect();
    if gone.is_empty() {
        return Withheld::default();
    }
    let mut withheld = Withheld {
        memories: drop_from(&mut store.memories, |memory| gone.contains(&memory.id)),
        relations: drop_from(&mut store.relations, |one| gone.contains(&one.from) || gone.contains(&one.to)),
        ..Withheld::default()
    };
    for memory in &mut store.memories {
        let successor = &mut memory.temporal.superseded_by;
        withheld.mentions += u64::from(successor.take_if(|id| gone.contains(id)).is_some());
    }
    for entry in &mut store.conversations_index {
        withheld.mentions += drop_from(&mut entry.derived_memories, |id| gone.contains(id));
    }
    if let Some(document) = embeddings {
        withheld.embeddings = drop_from(&mut document.embeddings, |one| gone.contains(&one.memory_id));
    }
    store.integrity = None;
    store.signature = None;
    withheld
}

fn drop_from<T>(list: &mut Vec<T>, gone: impl Fn(&T) -> bool) -> u64 {
    let before = list.len();
    list.retain(|one| !gone(one));
    (before - list.len()) as u64
}
