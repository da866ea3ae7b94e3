//! Erases content from a store permanently. A journal without the content is written beside the existing one, and a database is
//! built from it. Then both replace the old ones, which are overwritten. What remains is the fact that there was something.
//!
//! Until the folder with the new store has its final name, it is ignored. From then on, every open resumes the replacement.

pub(crate) mod check;
mod content;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    ops::Range,
    path::Path,
    sync::Arc,
};

pub use check::check_purge;
pub use content::{empty_conversation, empty_memory, erased, erased_conversation};

use crate::{
    blob::{blob_path, file_name},
    codec::{Malformed, batch, heads::read_part, hex},
    disk::{Disk, OsDisk},
    entry::JournalEntry,
    error::{FSYNC, StoreError},
    journal::{
        Acknowledged,
        frame::FrameKind,
        rewrite::{FrameContent, rewrite},
        scan::VisitedFrame,
        segments::Segments,
    },
    ledger::{Ledger, LedgerWrite},
    lock::lock_store,
    options::OpenOptions,
    pending_purge::{BUILT, READY, finish},
    report::{CheckProgress, Damage},
    store::Store,
    swap,
};
use satchel_seal::Seal;

/// The prefix by which a message refers to an attached file; the hash follows, in hex.
const ATTACHMENT_PREFIX: &str = "attachments/";
/// Hex digits of a SHA-256.
const HASH_DIGITS: usize = 64;

