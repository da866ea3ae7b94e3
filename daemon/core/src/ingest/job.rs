//! One job: open the source, find the exports in it, import each.

mod detection;
mod hashing;
mod report;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    thread,
};

use satchel_pam::{conversation::ImportMetadata, record::Warning};
use satchel_registry::MAX_FAILURES;
use satchel_source::{
    Bundle, CancelToken, FileSet as _, Heartbeat, ReadFault, Source, envelope::DecryptionKeys,
};
use satchel_store::{Durability, Origin};
use tokio::sync::watch;
use uuid::Uuid;

use self::report::CHANGED;
use super::{
    ImportRequest, IngestError, Inner, JobView, OnEnd, Phase, WatchedImport,
    detect::{DetectedExport, ExportReader, LoadedImporter, Only},
    ledger,
    outcome::{ReadOutcome, conclude, stays_undone, unchanged},
    pam,
    plugin_run::PluginRun,
    receipt::{DocumentStanding, ImportRecord, ImportStatus},
    records::{DeferredRecords, ReadDocument},
    request::PAM_PLATFORM,
    session::Session,
    unrecognized,
    write::{Writer, conversation::import_of},
};
use crate::{
    export_ledger::{self, ExportRecord, INCREMENTAL},
    trust,
    uploads::UploadedFile,
};

/// The reason recorded in the history of records that an import wrote.
const REASON: &str = "import";

pub(super) struct ImportTask {
    pub(super) inner: Arc<Inner>,
    pub(super) id: Uuid,
    pub(super) request: ImportRequest,
    /// The keys that decrypt the source, if it is encrypted.
    pub(super) keys: Option<DecryptionKeys>,
    /// Set if a watched folder submitted the job.
    pub(super) watched: Option<WatchedImport>,
    /// The bytes, if they were uploaded.
    pub(super) uploaded: Option<UploadedFile>,
    pub(super) cancel: CancelToken,
    pub(super) view: watch::Sender<JobView>,
    /// Tracks for how long the source has not answered.
    pub(super) heartbeat: Heartbeat,
    /// Whether the source changed while it was read.
    pub(super) changed: AtomicBool,
    /// Whether the job was ended for its subscribers while its source did not answer. The lock is held while an import
    /// is ended.
    pub(super) abandoned: Mutex<bool>,
    /// The callback for the end of the job.
    pub(super) on_end: Mutex<Option<OnEnd>>,
}

impl ImportTask {
    /// Runs the job to its end; every outcome is reported in the view.
    pub(super) fn run(&self) {
        self.show(|view| view.phase = Phase::Looking);
        match self.import() {
            Ok(()) => {}
            // The cancellation stopped its readers, so this error has no other cause.
            Err(IngestError::Source(_)) if self.cancel.cancelled() => self.cancelled(),
            Err(error) => self.fail(&error),
        }
        self.finish_job();
    }

    fn import(&self) -> Result<(), IngestError> {
        if self.cancel.cancelled() {
            self.cancelled();
            return Ok(());
        }
        let source = {
            let _asked = self.heartbeat.begin_call();
            match (&self.watched, &self.uploaded) {
                (Some(watched), _) if watched.session => Source::session(&watched.root, &watched.name)?,
                (Some(watched), _) => Source::beneath(&watched.root, &watched.name)?,
                (None, Some(UploadedFile { path, bytes, length })) => {
                    Source::stored(path, Arc::clone(bytes), *length).with_keys(self.keys.clone())
                }
                (None, None) => Source::at(&self.request.path)?.with_keys(self.keys.clone()),
            }
        };
        let source = source.with_heartbeat(self.heartbeat.clone());
        // A watched folder waits for downloads itself, and a user who applies a document has named it explicitly.
        let waits = self.watched.is_none() && self.request.apply.is_none();
        let source = if waits { source.skipping_downloads() } else { source };
        let bundle = source.open_cancellable(&self.inner.limits(), &self.cancel)?;
        if self.cancel.cancelled() {
            // Parts that could not be opened because of the cancellation may be intact.
            self.cancelled();
            return Ok(());
        }
        let before = bundle.unread().len();
        let mut bundle = self.end_unreadable(bundle);
        let apart = before > bundle.unread().len();
        let (found, notes) = self.detect_exports(&mut bundle)?;
        if self.cancel.cancelled() {
            self.cancelled();
            return Ok(());
        }
        if found.is_empty() {
            if !apart && self.view.borrow().imports.is_empty() || !bundle.list().is_empty() {
                // An importer that failed to examine the files might have recognised them.
                let status = if notes.is_empty() { ImportStatus::Unrecognized } else { ImportStatus::Failed };
                let reason = Some(unrecognized::reason(&bundle, &notes));
                self.end(ImportRecord { status, reason, ..self.empty_record(&source.name) });
            }
            return Ok(());
        }
        self.import_all(&source, &bundle, found, notes)
    }

