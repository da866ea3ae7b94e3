//! Records which memories are reported only by untrusted signers' documents, and by which signer, so that this can be shown
//! with them.
//!
//! This follows from the evidence. It is also stored in the ledger, so that a memory can be displayed with it, and an
//! import can look it up.

use satchel_store::{Change, Ledger, Store, StoreError, record_key};

use super::{OTHER_ENTRIES, put};

/// Returns the untrusted signer who reported the visible state of a memory: a key, or [`satchel_merge::evidence::UNSIGNED`].
/// Returns `None` if others report the memory too.
///
/// # Errors
/// The ledger cannot be read.
pub fn untrusted_signer(store: &Store, memory: &str) -> Result<Option<String>, StoreError> {
    let entry = store.ledger_get(Ledger::Provenance, &name(memory))?;
    Ok(entry.map(|entry| String::from_utf8_lossy(&entry.value).into_owned()).filter(|key| !key.is_empty()))
}

/// Returns the change that records `signer` as the source of a memory, or that it has none. Returns `None` if that
/// is recorded already.
///
/// # Errors
/// The ledger cannot be read.
pub fn record_untrusted_signer(
    store: &Store,
    memory: &str,
    signer: Option<&String>,
) -> Result<Option<Change>, StoreError> {
    let known = untrusted_signer(store, memory)?;
    let value = signer.cloned().unwrap_or_default().into_bytes();
    Ok((known.as_ref() != signer).then(|| put(name(memory), OTHER_ENTRIES, value)))
}

/// Ids in documents may be as long as the store allows; the key of an id is short.
fn name(memory: &str) -> String {
    format!("stranger {:032x}", u128::from_be_bytes(record_key(memory)))
}
