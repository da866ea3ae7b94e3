//! One export that is being made: what was asked for, at which revision, and how its records are walked.

use std::cell::{Cell, OnceCell};

use satchel_pam::{privacy::Identifiers, time::Timestamp};
use satchel_source::envelope::Lock;
use satchel_store::{MemoryOrder, MemoryQuery, MemoryRecord, Revision, Store};

use super::{
    ExportError, ExportRecord, ExportRequest, FULL, PAGE, Progress, delta::Delta, keys::Signer, pages,
    target::Target, withheld::Texts,
};
use crate::lineage::Digests;

/// Microseconds of a second; PAM's dates of an export have none below it.
const SECOND: i64 = 1_000_000;

pub(super) struct Job<'a> {
    pub(super) store: &'a Store,
    pub(super) request: &'a ExportRequest,
    pub(super) id: String,
    pub(super) revision: Revision,
    /// Microseconds since the Unix epoch.
    pub(super) now: i64,
    pub(super) signer: &'a Signer,
    /// The person's own DID.
    pub(super) did: Option<&'a str>,
    /// Only what changed; none: all.
    pub(super) delta: Option<Delta>,
    /// Why all, if changes were asked for.
    pub(super) reason: Option<String>,
    /// Whether nobody asked, but a schedule.
    pub(super) scheduled: bool,
    pub(super) told: Told<'a>,
    /// What must not leave, once something asked for it.
    pub(super) private: OnceCell<Texts>,
    /// By what people are known elsewhere, once something asked for it.
    pub(super) identifiers: OnceCell<Identifiers>,
    pub(super) digests: Digests,
    /// Where the types of the person's own are written down.
    pub(super) type_registry: Option<&'a str>,
}

/// How far it is, and who hears of it.
pub(super) struct Told<'a> {
    pub(super) progress: Cell<Progress>,
    pub(super) tell: &'a dyn Fn(Progress) -> bool,
}

impl Told<'_> {
    /// Counts one more record.
    ///
    /// # Errors
    /// When the export is to end.
    pub(super) fn on(&self, step: impl FnOnce(&mut Progress)) -> Result<(), ExportError> {
        let mut progress = self.progress.get();
        step(&mut progress);
        self.progress.set(progress);
        if (self.tell)(progress) { Ok(()) } else { Err(ExportError::Cancelled) }
    }
}

impl Job<'_> {
    /// Where the export is written.
    pub(super) fn target(&self) -> Result<Target, ExportError> {
        Target::create(&self.request.output, self.request.lock.as_ref(), &self.id)
    }

    pub(super) fn date(&self) -> Timestamp {
        Timestamp::saturating(self.now - self.now.rem_euclid(SECOND))
    }

    /// What the ledger keeps of a full export, but for what was written.
    pub(super) fn record(&self) -> ExportRecord {
        ExportRecord {
            export_id: self.id.clone(),
            export_type: FULL.into(),
            format: self.request.format,
            export_date: self.date().to_string(),
            at_micros: self.now,
            revision: self.revision.get(),
            path: self.place(),
            with_conversations: self.request.conversations,
            with_attachments: self.request.attachments,
            scheduled: self.scheduled,
            selection: self.request.selection.said(),
            encrypted: self.request.lock.is_some(),
            recipients: self.request.lock.as_ref().and_then(Lock::digest),
            ..ExportRecord::default()
        }
    }

    /// Where the export lies once it is published.
    fn place(&self) -> String {
        let output = &self.request.output;
        std::fs::canonicalize(output).unwrap_or_else(|_| output.clone()).display().to_string()
    }

    /// Walks the memories of the revision in the order of their ids: all, or those that changed and may leave.
    pub(super) fn each_memory(
        &self,
        mut see: impl FnMut(MemoryRecord) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        if let Some(delta) = &self.delta {
            for id in &delta.memories {
                id.text(|id| self.store.memory(id, Some(self.revision)))?.map_or(Ok(()), &mut see)?;
            }
            return Ok(());
        }
        let query =
            MemoryQuery { order: MemoryOrder::IdAscending, ..self.request.selection.memories.clone() };
        pages(|after| Ok(self.store.memories(&query, after, PAGE, self.revision)?), see)
    }
}