    /// Imports the exports that were found. If an export stops at a damaged part, its intact files are detected and
    /// imported again.
    fn import_all(
        &self,
        source: &Source,
        bundle: &Bundle,
        found: Vec<DetectedExport>,
        mut notes: Vec<Warning>,
    ) -> Result<(), IngestError> {
        let claimed: BTreeSet<&str> =
            found.iter().flat_map(|found| found.files.iter().map(String::as_str)).collect();
        notes.extend(unrecognized::warnings(bundle, |path| claimed.contains(path)));
        let mut digest = None;
        let mut due = found;
        while !due.is_empty() {
            let mut remains = Vec::new();
            for one in due {
                let files = one.files.clone();
                let notes = std::mem::take(&mut notes);
                let faults = self.import_one(source, bundle, one, &mut digest, notes)?;
                remains.extend(detection::whole_files(bundle, files, &faults));
            }
            if remains.is_empty() || self.cancel.cancelled() {
                return Ok(());
            }
            // Each round has at least one part less, so the loop ends.
            due = self.detect_exports(&mut bundle.subset(&remains))?.0;
        }
        Ok(())
    }

    /// The importers that may be used.
    fn only(&self) -> Only {
        let platforms = match &self.watched {
            Some(watched) => watched.providers.clone(),
            None if self.request.apply.is_some() => vec![PAM_PLATFORM.to_owned()],
            None => self.request.provider.iter().cloned().collect(),
        };
        Only { platforms, plugin: self.request.plugin.clone() }
    }

    fn name(&self) -> String {
        self.request.path.file_name().map_or_else(|| "?".into(), |name| name.to_string_lossy().into_owned())
    }

    /// Imports one of the exports in the source. `single` is the digest of a source that is a single file, once it is
    /// known.
    fn import_one(
        &self,
        source: &Source,
        bundle: &Bundle,
        found: DetectedExport,
        single: &mut Option<String>,
        notes: Vec<Warning>,
    ) -> Result<Vec<ReadFault>, IngestError> {
        let files = bundle.subset(&found.files);
        let mut record = self.describe_export(source, &found, files.bytes());
        notes.into_iter().for_each(|note| record.warn(note));
        record.source_checksum.clone_from(single);
        if record.source_checksum.is_none() && self.hashed_first(&record)? {
            let Some(digest) = self.hash(source, &files)?.filter(|_| !self.cancel.cancelled()) else {
                self.end(ImportRecord { status: ImportStatus::Cancelled, ..record });
                return Ok(Vec::new());
            };
            record.source_checksum = Some(digest.to_string());
        }
        let names = names(source, &found);
        // A document that is applied is always merged again: its base may have arrived since, or an older version may
        // have read it.
        if !self.request.again
            && self.request.apply.is_none()
            && let Some(identity) = identity(&record, names)
            && let Some(earlier) = ledger::earlier(&self.inner.store, &identity)?
            && earlier.status != ImportStatus::Undone
            && !ledger::lacks_pieces(&self.inner.store, &earlier)?
        {
            *single = single_digest(source, &record);
            self.end(unchanged(record, &earlier));
            return Ok(Vec::new());
        }
        // A watched folder does not repeat an import that the user undid, even if the file was touched or renamed.
        if self.watched.is_some()
            && let (Some(bytes), Some(identity)) = (ledger::bytes(&record, names), identity(&record, names))
            && let Some(undone) = ledger::undone_before(&self.inner.store, [&bytes, &identity])?
        {
            self.end(stays_undone(record, &undone));
            return Ok(Vec::new());
        }
        let (faults, digest) = self.read(&found, (bundle, files), record, source)?;
        *single = digest;
        Ok(faults)
    }

