//! One job: open the source, find the exports in it, import each.

mod look;
mod told;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
};

use satchel_host::{CancelToken, Files as _};
use satchel_pam::record::Warning;
use satchel_store::{Durability, Origin, points};
use tokio::sync::watch;
use uuid::Uuid;

use self::told::{CHANGED, SHOW_EVERY};
use super::{
    ImportRequest, IngestError, Inner, JobView, OnEnd, Phase, REASON, WatchedImport,
    conclude::{Ended, conclude, stays_undone, unchanged},
    detect::{Found, Reader},
    ledger, leftover, memories, pam,
    receipt::{ImportRecord, ImportStatus},
    run::{Applied, Run, Tail},
    write::{Writer, conversation::import_of},
};
use crate::{
    envelope::Keys,
    exported::{self, ExportRecord, INCREMENTAL},
    intake::{Bundle, Fault, Pulse, Source},
};

pub(super) struct Task {
    pub(super) inner: Arc<Inner>,
    pub(super) id: Uuid,
    pub(super) request: ImportRequest,
    /// What opens the source, if it is encrypted.
    pub(super) keys: Option<Keys>,
    /// A watched folder brought it.
    pub(super) watched: Option<WatchedImport>,
    pub(super) cancel: CancelToken,
    pub(super) view: watch::Sender<JobView>,
    /// Since when the source does not answer.
    pub(super) pulse: Pulse,
    /// The source changed while it was read.
    pub(super) changed: AtomicBool,
    /// Whether it was ended for all others while its source did not answer. Held while an import is ended.
    pub(super) left: Mutex<bool>,
    /// Who hears how it ended.
    pub(super) on_end: Mutex<Option<OnEnd>>,
}

impl Task {
    /// Runs the job to its end; whatever happens is told in the view.
    pub(super) fn go(&self) {
        self.show(|view| view.phase = Phase::Looking);
        match self.import() {
            Ok(()) => {}
            // Its readers were stopped, and that is all that they ran into.
            Err(IngestError::Intake(_)) if self.cancel.cancelled() => self.cancelled(),
            Err(error) => self.fail(&error),
        }
        self.over();
    }

    fn import(&self) -> Result<(), IngestError> {
        if self.cancel.cancelled() {
            self.cancelled();
            return Ok(());
        }
        let source = {
            let _asked = self.pulse.call();
            match &self.watched {
                Some(watched) => Source::below(&watched.root, &watched.name)?,
                None => Source::at(&self.request.path)?.with_keys(self.keys.clone()),
            }
        };
        let source = source.telling(self.pulse.clone());
        // A watched folder knows itself what waits; and who applies a document named it.
        let waits = self.watched.is_none() && self.request.apply.is_none();
        let source = if waits { source.leaving_downloads() } else { source };
        let bundle = source.open_until(&self.inner.limits(), &self.cancel)?;
        if self.cancel.cancelled() {
            // What of it could not be opened may be whole.
            self.cancelled();
            return Ok(());
        }
        let before = bundle.unread().len();
        let mut bundle = self.end_apart(bundle);
        let apart = before > bundle.unread().len();
        let (found, notes) = self.look(&mut bundle)?;
        if self.cancel.cancelled() {
            self.cancelled();
            return Ok(());
        }
        if found.is_empty() {
            if !apart && self.view.borrow().imports.is_empty() || !bundle.list().is_empty() {
                // An importer that could not even look may have known the files.
                let status = if notes.is_empty() { ImportStatus::Unrecognized } else { ImportStatus::Failed };
                let reason = Some(leftover::reason(&bundle, &notes));
                self.end(ImportRecord { status, reason, ..self.blank(&source.name) });
            }
            return Ok(());
        }
        self.import_all(&source, &bundle, found, notes)
    }

    /// Imports what was found; where an export broke off because a part of it is damaged, then what is whole of it.
    fn import_all(
        &self,
        source: &Source,
        bundle: &Bundle,
        found: Vec<Found>,
        mut notes: Vec<Warning>,
    ) -> Result<(), IngestError> {
        let claimed: BTreeSet<&str> =
            found.iter().flat_map(|found| found.files.iter().map(String::as_str)).collect();
        notes.extend(leftover::warnings(bundle, |path| claimed.contains(path)));
        let whole = if source.folder() { None } else { self.hash_file(source)? };
        let mut due = found;
        while !due.is_empty() {
            let mut remains = Vec::new();
            for one in due {
                let files = one.files.clone();
                let notes = std::mem::take(&mut notes);
                let faults = self.import_one(source, bundle, one, whole.as_deref(), notes)?;
                remains.extend(look::whole_files(bundle, files, &faults));
            }
            if remains.is_empty() || self.cancel.cancelled() {
                return Ok(());
            }
            // Each time there is at least one part less.
            due = self.look(&mut bundle.subset(&remains))?.0;
        }
        Ok(())
    }

