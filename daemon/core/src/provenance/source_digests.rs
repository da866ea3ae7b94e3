//! The digest of the source that a conversation was imported from. It is known only after the whole source was read,
//! while the conversation is stored before that; the receipt of the import contains it.

use std::{cell::RefCell, collections::HashMap};

use satchel_pam::{conversation::ConversationHeader, hash::Sha256Digest, time::Timestamp};
use satchel_store::{Ledger, Origin, Store, StoreError};
use serde::Deserialize;
use uuid::Uuid;

/// The relevant parts of receipts, each read once.
#[derive(Debug, Default)]
pub struct SourceDigests(RefCell<HashMap<Uuid, Option<ReceiptSource>>>);

/// The part of an import's receipt that identifies the conversations it imported, and the source's digest.
#[derive(Clone, Debug, Deserialize)]
struct ReceiptSource {
    source_checksum: Option<String>,
    plugin: Option<String>,
    started_at: i64,
}

impl SourceDigests {
    /// Adds the digest to the header of a conversation that the commit of `origin` stored, unless the conversation came
    /// from another import.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn add_source_digest(
        &self,
        store: &Store,
        origin: &Origin,
        mut header: ConversationHeader,
    ) -> Result<ConversationHeader, StoreError> {
        if let Some(from) = &mut header.import_metadata
            && from.source_checksum.is_none()
            && let Some(import) = origin.import
            && let Some(receipt) = self.receipt(store, import)?
            && from.importer == receipt.plugin
            && from.imported_at == Some(Timestamp::saturating(receipt.started_at))
        {
            from.source_checksum = receipt.source_checksum.and_then(|text| Sha256Digest::parse(&text).ok());
        }
        Ok(header)
    }

    fn receipt(&self, store: &Store, import: Uuid) -> Result<Option<ReceiptSource>, StoreError> {
        if let Some(known) = self.0.borrow().get(&import) {
            return Ok(known.clone());
        }
        let entry = store.ledger_get(Ledger::Import, &import.to_string())?;
        let receipt: Option<ReceiptSource> =
            entry.and_then(|entry| serde_json::from_slice(&entry.value).ok());
        self.0.borrow_mut().insert(import, receipt.clone());
        Ok(receipt)
    }
}