    /// Reads an export. `files` are the whole source and the files that belong to the export. Returns the damaged parts
    /// at which it stopped, and the digest of a source that is a single file.
    fn read(
        &self,
        found: &DetectedExport,
        files: (&Bundle, Bundle),
        mut record: ImportRecord,
        source: &Source,
    ) -> Result<(Vec<ReadFault>, Option<String>), IngestError> {
        let bundle = files.0;
        let names = names(source, found);
        // Faults that hashing met may not concern the export.
        drop(bundle.take_faults());
        if !self.request.dry_run {
            ledger::put(&self.inner.store, &record, Durability::WithNextCommit)?;
            self.remember_bytes(&record, names)?;
        }
        satchel_failpoints::reached("import listed");
        self.show(|view| {
            (view.phase, view.done, view.total) = (Phase::Reading, 0, record.bytes);
            view.imports.push(record.clone());
        });
        let mut applied = None;
        let own = bundle.subset(&found.files);
        let state = hashing::HashProgress::of(source, &own);
        let outcome = thread::scope(|scope| {
            let unknown = record.source_checksum.is_none();
            let beside = unknown
                .then(|| self.hash_in_background(scope, (source, bundle.subset(&found.files)), &state));
            let outcome = self.read_all((source, found), files, &mut record, &mut applied);
            match beside {
                Some(beside) => self.join_hash(beside, outcome, &mut record),
                None => outcome,
            }
        });
        let document = applied.as_ref().and_then(|applied| applied.record.as_ref());
        let changes = document.is_some_and(|document| document.export_type == INCREMENTAL);
        let changed = source.check_unchanged().and_then(|()| own.check_unchanged()).err();
        self.changed.store(changed.is_some(), Ordering::Relaxed);
        conclude(&mut record, outcome, changed, changes);
        let mut faults = detection::name_faults(&mut record, bundle.take_faults());
        if self.will_be_retried() && record.status == ImportStatus::Failed {
            record.status = ImportStatus::Cancelled;
            record.reason = Some(CHANGED.to_owned());
            faults.clear();
        }
        let left = self.left();
        if *left {
            return Ok((Vec::new(), None));
        }
        let done = matches!(record.status, ImportStatus::Completed | ImportStatus::CompletedWithSkips);
        self.replace_last(record.clone());
        let record = self.finish(record);
        if !self.request.dry_run {
            satchel_failpoints::reached("import concluded");
            ledger::put(&self.inner.store, &record, Durability::Now)?;
            satchel_failpoints::reached("receipt stored");
            self.remember_bytes(&record, names)?;
            if let Some(identity) = identity(&record, names).filter(|_| done) {
                ledger::put_source(&self.inner.store, &identity, &record, Durability::Now)?;
                satchel_failpoints::reached("source recorded");
                applied.map_or(Ok(()), |applied| self.remember(*applied, &record))?;
            }
        }
        Ok((faults, single_digest(source, &record)))
    }

    /// Records that these bytes were imported, independent of the importer's version, so that an undone import of them
    /// stays undone.
    fn remember_bytes(&self, record: &ImportRecord, names: &[String]) -> Result<(), IngestError> {
        match ledger::bytes(record, names) {
            Some(bytes) => ledger::put_source(&self.inner.store, &bytes, record, Durability::WithNextCommit),
            None => Ok(()),
        }
    }