/// A part of the journal that the store keeps without interpreting it.
#[derive(Clone, Copy, Debug)]
pub enum OpaqueEntry<'a> {
    /// A piece of evidence.
    Evidence {
        /// The key.
        id: [u8; 16],
        /// The bytes.
        json: &'a [u8],
    },
    /// An entry of a ledger.
    Entry {
        /// The ledger.
        ledger: Ledger,
        /// The key.
        id: &'a str,
        /// The bytes.
        value: &'a [u8],
    },
    /// A page of the issues of an import.
    Issues(&'a [u8]),
    /// The id of a memory of which a version is erased. [`Eraser::redact`] is not called for it.
    ErasedMemory(&'a str),
}

/// Decides what is erased.
pub trait Eraser {
    /// Returns whether a version of a memory is erased.
    fn erases_memory(&self, id: &str, content_hash: &str) -> bool;

    /// Returns whether the vectors of a memory are erased. Called after all [`Eraser::visit`] calls.
    fn erases_vectors(&self, memory: &str) -> bool;

    /// Returns whether a conversation is erased.
    fn erases_conversation(&self, id: &str) -> bool;

    /// Receives everything that [`Eraser::redact`] will be asked about, in order, before the first such call.
    fn visit(&mut self, entry: OpaqueEntry<'_>);

    /// Returns the replacement of a text, or `None` if it stays. A ledger entry or a piece of evidence whose replacement is empty is removed.
    ///
    /// # Errors
    /// [`StoreError::BadValue`] if the text cannot be read; nothing is erased then.
    fn redact(&self, entry: OpaqueEntry<'_>) -> Result<Option<Vec<u8>>, StoreError>;

    /// Returns the replacement for the reason that a user gave for a change whose content is erased.
    fn redact_reason(&self, reason: &str) -> String;

    /// Returns the attachments of erased conversations, by the hash of their bytes.
    fn attachments(&self) -> &BTreeSet<[u8; 32]>;
}

/// Permanently erases the content selected by `eraser` from the store in `dir`, which no process may have open and which must
/// have been closed cleanly. Attachments that something else refers to stay. Returns the attachments that were erased.
///
/// # Errors
/// [`StoreError::Locked`] if a process has the store open, [`StoreError::DamagedJournal`] if it is damaged; the errors of
/// [`check_purge`]; any error of the file system. Until the new store is complete, the old one stays unchanged; after that, the
/// next open resumes the replacement.
pub fn purge(
    dir: &Path,
    seal: Option<&Seal>,
    eraser: &mut dyn Eraser,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<BTreeSet<[u8; 32]>, StoreError> {
    let _lock = lock_store(dir)?;
    finish(dir)?;
    let built = dir.join(BUILT);
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let Some(old) = Segments::list(&disk, dir.join("journal"), seal.cloned())? else {
        return Ok(BTreeSet::new());
    };
    check::check(dir, &old, eraser.attachments(), disk.as_ref())?;
    disk.create_folders(&built).map_err(StoreError::io("create", &built))?;
    satchel_failpoints::reached("purge started");
    let bodies = bodies(&old, eraser)?;
    let mut editor = Editor { eraser, bodies, still_referenced: BTreeSet::new() };
    rewrite(&disk, &old, built.join("journal"), seal, Some(&mut |content| editor.edit(content)), progress)?;
    satchel_failpoints::reached("purge written");
    let erased_blobs: BTreeSet<[u8; 32]> =
        editor.eraser.attachments().difference(&editor.still_referenced).copied().collect();
    // The attachments of the old store that will be erased are listed while both stores exist.
    let names = erased_blobs.iter().map(|sha256| blob_path(dir, &file_name(sha256, seal)));
    write_erase_list(dir, &built, names)?;
    build(&built, seal, &old)?;
    satchel_failpoints::reached("purge built");
    let ready = dir.join(READY);
    disk.sync_folder(&built).map_err(StoreError::io(FSYNC, &built))?;
    // This is the last moment at which the old store can be left unchanged.
    check::check_replaceable(dir, &old, &erased_blobs)?;
    fs::rename(&built, &ready).map_err(StoreError::io("rename", &built))?;
    disk.sync_folder(dir).map_err(StoreError::io(FSYNC, dir))?;
    satchel_failpoints::reached("purge ready");
    finish(dir)?;
    satchel_failpoints::reached("purge done");
    Ok(erased_blobs)
}

/// Builds the database and reads all of it once.
fn build(built: &Path, seal: Option<&Seal>, old: &Segments) -> Result<(), StoreError> {
    let options = OpenOptions { seal: seal.cloned(), ..OpenOptions::default() };
    let store = Store::open(built, options, &mut |_| {})?;
    let report = store.check(true, &mut |_| {})?;
    let problem = "an erasure that does not read back; nothing was changed; the place";
    let differs = || Damage::new(&old.context.folder, 0, 0, problem);
    let wrong = (!report.engine_problems.is_empty()).then(differs);
    if let Some(first) = report.damage.into_iter().next().or(wrong) {
        return Err(StoreError::DamagedJournal { first });
    }
    store.close()
}

fn write_erase_list(
    dir: &Path,
    built: &Path,
    paths: impl Iterator<Item = std::path::PathBuf>,
) -> Result<(), StoreError> {
    let mut names = String::new();
    for path in paths {
        names.push_str(&path.strip_prefix(dir).unwrap_or(&path).to_string_lossy());
        names.push('\n');
    }
    let path = built.join(swap::ERASE_LIST);
    let write = || {
        let mut file = fs::File::create_new(&path)?;
        file.write_all(names.as_bytes())?;
        file.sync_all()
    };
    write().map_err(StoreError::io("write", &path))
}

/// Ranges within body frames, by segment and offset.
type BodyRanges = BTreeMap<(u32, u64), Vec<Range<usize>>>;

/// Reads the journal once: collects the places of the bodies to erase, and shows the eraser what it needs to know.
fn bodies(old: &Segments, eraser: &mut dyn Eraser) -> Result<BodyRanges, StoreError> {
    let mut bodies = BodyRanges::new();
    let outcome = old.scan(Segments::beginning(), 0, Acknowledged::default(), &mut |visit| {
        let wrong = |error: Malformed| StoreError::DamagedJournal {
            first: visit.damage(&format!("a frame that {error}")),
        };
        if matches!(visit.header.kind, FrameKind::Batch | FrameKind::Note) {
            visit_entries(visit, eraser, &mut bodies).map_err(wrong)?;
        }
        Ok(())
    })?;
    StoreError::check(outcome.damage)?;
    Ok(bodies)
}

fn visit_entries(
    visit: &VisitedFrame<'_>,
    eraser: &mut dyn Eraser,
    bodies: &mut BodyRanges,
) -> Result<(), Malformed> {
    let (_, entries) = batch::decode(&visit.unpack()?)?;
    for entry in &entries {
        match entry {
            JournalEntry::Conversation(conversation)
                if eraser.erases_conversation(&conversation.summary.id) =>
            {
                let (mut heads, mut places) = (Vec::new(), Vec::new());
                for part in &conversation.parts {
                    read_part(part, &mut heads, &mut places)?;
                }
                for place in places {
                    let (start, length) = (place.start as usize, place.length as usize);
                    let frame = bodies.entry((place.segment, place.offset)).or_default();
                    frame.push(start..start.saturating_add(length));
                }
            }
            JournalEntry::Memory(memory)
                if eraser.erases_memory(&memory.id, &memory.facets.content_hash.to_string()) =>
            {
                eraser.visit(OpaqueEntry::ErasedMemory(&memory.id));
            }
            entry => {
                if let Some(entry) = opaque_entry(entry) {
                    eraser.visit(entry);
                }
            }
        }
    }
    Ok(())
}

fn opaque_entry(entry: &JournalEntry) -> Option<OpaqueEntry<'_>> {
    match entry {
        JournalEntry::Evidence(evidence) if !evidence.json.is_empty() => {
            Some(OpaqueEntry::Evidence { id: evidence.id, json: &evidence.json })
        }
        JournalEntry::Ledger(LedgerWrite::Entry { ledger, id, value, .. }) => {
            Some(OpaqueEntry::Entry { ledger: *ledger, id, value })
        }
        JournalEntry::Ledger(LedgerWrite::Issues { value, .. }) => Some(OpaqueEntry::Issues(value)),
        _ => None,
    }
}

/// Removes content from frames during the rewrite.
struct Editor<'a> {
    eraser: &'a mut dyn Eraser,
    bodies: BodyRanges,
    /// Attachments that content which is not erased refers to.
    still_referenced: BTreeSet<[u8; 32]>,
}

impl Editor<'_> {
    fn edit(&mut self, content: FrameContent<'_>) -> Result<(), StoreError> {
        match content {
            FrameContent::Bodies { segment, offset, bytes } => {
                for range in self.bodies.remove(&(segment, offset)).into_iter().flatten() {
                    if let Some(body) = bytes.get_mut(range) {
                        body.fill(b' ');
                    }
                }
                self.keep_referenced(bytes);
                Ok(())
            }
            FrameContent::Changes { origin, entries } => {
                let mut touched = false;
                for entry in entries {
                    touched |= self.entry(entry)?;
                }
                if touched && origin.import.is_none() {
                    origin.reason = self.eraser.redact_reason(&origin.reason);
                }
                Ok(())
            }
        }
    }

    /// Removes content from one change. Returns whether the change contained erased content.
    fn entry(&mut self, entry: &mut JournalEntry) -> Result<bool, StoreError> {
        match entry {
            JournalEntry::Memory(memory)
                if self.eraser.erases_memory(&memory.id, &memory.facets.content_hash.to_string()) =>
            {
                *memory = content::without_memory(memory)?;
            }
            JournalEntry::Conversation(conversation)
                if self.eraser.erases_conversation(&conversation.summary.id) =>
            {
                *conversation = content::without_conversation(conversation)?;
            }
            JournalEntry::Embedding(embedding) if self.eraser.erases_vectors(&embedding.memory) => {
                *entry = empty_change();
            }
            // An importer's notes on a piece of an export may quote it. The next import reads the piece again.
            JournalEntry::Ledger(LedgerWrite::Piece { value, .. }) => {
                value.clear();
                return Ok(false);
            }
            JournalEntry::Evidence(evidence) if evidence.json.is_empty() => return Ok(false),
            JournalEntry::Evidence(evidence) => {
                match self.eraser.redact(OpaqueEntry::Evidence { id: evidence.id, json: &evidence.json })? {
                    Some(json) if json.is_empty() => *entry = empty_change(),
                    Some(json) => evidence.json = json,
                    None => return Ok(false),
                }
            }
            JournalEntry::Ledger(LedgerWrite::Entry { ledger, id, value, .. }) => {
                if let Some(instead) =
                    self.eraser.redact(OpaqueEntry::Entry { ledger: *ledger, id, value })?
                {
                    *value = instead;
                }
                if *ledger == Ledger::Provenance {
                    let bytes = std::mem::take(value);
                    self.keep_referenced(&bytes);
                    *value = bytes;
                }
                return Ok(false);
            }
            JournalEntry::Ledger(LedgerWrite::Issues { value, .. }) => {
                if let Some(instead) = self.eraser.redact(OpaqueEntry::Issues(value))? {
                    *value = instead;
                }
                return Ok(false);
            }
            JournalEntry::Memory(_)
            | JournalEntry::Conversation(_)
            | JournalEntry::Relation(_)
            | JournalEntry::Withdraw(_)
            | JournalEntry::Embedding(_) => return Ok(false),
        }
        Ok(true)
    }

    /// Records which attachments are still referred to.
    fn keep_referenced(&mut self, bytes: &[u8]) {
        if self.eraser.attachments().len() == self.still_referenced.len() {
            return;
        }
        let text = String::from_utf8_lossy(bytes);
        for (at, _) in text.match_indices(ATTACHMENT_PREFIX) {
            let digits = text
                .get(at + ATTACHMENT_PREFIX.len()..at + ATTACHMENT_PREFIX.len() + HASH_DIGITS)
                .unwrap_or_default();
            let named = self.eraser.attachments().iter().find(|sha256| hex(*sha256) == digits);
            self.still_referenced.extend(named);
        }
    }
}

/// Returns a change without effect, because the other changes of its commit are identified by their number.
fn empty_change() -> JournalEntry {
    let (ledger, id) = (Ledger::Request, "erased".to_owned());
    JournalEntry::Ledger(LedgerWrite::Entry { ledger, id, at_micros: 0, value: Vec::new() })
}
