//! The ledger of exports: those that were made here, those that were made elsewhere and applied here, and those of other machines of the
//! person.

use satchel_bundle::manifest::BundleSelection;
use satchel_pam::store::{Owner, StoreHeader};
use satchel_store::{Change, Cursor, Durability, Ledger, LedgerWrite, Page, Store, StoreError};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ingest::receipt::is_machine_name;

/// [`ExportRecord::export_type`] of a full export.
pub const FULL: &str = "full";
/// [`ExportRecord::export_type`] of an incremental export.
pub const INCREMENTAL: &str = "incremental";
/// Ledger records per page.
const PAGE: usize = 100;
/// Largest record of an export that another machine made, in bytes.
const MAX_RECORD_BYTES: usize = 256 << 10;
/// The setting that names the owner of a store that has applied an export but made none.
const OWNER: &str = "owner";

/// The setting that names the public key that signs.
const SIGNER: &str = "signing key";

/// Prefix of the settings that hold what documents say about an owner; the owner's id follows.
const DOCUMENT_PREFIX: &str = "documents of ";

/// What a PAM document says besides its records: its owner, and where its types and format are documented.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentInfo {
    /// The owner of the memories.
    pub owner: Owner,
    /// PAM `spec_uri`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_uri: Option<String>,
    /// PAM `type_registry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub type_registry: Option<String>,
    /// Whether the user declared the document their own by applying it.
    #[serde(default)]
    pub applied: bool,
}

impl DocumentInfo {
    /// Returns what a document's header says.
    #[must_use]
    pub fn from_header(header: &StoreHeader) -> Self {
        let (spec_uri, type_registry) = (header.spec_uri.clone(), header.type_registry.clone());
        Self { owner: header.owner.clone(), spec_uri, type_registry, applied: false }
    }

    /// Merges two of them. Values of the `later` one win, except for the owner's creation time, of which the earliest
    /// wins. Data that was only imported never overrides data that was applied.
    fn merge(self, later: Self) -> Self {
        if self.applied && !later.applied {
            return self;
        }
        if later.applied && !self.applied {
            return later;
        }
        let created = [self.owner.created_at, later.owner.created_at].into_iter().flatten().min();
        Self {
            owner: Owner { id: later.owner.id, did: later.owner.did.or(self.owner.did), created_at: created },
            spec_uri: later.spec_uri.or(self.spec_uri),
            type_registry: later.type_registry.or(self.type_registry),
            applied: later.applied,
        }
    }
}

/// The format of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportFormat {
    /// A signed PAM 1.0 bundle.
    #[default]
    Pam,
    /// The lists and conversations of MemU.
    Memu,
    /// Files for people and for note-taking programs.
    Markdown,
}

/// The ledger's record of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "facts of a record, each with a name of its own")]
pub struct ExportRecord {
    /// PAM `export_id`, UUID v4.
    pub export_id: String,
    /// `full` or `incremental`.
    pub export_type: String,
    /// Exports that were made before other formats existed are PAM.
    #[serde(default)]
    pub format: ExportFormat,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_export_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// PAM `export_date`.
    pub export_date: String,
    /// Microseconds since the Unix epoch.
    pub at_micros: i64,
    pub memories: u64,
    pub relations: u64,
    pub conversations: u64,
    /// Memories that must not be exported and were left out.
    pub withheld: u64,
    /// PAM `integrity.checksum`. Empty in other formats, as are the next two fields.
    pub checksum: String,
    /// The SHA-256 of the manifest.
    pub manifest_sha256: String,
    /// The public key, multibase.
    pub signer: String,
    /// The revision that was exported.
    pub revision: u64,
    /// The path that it was written to.
    pub path: String,
    /// Total size of its files in bytes.
    pub bytes: u64,
    /// Whether it contains conversations. Most exports made before this was recorded do.
    #[serde(default = "default_true")]
    pub with_conversations: bool,
    /// Whether it contains the bytes of attachments.
    #[serde(default)]
    pub with_attachments: bool,
    /// The revision of its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_revision: Option<u64>,
    /// Why it is a full export although an incremental one was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Warnings about changes that an incremental export cannot express.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether some changes can be expressed only by a full export, so that the next one will be full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full_next: bool,
    /// Whether it was made elsewhere and merged into this store; `revision` is then the revision that the merge
    /// produced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub applied: bool,
    /// Whether the daemon made it by its schedule.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scheduled: bool,
    /// Set if it is a selection of the store, or stripped of identifiers. Nothing is built on such an export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<BundleSelection>,
    /// Whether it was written encrypted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub encrypted: bool,
    /// The machine that made it, if another one did whose store exchanges changes with this one. `revision` and `path` are then those of
    /// that machine, and no export of this store can build on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// A digest of the recipients that it was encrypted for. `None` if it was encrypted with a passphrase, or made
    /// before this was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipients: Option<String>,
}