    /// Reads the records of the export and derives memories from all evidence.
    fn read_all(
        &self,
        (source, found): (&Source, &DetectedExport),
        files: (&Bundle, Bundle),
        record: &mut ImportRecord,
        applied: &mut Option<Box<ReadDocument>>,
    ) -> Result<ReadOutcome, IngestError> {
        let mut writer = self.writer(record);
        let settle = |writer: &mut Writer<'_>, record: &mut ImportRecord, mut deferred: DeferredRecords| {
            *applied = deferred.applied.take();
            Self::name_files(source, found, &deferred.attached, record);
            self.show(|view| view.phase = Phase::Settling);
            satchel_failpoints::reached("import read");
            writer.derive(deferred, record)?;
            satchel_failpoints::reached("memories derived");
            writer.cache_late(record)
        };
        let outcome = self.read_records(found, files, &mut writer, record, settle);
        // Skips are stored however the import ended.
        let stored = writer.store_skips(record);
        match outcome.and_then(|ended| stored.map(|()| ended)) {
            Err(IngestError::Cancelled) => Ok(ReadOutcome::Cancelled),
            outcome => outcome,
        }
    }

    /// Adds a merged document to the ledger of exports, so that later documents can build on it.
    fn remember(&self, applied: ReadDocument, record: &ImportRecord) -> Result<(), IngestError> {
        let store = &self.inner.store;
        let now = self.inner.clock.now_micros();
        let nobodys = self.request.apply.as_ref().is_some_and(|apply| apply.owner.is_none());
        if nobodys && export_ledger::applied_owner(store)?.is_none() && applied.record.is_some() {
            export_ledger::record_applied_owner(store, &applied.about.owner.id, now)?;
        }
        let merged = record.standing.is_some_and(|standing| standing != DocumentStanding::Untrusted);
        let own = self.request.apply.is_some() && (merged || nobodys);
        export_ledger::record_document_info(store, &applied.about, own, now)?;
        let named = self.request.apply.as_ref().and_then(|apply| apply.trust.as_ref());
        if let Some(key) = named.filter(|_| record.standing == Some(DocumentStanding::Trusted)) {
            trust::add(store, key, now)?;
        }
        let Some(document) = applied.record else { return Ok(()) };
        // A stranger may have used the id of an export that did not exist yet.
        let stands = |known: &ExportRecord| !(merged && known.applied && known.signer != document.signer);
        if export_ledger::find(store, &document.export_id)?.is_some_and(|known| stands(&known)) {
            return Ok(());
        }
        let (revision, path, bytes) = (store.revision().get(), record.path.clone(), record.bytes);
        let entry = ExportRecord { at_micros: now, revision, path, bytes, ..document };
        Ok(export_ledger::record(store, &entry)?)
    }

    fn read_records(
        &self,
        found: &DetectedExport,
        (bundle, files): (&Bundle, Bundle),
        writer: &mut Writer<'_>,
        record: &mut ImportRecord,
        settle: impl FnOnce(&mut Writer<'_>, &mut ImportRecord, DeferredRecords) -> Result<(), IngestError>,
    ) -> Result<ReadOutcome, IngestError> {
        let shown = AtomicI64::new(0);
        let progress = |done, total, record: &ImportRecord| self.progress(&shown, done, total, record);
        let (store, dry_run) = (&self.inner.store, self.request.dry_run);
        match &found.reader {
            ExportReader::Plugin(LoadedImporter { importer, plugin }) => {
                let limits = &importer.limits(&self.inner.plugin_limits, files.bytes());
                let (format, pace, recall) = (&found.format, self.inner.plugins.pace(), !self.request.again);
                let (cancel, secrets) = (&self.cancel, self.inner.secret_handling());
                let bundle = files;
                let run = PluginRun {
                    store,
                    plugin,
                    bundle,
                    format,
                    limits,
                    cancel,
                    dry_run,
                    secrets,
                    pace,
                    recall,
                };
                let (deferred, outcome) = run.run(writer, record, &progress)?;
                let ended = outcome.as_ref().map(|_| ());
                if self.inner.plugins.record_run(importer, ended) {
                    let message = format!(
                        "the importer failed {MAX_FAILURES} times in a row and is disabled now; `satchel plugins enable \
                         {}` enables it again",
                        importer.name()
                    );
                    record.warn(Warning { locator: importer.name().to_owned(), message });
                }
                settle(writer, record, deferred)?;
                Ok(outcome.into())
            }
            ExportReader::Pam(files) => {
                let (cancel, apply) = (&self.cancel, self.request.apply.as_ref());
                let (watched, keys) = (self.watched.is_some(), self.inner.known_keys()?);
                let run = pam::PamRun { store, bundle, files, cancel, dry_run, apply, watched, keys };
                let (deferred, ended, later) = run.go(writer, record, &progress)?;
                settle(writer, record, deferred)?;
                if let ReadOutcome::Done(_) = &ended {
                    self.show(|view| view.phase = Phase::Reading);
                    run.vectors(later, writer, record, &progress)?;
                }
                Ok(ended)
            }
        }
    }

    fn writer(&self, record: &ImportRecord) -> Writer<'_> {
        let software = record.plugin.clone().unwrap_or_default();
        let origin = Origin {
            import: Uuid::parse_str(&record.id).ok(),
            actor: software,
            reason: REASON.to_owned(),
            at_micros: record.started_at,
        };
        // The digest may not be known yet. The receipt gets it later, and readers of a conversation take it from
        // there.
        let import = ImportMetadata { source_checksum: None, ..import_of(record) };
        let lock = (&*self.inner.write_lock, self.cancel.clone(), self.inner.plugins.pace().clone());
        let session = Session::new(&self.inner.store, lock, origin, self.request.dry_run);
        Writer::new(session, import)
    }
}

/// Returns the file names that are part of the identity of an export; none for a single file, as that may be renamed.
fn names<'a>(source: &Source, found: &'a DetectedExport) -> &'a [String] {
    let lone = !source.folder() && found.files == [source.name.as_str()];
    if lone { &[] } else { &found.files }
}

/// Returns the identity under which an import is found again; `None` while the digest of its source is unknown.
fn identity(record: &ImportRecord, names: &[String]) -> Option<String> {
    // Installed importers may have the name and version of another one, such as the built-in one that they replace.
    let plugin = record.plugin.iter().chain(&record.plugin_sha256).cloned().collect::<Vec<_>>().join("+");
    Some(ledger::identity(record.source_checksum.as_deref()?, &plugin, names))
}

/// Returns the digest of a source that is a single file; all exports in it share that digest.
fn single_digest(source: &Source, record: &ImportRecord) -> Option<String> {
    record.source_checksum.clone().filter(|_| !source.folder())
}
