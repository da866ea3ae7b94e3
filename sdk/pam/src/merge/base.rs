//! Whether a document may be merged at all: whose it is, and what it stands on (PAM 1.0 §16.3 rules 1 and 2).

use crate::store::{ExportType, StoreHeader};

/// What the caller knows of its own past.
#[derive(Clone, Copy)]
pub struct Ledger<'a> {
    /// Whose the store is; none: nobody's yet, so the document's owner becomes its owner.
    pub owner: Option<&'a str>,
    /// What an export was that was applied to the store, or written from it; none: never seen.
    pub export: &'a dyn Fn(&str) -> Option<ExportType>,
}

/// What a document stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Footing {
    /// It is a full export, and needs no base.
    Full,
    /// It was applied before; once more changes nothing.
    Again,
    /// Its base is held: a full export.
    Base,
    /// Its base is held: a delta. Ours are always on a full one.
    Delta,
    /// Its base is not held, and the caller wants it nevertheless. Memories that it does not hold may be missing.
    Unfounded,
}

/// Why a document is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BaseError {
    /// Somebody else's memories.
    #[error("this is an export of owner {found:?}, and the store is of {expected:?}")]
    Owner {
        /// Of the document.
        found: String,
        /// Of the store.
        expected: String,
    },
    /// A delta on something that was never applied.
    #[error(
        "this incremental export builds on export {0:?}, which was never applied here; apply that one first"
    )]
    UnknownBase(String),
    /// A delta that does not say on what.
    #[error("this incremental export does not name its base; apply a full export instead")]
    NoBase,
}

/// Looks at owner and base. `any_owner` and `any_base` are the person's word that they want it nevertheless.
///
/// # Errors
/// If the owner is another than the store's, or an incremental export's base is not in the ledger.
pub fn check_base(
    header: &StoreHeader,
    ledger: Ledger<'_>,
    any_owner: bool,
    any_base: bool,
) -> Result<Footing, BaseError> {
    if let Some(expected) = ledger.owner.filter(|owner| *owner != header.owner.id && !any_owner) {
        return Err(BaseError::Owner { found: header.owner.id.clone(), expected: expected.to_owned() });
    }
    if header.export_id.as_deref().is_some_and(|id| (ledger.export)(id) == Some(header.export_type)) {
        return Ok(Footing::Again);
    }
    if header.export_type == ExportType::Full {
        return Ok(Footing::Full);
    }
    let base = header.base_export_id.as_deref().filter(|base| !base.is_empty());
    match base.map(|base| (base, (ledger.export)(base))) {
        Some((_, Some(ExportType::Full))) => Ok(Footing::Base),
        Some((_, Some(ExportType::Incremental))) => Ok(Footing::Delta),
        Some((_, None)) | None if any_base => Ok(Footing::Unfounded),
        Some((base, None)) => Err(BaseError::UnknownBase(base.to_owned())),
        None => Err(BaseError::NoBase),
    }
}
