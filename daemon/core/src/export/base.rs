//! Chooses the base of an incremental export, or a full export instead.

use std::path::Path;

use satchel_source::envelope::ExportEncryption;
use satchel_store::{Revision, Store};

use super::{ExportError, ExportFormat, ExportRecord, ExportRequest, Extent, delta::Delta};
use crate::{export_ledger, provenance::PurgeRecord, schedule::RenewalPolicy};

/// Microseconds in a day.
const DAY: i64 = 24 * 3_600 * 1_000_000;
/// Number of changed records below which an incremental export is never considered too large, because a full export
/// would be hardly larger.
const SMALL_DELTA: u64 = 1_000;

/// How an export is made.
pub(super) enum ExportKind {
    /// As the changes since a base.
    Delta(Box<Delta>),
    /// As a full export, with the reason if an incremental one was requested.
    Full(Option<String>),
}

/// Decides how to satisfy `request` at `revision`.
pub(super) fn choose(
    store: &Store,
    request: &ExportRequest,
    renewal: RenewalPolicy,
    (revision, now): (Revision, i64),
    scheduled: bool,
) -> Result<ExportKind, ExportError> {
    let named = match &request.extent {
        Extent::Full => return Ok(ExportKind::Full(None)),
        Extent::Incremental { base } => base,
    };
    if request.format != ExportFormat::Pam {
        return Err(ExportError::NoIncrement);
    }
    if request.selection.description().is_some() {
        return Err(ExportError::PartialIncrement);
    }
    if let Some(id) = named {
        let base = export_ledger::find_anywhere(store, id)?;
        let base = base.ok_or_else(|| ExportError::UnknownBase { id: id.clone() })?;
        if base.machine.is_some() {
            let problem = "was made by another machine; build on one that was made here";
            return Err(ExportError::UnfitBase { id: id.clone(), problem });
        }
        if let Some(problem) = unfit_reason(&base, request, revision) {
            return Err(ExportError::UnfitBase { id: id.clone(), problem });
        }
        return Ok(ExportKind::Delta(Box::new(Delta::since(store, &base, revision)?)));
    }
    let base = match latest_base(store, request, revision, scheduled)? {
        Ok(base) => base,
        Err(reason) => return Ok(ExportKind::Full(Some(reason))),
    };
    if now - base.at_micros > i64::from(renewal.days) * DAY {
        let reason = format!("the last full export is more than {} days old", renewal.days);
        return Ok(ExportKind::Full(Some(reason)));
    }
    let delta = Delta::since(store, &base, revision)?;
    if delta.len() > SMALL_DELTA
        && delta.len() * 100 > (base.memories + base.conversations) * u64::from(renewal.percent)
    {
        let reason = format!("what changed is more than {} % of the last full export", renewal.percent);
        return Ok(ExportKind::Full(Some(reason)));
    }
    Ok(ExportKind::Delta(Box::new(delta)))
}

/// Returns the newest full export that can serve as a base, or the reason why a full export is due. The file of the
/// base is not checked for a user's request: the user knows where it is and how to decrypt it. An export that still
/// contains data that was permanently erased since is not used, because its owner may have deleted the file for that
/// reason.
fn latest_base(
    store: &Store,
    request: &ExportRequest,
    revision: Revision,
    scheduled: bool,
) -> Result<Result<ExportRecord, String>, ExportError> {
    let (erased, mut found) = (last_erased(store)?, None);
    export_ledger::for_each(store, |record| {
        if record.full_next && !record.applied {
            found =
                Some(Err("the last incremental export could not express all changes since its base".into()));
        } else if unfit_reason(&record, request, revision).is_none()
            && (!scheduled || fits_schedule(&record, request))
        {
            let whole = record.revision >= erased.get();
            found = Some(
                whole
                    .then_some(record)
                    .ok_or_else(|| "data was permanently erased since the last full export".into()),
            );
        }
        found.is_none()
    })?;
    Ok(found.unwrap_or_else(|| Err("there is no full export to build on yet".into())))
}

/// Returns the last revision at which permanently erased data disappeared. Revisions are compared because clocks can be
/// wrong.
fn last_erased(store: &Store) -> Result<Revision, ExportError> {
    let mut last = Revision::default();
    for record in PurgeRecord::list(store)? {
        for id in record.memories.keys() {
            last = store.memory(id, None)?.map_or(last, |gone| last.max(gone.revision));
        }
        for id in &record.conversations {
            last = store.conversation(id, None)?.map_or(last, |gone| last.max(gone.revision));
        }
    }
    Ok(last)
}

/// Returns whether a scheduled export can build on `base`: the base must still exist and be encrypted for the same
/// recipients. Somebody who has only the recipients' keys could not decrypt a base that is encrypted with a passphrase.
fn fits_schedule(base: &ExportRecord, request: &ExportRequest) -> bool {
    let recipients = request.lock.as_ref().and_then(ExportEncryption::digest);
    Path::new(&base.path).exists()
        && base.encrypted == request.lock.is_some()
        && base.recipients == recipients
}

/// Returns the reason why nothing can be built on an export, if there is one.
fn unfit_reason(base: &ExportRecord, request: &ExportRequest, revision: Revision) -> Option<&'static str> {
    if base.applied {
        return Some("was made elsewhere and applied here; name one that was made here");
    }
    if base.selection.is_some() {
        return Some("is a selection, not the whole store; name a full export");
    }
    if base.export_type != super::FULL || base.format != ExportFormat::Pam {
        return Some("is no full PAM export");
    }
    if base.revision > revision.get() {
        return Some("shows a later state than the store has");
    }
    if request.conversations && !base.with_conversations {
        return Some("has no conversations; add --no-conversations, or make a full export");
    }
    (request.attachments && !base.with_attachments)
        .then_some("has no attachments; make a full export with them")
}
