//! Records which device recorded a conversation. An agent may continue only its own conversations, and no document can
//! say that a conversation is its own.

use satchel_store::{Change, Ledger, Store};

use super::{OTHER_ENTRIES, ProvenanceError, decode, encode, put};

const WHAT: &str = "who recorded a conversation";

/// Returns the change that names `device` as the recorder of a conversation.
///
/// # Errors
/// None in practice.
pub fn recorder_change(conversation: &str, device: &str) -> Result<Change, ProvenanceError> {
    Ok(put(entry_id(conversation), OTHER_ENTRIES, encode(&device, WHAT)?))
}

/// Returns the id of the device that recorded a conversation; `None` if no device has.
///
/// # Errors
/// The ledger cannot be read.
pub fn recorder(store: &Store, conversation: &str) -> Result<Option<String>, ProvenanceError> {
    let entry = store.ledger_get(Ledger::Provenance, &entry_id(conversation))?;
    entry.map(|entry| decode(&entry.value, WHAT)).transpose()
}

fn entry_id(conversation: &str) -> String {
    format!("recorder {conversation}")
}