    /// Only these platforms' importers; empty: any.
    fn platforms(&self) -> Vec<String> {
        match &self.watched {
            Some(watched) => watched.providers.clone(),
            None if self.request.apply.is_some() => vec![pam::PLATFORM.to_owned()],
            None => self.request.provider.iter().cloned().collect(),
        }
    }

    fn name(&self) -> String {
        self.request.path.file_name().map_or_else(|| "?".into(), |name| name.to_string_lossy().into_owned())
    }

    fn hash_file(&self, source: &Source) -> Result<Option<String>, IngestError> {
        let total = std::fs::metadata(&source.path).map_or(0, |metadata| metadata.len());
        let digest = source.checksum(self.hashing(total))?;
        Ok(digest.map(|digest| digest.to_string()))
    }

    /// Shows from now on how much is hashed, and says after each chunk whether to go on.
    fn hashing(&self, total: u64) -> impl FnMut(u64) -> bool {
        self.show(|view| (view.phase, view.done, view.total) = (Phase::Hashing, 0, total));
        let mut shown = self.inner.clock.now_micros();
        move |bytes| {
            let now = self.inner.clock.now_micros();
            let due = now - shown >= SHOW_EVERY;
            if due {
                shown = now;
            }
            self.view.send_if_modified(|view| {
                view.done += bytes;
                due
            });
            points::reached("bytes hashed");
            !self.cancel.cancelled()
        }
    }

    fn import_one(
        &self,
        source: &Source,
        bundle: &Bundle,
        found: Found,
        whole: Option<&str>,
        notes: Vec<Warning>,
    ) -> Result<Vec<Fault>, IngestError> {
        let files = bundle.subset(&found.files);
        let mut record = self.describe(source, &found, files.bytes());
        notes.into_iter().for_each(|note| record.warn(note));
        let checksum = match whole {
            Some(checksum) => Some(checksum.to_owned()),
            None if source.folder() => {
                files.checksum(self.hashing(files.bytes()))?.map(|digest| digest.to_string())
            }
            None => None,
        };
        let Some(checksum) = checksum.filter(|_| !self.cancel.cancelled()) else {
            self.end(ImportRecord { status: ImportStatus::Cancelled, ..record });
            return Ok(Vec::new());
        };
        // Whatever a single file is called, its bytes are what was imported.
        let lone = !source.folder() && found.files == [source.name.as_str()];
        let names = if lone { &[] } else { found.files.as_slice() };
        let identity = ledger::identity(&checksum, record.plugin.as_deref().unwrap_or_default(), names);
        record.source_checksum = Some(checksum);
        // What is applied is merged again: its base may have come since, or it may have been read by an older version.
        if !self.request.again
            && self.request.apply.is_none()
            && let Some(earlier) = ledger::earlier(&self.inner.store, &identity)?
            && earlier.status != ImportStatus::Undone
        {
            self.end(unchanged(record, &earlier));
            return Ok(Vec::new());
        }
        let bytes = ledger::bytes(&record, names);
        if self.watched.is_some()
            && let Some(undone) = ledger::undone_before(&self.inner.store, [&bytes, &identity])?
        {
            // What a person took back comes when a person asks for it, whatever became of its file.
            self.end(stays_undone(record, &undone));
            return Ok(Vec::new());
        }
        self.read(&found, (bundle, files), record, (&identity, &bytes), source)
    }

