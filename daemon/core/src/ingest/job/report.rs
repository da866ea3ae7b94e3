//! Reports the state of a job, while it runs and when it ends, to its subscribers and to the ledger of imports.

use std::{
    collections::BTreeSet,
    sync::{
        MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use satchel_source::{Source, SourceError, chain};
use satchel_store::Durability;
use uuid::Uuid;

use super::ImportTask;
use crate::ingest::{
    IngestError, JobView, Phase,
    detect::DetectedExport,
    ledger,
    receipt::{Counts, HeldBack, ImportRecord, ImportStatus, LISTED_FILES},
};

/// Minimum interval between two updates of a running job, in microseconds; people do not read faster.
pub(super) const SHOW_EVERY: i64 = 100_000;

/// The reason of an import of a watched file that ended because the file was modified.
pub(super) const CHANGED: &str =
    "the file changed while it was read; it is imported again when it has settled";

/// The reason of an import that was cancelled while its disk or share did not answer.
const NOT_ANSWERING: &str = "it was cancelled while its disk or share did not answer; what is stored stays, importing again completes it";

impl ImportTask {
    /// Marks the job as ended.
    pub(super) fn finish_job(&self) {
        let left = self.left();
        if !*left {
            self.show(|view| view.end(self.inner.clock.now_micros()));
        }
    }

    pub(super) fn cancelled(&self) {
        self.end(ImportRecord { status: ImportStatus::Cancelled, ..self.empty_record(&self.name()) });
    }

    pub(super) fn fail(&self, error: &IngestError) {
        let moved =
            matches!(error, IngestError::Source(SourceError::Changed { .. } | SourceError::Missing { .. }));
        self.changed.store(moved, Ordering::Relaxed);
        let mut record = self.empty_record(&self.request.path.display().to_string());
        record.status = ImportStatus::Failed;
        record.reason = Some(chain(error));
        self.end(record);
    }

    /// Ends a job whose thread panicked.
    pub(in crate::ingest) fn end_panicked(&self) {
        let running = self.view.borrow().imports.iter().find(|import| !import.ended()).cloned();
        self.show(|view| view.imports.retain(ImportRecord::ended));
        let mut record = running.unwrap_or_else(|| self.empty_record(&self.name()));
        record.status = ImportStatus::Failed;
        record.reason = Some(chain(&IngestError::Panicked));
        self.end(record);
        self.finish_job();
    }

    pub(super) fn progress(&self, shown: &AtomicI64, done: u64, total: u64, record: &ImportRecord) {
        let now = self.inner.clock.now_micros();
        let due = now - shown.load(Ordering::Relaxed) >= SHOW_EVERY;
        if due {
            shown.store(now, Ordering::Relaxed);
        }
        // The view is updated with each record, although subscribers are notified less often: if the job is ended
        // while its source hangs, its receipt is taken from the view.
        self.view.send_if_modified(|view| {
            (view.done, view.total) = (done, total);
            if let Some(last) = view.imports.last_mut() {
                last.keep_up(record);
            }
            due
        });
    }

    pub(super) fn empty_record(&self, source: &str) -> ImportRecord {
        ImportRecord {
            id: Uuid::new_v4().to_string(),
            job: self.id.to_string(),
            source: source.to_owned(),
            path: self.request.path.display().to_string(),
            files: Vec::new(),
            files_found: 0,
            source_checksum: None,
            provider: None,
            importer: None,
            plugin: None,
            plugin_sha256: None,
            plugin_signer: None,
            status: ImportStatus::Running,
            reason: None,
            conversations: Counts::default(),
            messages: Counts::default(),
            memories: Counts::default(),
            embeddings: Counts::default(),
            same_as: None,
            machine: None,
            attachments: 0,
            skipped: Vec::new(),
            warnings: Vec::new(),
            warnings_found: 0,
            issue_pages: 0,
            revisions: None,
            bytes: 0,
            started_at: self.inner.clock.now_micros(),
            finished_at: None,
            elapsed_ms: 0,
            dry_run: self.request.dry_run,
            differences: Vec::new(),
            differences_found: 0,
            accounts: Vec::new(),
            standing: None,
            signer: None,
            partly_signed: false,
            would_change: HeldBack::default(),
            forced: Vec::new(),
        }
    }

    pub(super) fn describe_export(
        &self,
        source: &Source,
        found: &DetectedExport,
        bytes: u64,
    ) -> ImportRecord {
        let installed = found.reader.installed();
        ImportRecord {
            plugin_sha256: installed.and_then(|importer| Some(importer.installed()?.sha256.clone())),
            plugin_signer: installed.and_then(|importer| importer.signer().map(ToString::to_string)),
            provider: Some(found.reader.platform().to_owned()),
            importer: Some(found.format.clone()),
            plugin: Some(found.reader.software()),
            bytes,
            ..self.empty_record(&source.name)
        }
    }

    /// Lists the files of an export in its receipt, if the source is a folder. Attachments of messages are left out:
    /// their names must not remain after their conversation is purged.
    pub(super) fn name_files(
        source: &Source,
        found: &DetectedExport,
        attached: &BTreeSet<String>,
        record: &mut ImportRecord,
    ) {
        if source.folder() {
            let named = found.files.iter().filter(|file| !attached.contains(*file));
            record.files = named.take(LISTED_FILES).cloned().collect();
        }
        record.files_found = found.files.len() as u64;
    }

    /// Ends a cancelled job for its subscribers while its source does not answer. The thread is left behind; when its
    /// read returns, it finds the job ended and reports nothing.
    pub(in crate::ingest) fn abandon(&self) {
        let mut left = self.left();
        if *left || self.view.borrow().phase == Phase::Ended {
            return;
        }
        let running = self.view.borrow().imports.iter().find(|import| !import.ended()).cloned();
        let mut record = running.unwrap_or_else(|| self.empty_record(&self.name()));
        record.status = ImportStatus::Cancelled;
        record.reason = Some(NOT_ANSWERING.to_owned());
        let record = self.store_end(record);
        self.show(|view| {
            view.imports.retain(ImportRecord::ended);
            view.imports.push(record);
            view.end(self.inner.clock.now_micros());
        });
        *left = true;
    }

    /// Calls the callback for the end of the job, once.
    pub(in crate::ingest) fn notify_end(&self) {
        let stopping = self.inner.jobs().stopping;
        let on_end = self.on_end.lock().unwrap_or_else(PoisonError::into_inner).take();
        let view = self.view.borrow().clone();
        // Jobs that the shutdown of the daemon stopped were not cancelled by the user: they are due again at the next
        // start.
        let cancelled = |import: &ImportRecord| import.status == ImportStatus::Cancelled;
        let broken_off = stopping && view.imports.iter().any(cancelled);
        if let Some(on_end) = on_end.filter(|_| !broken_off) {
            on_end(&view, self.changed.load(Ordering::Relaxed));
        }
    }

    pub(super) fn left(&self) -> MutexGuard<'_, bool> {
        self.abandoned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends an import that wrote no records, and publishes it.
    pub(super) fn end(&self, record: ImportRecord) {
        let left = self.left();
        if *left {
            return;
        }
        let record = self.store_end(record);
        self.show(|view| {
            view.imports.retain(ImportRecord::ended);
            view.imports.push(record);
        });
    }

    fn store_end(&self, record: ImportRecord) -> ImportRecord {
        let record = self.finish(record);
        if self.worth_keeping(&record)
            && let Err(error) = ledger::put(&self.inner.store, &record, Durability::Now)
        {
            tracing::error!(import = record.id, error = chain(&error), "the import is not in the ledger");
        }
        record
    }

    /// Returns whether a watched folder submits the source again once it is stable, so that this end is not final.
    pub(super) fn will_be_retried(&self) -> bool {
        self.watched.is_some() && self.changed.load(Ordering::Relaxed)
    }

    /// Returns whether the import belongs in the ledger. Imports of watched folders that brought nothing do not.
    fn worth_keeping(&self, record: &ImportRecord) -> bool {
        let nothing = matches!(record.status, ImportStatus::Unrecognized | ImportStatus::Unchanged);
        let idle = self.watched.is_some() && nothing;
        let waits = record.status == ImportStatus::Waiting;
        !(self.request.dry_run || idle || waits || self.will_be_retried())
    }

    pub(super) fn finish(&self, mut record: ImportRecord) -> ImportRecord {
        let now = self.inner.clock.now_micros();
        record.finished_at = Some(now);
        record.elapsed_ms = u64::try_from((now - record.started_at) / 1_000).unwrap_or(0);
        self.replace_last(record.clone());
        record
    }

    pub(super) fn replace_last(&self, record: ImportRecord) {
        self.show(|view| {
            if let Some(last) = view.imports.last_mut().filter(|last| last.id == record.id) {
                *last = record;
            }
        });
    }

    pub(super) fn show(&self, change: impl FnOnce(&mut JobView)) {
        self.view.send_modify(change);
    }
}
