//! The keys of other people whose documents the user merges like their own. They are stored as settings in the ledger,
//! so that a backup contains them.

use satchel_pam::{hash::Sha256Digest, sign::PublicKey};
use satchel_store::{Cursor, Durability, Ledger, LedgerWrite, Store};
use serde::{Deserialize, Serialize};

use crate::{each_row, export_ledger::ExportLedgerError};

/// Prefix of the ids of the entries. It is followed by a digest of the key, because some keys are long.
const ID_PREFIX: &str = "trusted key ";
/// Ledger entries per page.
const PAGE: usize = 100;

/// A key that the user trusts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedKey {
    /// The public key, multibase.
    pub public_key: String,
    /// When the user began to trust it, in microseconds since the Unix epoch.
    pub since: i64,
}

/// Returns all trusted keys, newest first.
///
/// # Errors
/// The ledger cannot be read.
pub fn list(store: &Store) -> Result<Vec<TrustedKey>, ExportLedgerError> {
    let mut keys: Vec<TrustedKey> = Vec::new();
    let page = |after: Option<&Cursor>| Ok(store.ledger_list(Ledger::Setting, after, PAGE)?);
    each_row::<_, ExportLedgerError>(page, |entry| {
        if entry.id.starts_with(ID_PREFIX) {
            keys.extend(read(&entry.value)?);
        }
        Ok(())
    })?;
    keys.sort_by_key(|key| std::cmp::Reverse(key.since));
    Ok(keys)
}

/// Trusts `key` from now on. Returns false if it was already trusted. Durable when this returns.
///
/// # Errors
/// The ledger cannot be read or written.
pub fn add(store: &Store, key: &PublicKey, now: i64) -> Result<bool, ExportLedgerError> {
    let public_key = key.multibase();
    if find(store, &public_key)?.is_some() {
        return Ok(false);
    }
    let trusted = TrustedKey { public_key, since: now };
    let value =
        serde_json::to_vec(&trusted).map_err(|_| ExportLedgerError::Unencodable { what: ENTRY_NAME })?;
    write(store, &trusted.public_key, now, value)?;
    Ok(true)
}

/// Stops trusting `key`. Returns false if it was not trusted. What its documents changed stays. Durable when this
/// returns.
///
/// # Errors
/// The ledger cannot be read or written.
pub fn remove(store: &Store, key: &PublicKey, now: i64) -> Result<bool, ExportLedgerError> {
    let public_key = key.multibase();
    let known = find(store, &public_key)?.is_some();
    if known {
        write(store, &public_key, now, Vec::new())?;
    }
    Ok(known)
}

/// The name of an unreadable entry in error messages.
const ENTRY_NAME: &str = "a trusted key";

fn find(store: &Store, public_key: &str) -> Result<Option<TrustedKey>, ExportLedgerError> {
    let entry = store.ledger_get(Ledger::Setting, &entry_id(public_key))?;
    entry.map_or(Ok(None), |entry| read(&entry.value))
}

/// Returns `None` if the trust was revoked.
fn read(value: &[u8]) -> Result<Option<TrustedKey>, ExportLedgerError> {
    if value.is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(value).map(Some).map_err(|_| ExportLedgerError::Unencodable { what: ENTRY_NAME })
}

fn write(store: &Store, public_key: &str, now: i64, value: Vec<u8>) -> Result<(), ExportLedgerError> {
    let write =
        LedgerWrite::Entry { ledger: Ledger::Setting, id: entry_id(public_key), at_micros: now, value };
    Ok(store.put_ledger(write, Durability::Now)?)
}

fn entry_id(public_key: &str) -> String {
    format!("{ID_PREFIX}{}", Sha256Digest::of(public_key.as_bytes()).to_hex())
}
