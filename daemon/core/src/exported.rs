//! What the ledger keeps of exports: those that were made here, and those that were made elsewhere and applied here.

use satchel_bundle::manifest::Selected;
use satchel_pam::store::{Owner, StoreHeader};
use satchel_store::{Cursor, Durability, Ledger, LedgerWrite, Page, Store, StoreError};
use serde::{Deserialize, Serialize};

/// [`ExportRecord::export_type`] of a whole.
pub const FULL: &str = "full";
/// [`ExportRecord::export_type`] of changes since a base.
pub const INCREMENTAL: &str = "incremental";
/// Records of the ledger that are read at once.
const LEDGER_PAGE: usize = 100;
/// The setting that names the owner of a store that has applied an export and made none.
const OWNER: &str = "owner";

/// The setting that names the public key which signs.
const SIGNER: &str = "signing key";

/// The settings that keep what documents say of an owner; the owner's id follows.
const ABOUT: &str = "documents of ";

/// What a PAM document says beside its records: whose they are, and where it is written down what they mean.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Whose memories it holds.
    pub owner: Owner,
    /// PAM `spec_uri`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_uri: Option<String>,
    /// PAM `type_registry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub type_registry: Option<String>,
    /// Whether the person said that it is theirs, by applying it.
    #[serde(default)]
    pub applied: bool,
}

impl About {
    /// What a document says.
    #[must_use]
    pub fn of(header: &StoreHeader) -> Self {
        let (spec_uri, type_registry) = (header.spec_uri.clone(), header.type_registry.clone());
        Self { owner: header.owner.clone(), spec_uri, type_registry, applied: false }
    }

