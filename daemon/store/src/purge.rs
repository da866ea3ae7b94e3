//! Takes content out of a store for good: the journal is written anew without it, beside the one that stands, the database is built
//! from that, and then both take the place of the old ones, which are overwritten. What remains is that there was something.
//!
//! Before the folder with the new store has its name it counts for nothing; from then on every open goes on with the replacement.

mod content;
pub(crate) mod ready;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    ops::Range,
    path::Path,
    sync::Arc,
};

pub use content::{empty_conversation, empty_memory, erased};
pub use ready::purge_ready;

use crate::{
    blob::{blob_path, file_name, hex},
    codec::{Malformed, batch, heads::read_part},
    disk::{Disk, OsDisk},
    entry::Entry,
    erase::erase,
    error::{FSYNC, StoreError},
    journal::{
        frame::Kind,
        rewrite::{Content, rewrite},
        scan::{Acknowledged, Visit},
        segments::Segments,
    },
    ledger::{Ledger, LedgerWrite},
    open::claim,
    report::{CheckProgress, Damage},
    store::{OpenOptions, Store},
    swap,
};
use satchel_seal::Seal;

/// Where the store without the content is built.
const BUILT: &str = "purging.new";
/// Its name once it is whole.
const READY: &str = "purging";
/// What takes the old one's place.
const PIECES: [&str; 3] = ["journal", "db", "db.state"];
/// How a message names the bytes of a file that came with it; the hash follows, in hex.
const REFERENCE: &str = "attachments/";
/// Hex digits of a SHA-256.
const DIGITS: usize = 64;

