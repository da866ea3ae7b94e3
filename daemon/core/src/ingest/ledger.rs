//! Imports in the store's ledger: what was read, when, and how it ended.

use satchel_pam::{record::Skip, time::Timestamp};
use satchel_store::{Cursor, Durability, Ledger, LedgerEntry, LedgerWrite, Page, Store};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{
    IngestError,
    receipt::{ImportRecord, ImportStatus},
};
use crate::lineage::UndoRecord;

/// Issues of one page: at most about 100 bytes each, so that a page stays under the store's 64 KiB.
pub(super) const ISSUES_PER_PAGE: usize = 100;

/// In the ledger of sources: the sizes of all that was imported are noted.
const SIZES: &str = "sizes";

/// Writes an import as it stands.
pub(super) fn put(store: &Store, record: &ImportRecord, durability: Durability) -> Result<(), IngestError> {
    let value = serde_json::to_vec(record).map_err(|_| IngestError::Unencodable { what: "a receipt" })?;
    let write = LedgerWrite::Entry {
        ledger: Ledger::Import,
        id: record.id.clone(),
        at_micros: record.started_at,
        value,
    };
    Ok(store.put_ledger(write, durability)?)
}

/// Remembers that these bytes were imported, so that they need not be parsed again; under another name, that they were tried.
pub(super) fn put_source(
    store: &Store,
    identity: &str,
    record: &ImportRecord,
    durability: Durability,
) -> Result<(), IngestError> {
    put_note(store, size_id(record.bytes), record.started_at, Durability::WithNextCommit)?;
    let write = LedgerWrite::Entry {
        ledger: Ledger::Source,
        id: identity.to_owned(),
        at_micros: record.started_at,
        value: record.id.clone().into_bytes(),
    };
    Ok(store.put_ledger(write, durability)?)
}

