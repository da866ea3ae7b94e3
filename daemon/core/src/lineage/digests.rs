//! The digest of the source that a conversation came from. It is known when all of the source was read, and the conversation is
//! stored before: the receipt of the import has it.

use std::{cell::RefCell, collections::HashMap};

use satchel_pam::{conversation::ConversationHeader, hash::Sha256Digest, time::Timestamp};
use satchel_store::{Ledger, Origin, Store, StoreError};
use serde::Deserialize;
use uuid::Uuid;

/// What receipts say, each read once.
#[derive(Debug, Default)]
pub struct Digests(RefCell<HashMap<Uuid, Option<Receipt>>>);

/// Of the receipt of an import, what tells that a conversation came by it, and its digest.
#[derive(Clone, Debug, Deserialize)]
struct Receipt {
    source_checksum: Option<String>,
    plugin: Option<String>,
    started_at: i64,
}

impl Digests {
    /// Puts the digest into the header of a conversation that the commit of `origin` stored, unless it came otherwise.
    ///
    /// # Errors
    /// When the ledger does not read.
    pub fn complete(
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

    fn receipt(&self, store: &Store, import: Uuid) -> Result<Option<Receipt>, StoreError> {
        if let Some(known) = self.0.borrow().get(&import) {
            return Ok(known.clone());
        }
        let entry = store.ledger_get(Ledger::Import, &import.to_string())?;
        let receipt: Option<Receipt> = entry.and_then(|entry| serde_json::from_slice(&entry.value).ok());
        self.0.borrow_mut().insert(import, receipt.clone());
        Ok(receipt)
    }
}
