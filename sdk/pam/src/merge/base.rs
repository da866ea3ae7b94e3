//! Checks whether a document may be merged: its owner and its base (PAM 1.0 §16.3 rules 1 and 2).

use crate::store::{ExportType, StoreHeader};

/// The owner of a store and the exports that it knows.
#[derive(Clone, Copy)]
pub struct Ledger<'a> {
    /// Owner of the store; none if it has no owner yet, so that any owner is accepted.
    pub owner: Option<&'a str>,
    /// Returns the type of an export that was applied to the store or written from it; none if unknown.
    pub export: &'a dyn Fn(&str) -> Option<ExportType>,
}

/// The base of a document, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseStatus {
    /// A full export, which needs no base.
    Full,
    /// It was applied before; applying it again changes nothing.
    AlreadyApplied,
    /// An incremental export based on a known full export.
    OnFull,
    /// An incremental export based on a known incremental one. Satchel writes only those based on full exports.
    OnDelta,
    /// An incremental export with an unknown base, which the caller accepts. Memories may be missing.
    UnknownBase,
}

/// Why a document is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BaseError {
    /// The document has another owner.
    #[error("this is an export of owner {found:?}, and the store is of {expected:?}")]
    Owner {
        /// Owner of the document.
        found: String,
        /// Owner of the store.
        expected: String,
    },
    /// An incremental export whose base was never applied.
    #[error(
        "this incremental export builds on export {0:?}, which was never applied here; apply that one first"
    )]
    UnknownBase(String),
    /// An incremental export that does not name its base.
    #[error("this incremental export does not name its base; apply a full export instead")]
    NoBase,
}

/// Checks owner and base of a document. `any_owner` and `any_base` accept it in spite of the respective error.
///
/// # Errors
/// If the owner differs from that of the store, or the base of an incremental export is unknown.
pub fn check_base(
    header: &StoreHeader,
    ledger: Ledger<'_>,
    any_owner: bool,
    any_base: bool,
) -> Result<BaseStatus, BaseError> {
    if let Some(expected) = ledger.owner.filter(|owner| *owner != header.owner.id && !any_owner) {
        return Err(BaseError::Owner { found: header.owner.id.clone(), expected: expected.to_owned() });
    }
    if header.export_id.as_deref().is_some_and(|id| (ledger.export)(id) == Some(header.export_type)) {
        return Ok(BaseStatus::AlreadyApplied);
    }
    if header.export_type == ExportType::Full {
        return Ok(BaseStatus::Full);
    }
    let base = header.base_export_id.as_deref().filter(|base| !base.is_empty());
    match base.map(|base| (base, (ledger.export)(base))) {
        Some((_, Some(ExportType::Full))) => Ok(BaseStatus::OnFull),
        Some((_, Some(ExportType::Incremental))) => Ok(BaseStatus::OnDelta),
        Some((_, None)) | None if any_base => Ok(BaseStatus::UnknownBase),
        Some((base, None)) => Err(BaseError::UnknownBase(base.to_owned())),
        None => Err(BaseError::NoBase),
    }
}
