//! Reads PAM documents of any producer into the store: ids stay, records that are broken are left out and named.
//!
//! **Bounds.** One document is in memory at a time, at most [`LONGEST`] bytes of it ([`LONGEST_CONVERSATION`] of a
//! conversation), and its records beside it. Conversations are committed in batches as they come; memories, relations and
//! vectors wait for the end, as they do for every import, since what is shown follows from all of them.

mod conversation;
mod index;
mod judge;
mod memories;
mod rules;
mod standing;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read as _,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
};

use satchel_host::{CancelToken, Files as _, Summary};
use satchel_pam::{
    hash::ContentHash,
    issue::Issue,
    parse::{self, LeftOut, Remains, StoreReading},
    record::{RecordKind, Skip, Warning},
    sign::PublicKey,
    store::IndexEntry,
    time::Timestamp,
};
use satchel_store::Store;

pub(super) use self::standing::KnownKeys;
use self::{rules::Told, standing::Right};
use super::{
    Apply, IngestError,
    conclude::Ended,
    receipt::{ImportRecord, Standing},
    run::{Applied, IDLE, Normalised, Tail},
    write::Writer,
};
use crate::{
    exported::{About, ExportRecord},
    intake::{
        Bundle,
        pam::{LONGEST, LONGEST_CONVERSATION, PamFiles, folder_of},
    },
    lineage::Purged,
    manifest::VectorName,
    plan::evidence::Exported,
};

/// What stands for a platform, where people choose by it.
pub(super) const PLATFORM: &str = "pam";
/// The format, as a receipt names it.
pub(super) const FORMAT: &str = "pam-importer/1.0";
/// The reader, `name/x.y.z`.
pub(super) const SOFTWARE: &str = concat!("satchel-pam/", env!("CARGO_PKG_VERSION"));

/// Hears of bytes done, bytes in all, and the receipt as it stands.
pub(super) type Progress<'a> = dyn Fn(u64, u64, &ImportRecord) + 'a;

/// What is read, and how.
pub(super) struct Run<'a> {
    pub(super) store: &'a Store,
    /// The whole source: attachments may lie beside the documents.
    pub(super) bundle: &'a Bundle,
    pub(super) files: &'a PamFiles,
    pub(super) cancel: &'a CancelToken,
    pub(super) dry_run: bool,
    /// What a person lets pass who applies it; none: it is imported, whosever it is.
    pub(super) apply: Option<&'a Apply>,
    /// A watched folder brought it, which never merges anything.
    pub(super) watched: bool,
    /// Whose documents are merged.
    pub(super) keys: KnownKeys,
}

impl Run<'_> {
    /// Reads it all; `record` is kept up to date.
    ///
    /// # Errors
    /// When the store refuses a write; how the documents fared is the second part of the answer.
    pub(super) fn go(
        self,
        writer: &mut Writer<'_>,
        record: &mut ImportRecord,
        progress: &Progress<'_>,
    ) -> Result<(Tail, Ended), IngestError> {
        let mut reading = Reading {
            purged: Purged::of(self.store)?,
            run: &self,
            writer,
            record,
            progress,
            tail: Tail::default(),
            done: 0,
            ids: BTreeMap::new(),
            hashes: BTreeMap::new(),
            conversations: BTreeSet::new(),
            given: BTreeSet::new(),
            named: BTreeMap::new(),
            exported: None,
            undone: Vec::new(),
        };
        let ended = reading.all();
        let tail = reading.tail;
        if let Ok(_) | Err(IngestError::Cancelled) = &ended {
            // What was counted is stored, also of what was cancelled.
            writer.flush(record)?;
        }
        Ok((tail, ended?))
    }
}

/// A run on its way.
struct Reading<'r, 'a, 'w> {
    /// What must not come again.
    purged: Purged,
    run: &'r Run<'r>,
    writer: &'a mut Writer<'w>,
    record: &'a mut ImportRecord,
    progress: &'a Progress<'a>,
    tail: Tail,
    /// Bytes read.
    done: u64,
    /// The ids of this run by kind and key, so that none comes twice and no two share a key.
    ids: BTreeMap<(&'static str, [u8; 16]), String>,
    /// What the memory of each id says.
    hashes: BTreeMap<String, ContentHash>,
    /// Ids of the conversations that were read.
    conversations: BTreeSet<String>,
    /// Files that gave a conversation.
    given: BTreeSet<String>,
    /// By conversation that memories of the documents name: when the first of them was made.
    named: BTreeMap<String, Timestamp>,
    /// When the document that is read was exported.
    exported: Option<Exported>,
    /// Conversations that were taken back where the export was made, by the document that says so.
    undone: Vec<(String, String)>,
}