    /// Reads an export: `files` are the whole source, and what belongs to it. Answers the damaged parts that it broke off at.
    fn read(
        &self,
        found: &Found,
        files: (&Bundle, Bundle),
        mut record: ImportRecord,
        (identity, bytes): (&str, &str),
        source: &Source,
    ) -> Result<Vec<Fault>, IngestError> {
        let bundle = files.0;
        // What the checksum met may not matter.
        drop(bundle.take_faults());
        if !self.request.dry_run {
            ledger::put(&self.inner.store, &record, Durability::WithNextCommit)?;
            ledger::put_source(&self.inner.store, bytes, &record, Durability::WithNextCommit)?;
        }
        points::reached("import listed");
        self.show(|view| {
            (view.phase, view.done, view.total) = (Phase::Reading, 0, record.bytes);
            view.imports.push(record.clone());
        });
        let mut writer = self.writer(&record);
        let mut applied = None;
        let outcome = self.run(found, files, &mut writer, &mut record).and_then(|(mut tail, ended)| {
            applied = tail.applied.take();
            self.show(|view| view.phase = Phase::Settling);
            points::reached("import read");
            memories::settle(&self.inner.store, &mut writer, tail, &mut record)?;
            points::reached("memories settled");
            writer.remember_late(&mut record)?;
            Ok(ended)
        });
        // What was left out is listed, however the import ended.
        let spilled = writer.spill_page(&mut record);
        let outcome = outcome.and_then(|ended| spilled.map(|()| ended));
        let outcome = match outcome {
            Err(IngestError::Cancelled) => Ok(Ended::Cancelled),
            outcome => outcome,
        };
        drop(writer);
        let changes = applied.as_ref().is_some_and(|applied| applied.record.export_type == INCREMENTAL);
        self.changed.store(source.unchanged().is_err(), Ordering::Relaxed);
        conclude(&mut record, outcome, source, changes);
        let mut faults = look::told_in(&mut record, bundle.take_faults());
        if self.will_come_again() && record.status == ImportStatus::Failed {
            record.status = ImportStatus::Cancelled;
            record.reason = Some(CHANGED.to_owned());
            faults.clear();
        }
        let left = self.left();
        if *left {
            return Ok(Vec::new());
        }
        let done = matches!(record.status, ImportStatus::Completed | ImportStatus::CompletedWithSkips);
        self.replace_last(record.clone());
        let record = self.finish(record);
        if !self.request.dry_run {
            points::reached("import concluded");
            ledger::put(&self.inner.store, &record, Durability::Now)?;
            points::reached("receipt stored");
            if done {
                ledger::put_source(&self.inner.store, identity, &record, Durability::Now)?;
                points::reached("source remembered");
                applied.map_or(Ok(()), |applied| self.remember(*applied, &record))?;
            }
        }
        Ok(faults)
    }

    /// Puts a document that was merged into the ledger of exports, so that others may build on it.
    fn remember(&self, applied: Applied, record: &ImportRecord) -> Result<(), IngestError> {
        let store = &self.inner.store;
        let now = self.inner.clock.now_micros();
        let nobodys = self.request.apply.as_ref().is_some_and(|apply| apply.owner.is_none());
        if nobodys && exported::owner(store)?.is_none() {
            exported::put_owner(store, &applied.owner, now)?;
        }
        if exported::find(store, &applied.record.export_id)?.is_some() {
            return Ok(());
        }
        let (revision, path, bytes) = (store.revision().get(), record.path.clone(), record.bytes);
        let entry = ExportRecord { at_micros: now, revision, path, bytes, ..applied.record };
        Ok(exported::put(store, &entry)?)
    }

    fn run(
        &self,
        found: &Found,
        (bundle, files): (&Bundle, Bundle),
        writer: &mut Writer<'_>,
        record: &mut ImportRecord,
    ) -> Result<(Tail, Ended), IngestError> {
        let shown = AtomicI64::new(0);
        let progress = |done, total, record: &ImportRecord| self.progress(&shown, done, total, record);
        let (store, dry_run) = (&self.inner.store, self.request.dry_run);
        match &found.reader {
            Reader::Plugin(plugin) => {
                let (limits, cancel) = (&self.inner.plugin_limits, &self.cancel);
                let (format, pace, recall) = (&found.format, self.inner.plugins.pace(), !self.request.again);
                let run = Run { store, plugin, bundle: files, format, limits, cancel, dry_run, pace, recall };
                let (tail, outcome) = run.go(writer, record, &progress)?;
                Ok((tail, outcome.into()))
            }
            Reader::Pam(files) => {
                let (cancel, apply) = (&self.cancel, self.request.apply.as_ref());
                pam::Run { store, bundle, files, cancel, dry_run, apply }.go(writer, record, &progress)
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
        let import = import_of(record);
        let pen = (&self.inner.pen, self.cancel.clone(), self.inner.plugins.pace().clone());
        Writer::new(&self.inner.store, pen, origin, import, self.request.dry_run)
    }
}