/// Something of the journal that the store keeps and does not read.
#[derive(Clone, Copy, Debug)]
pub enum Text<'a> {
    /// A piece of evidence.
    Evidence(&'a [u8]),
    /// An entry of a ledger.
    Entry {
        /// Which ledger.
        ledger: Ledger,
        /// The key.
        id: &'a str,
        /// The bytes.
        value: &'a [u8],
    },
    /// A page of the issues of an import.
    Issues(&'a [u8]),
    /// The id of a memory of which a version goes. Only shown: what takes its place is known.
    Said(&'a str),
}

/// Knows what is to be erased.
pub trait Eraser {
    /// Whether a version of a memory goes.
    fn memory(&self, id: &str, content_hash: &str) -> bool;

    /// Whether the vectors of a memory go. Asked after all was shown.
    fn vectors(&self, memory: &str) -> bool;

    /// Whether a conversation goes.
    fn conversation(&self, id: &str) -> bool;

    /// Is shown all that [`Eraser::redact`] will be asked about, in order, before the first question.
    fn look(&mut self, text: Text<'_>);

    /// What takes a text's place; none: it stays. An entry of a ledger without a byte is taken away.
    ///
    /// # Errors
    /// [`StoreError::BadValue`] where it does not read; nothing is erased then.
    fn redact(&self, text: Text<'_>) -> Result<Option<Vec<u8>>, StoreError>;

    /// What stands in the place of the reason that a person gave for changing what goes.
    fn reason(&self, reason: &str) -> String;

    /// Attachments of conversations that go, by the hash of their bytes.
    fn attachments(&self) -> &BTreeSet<[u8; 32]>;
}

/// Erases for good what `eraser` says from the store in `dir`, which nobody has open and which was closed in order. What others
/// refer to of the attachments stays; those that went are answered.
///
/// # Errors
/// [`StoreError::Locked`] if a process has the store, [`StoreError::DamagedJournal`] if it is damaged, what [`purge_ready`] refuses,
/// and what the file system refuses. Until the new store is whole the old one stands as it is; after that the next open goes on.
pub fn purge(
    dir: &Path,
    seal: Option<&Seal>,
    eraser: &mut dyn Eraser,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<BTreeSet<[u8; 32]>, StoreError> {
    let _claim = claim(dir)?;
    finish(dir)?;
    let built = dir.join(BUILT);
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let Some(old) = Segments::list(&disk, dir.join("journal"), seal.cloned())? else {
        return Ok(BTreeSet::new());
    };
    ready::ready(dir, &old, eraser.attachments(), disk.as_ref())?;
    disk.create_folders(&built).map_err(StoreError::io("create", &built))?;
    satchel_failpoints::reached("purge begun");
    let bodies = bodies(&old, eraser)?;
    let mut editor = Editor { eraser, bodies, elsewhere: BTreeSet::new() };
    rewrite(&disk, &old, built.join("journal"), seal, Some(&mut |content| editor.edit(content)), progress)?;
    satchel_failpoints::reached("purge written");
    let gone: BTreeSet<[u8; 32]> =
        editor.eraser.attachments().difference(&editor.elsewhere).copied().collect();
    // Attachments that are set aside with the old store are named while both stand.
    let names = gone.iter().map(|sha256| blob_path(dir, &file_name(sha256, seal)));
    list_gone(dir, &built, names)?;
    build(&built, seal, &old)?;
    satchel_failpoints::reached("purge built");
    let ready = dir.join(READY);
    disk.sync_folder(&built).map_err(StoreError::io(FSYNC, &built))?;
    // The last moment at which it can be left as it was.
    ready::replaceable(dir, &old, &gone)?;
    fs::rename(&built, &ready).map_err(StoreError::io("rename", &built))?;
    disk.sync_folder(dir).map_err(StoreError::io(FSYNC, dir))?;
    satchel_failpoints::reached("purge ready");
    finish(dir)?;
    satchel_failpoints::reached("purge done");
    Ok(gone)
}

/// Whether there is a journal in `dir`. While an erasure puts its store in the old one's place, the only one may wait beside it; the
/// next open goes on with that.
#[must_use]
pub fn has_journal(dir: &Path) -> bool {
    dir.join("journal").is_dir() || dir.join(READY).is_dir()
}

/// Goes on with an erasure that was cut off; whoever calls it has the claim. One that was not whole is forgotten.
pub(crate) fn finish(dir: &Path) -> Result<(), StoreError> {
    if dir.join(READY).symlink_metadata().is_ok() {
        swap::replace_some(dir, READY, &PIECES, usize::MAX)?;
    }
    let built = dir.join(BUILT);
    erase(&built).map_err(StoreError::io("remove", &built))
}

/// Fails where an erasure was cut off while its store took the place of the old one: what stands there is neither of the two.
pub(crate) fn unfinished(dir: &Path) -> Result<(), StoreError> {
    let path = dir.join(READY);
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let source = std::io::Error::other("the disk takes nothing, so that it cannot be brought to its end");
    Err(StoreError::Io { action: "finish the erasure in", path, source })
}

/// Builds the database and reads all of it once.
fn build(built: &Path, seal: Option<&Seal>, old: &Segments) -> Result<(), StoreError> {
    let options = OpenOptions { seal: seal.cloned(), ..OpenOptions::default() };
    let store = Store::open(built, options, &mut |_| {})?;
    let report = store.check(true, &mut |_| {})?;
    let problem = "an erasure that does not read back; nothing was changed; the place";
    let differs = || Damage::new(&old.home.folder, 0, 0, problem);
    let wrong = (!report.engine_problems.is_empty()).then(differs);
    if let Some(first) = report.damage.into_iter().next().or(wrong) {
        return Err(StoreError::DamagedJournal { first });
    }
    store.close()
}

fn list_gone(
    dir: &Path,
    built: &Path,
    paths: impl Iterator<Item = std::path::PathBuf>,
) -> Result<(), StoreError> {
    let mut names = String::new();
    for path in paths {
        names.push_str(&path.strip_prefix(dir).unwrap_or(&path).to_string_lossy());
        names.push('\n');
    }
    let path = built.join(swap::GOES);
    let write = || {
        let mut file = fs::File::create_new(&path)?;
        file.write_all(names.as_bytes())?;
        file.sync_all()
    };
    write().map_err(StoreError::io("write", &path))
}

/// Ranges of body frames, by segment and offset.
type Bodies = BTreeMap<(u32, u64), Vec<Range<usize>>>;

/// Reads the journal once: where the bodies lie that go, and what the eraser has to know.
fn bodies(old: &Segments, eraser: &mut dyn Eraser) -> Result<Bodies, StoreError> {
    let mut bodies = Bodies::new();
    let outcome = old.scan(Segments::beginning(), 0, Acknowledged::default(), &mut |visit| {
        let wrong = |error: Malformed| StoreError::DamagedJournal {
            first: visit.damage(&format!("a frame that {error}")),
        };
        if matches!(visit.header.kind, Kind::Batch | Kind::Note) {
            look(visit, eraser, &mut bodies).map_err(wrong)?;
        }
        Ok(())
    })?;
    match outcome.damage.into_iter().next() {
        Some(first) => Err(StoreError::DamagedJournal { first }),
        None => Ok(bodies),
    }
}

fn look(visit: &Visit<'_>, eraser: &mut dyn Eraser, bodies: &mut Bodies) -> Result<(), Malformed> {
    let (_, entries) = batch::decode(&visit.unpack()?)?;
    for entry in &entries {
        match entry {
            Entry::Conversation(conversation) if eraser.conversation(&conversation.summary.id) => {
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
            Entry::Memory(memory) if eraser.memory(&memory.id, &memory.facets.content_hash.to_string()) => {
                eraser.look(Text::Said(&memory.id));
            }
            entry => {
                if let Some(text) = text(entry) {
                    eraser.look(text);
                }
            }
        }
    }
    Ok(())
}

fn text(entry: &Entry) -> Option<Text<'_>> {
    match entry {
        Entry::Evidence(evidence) => Some(Text::Evidence(&evidence.json)),
        Entry::Ledger(LedgerWrite::Entry { ledger, id, value, .. }) => {
            Some(Text::Entry { ledger: *ledger, id, value })
        }
        Entry::Ledger(LedgerWrite::Issues { value, .. }) => Some(Text::Issues(value)),
        _ => None,
    }
}

/// Takes content out of frames on their way.
struct Editor<'a> {
    eraser: &'a mut dyn Eraser,
    bodies: Bodies,
    /// Attachments that something refers to which stays.
    elsewhere: BTreeSet<[u8; 32]>,
}

impl Editor<'_> {
    fn edit(&mut self, content: Content<'_>) -> Result<(), StoreError> {
        match content {
            Content::Bodies { segment, offset, bytes } => {
                for range in self.bodies.remove(&(segment, offset)).into_iter().flatten() {
                    if let Some(body) = bytes.get_mut(range) {
                        body.fill(b' ');
                    }
                }
                self.refers(bytes);
                Ok(())
            }
            Content::Changes { origin, entries } => {
                let mut touched = false;
                for entry in entries {
                    touched |= self.entry(entry)?;
                }
                if touched && origin.import.is_none() {
                    origin.reason = self.eraser.reason(&origin.reason);
                }
                Ok(())
            }
        }
    }

    /// Takes content out of one change; answers whether it held some.
    fn entry(&mut self, entry: &mut Entry) -> Result<bool, StoreError> {
        match entry {
            Entry::Memory(memory)
                if self.eraser.memory(&memory.id, &memory.facets.content_hash.to_string()) =>
            {
                *memory = content::without_memory(memory)?;
            }
            Entry::Conversation(conversation) if self.eraser.conversation(&conversation.summary.id) => {
                *conversation = content::without_conversation(conversation)?;
            }
            Entry::Embedding(embedding) if self.eraser.vectors(&embedding.memory) => {
                *entry = nothing();
            }
            // What an importer noted of a piece of an export may have words of it; the next import reads the piece again.
            Entry::Ledger(LedgerWrite::Piece { value, .. }) => {
                value.clear();
                return Ok(false);
            }
            Entry::Evidence(evidence) => match self.eraser.redact(Text::Evidence(&evidence.json))? {
                Some(json) => evidence.json = json,
                None => return Ok(false),
            },
            Entry::Ledger(LedgerWrite::Entry { ledger, id, value, .. }) => {
                if let Some(instead) = self.eraser.redact(Text::Entry { ledger: *ledger, id, value })? {
                    *value = instead;
                }
                if *ledger == Ledger::Lineage {
                    let bytes = std::mem::take(value);
                    self.refers(&bytes);
                    *value = bytes;
                }
                return Ok(false);
            }
            Entry::Ledger(LedgerWrite::Issues { value, .. }) => {
                if let Some(instead) = self.eraser.redact(Text::Issues(value))? {
                    *value = instead;
                }
                return Ok(false);
            }
            Entry::Memory(_)
            | Entry::Conversation(_)
            | Entry::Relation(_)
            | Entry::Withdraw(_)
            | Entry::Embedding(_) => return Ok(false),
        }
        Ok(true)
    }

    /// Notes which attachments are still referred to.
    fn refers(&mut self, bytes: &[u8]) {
        if self.eraser.attachments().len() == self.elsewhere.len() {
            return;
        }
        let text = String::from_utf8_lossy(bytes);
        for (at, _) in text.match_indices(REFERENCE) {
            let digits = text.get(at + REFERENCE.len()..at + REFERENCE.len() + DIGITS).unwrap_or_default();
            let named = self.eraser.attachments().iter().find(|sha256| hex(*sha256) == digits);
            self.elsewhere.extend(named);
        }
    }
}

/// A change that changes nothing: the others of its commit are named by their number.
fn nothing() -> Entry {
    let (ledger, id) = (Ledger::Request, "erased".to_owned());
    Entry::Ledger(LedgerWrite::Entry { ledger, id, at_micros: 0, value: Vec::new() })
}
