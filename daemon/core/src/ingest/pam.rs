//! Reads PAM documents of any producer into the store: ids are preserved, and invalid records are left out and
//! reported.
//!
//! **Bounds.** Memory stores and embeddings are read entry by entry. A conversation, of at most
//! [`LONGEST_CONVERSATION`] bytes, is held in memory as a whole. Conversations are committed in batches as they are
//! read. Memories are held back until the end, packed and mostly on disk, as the result depends on all of them.
//! Embeddings follow in batches of their own.

mod admission;
mod claimed_ids;
mod conversation;
mod index;
mod integrity;
mod memories;
mod origin;
mod scan;
mod store;
mod stream;
mod vectors;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use satchel_host::RunSummary;
use satchel_pam::{
    issue::Issue,
    json::JsonError,
    record::{RecordKind, Skip, Warning},
    sign::PublicKey,
    time::Timestamp,
};
use satchel_source::{
    Bundle, CancelToken, FileSet as _,
    pam::{MAX_CONVERSATION_BYTES, PamFiles, folder_of},
};
use satchel_store::Store;

pub(super) use self::{origin::KnownKeys, vectors::EmbeddingsState};
use satchel_merge::evidence::ExportTime;

use self::{claimed_ids::ClaimedIds, origin::DocumentOrigin};
use super::{
    error::IngestError,
    outcome::ReadOutcome,
    receipt::ImportRecord,
    records::{DeferredRecords, ImportItem},
    request::Apply,
    write::Writer,
};
use crate::provenance::PurgedData;

/// The format, as a receipt names it.
pub(super) const FORMAT: &str = "pam-importer/1.0";
/// The reader, as `name/x.y.z`.
pub(super) const SOFTWARE: &str = concat!("satchel-pam/", env!("CARGO_PKG_VERSION"));

/// Called with the bytes done, the total bytes, and the current receipt.
pub(super) type Progress<'a> = dyn Fn(u64, u64, &ImportRecord) + 'a;

/// The documents to read, and the options.
pub(super) struct PamRun<'a> {
    pub(super) store: &'a Store,
    /// The whole source, as attachments may be next to the documents.
    pub(super) bundle: &'a Bundle,
    pub(super) files: &'a PamFiles,
    pub(super) cancel: &'a CancelToken,
    pub(super) dry_run: bool,
    /// The checks that the user waives when they apply the documents; `None` if they are only imported, whoever owns
    /// them.
    pub(super) apply: Option<&'a Apply>,
    /// A watched folder submitted the documents; such an import never merges.
    pub(super) watched: bool,
    /// The keys whose documents are merged.
    pub(super) keys: KnownKeys,
}

impl PamRun<'_> {
    /// Reads everything except embeddings, which [`Run::vectors`] reads once the other records are stored. `record` is
    /// kept up to date.
    ///
    /// # Errors
    /// When the store refuses a write. How reading the documents ended is the second part of the result.
    pub(super) fn go(
        &self,
        writer: &mut Writer<'_>,
        record: &mut ImportRecord,
        progress: &Progress<'_>,
    ) -> Result<(DeferredRecords, ReadOutcome, EmbeddingsState), IngestError> {
        let mut reading = DocumentImport::new(self, writer, record, progress, EmbeddingsState::default())?;
        let ended = reading.all();
        let DocumentImport { deferred, taken, exported, done, .. } = reading;
        // Only embeddings refer to these records again, and deriving memories needs the space.
        let taken = if self.files.embeddings.is_empty() { ClaimedIds::default() } else { taken };
        let later = EmbeddingsState { taken, exported, untrusted: deferred.untrusted.clone(), done };
        if let Ok(_) | Err(IngestError::Cancelled) = &ended {
            // Records that were counted are committed, even if the import was cancelled.
            writer.flush(record)?;
        }
        Ok((deferred, ended?, later))
    }
}

/// A run in progress.
struct DocumentImport<'r, 'a, 'w> {
    /// Erased records that must not be stored again.
    purged: PurgedData,
    run: &'r PamRun<'r>,
    writer: &'a mut Writer<'w>,
    record: &'a mut ImportRecord,
    progress: &'a Progress<'a>,
    deferred: DeferredRecords,
    /// Bytes of the documents that were read to their end.
    done: u64,
    /// Bytes read of the current document.
    read: Arc<AtomicU64>,
    taken: ClaimedIds,
    /// Ids of the conversations that were read.
    conversations: BTreeSet<String>,
    /// Files from which a conversation was read.
    given: BTreeSet<String>,
    /// For each conversation that memories refer to, the creation time of the earliest of these memories.
    named: BTreeMap<String, Timestamp>,
    /// The export date of the current document.
    exported: Option<ExportTime>,
    /// Conversations that were undone at the origin of the export, with the name of the document that says so.
    undone: Vec<(String, String)>,
}

