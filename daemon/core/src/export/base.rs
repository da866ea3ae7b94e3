//! What an incremental export builds on, and when a full one takes its place.

use std::path::Path;

use satchel_source::envelope::Lock;
use satchel_store::{Revision, Store};

use super::{ExportError, ExportRecord, ExportRequest, Extent, Format, delta::Delta};
use crate::{exported, lineage::PurgeRecord, schedule::Renewal};

/// Microseconds of a day.
const DAY: i64 = 24 * 3_600 * 1_000_000;
/// Changed records below which an incremental export is never too large: a full one would be no smaller worth speaking of.
const SMALL: u64 = 1_000;

/// How an export is made.
pub(super) enum Choice {
    /// As changes since a base.
    Delta(Box<Delta>),
    /// Whole; why, if something else was asked for.
    Full(Option<String>),
}

/// Decides how `request` is met at `revision`.
pub(super) fn choose(
    store: &Store,
    request: &ExportRequest,
    renewal: Renewal,
    (revision, now): (Revision, i64),
    scheduled: bool,
) -> Result<Choice, ExportError> {
    let named = match &request.extent {
        Extent::Full => return Ok(Choice::Full(None)),
        Extent::Incremental { base } => base,
    };
    if request.format != Format::Pam {
        return Err(ExportError::NoIncrement);
    }
    if request.selection.said().is_some() {
        return Err(ExportError::PartialIncrement);
    }
    if let Some(id) = named {
        let base = exported::find(store, id)?.ok_or_else(|| ExportError::UnknownBase { id: id.clone() })?;
        if let Some(problem) = unfit(&base, request, revision) {
            return Err(ExportError::UnfitBase { id: id.clone(), problem });
        }
        return Ok(Choice::Delta(Box::new(Delta::since(store, &base, revision)?)));
    }
    let base = match latest(store, request, revision, scheduled)? {
        Ok(base) => base,
        Err(reason) => return Ok(Choice::Full(Some(reason))),
    };
    if now - base.at_micros > i64::from(renewal.days) * DAY {
        let reason = format!("the last full export is more than {} days old", renewal.days);
        return Ok(Choice::Full(Some(reason)));
    }
    let delta = Delta::since(store, &base, revision)?;
    if delta.len() > SMALL
        && delta.len() * 100 > (base.memories + base.conversations) * u64::from(renewal.percent)
    {
        let reason = format!("what changed is more than {} % of the last full export", renewal.percent);
        return Ok(Choice::Full(Some(reason)));
    }
    Ok(Choice::Delta(Box::new(delta)))
}

/// The newest full export that can be built on, or why a full one is due. A person who asks for changes knows where the base is,
/// and what opens it. What was erased for good still lies in older ones, which its owner may have removed for it.
fn latest(
    store: &Store,
    request: &ExportRequest,
    revision: Revision,
    scheduled: bool,
) -> Result<Result<ExportRecord, String>, ExportError> {
    let (erased, mut found) = (last_erased(store)?, None);
    exported::each(store, |record| {
        if record.full_next && !record.applied {
            found = Some(Err(
                "the last incremental export could not say all that happened since its base".into()
            ));
        } else if unfit(&record, request, revision).is_none() && (!scheduled || fits_beside(&record, request))
        {
            let whole = record.revision >= erased.get();
            found = Some(
                whole
                    .then_some(record)
                    .ok_or_else(|| "something was erased for good since the last full export".into()),
            );
        }
        found.is_none()
    })?;
    Ok(found.unwrap_or_else(|| Err("there is no full export to build on yet".into())))
}

/// The revision that showed what was erased for good no more, the last of them. Clocks go wrong, revisions do not.
fn last_erased(store: &Store) -> Result<Revision, ExportError> {
    let mut last = Revision::default();
    for record in PurgeRecord::all(store)? {
        for id in record.memories.keys() {
            last = store.memory(id, None)?.map_or(last, |gone| last.max(gone.revision));
        }
        for id in &record.conversations {
            last = store.conversation(id, None)?.map_or(last, |gone| last.max(gone.revision));
        }
    }
    Ok(last)
}

/// Whether what a schedule makes can build on an export: it must be there, and open to the same keys. Who holds those alone could
/// not read one by a passphrase.
fn fits_beside(base: &ExportRecord, request: &ExportRequest) -> bool {
    let recipients = request.lock.as_ref().and_then(Lock::digest);
    Path::new(&base.path).exists()
        && base.encrypted == request.lock.is_some()
        && base.recipients == recipients
}

/// Why nothing can be built on an export.
fn unfit(base: &ExportRecord, request: &ExportRequest, revision: Revision) -> Option<&'static str> {
    if base.applied {
        return Some("was made elsewhere and applied here; name one that was made here");
    }
    if base.selection.is_some() {
        return Some("is a selection, not the whole store; name a full export");
    }
    if base.export_type != super::FULL || base.format != Format::Pam {
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
