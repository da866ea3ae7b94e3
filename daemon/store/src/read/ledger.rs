//! Ledgers: imports, exports, sources and others.

use satchel_pam::hash::Sha256Digest;
use uuid::Uuid;

use super::memory::PageBuilder;
use crate::{
    engine,
    entry::JournalEntry,
    error::StoreError,
    journal::ChangeLocation,
    keys,
    ledger::{Ledger, LedgerEntry, LedgerWrite},
    lookup::wrong_kind,
    query::{Cursor, Page},
    store::Store,
    value::{LedgerValue, decode},
};

impl Store {
    /// Returns an entry.
    ///
    /// # Errors
    /// Any error of the engine or the journal.
    pub fn ledger_get(&self, ledger: Ledger, id: &str) -> Result<Option<LedgerEntry>, StoreError> {
        let value = self.engine().get(&keys::ledger(ledger, id))?;
        let entry = value.map(|value| self.ledger_entry(&value)).transpose()?;
        Ok(entry.filter(|entry| entry.id == id))
    }

    /// Returns a page of a ledger, newest first.
    ///
    /// # Errors
    /// Any error of the engine or the journal.
    pub fn ledger_list(
        &self,
        ledger: Ledger,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page<LedgerEntry>, StoreError> {
        let mut rows = PageBuilder::new(limit);
        let prefix = [keys::LEDGER_TIME, ledger.code()];
        engine::walk::<StoreError>(self.engine(), &prefix, after.map(Cursor::as_bytes), |key, _| {
            let Some(id) = keys::last16(key) else { return Ok(true) };
            let record = [&[keys::LEDGER, ledger.code()], id.as_slice()].concat();
            match self.engine().get(&record)? {
                Some(value) => Ok(rows.push(key, self.ledger_entry(&value)?)),
                None => Ok(true),
            }
        })?;
        Ok(rows.page())
    }

    /// Returns up to `limit` entries older than a time, in microseconds since the Unix epoch, newest first.
    ///
    /// # Errors
    /// Any error of the engine or the journal.
    pub fn ledger_older(
        &self,
        ledger: Ledger,
        than_micros: i64,
        limit: usize,
    ) -> Result<Vec<LedgerEntry>, StoreError> {
        // The last possible key of that time; entries after it are older.
        let after = Cursor(keys::ledger_time(ledger, than_micros, [u8::MAX; 16]));
        Ok(self.ledger_list(ledger, Some(&after), limit)?.items)
    }

    /// Returns one page of an import's issues, as it was put.
    ///
    /// # Errors
    /// Any error of the engine or the journal.
    pub fn issues(&self, import: Uuid, page: u32) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(value) = self.engine().get(&keys::issues(import, page))? else { return Ok(None) };
        let value = decode(&value, "a page of issues", LedgerValue::take)?;
        self.ledger_bytes(value.bytes, value.place, "a page of issues").map(Some)
    }

    /// Returns the stored result for a piece, as it was put.
    ///
    /// # Errors
    /// Any error of the engine or the journal.
    pub fn piece(&self, digest: &[u8; 32]) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(value) = self.engine().get(&keys::piece(digest))? else { return Ok(None) };
        let value = decode(&value, "a known piece", LedgerValue::take)?;
        if value.id != Sha256Digest::from_bytes(*digest).to_hex() {
            return Ok(None);
        }
        self.ledger_bytes(value.bytes, value.place, "a known piece").map(Some)
    }

    fn ledger_entry(&self, value: &[u8]) -> Result<LedgerEntry, StoreError> {
        let LedgerValue { id, at, place, bytes } = decode(value, "a ledger entry", LedgerValue::take)?;
        let value = self.ledger_bytes(bytes, place, "a ledger entry")?;
        Ok(LedgerEntry { id, at_micros: at, value })
    }

    fn ledger_bytes(
        &self,
        bytes: Option<Vec<u8>>,
        place: ChangeLocation,
        what: &str,
    ) -> Result<Vec<u8>, StoreError> {
        match bytes {
            Some(bytes) => Ok(bytes),
            None => match self.change(place, what)? {
                (
                    _,
                    _,
                    JournalEntry::Ledger(
                        LedgerWrite::Entry { value, .. }
                        | LedgerWrite::Issues { value, .. }
                        | LedgerWrite::Piece { value, .. },
                    ),
                ) => Ok(value),
                _ => Err(wrong_kind(what)),
            },
        }
    }
}
