//! An export in progress: the request, the revision, and the iteration over its records.

use std::cell::{Cell, OnceCell};

use satchel_pam::{privacy::Identifiers, time::Timestamp};
use satchel_source::envelope::ExportEncryption;
use satchel_store::{MemoryOrder, MemoryQuery, MemoryRecord, Revision, Store};

use super::{
    ExportError, ExportProgress, ExportRecord, ExportRequest, FULL, PAGE, delta::Delta,
    keys::SigningIdentity, pages, private_texts::PrivateTexts, target::ExportTarget,
};
use crate::provenance::SourceDigests;

/// Microseconds in a second. PAM dates of exports have no finer resolution.
const SECOND: i64 = 1_000_000;

pub(super) struct ExportJob<'a> {
    pub(super) store: &'a Store,
    pub(super) request: &'a ExportRequest,
    pub(super) id: String,
    pub(super) revision: Revision,
    /// Microseconds since the Unix epoch.
    pub(super) now: i64,
    pub(super) signer: &'a SigningIdentity,
    /// The user's own DID.
    pub(super) did: Option<&'a str>,
    /// The changes to export. `None` exports everything.
    pub(super) delta: Option<Delta>,
    /// Why everything is exported although an incremental export was requested.
    pub(super) reason: Option<String>,
    /// Whether a schedule, not a person, requested the export.
    pub(super) scheduled: bool,
    pub(super) progress: ProgressReporter<'a>,
    /// Texts that must not be exported; loaded on first use.
    pub(super) private_texts: OnceCell<PrivateTexts>,
    /// Identifiers that people are known by elsewhere; loaded on first use.
    pub(super) identifiers: OnceCell<Identifiers>,
    pub(super) digests: SourceDigests,
    /// Where the user's own types are documented.
    pub(super) type_registry: Option<&'a str>,
}

/// The current progress, and the callback that receives it.
pub(super) struct ProgressReporter<'a> {
    pub(super) current: Cell<ExportProgress>,
    pub(super) report: &'a dyn Fn(ExportProgress) -> bool,
}

impl ProgressReporter<'_> {
    /// Counts one more record and reports the progress.
    ///
    /// # Errors
    /// The callback cancelled the export.
    pub(super) fn update(&self, step: impl FnOnce(&mut ExportProgress)) -> Result<(), ExportError> {
        let mut progress = self.current.get();
        step(&mut progress);
        self.current.set(progress);
        if (self.report)(progress) { Ok(()) } else { Err(ExportError::Cancelled) }
    }
}

impl ExportJob<'_> {
    /// Creates the target that the export is written to.
    pub(super) fn target(&self) -> Result<ExportTarget, ExportError> {
        ExportTarget::create(&self.request.output, self.request.lock.as_ref(), &self.id)
    }

    pub(super) fn date(&self) -> Timestamp {
        Timestamp::saturating(self.now - self.now.rem_euclid(SECOND))
    }

    /// Returns the ledger record of a full export, without the counts that are known only after writing.
    pub(super) fn record(&self) -> ExportRecord {
        ExportRecord {
            export_id: self.id.clone(),
            export_type: FULL.into(),
            format: self.request.format,
            export_date: self.date().to_string(),
            at_micros: self.now,
            revision: self.revision.get(),
            path: self.output_path(),
            with_conversations: self.request.conversations,
            with_attachments: self.request.attachments,
            scheduled: self.scheduled,
            selection: self.request.selection.description(),
            encrypted: self.request.lock.is_some(),
            recipients: self.request.lock.as_ref().and_then(ExportEncryption::digest),
            ..ExportRecord::default()
        }
    }

    /// Returns the path of the export after it is published.
    fn output_path(&self) -> String {
        let output = &self.request.output;
        std::fs::canonicalize(output).unwrap_or_else(|_| output.clone()).display().to_string()
    }

    /// Passes the memories of the revision to `see`, ordered by id: all of them, or those that changed and may be
    /// exported.
    pub(super) fn each_memory(
        &self,
        mut see: impl FnMut(MemoryRecord) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        if let Some(delta) = &self.delta {
            for id in &delta.memories {
                id.with_text(|id| self.store.memory(id, Some(self.revision)))?.map_or(Ok(()), &mut see)?;
            }
            return Ok(());
        }
        let query =
            MemoryQuery { order: MemoryOrder::IdAscending, ..self.request.selection.memories.clone() };
        pages(|after| Ok(self.store.memories(&query, after, PAGE, self.revision)?), see)
    }
}
