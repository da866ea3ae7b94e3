//! Records which memories are reported only by strangers' documents, and by which stranger, so that this can be shown
//! with them.
//!
//! This follows from the evidence. It is also stored in the ledger, so that a memory can be displayed with it, and an
//! import can look it up.

use satchel_store::{Change, Ledger, Store, StoreError, key_of};

use super::{REST, put};

/// Returns the stranger who reported the visible state of a memory: a key, or [`satchel_merge::evidence::UNSIGNED`].
/// Returns `None` if others report the memory too.
///
/// # Errors
/// The ledger cannot be read.
pub fn stranger_of(store: &Store, memory: &str) -> Result<Option<String>, StoreError> {
    let entry = store.ledger_get(Ledger::Lineage, &name(memory))?;
    Ok(entry.map(|entry| String::from_utf8_lossy(&entry.value).into_owned()).filter(|key| !key.is_empty()))
}

/// Returns the change that records `stranger` as the source of a memory, or that no stranger is. Returns `None` if that
/// is recorded already.
///
/// # Errors
/// The ledger cannot be read.
pub fn note_stranger(
    store: &Store,
    memory: &str,
    stranger: Option<&String>,
) -> Result<Option<Change>, StoreError> {
    let known = stranger_of(store, memory)?;
    let value = stranger.cloned().unwrap_or_default().into_bytes();
    Ok((known.as_ref() != stranger).then(|| put(name(memory), REST, value)))
}

/// Ids in documents may be as long as the store allows; the key of an id is short.
fn name(memory: &str) -> String {
    format!("stranger {:032x}", u128::from_be_bytes(key_of(memory)))
}