    /// What both say: of each the `later`, but for the owner's beginning, which is the earliest. What was only imported says nothing
    /// against what was applied.
    fn united(self, later: Self) -> Self {
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

/// In whose shapes an export is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// A signed PAM 1.0 bundle.
    #[default]
    Pam,
    /// The lists and conversations of MemU.
    Memu,
    /// Files for people, and for programs that read notes.
    Markdown,
}

/// What the ledger keeps of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "facts of a record, each with a name of its own")]
pub struct ExportRecord {
    /// PAM `export_id`, UUID v4.
    pub export_id: String,
    /// `full` or `incremental`.
    pub export_type: String,
    /// Exports that were made before there was a choice are PAM.
    #[serde(default)]
    pub format: Format,
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
    /// Memories that may not leave, and so did not.
    pub withheld: u64,
    /// PAM `integrity.checksum`; empty in other formats, as the next two.
    pub checksum: String,
    /// The SHA-256 of the manifest.
    pub manifest_sha256: String,
    /// The public key, multibase.
    pub signer: String,
    /// The revision that it shows.
    pub revision: u64,
    /// Where it was written.
    pub path: String,
    /// Bytes of its files.
    pub bytes: u64,
    /// Whether it holds conversations; exports that were made before it was noted mostly do.
    #[serde(default = "yes")]
    pub with_conversations: bool,
    /// Whether it holds the bytes of attachments.
    #[serde(default)]
    pub with_attachments: bool,
    /// The revision of its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_revision: Option<u64>,
    /// Why it is full although changes were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What its changes cannot say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether only a full export says all, so that the next one is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full_next: bool,
    /// Whether it was made elsewhere and merged into this store; `revision` is the one that it led to then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub applied: bool,
    /// Whether the daemon made it by its schedule.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scheduled: bool,
    /// Set if it is a selection of the store, or stripped: nothing is built on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<Selected>,
    /// Whether it was written encrypted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub encrypted: bool,
    /// A digest of the recipients to whom it was; none of one by a passphrase, and of those that were made before it was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipients: Option<String>,
}

fn yes() -> bool {
    true
}

/// Why the ledger cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ExportedError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A bug.
    #[error("{what} cannot be encoded or read back; please report this")]
    Unencodable { what: &'static str },
}

/// One export.
///
/// # Errors
/// When the ledger cannot be read.
pub fn find(store: &Store, id: &str) -> Result<Option<ExportRecord>, ExportedError> {
    store.ledger_get(Ledger::Export, id)?.map(|entry| parse(&entry.value)).transpose()
}

/// Exports, newest first.
///
/// # Errors
/// When the ledger cannot be read.
pub fn list(
    store: &Store,
    after: Option<&Cursor>,
    limit: usize,
) -> Result<Page<ExportRecord>, ExportedError> {
    let page = store.ledger_list(Ledger::Export, after, limit)?;
    let items = page.items.iter().map(|entry| parse(&entry.value)).collect::<Result<_, _>>()?;
    Ok(Page { items, next: page.next })
}

/// Shows exports, newest first, as long as `more` says so.
///
/// # Errors
/// When the ledger cannot be read.
pub fn each(store: &Store, mut more: impl FnMut(ExportRecord) -> bool) -> Result<(), ExportedError> {
    let mut after = None;
    loop {
        let page = list(store, after.as_ref(), LEDGER_PAGE)?;
        if !page.items.into_iter().all(&mut more) {
            return Ok(());
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Remembers an export.
///
/// # Errors
/// When the ledger cannot be written.
pub fn put(store: &Store, record: &ExportRecord) -> Result<(), ExportedError> {
    let value =
        serde_json::to_vec(record).map_err(|_| ExportedError::Unencodable { what: "an export's record" })?;
    write(store, Ledger::Export, &record.export_id, record.at_micros, value)
}

/// The owner of the first export that was applied here, if the person said whose the store is in no other way.
///
/// # Errors
/// When the ledger cannot be read.
pub fn owner(store: &Store) -> Result<Option<String>, ExportedError> {
    let entry = store.ledger_get(Ledger::Setting, OWNER)?;
    let text = entry.map(|entry| String::from_utf8(entry.value));
    text.transpose().map_err(|_| ExportedError::Unencodable { what: "the owner" })
}

/// Remembers whose export was the first to be applied here.
///
/// # Errors
/// When the ledger cannot be written.
pub fn put_owner(store: &Store, owner: &str, now: i64) -> Result<(), ExportedError> {
    write(store, Ledger::Setting, OWNER, now, owner.as_bytes().to_vec())
}

/// The key that signs for this store, multibase: the one that was noted, else that of the newest export that was signed here. None:
/// nothing was ever signed.
///
/// # Errors
/// When the ledger cannot be read.
pub fn signer(store: &Store) -> Result<Option<String>, ExportedError> {
    if let Some(entry) = store.ledger_get(Ledger::Setting, SIGNER)? {
        let text = String::from_utf8(entry.value);
        return text.map(Some).map_err(|_| ExportedError::Unencodable { what: "the signing key's name" });
    }
    // A store that an older program signed for.
    let mut found = None;
    each(store, |record| {
        found = (!record.applied && !record.signer.is_empty()).then_some(record.signer);
        found.is_none()
    })?;
    Ok(found)
}

/// Remembers the key that signs from now on.
///
/// # Errors
/// When the ledger cannot be written.
pub fn put_signer(store: &Store, public: &str, now: i64) -> Result<(), ExportedError> {
    write(store, Ledger::Setting, SIGNER, now, public.as_bytes().to_vec())
}

/// What documents of an owner said that were imported or applied here.
///
/// # Errors
/// When the ledger cannot be read.
pub fn about(store: &Store, owner: &str) -> Result<Option<About>, ExportedError> {
    let entry = store.ledger_get(Ledger::Setting, &format!("{ABOUT}{owner}"))?;
    let read =
        |bytes: &[u8]| serde_json::from_slice(bytes).map_err(|_| ExportedError::Unencodable { what: ABOUT });
    entry.map(|entry| read(&entry.value)).transpose()
}

/// Remembers what a document says of its owner; `applied`: the person said that it is theirs.
///
/// # Errors
/// When the ledger cannot be read or written.
pub fn put_about(store: &Store, about: &About, applied: bool, now: i64) -> Result<(), ExportedError> {
    let id = format!("{ABOUT}{}", about.owner.id);
    let came = About { applied, ..about.clone() };
    let known = self::about(store, &about.owner.id)?;
    let all = known.clone().map_or_else(|| came.clone(), |known| known.united(came.clone()));
    let says = |about: &About| {
        let About { owner, spec_uri, type_registry, applied: _ } = about;
        owner.did.is_some() || owner.created_at.is_some() || spec_uri.is_some() || type_registry.is_some()
    };
    if satchel_store::id_too_long(&id) || known.as_ref() == Some(&all) || !says(&all) {
        return Ok(());
    }
    let value = serde_json::to_vec(&all).map_err(|_| ExportedError::Unencodable { what: ABOUT })?;
    write(store, Ledger::Setting, &id, now, value)
}

fn write(
    store: &Store,
    ledger: Ledger,
    id: &str,
    at_micros: i64,
    value: Vec<u8>,
) -> Result<(), ExportedError> {
    let write = LedgerWrite::Entry { ledger, id: id.to_owned(), at_micros, value };
    Ok(store.put_ledger(write, Durability::Now)?)
}

fn parse(bytes: &[u8]) -> Result<ExportRecord, ExportedError> {
    serde_json::from_slice(bytes).map_err(|_| ExportedError::Unencodable { what: "a stored export's record" })
}