/// Whether an export of so many bytes may have been imported: if none was, no digest has to tell that.
pub(super) fn size_known(store: &Store, bytes: u64, dry_run: bool) -> Result<bool, IngestError> {
    if store.ledger_get(Ledger::Source, SIZES)?.is_some() {
        return Ok(store.ledger_get(Ledger::Source, &size_id(bytes))?.is_some());
    }
    // The imports of a program that kept no sizes.
    let (mut known, mut after) = (false, None);
    loop {
        let page = list(store, after.as_ref(), 100)?;
        for record in page.items {
            known |= record.bytes == bytes;
            if !dry_run {
                put_note(store, size_id(record.bytes), record.started_at, Durability::WithNextCommit)?;
            }
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if !dry_run {
        put_note(store, SIZES.to_owned(), 0, Durability::WithNextCommit)?;
    }
    Ok(known)
}

fn size_id(bytes: u64) -> String {
    format!("bytes:{bytes}")
}

fn put_note(store: &Store, id: String, at_micros: i64, durability: Durability) -> Result<(), IngestError> {
    // An entry without a byte would take it away.
    let write = LedgerWrite::Entry { ledger: Ledger::Source, id, at_micros, value: b"1".to_vec() };
    Ok(store.put_ledger(write, durability)?)
}

/// The import that read these bytes, if one did and ended well.
pub(super) fn earlier(store: &Store, identity: &str) -> Result<Option<ImportRecord>, IngestError> {
    let Some(entry) = store.ledger_get(Ledger::Source, identity)? else { return Ok(None) };
    let id = String::from_utf8_lossy(&entry.value).into_owned();
    get(store, &id)
}

/// The last import under the first of these names that is known, if it was undone.
pub(super) fn undone_before(store: &Store, names: [&str; 2]) -> Result<Option<ImportRecord>, IngestError> {
    for name in names {
        if let Some(last) = earlier(store, name)? {
            return Ok(Some(last).filter(|last| last.status == ImportStatus::Undone));
        }
    }
    Ok(None)
}

/// One import.
pub(super) fn get(store: &Store, id: &str) -> Result<Option<ImportRecord>, IngestError> {
    store.ledger_get(Ledger::Import, id)?.map(|entry| read(store, &entry)).transpose()
}

/// Imports, newest first.
pub(super) fn list(
    store: &Store,
    after: Option<&Cursor>,
    limit: usize,
) -> Result<Page<ImportRecord>, IngestError> {
    let page = store.ledger_list(Ledger::Import, after, limit)?;
    let items = page.items.iter().map(|entry| read(store, entry)).collect::<Result<_, _>>()?;
    Ok(Page { items, next: page.next })
}

/// An import as it stands; one that was undone says so.
fn read(store: &Store, entry: &LedgerEntry) -> Result<ImportRecord, IngestError> {
    let mut record: ImportRecord = serde_json::from_slice(&entry.value)
        .map_err(|_| IngestError::Unencodable { what: "a stored receipt" })?;
    let note = Uuid::parse_str(&record.id).map(|import| UndoRecord::of(store, import));
    let Some(note) = note.unwrap_or(Ok(None))? else { return Ok(record) };
    if let Some(reason) = undone(&note, &record.id) {
        record.status = ImportStatus::Undone;
        record.reason = Some(reason);
    }
    Ok(record)
}

/// What to say of an import that was undone, or is about to be; none: it counts as before.
fn undone(note: &UndoRecord, id: &str) -> Option<String> {
    let at = Timestamp::saturating(note.at);
    let completed = note.completed_at.map(|at| {
        let at = Timestamp::saturating(at);
        format!(", completed at {at} by the next start as the program had stopped in between")
    });
    let completed = completed.unwrap_or_default();
    match (note.undone, note.done) {
        (true, true) => {
            Some(format!("undone at {at}{completed}; `satchel imports redo {id}` brings it back"))
        }
        (true, false) => {
            Some(format!("the undo of {at} has not ended; `satchel imports undo {id}` completes it"))
        }
        (false, false) => Some(format!(
            "bringing it back began at {at} and has not ended; `satchel imports redo {id}` completes it"
        )),
        (false, true) => None,
    }
}

/// Writes one page of issues that a receipt has no room for.
pub(super) fn put_issues(
    store: &Store,
    import: Option<Uuid>,
    page: u32,
    issues: &[Skip],
) -> Result<(), IngestError> {
    let Some(import) = import else { return Ok(()) };
    let value =
        serde_json::to_vec(issues).map_err(|_| IngestError::Unencodable { what: "a page of issues" })?;
    Ok(store.put_ledger(LedgerWrite::Issues { import, page, value }, Durability::WithNextCommit)?)
}

/// Reads one page of issues.
pub(super) fn issues(store: &Store, import: &str, page: u32) -> Result<Vec<Skip>, IngestError> {
    let Ok(import) = Uuid::parse_str(import) else { return Ok(Vec::new()) };
    match store.issues(import, page)? {
        Some(bytes) => serde_json::from_slice(&bytes)
            .map_err(|_| IngestError::Unencodable { what: "a stored page of issues" }),
        None => Ok(Vec::new()),
    }
}

/// Who an import is: the source's bytes, the files of the export in it, and the importer's version.
pub(super) fn identity(checksum: &str, plugin: &str, files: &[String]) -> String {
    let mut hasher = Sha256::new();
    for part in [checksum, plugin].into_iter().chain(files.iter().map(String::as_str)) {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    let digest: [u8; 32] = hasher.finalize().into();
    satchel_pam::hash::Sha256Digest::from_bytes(digest).to_string()
}

/// The source's bytes, the files of the export in it, and the platform: the last import of these, whichever version of the importer
/// read them and however it ended; none while the digest is not known.
pub(super) fn bytes(record: &ImportRecord, files: &[String]) -> Option<String> {
    let checksum = record.source_checksum.as_deref()?;
    Some(identity(checksum, record.provider.as_deref().unwrap_or_default(), files))
}

/// Marks imports that a stopped program left behind.
pub(super) fn close_interrupted(store: &Store, now: i64) -> Result<usize, IngestError> {
    let mut closed = 0;
    let mut after = None;
    loop {
        let page = list(store, after.as_ref(), 100)?;
        for mut record in page.items.into_iter().filter(|record| record.status == ImportStatus::Running) {
            record.status = ImportStatus::Failed;
            record.reason =
                Some("the program stopped before the import ended; import it again to complete it".into());
            record.finished_at = Some(now);
            put(store, &record, Durability::Now)?;
            closed += 1;
        }
        after = page.next;
        if after.is_none() {
            return Ok(closed);
        }
    }
}