fn default_true() -> bool {
    true
}

/// The reason why the ledger cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ExportLedgerError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A bug in this program.
    #[error("{what} cannot be encoded or read back; please report this")]
    Unencodable { what: &'static str },
}

/// Returns one export that was made or applied here.
///
/// # Errors
/// The ledger cannot be read.
pub fn find(store: &Store, id: &str) -> Result<Option<ExportRecord>, ExportLedgerError> {
    Ok(find_anywhere(store, id)?.filter(|record| record.machine.is_none()))
}

/// Returns one export, also if another machine made it.
///
/// # Errors
/// The ledger cannot be read.
pub fn find_anywhere(store: &Store, id: &str) -> Result<Option<ExportRecord>, ExportLedgerError> {
    store.ledger_get(Ledger::Export, id)?.map(|entry| parse(&entry.value)).transpose()
}

/// Returns why a store does not take the record of an export from another one; `None` if it does.
pub(crate) fn refusal(record: &ExportRecord) -> Option<String> {
    if Uuid::parse_str(&record.export_id).is_err() {
        return Some("the id of an export is no UUID".to_owned());
    }
    let size = serde_json::to_vec(record).map_or(usize::MAX, |bytes| bytes.len());
    (size > MAX_RECORD_BYTES).then(|| format!("the record of an export takes {size} bytes"))
}

/// Returns the change that records an export of another machine; `None` if an export with this id was made or applied here.
///
/// # Errors
/// The ledger cannot be read.
pub(crate) fn merged(store: &Store, record: &ExportRecord) -> Result<Option<Change>, ExportLedgerError> {
    if find(store, &record.export_id)?.is_some() {
        return Ok(None);
    }
    let named = record.machine.clone().filter(|name| is_machine_name(name));
    let machine = Some(named.unwrap_or_else(|| "another machine".to_owned()));
    let value = encode(&ExportRecord { machine, applied: false, ..record.clone() })?;
    let (id, at_micros) = (record.export_id.clone(), record.at_micros);
    Ok(Some(Change::Ledger(LedgerWrite::Entry { ledger: Ledger::Export, id, at_micros, value })))
}

/// Returns a page of exports, newest first. Those of other machines are among them.
///
/// # Errors
/// The ledger cannot be read.
pub fn list(
    store: &Store,
    after: Option<&Cursor>,
    limit: usize,
) -> Result<Page<ExportRecord>, ExportLedgerError> {
    let page = store.ledger_list(Ledger::Export, after, limit)?;
    let items = page.items.iter().map(|entry| parse(&entry.value)).collect::<Result<_, _>>()?;
    Ok(Page { items, next: page.next })
}

