//! Collects the identifiers that people are known by elsewhere; a stripped export removes them from titles, file names
//! and URLs.

use satchel_pam::privacy::Identifiers;
use satchel_store::{ConversationQuery, Ledger, MemoryOrder, MemoryQuery, Revision, Store};
use serde::Deserialize;

use super::{ExportError, PAGE, pages};

/// The part of a receipt that is read here.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ReceiptAccounts {
    accounts: Vec<AccountEntry>,
}

/// The account that an imported export belongs to.
#[derive(Deserialize)]
struct AccountEntry {
    id: String,
    #[serde(default)]
    name: Option<String>,
}

/// Collects the identifiers of the whole store, not only of the selection: a URL in one conversation may contain the
/// account of another.
pub(super) fn collect(store: &Store, revision: Revision) -> Result<Identifiers, ExportError> {
    let mut identifiers = Identifiers::default();
    pages(
        |after| Ok(store.conversations(&ConversationQuery::default(), after, PAGE, revision)?),
        |summary| {
            let record = store.conversation(&summary.id, Some(revision))?;
            record.iter().for_each(|record| identifiers.add_header(&record.header));
            Ok(())
        },
    )?;
    let query = MemoryQuery { order: MemoryOrder::IdAscending, ..MemoryQuery::default() };
    pages(
        |after| Ok(store.memories(&query, after, PAGE, revision)?),
        |record| {
            identifiers.add_memory(&record.memory);
            Ok(())
        },
    )?;
    pages(
        |after| Ok(store.ledger_list(Ledger::Import, after, PAGE)?),
        |entry| {
            // A receipt that cannot be read contributes no identifiers; other commands report it.
            let receipt: ReceiptAccounts = serde_json::from_slice(&entry.value).unwrap_or_default();
            for AccountEntry { id, name } in receipt.accounts {
                identifiers.add(&id);
                name.iter().for_each(|name| identifiers.add(name));
            }
            Ok(())
        },
    )?;
    Ok(identifiers)
}