impl Reading<'_, '_, '_> {
    fn all(&mut self) -> Result<Ended, IngestError> {
        let files = self.run.files;
        let mut index = Vec::new();
        if files.store.is_none() {
            self.take_as(&Right::of_nobody(self.run.apply));
        }
        if let Some(name) = &files.store {
            match self.store(name)? {
                Ok(entries) => index = entries,
                Err(reason) => return Ok(Ended::Failed(reason)),
            }
        }
        for name in &files.conversations {
            if self.run.cancel.cancelled() {
                return Ok(Ended::Cancelled);
            }
            self.conversation(name)?;
            (self.progress)(self.done, self.record.bytes, self.record);
        }
        self.listed(index)?;
        self.kept()?;
        for name in &files.embeddings {
            self.embeddings(name)?;
        }
        let ended =
            if self.run.cancel.cancelled() { Ended::Cancelled } else { Ended::Done(Summary::default()) };
        Ok(ended)
    }

    /// Reads the memory store: its index of conversations, or why nothing of the bundle is taken.
    fn store(&mut self, name: &str) -> Result<Result<Vec<(usize, IndexEntry)>, String>, IngestError> {
        let bytes = match self.read(name, LONGEST)? {
            Ok(bytes) => bytes,
            Err(reason) => return Ok(Err(reason)),
        };
        let run = self.run;
        let right = match self.aside(|| run.right(&bytes))? {
            Ok(right) => right,
            Err(reason) => return Ok(Err(reason)),
        };
        let cancel = self.run.cancel;
        let read = self.aside(|| parse::salvage_store_while(&bytes, &|| !cancel.cancelled()))?;
        let (reading, remains) = read.ok_or(IngestError::Cancelled)?;
        let Some(document) = &reading.document else { return Ok(Err(refusal(name, &reading.issues))) };
        let mut forced = right.forced();
        match self.run.refused(document, (&reading, &remains), &right)? {
            rules::Footing::Refused(reason) => return Ok(Err(reason)),
            rules::Footing::LetPass(reason) => forced.push(reason),
            rules::Footing::Fits => {}
        }
        self.take_as(&right);
        self.record.forced = forced;
        if let Some(problem) = right.problem.as_ref().filter(|_| right.standing == Standing::Stranger) {
            let message = format!(
                "taken as the unsigned document of a stranger: {problem}; `satchel verify` says more"
            );
            self.warn(name.to_owned(), message);
        }
        self.exported = self.run.exported(document);
        self.tail.told_vectors.exported = self.exported;
        let selection = self.run.selected(document);
        let record = rules::record(document, &right)
            .map(|record| ExportRecord { selection: selection.clone(), ..record });
        self.tail.applied = Some(Box::new(Applied { record, about: About::of(&document.header) }));
        if let Some(selection) = selection {
            let message = format!("this is {}: what it leaves out stays as it is here", selection.words());
            self.warn(name.to_owned(), message);
        }
        match self.run.told(document, &right) {
            Ok(told) => self.take_back(name, told),
            Err(problem) => {
                let message = format!("what it lists as taken back is not followed: {problem}");
                self.warn(format!("{}{}", self.run.files.root, crate::manifest::MANIFEST), message);
            }
        }
        self.record.reason = Some(judge::summary(&reading, &remains, &right));
        for warning in judge::warnings(name, &reading, &remains) {
            self.record.warn(warning);
        }
        let StoreReading { document, issues, .. } = reading;
        drop(bytes);
        self.tell(name, &issues, &remains);
        self.broken(name, &remains)?;
        match document {
            Some(document) => self.memories(name, document, &remains).map(Ok),
            None => Ok(Ok(Vec::new())),
        }
    }

    /// Notes by what right the documents are taken.
    fn take_as(&mut self, right: &Right) {
        self.tail.stranger = right.stranger();
        self.record.standing = Some(right.standing);
        self.record.signer = right.signer.as_ref().map(PublicKey::multibase);
    }

    /// Follows what was taken back where the export was made.
    fn take_back(&mut self, name: &str, told: Told) {
        let Told { withdrawn, undone, vectors, at } = told;
        self.tail.withdrawn = withdrawn.into_iter().map(|id| (id, at)).collect();
        let at = self.exported.unwrap_or(Exported { at, revision: 0 });
        // Without a model's name it would name nothing.
        let named = vectors.into_iter().filter(|vector| !vector.model.is_empty());
        let places = named.map(|VectorName { memory_id, model }| ((memory_id, model), at));
        self.tail.told_vectors.withdrawn = places.collect();
        self.undone = undone.into_iter().map(|id| (name.to_owned(), id)).collect();
    }

    /// Tells of the conversations that were taken back there and are shown here. They stay: what is shown follows from all that
    /// imports said, and a document takes back what no import said. Those whose messages the documents have in another conversation
    /// have become part of that by now.
    fn kept(&mut self) -> Result<(), IngestError> {
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

    /// The bytes of a document; why not, for people.
    fn read(&mut self, name: &str, limit: u64) -> Result<Result<Vec<u8>, String>, IngestError> {
        let bundle = self.run.bundle;
        let read = self.aside(move || bytes_of(bundle, name, limit))?;
        self.done += read.as_ref().map_or(0, |bytes| bytes.len() as u64);
        Ok(read)
    }

    /// What `work` gives, which reads from the source or looks at much of it. Meanwhile it holds no other import, be it that a disk does
    /// not answer or that there is much to read. What a cancel cut off is nobody's fault: it is neither a skip nor a failure.
    fn aside<T: Send>(&mut self, work: impl FnOnce() -> T + Send) -> Result<T, IngestError> {
        let given = thread::scope(|scope| {
            let (sender, receiver) = mpsc::sync_channel(1);
            // Nobody listens only if this import has failed meanwhile.
            scope.spawn(move || drop(sender.send(work())));
            loop {
                match receiver.recv_timeout(IDLE) {
                    Ok(given) => break Ok(given),
                    Err(RecvTimeoutError::Timeout) => self.writer.let_others(self.record)?,
                    Err(RecvTimeoutError::Disconnected) => {
                        break Err(IngestError::Unencodable { what: "what a reader read" });
                    }
                }
            }
        })?;
        self.writer.wanted()?;
        Ok(given)
    }

    /// Takes an id for a record of this run; why not, if it has been taken.
    fn claim(&mut self, kind: &'static str, id: &str) -> Result<(), String> {
        if id.is_empty() {
            return Err("its id is empty".to_owned());
        }
        match self.ids.insert((kind, satchel_store::key_of(id)), id.to_owned()) {
            None => Ok(()),
            Some(other) => {
                let same = other == id;
                self.ids.insert((kind, satchel_store::key_of(id)), other);
                let what = if same { "its id" } else { "an id that is stored under the same key" };
                Err(format!("another {kind} of the documents has {what}; the first is kept"))
            }
        }
    }

    fn skip(&mut self, kind: RecordKind, locator: String, reason: String) -> Result<(), IngestError> {
        self.writer.take(Normalised::Skip(Skip { kind, locator, reason }), self.record)
    }

    fn warn(&mut self, locator: String, message: String) {
        self.record.warn(Warning { locator, message });
    }

    /// Tells of everything that is wrong with a text, but for the entries that are left out, whose skips say it.
    fn tell(&mut self, name: &str, issues: &[Issue], remains: &Remains) {
        let left_out: BTreeSet<String> = remains.left_out.iter().map(LeftOut::path).collect();
        for issue in issues {
            let end = issue.path.find(']').map_or(0, |end| end + 1);
            if !left_out.contains(&issue.path[..end]) && (remains.broken.is_none() || issue.path != "$") {
                self.warn(format!("{name}:{}", issue.path), issue.message.clone());
            }
        }
    }

    /// Tells where a text breaks off.
    fn broken(&mut self, name: &str, remains: &Remains) -> Result<(), IngestError> {
        let Some(problem) = &remains.broken else { return Ok(()) };
        let reason = format!("{}; what stands whole before it is imported", problem.problem);
        self.skip(RecordKind::File, format!("{name}:{}", problem.offset), reason)
    }
}

/// Why a document cannot be read at all.
fn refusal(name: &str, issues: &[Issue]) -> String {
    const SAID: usize = 3;
    let said: Vec<String> =
        issues.iter().take(SAID).map(|issue| format!("{} {}", issue.path, issue.message)).collect();
    format!("{name:?} cannot be read as a PAM document: {}", said.join("; "))
}

/// The file that a reference of a document means: relative to the bundle, or to the document itself.
fn referred<'b>(run: &'b Run<'_>, document: &str, reference: &str) -> Option<&'b str> {
    let find = |name: String| {
        let entries = run.bundle.list();
        let at = entries.binary_search_by(|entry| entry.path.as_str().cmp(&name)).ok()?;
        Some(entries[at].path.as_str())
    };
    find(format!("{}{reference}", run.files.root))
        .or_else(|| find(format!("{}{reference}", folder_of(document))))
}

/// The bytes of a document, at most `limit`.
fn bytes_of(bundle: &Bundle, name: &str, limit: u64) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("{name:?} cannot be read: {error}");
    let mut bytes = Vec::new();
    let reader = bundle.open(name, 0).map_err(failed)?;
    reader.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(format!("{name:?} is longer than the {limit} bytes that are held in memory"));
    }
    Ok(bytes)
}