/// Passes the exports that were made or applied here to `visit`, newest first, until it returns false.
///
/// # Errors
/// The ledger cannot be read.
pub fn for_each(store: &Store, mut visit: impl FnMut(ExportRecord) -> bool) -> Result<(), ExportLedgerError> {
    let mut after = None;
    loop {
        let page = list(store, after.as_ref(), PAGE)?;
        if !page.items.into_iter().filter(|record| record.machine.is_none()).all(&mut visit) {
            return Ok(());
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Records an export.
///
/// # Errors
/// The ledger cannot be written.
pub fn record(store: &Store, record: &ExportRecord) -> Result<(), ExportLedgerError> {
    write(store, Ledger::Export, &record.export_id, record.at_micros, encode(record)?)
}

fn encode(record: &ExportRecord) -> Result<Vec<u8>, ExportLedgerError> {
    serde_json::to_vec(record).map_err(|_| ExportLedgerError::Unencodable { what: "an export's record" })
}

/// Returns the owner of the first export that was applied here, if the owner of the store was not known in another way.
///
/// # Errors
/// The ledger cannot be read.
pub fn applied_owner(store: &Store) -> Result<Option<String>, ExportLedgerError> {
    let entry = store.ledger_get(Ledger::Setting, OWNER)?;
    let text = entry.map(|entry| String::from_utf8(entry.value));
    text.transpose().map_err(|_| ExportLedgerError::Unencodable { what: "the owner" })
}

/// Records the owner of the first export that was applied here.
///
/// # Errors
/// The ledger cannot be written.
pub fn record_applied_owner(store: &Store, owner: &str, now: i64) -> Result<(), ExportLedgerError> {
    write(store, Ledger::Setting, OWNER, now, owner.as_bytes().to_vec())
}

/// Returns the key that signs for this store (multibase): the recorded one, or else the key of the newest export that
/// was signed here. Returns `None` if nothing was ever signed.
///
/// # Errors
/// The ledger cannot be read.
pub fn signer(store: &Store) -> Result<Option<String>, ExportLedgerError> {
    if let Some(entry) = store.ledger_get(Ledger::Setting, SIGNER)? {
        let text = String::from_utf8(entry.value);
        return text.map(Some).map_err(|_| ExportLedgerError::Unencodable { what: "the signing key's name" });
    }
    // An older program signed for this store without recording the key.
    let mut found = None;
    for_each(store, |record| {
        found = (!record.applied && !record.signer.is_empty()).then_some(record.signer);
        found.is_none()
    })?;
    Ok(found)
}

/// Records the key that signs from now on.
///
/// # Errors
/// The ledger cannot be written.
pub fn record_signer(store: &Store, public: &str, now: i64) -> Result<(), ExportLedgerError> {
    write(store, Ledger::Setting, SIGNER, now, public.as_bytes().to_vec())
}

/// Returns what imported or applied documents say about an owner.
///
/// # Errors
/// The ledger cannot be read.
pub fn document_info(store: &Store, owner: &str) -> Result<Option<DocumentInfo>, ExportLedgerError> {
    let entry = store.ledger_get(Ledger::Setting, &format!("{DOCUMENT_PREFIX}{owner}"))?;
    let read = |bytes: &[u8]| {
        serde_json::from_slice(bytes).map_err(|_| ExportLedgerError::Unencodable { what: DOCUMENT_PREFIX })
    };
    entry.map(|entry| read(&entry.value)).transpose()
}

/// Records what a document says about its owner. `applied` is true if the user declared the document their own.
///
/// # Errors
/// The ledger cannot be read or written.
pub fn record_document_info(
    store: &Store,
    about: &DocumentInfo,
    applied: bool,
    now: i64,
) -> Result<(), ExportLedgerError> {
    let id = format!("{DOCUMENT_PREFIX}{}", about.owner.id);
    let new = DocumentInfo { applied, ..about.clone() };
    let known = document_info(store, &about.owner.id)?;
    let all = known.clone().map_or_else(|| new.clone(), |known| known.merge(new.clone()));
    let has_data = |about: &DocumentInfo| {
        let DocumentInfo { owner, spec_uri, type_registry, applied: _ } = about;
        owner.did.is_some() || owner.created_at.is_some() || spec_uri.is_some() || type_registry.is_some()
    };
    if satchel_store::id_too_long(&id) || known.as_ref() == Some(&all) || !has_data(&all) {
        return Ok(());
    }
    let value =
        serde_json::to_vec(&all).map_err(|_| ExportLedgerError::Unencodable { what: DOCUMENT_PREFIX })?;
    write(store, Ledger::Setting, &id, now, value)
}

fn write(
    store: &Store,
    ledger: Ledger,
    id: &str,
    at_micros: i64,
    value: Vec<u8>,
) -> Result<(), ExportLedgerError> {
    let write = LedgerWrite::Entry { ledger, id: id.to_owned(), at_micros, value };
    Ok(store.put_ledger(write, Durability::Now)?)
}

fn parse(bytes: &[u8]) -> Result<ExportRecord, ExportLedgerError> {
    serde_json::from_slice(bytes)
        .map_err(|_| ExportLedgerError::Unencodable { what: "a stored export's record" })
}