impl<'r, 'a, 'w> DocumentImport<'r, 'a, 'w> {
    /// Starts a run, or continues after `before`.
    fn new(
        run: &'r PamRun<'r>,
        writer: &'a mut Writer<'w>,
        record: &'a mut ImportRecord,
        progress: &'a Progress<'a>,
        before: EmbeddingsState,
    ) -> Result<Self, IngestError> {
        let EmbeddingsState { taken, exported, untrusted, done } = before;
        Ok(Self {
            purged: PurgedData::load(run.store)?,
            run,
            writer,
            record,
            progress,
            deferred: DeferredRecords { untrusted, ..DeferredRecords::default() },
            done,
            read: Arc::default(),
            taken,
            conversations: BTreeSet::new(),
            given: BTreeSet::new(),
            named: BTreeMap::new(),
            exported,
            undone: Vec::new(),
        })
    }
}

impl DocumentImport<'_, '_, '_> {
    fn all(&mut self) -> Result<ReadOutcome, IngestError> {
        let files = self.run.files;
        let mut lists = false;
        if files.store.is_none() {
            match self.run.wanted_signer(DocumentOrigin::of_nobody(self.run.apply)) {
                Ok(right) => self.take_as(&right),
                Err(reason) => return Ok(ReadOutcome::Failed(reason)),
            }
        }
        if let Some(name) = &files.store {
            match self.store(name)? {
                Ok(listed) => lists = listed,
                Err(reason) => return Ok(ReadOutcome::Failed(reason)),
            }
        }
        for name in &files.conversations {
            if self.run.cancel.cancelled() {
                return Ok(ReadOutcome::Cancelled);
            }
            self.conversation(name)?;
            self.show_progress();
        }
        if lists {
            self.listed()?;
        }
        self.warn_of_undone()?;
        let ended = if self.run.cancel.cancelled() {
            ReadOutcome::Cancelled
        } else {
            ReadOutcome::Done(RunSummary::default())
        };
        Ok(ended)
    }

    /// Records the standing under which the documents are read.
    fn take_as(&mut self, right: &DocumentOrigin) {
        self.deferred.untrusted = right.untrusted_signer();
        self.record.standing = Some(right.standing);
        self.record.signer = right.signer.as_ref().map(PublicKey::multibase);
        self.record.partly_signed = right.signer.is_some() && right.open;
    }

    /// Warns about conversations that were undone at the origin and are visible here. They stay: what is shown follows
    /// from what imports brought, and a document cannot withdraw what no import brought. Conversations whose messages
    /// the documents have in another conversation are part of that one by now, so they cause no warning.
    fn warn_of_undone(&mut self) -> Result<(), IngestError> {
        if self.undone.is_empty() {
            return Ok(());
        }
        self.writer.flush(self.record)?;
        for (name, id) in std::mem::take(&mut self.undone) {
            if self.run.store.conversation(&id, None)?.is_some_and(|stored| !stored.withdrawn) {
                let message = "it was taken back where the export was made, and stays here; `satchel imports undo ID` of what brought it takes it back here too".to_owned();
                self.warn(format!("{name}: conversation {id:?}"), message);
            }
        }
        Ok(())
    }

    /// Reports the progress of the import.
    fn show_progress(&self) {
        // A memory store is read twice.
        let done = self.done + self.read.load(Ordering::Relaxed) / 2;
        (self.progress)(done, self.record.bytes, self.record);
    }

    fn skip(&mut self, kind: RecordKind, locator: String, reason: String) -> Result<(), IngestError> {
        self.writer.write(ImportItem::Skip(Skip { kind, locator, reason }), self.record)
    }

    fn warn(&mut self, locator: String, message: String) {
        self.record.warn(Warning { locator, message });
    }

    /// Adds a warning for each issue of a text, except for the entries at the paths `left_out`, which are reported as
    /// skips. `broken`: the text is truncated, which is reported separately.
    fn tell(&mut self, name: &str, issues: &[Issue], left_out: &BTreeSet<String>, broken: bool) {
        for issue in issues {
            let end = issue.path.find(']').map_or(0, |end| end + 1);
            let reported = left_out.contains(&issue.path[..end]) || broken && issue.path == "$";
            if !reported {
                self.warn(format!("{name}:{}", issue.path), issue.message.clone());
            }
        }
    }

    /// Reports where a text is truncated.
    fn broken(&mut self, name: &str, problem: Option<&JsonError>) -> Result<(), IngestError> {
        let Some(problem) = problem else { return Ok(()) };
        let reason = format!("{}; what stands whole before it is imported", problem.problem);
        self.skip(RecordKind::File, format!("{name}:{}", problem.offset), reason)
    }
}

/// Returns the reason why a document cannot be read at all.
fn refusal(name: &str, issues: &[Issue]) -> String {
    const LISTED: usize = 3;
    let listed: Vec<String> =
        issues.iter().take(LISTED).map(|issue| format!("{} {}", issue.path, issue.message)).collect();
    format!("{name:?} cannot be read as a PAM document: {}", listed.join("; "))
}

/// Resolves a file reference of a document, relative to the bundle or to the document itself.
fn referred<'b>(run: &'b PamRun<'_>, document: &str, reference: &str) -> Option<&'b str> {
    let find = |name: String| {
        let entries = run.bundle.list();
        let at = entries.binary_search_by(|entry| entry.path.as_str().cmp(&name)).ok()?;
        Some(entries[at].path.as_str())
    };
    find(format!("{}{reference}", run.files.root))
        .or_else(|| find(format!("{}{reference}", folder_of(document))))
}
