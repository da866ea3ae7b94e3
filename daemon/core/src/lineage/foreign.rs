//! The memories that only strangers' documents speak of, and which stranger's: what is shown of them says so.
//!
//! It follows from the evidence, and stands in the ledger so that a memory can be shown with it, and an import can ask.

use satchel_store::{Change, Ledger, Store, StoreError, key_of};

use super::{REST, put};

/// The stranger who brought what is shown of a memory: a key, or [`satchel_merge::evidence::UNSIGNED`]; none: others speak of it too.
///
/// # Errors
/// When the ledger does not read.
pub fn stranger_of(store: &Store, memory: &str) -> Result<Option<String>, StoreError> {
    let entry = store.ledger_get(Ledger::Lineage, &name(memory))?;
    Ok(entry.map(|entry| String::from_utf8_lossy(&entry.value).into_owned()).filter(|key| !key.is_empty()))
}

/// What notes that a memory is this stranger's, or no stranger's; none: it stands so.
///
/// # Errors
/// When the ledger does not read.
pub fn note_stranger(
    store: &Store,
    memory: &str,
    stranger: Option<&String>,
) -> Result<Option<Change>, StoreError> {
    let known = stranger_of(store, memory)?;
    let value = stranger.cloned().unwrap_or_default().into_bytes();
    Ok((known.as_ref() != stranger).then(|| put(name(memory), REST, value)))
}

/// Ids of documents may be as long as the store takes; the key of one is short.
fn name(memory: &str) -> String {
    format!("stranger {:032x}", u128::from_be_bytes(key_of(memory)))
}
