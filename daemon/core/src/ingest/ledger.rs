//! Imports in the store's ledger: their source, time and result.

use satchel_pam::{record::Skip, time::Timestamp};
use satchel_store::{Cursor, Durability, Ledger, LedgerEntry, LedgerWrite, Page, Store};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{
    error::IngestError,
    receipt::{ImportRecord, ImportStatus},
};
use crate::{each_row, provenance::UndoRecord, series::entries};

/// Issues per page. Each takes at most about 100 bytes, so a page stays below the store's limit of 64 KiB.
pub(super) const ISSUES_PER_PAGE: usize = 100;

/// The id of the entry in the ledger of sources which says that the sizes of all imported sources are recorded.
const SIZES: &str = "sizes";

/// Writes the current state of an import.
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

/// Records that these bytes were imported, so that they need not be parsed again; or, under the id from `bytes`, that
/// an import of them was attempted.
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

/// Returns whether an export of this size may have been imported; if not, there is no need to compute its digest first.
pub(super) fn size_known(store: &Store, bytes: u64, dry_run: bool) -> Result<bool, IngestError> {
    if store.ledger_get(Ledger::Source, SIZES)?.is_some() {
        return Ok(store.ledger_get(Ledger::Source, &size_id(bytes))?.is_some());
    }
    // Imports made by a version that recorded no sizes are added now.
    let mut known = false;
    each_row(
        |after| list(store, after, 100),
        |record| {
            known |= record.bytes == bytes;
            if !dry_run {
                put_note(store, size_id(record.bytes), record.started_at, Durability::WithNextCommit)?;
            }
            Ok(())
        },
    )?;
    if !dry_run {
        put_note(store, SIZES.to_owned(), 0, Durability::WithNextCommit)?;
    }
    Ok(known)
}

fn size_id(bytes: u64) -> String {
    format!("bytes:{bytes}")
}

/// Returns the note that a source of this size was imported.
pub(super) fn size_note(record: &ImportRecord) -> LedgerWrite {
    note(size_id(record.bytes), record.started_at)
}

fn note(id: String, at_micros: i64) -> LedgerWrite {
    // An entry with an empty value would delete the note.
    LedgerWrite::Entry { ledger: Ledger::Source, id, at_micros, value: b"1".to_vec() }
}

fn put_note(store: &Store, id: String, at_micros: i64, durability: Durability) -> Result<(), IngestError> {
    Ok(store.put_ledger(note(id, at_micros), durability)?)
}

/// Returns the import recorded under this identity, if there is one. Under an id from `identity`, only imports that ended
/// well are recorded.
pub(super) fn earlier(store: &Store, identity: &str) -> Result<Option<ImportRecord>, IngestError> {
    let Some(entry) = store.ledger_get(Ledger::Source, identity)? else { return Ok(None) };
    let id = String::from_utf8_lossy(&entry.value).into_owned();
    get(store, &id)
}

/// Returns whether this is an import of another store of which not everything is here.
pub(super) fn lacks_pieces(store: &Store, import: &ImportRecord) -> Result<bool, IngestError> {
    let lacking = entries::lacking(store)?;
    Ok(lacking.iter().any(|(id, ..)| id.to_string() == import.id))
}

/// Returns whether an import of this store counts that is recorded under this identity.
pub(super) fn is_imported_here(store: &Store, identity: &str) -> Result<bool, IngestError> {
    let found = earlier(store, identity)?;
    Ok(found.is_some_and(|import| import.machine.is_none() && import.status != ImportStatus::Undone))
}

/// Returns the last import under the first of these identities that is known, if it was undone.
pub(super) fn undone_before(store: &Store, names: [&str; 2]) -> Result<Option<ImportRecord>, IngestError> {
    for name in names {
        if let Some(last) = earlier(store, name)? {
            return Ok(Some(last).filter(|last| last.status == ImportStatus::Undone));
        }
    }
    Ok(None)
}

/// Returns one import.
pub(super) fn get(store: &Store, id: &str) -> Result<Option<ImportRecord>, IngestError> {
    store.ledger_get(Ledger::Import, id)?.map(|entry| read(store, &entry)).transpose()
}

/// Returns a page of imports, newest first.
pub(super) fn list(
    store: &Store,
    after: Option<&Cursor>,
    limit: usize,
) -> Result<Page<ImportRecord>, IngestError> {
    let page = store.ledger_list(Ledger::Import, after, limit)?;
    let items = page.items.iter().map(|entry| read(store, entry)).collect::<Result<_, _>>()?;
    Ok(Page { items, next: page.next })
}

/// Decodes an import, with its status updated if it was undone.
fn read(store: &Store, entry: &LedgerEntry) -> Result<ImportRecord, IngestError> {
    let mut record: ImportRecord = serde_json::from_slice(&entry.value)
        .map_err(|_| IngestError::Unencodable { what: "a stored receipt" })?;
    let note = Uuid::parse_str(&record.id).map(|import| UndoRecord::load(store, import));
    let Some(note) = note.unwrap_or(Ok(None))? else { return Ok(record) };
    if let Some(reason) = undone(&note, &record.id) {
        record.status = ImportStatus::Undone;
        record.reason = Some(reason);
    }
    Ok(record)
}

/// Returns the reason to show for an import that was undone or whose undo or redo has not ended; `None` if it counts as
/// before.
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

/// Writes one page of issues for which the receipt has no room.
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

/// Returns the identity of an import: a digest of the source's bytes, the names of its files, and the importer's
/// version.
pub(super) fn identity(checksum: &str, plugin: &str, files: &[String]) -> String {
    let mut hasher = Sha256::new();
    for part in [checksum, plugin].into_iter().chain(files.iter().map(String::as_str)) {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    let digest: [u8; 32] = hasher.finalize().into();
    satchel_pam::hash::Sha256Digest::from_bytes(digest).to_string()
}

/// Returns the identity of the bytes: a digest of the source's bytes, the names of the export's files, and the
/// platform. Under it the ledger has the last import of these bytes, whatever the version of the importer and the
/// result. `None` while the source's digest is unknown.
pub(super) fn bytes(record: &ImportRecord, files: &[String]) -> Option<String> {
    let checksum = record.source_checksum.as_deref()?;
    Some(identity(checksum, record.provider.as_deref().unwrap_or_default(), files))
}

/// Marks imports that were still running when the program stopped as failed.
pub(super) fn close_interrupted(store: &Store, now: i64) -> Result<usize, IngestError> {
    let mut closed = 0;
    each_row(
        |after| list(store, after, 100),
        |mut record| {
            if record.status == ImportStatus::Running {
                record.status = ImportStatus::Failed;
                record.reason = Some(
                    "the program stopped before the import ended; import it again to complete it".into(),
                );
                record.finished_at = Some(now);
                put(store, &record, Durability::Now)?;
                closed += 1;
            }
            Ok(())
        },
    )?;
    Ok(closed)
}
