//! Memory stores. A store is read twice, first to judge it as a whole and then to import its entries, so that it is
//! never held in memory.

use std::{
    cell::Cell,
    collections::BTreeSet,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use satchel_bundle::manifest::{MANIFEST, VectorName};
use satchel_merge::evidence::Exported;
use satchel_pam::{
    issue::Issue,
    parse::{self, How, LeftOut, StoreEntry, StoreFrame, StoreScan, Text},
    record::RecordKind,
    store::IndexEntry,
};
use satchel_source::{Bundle, CancelToken};

use super::{
    Reading, judge, refusal,
    rules::{self, Told},
    standing::Right,
    stream::Counted,
};
use crate::{
    exported::{About, ExportRecord},
    ingest::{IngestError, receipt::Standing, run::Applied},
};

/// Maximum number of left-out entries whose issues are suppressed as duplicates; no document reports more issues than
/// that.
pub(super) const MOST_LEFT_OUT: usize = 10_000;

/// A memory store as a whole, without its entries.
pub(super) struct Looked {
    pub(super) frame: StoreFrame,
    /// The other results of the scan; the frame is taken out of it.
    pub(super) scan: StoreScan,
    /// The number of readable entries.
    pub(super) readable: Readable,
    /// JSON paths of the entries that are left out.
    left_out: BTreeSet<String>,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Readable {
    pub(super) memories: u64,
    pub(super) relations: u64,
    pub(super) conversations: u64,
}

/// Scans a whole memory store; the inner error holds the issues if it is no memory store. `None` if the scan was
/// cancelled.
pub(super) fn look(
    text: &dyn Text,
    wanted: &dyn Fn() -> bool,
) -> io::Result<Option<Result<Looked, Vec<Issue>>>> {
    let (mut readable, mut left_out) = (Readable::default(), BTreeSet::new());
    let scan = parse::scan_store(text, How { salvage: true, wanted }, &mut |_, entry| match entry {
        StoreEntry::Memory(_) => readable.memories += 1,
        StoreEntry::Relation(_) => readable.relations += 1,
        StoreEntry::Conversation(_) => readable.conversations += 1,
        StoreEntry::LeftOut(entry) => {
            if left_out.len() < MOST_LEFT_OUT {
                left_out.insert(entry.path());
            }
        }
    })?;
    Ok(scan.map(|mut scan| match scan.frame.take() {
        Some(frame) => Ok(Looked { frame, scan, readable, left_out }),
        None => Err(scan.issues),
    }))
}

impl Reading<'_, '_, '_> {
    /// Imports the memory store. Returns whether its index lists conversations, or why nothing of the bundle is
    /// imported.
    pub(super) fn store(&mut self, name: &str) -> Result<Result<bool, String>, IngestError> {
        let (run, read) = (self.run, Arc::clone(&self.read));
        let looked =
            self.aside(|| look(&Counted::new(run.bundle, name, &read), &|| !run.cancel.cancelled()))?;
        let looked = match looked {
            Ok(Some(Ok(looked))) => looked,
            Ok(Some(Err(issues))) => return Ok(Err(refusal(name, &issues))),
            Ok(None) => return Err(IngestError::Cancelled),
            Err(error) => return Ok(Err(unreadable(name, &error))),
        };
        let right = match self.aside(|| run.right(&looked))? {
            Ok(right) => right,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut forced = right.forced();
        match run.refused(&looked, &right)? {
            rules::Footing::Refused(reason) => return Ok(Err(reason)),
            rules::Footing::LetPass(reason) => forced.push(reason),
            rules::Footing::Fits => {}
        }
        self.take_as(&right);
        self.record.forced = forced;
        self.introduce(name, &looked, &right);
        self.tell(name, &looked.scan.issues, &looked.left_out, looked.scan.broken.is_some());
        self.broken(name, looked.scan.broken.as_ref())?;
        let read = self.records(name)?;
        self.done += self.read.swap(0, Ordering::Relaxed) / 2;
        match read {
            Ok(()) => Ok(Ok(looked.readable.conversations > 0)),
            Err(error) => Ok(Err(unreadable(name, &error))),
        }
    }

    /// Records the header of the store in the receipt and for the ledger, with warnings about its origin and contents.
    fn introduce(&mut self, name: &str, looked: &Looked, right: &Right) {
        if let Some(problem) = right.problem.as_ref().filter(|_| right.standing == Standing::Stranger) {
            let message = format!(
                "taken as the unsigned document of a stranger: {problem}; `satchel verify` says more"
            );
            self.warn(name.to_owned(), message);
        }
        let header = &looked.frame.header;
        self.exported = self.run.exported(header);
        self.tail.told_vectors.exported = self.exported;
        let selection = self.run.selected(header);
        let record = rules::record(looked, right)
            .map(|record| ExportRecord { selection: selection.clone(), ..record });
        self.tail.applied = Some(Box::new(Applied { record, about: About::of(header) }));
        if let Some(selection) = selection {
            let message = format!("this is {}: what it leaves out stays as it is here", selection.words());
            self.warn(name.to_owned(), message);
        }
        match self.run.told(header, right) {
            Ok(told) => self.take_back(name, told),
            Err(problem) => {
                let message = format!("what it lists as taken back is not followed: {problem}");
                self.warn(format!("{}{MANIFEST}", self.run.files.root), message);
            }
        }
        self.record.reason = Some(judge::summary(looked, right));
        for warning in judge::warnings(name, looked) {
            self.record.warn(warning);
        }
    }

    /// Records what was withdrawn at the origin of the export.
    fn take_back(&mut self, name: &str, told: Told) {
        let Told { withdrawn, undone, vectors, at } = told;
        self.tail.withdrawn = withdrawn.into_iter().map(|id| (id, at)).collect();
        let at = self.exported.unwrap_or(Exported { at, revision: 0 });
        // The entry of a vector without a model name matches nothing.
        let named = vectors.into_iter().filter(|vector| !vector.model.is_empty());
        let places = named.map(|VectorName { memory_id, model }| ((memory_id, model), at));
        self.tail.told_vectors.withdrawn = places.collect();
        self.undone = undone.into_iter().map(|id| (name.to_owned(), id)).collect();
    }

    /// Imports memories and relations.
    fn records(&mut self, name: &str) -> Result<io::Result<()>, IngestError> {
        self.entries(name, true, |reading, at, entry| match entry {
            StoreEntry::Memory(memory) => reading.memory(format!("{name}:$.memories[{at}]"), *memory),
            StoreEntry::Relation(relation) => {
                reading.relation(format!("{name}:$.relations[{at}]"), relation);
                Ok(())
            }
            StoreEntry::LeftOut(entry) => reading.left_out(name, entry),
            StoreEntry::Conversation(_) => Ok(()),
        })
    }

    /// Reads the index of conversations.
    pub(super) fn index(
        &mut self,
        name: &str,
        mut take: impl FnMut(&mut Self, usize, IndexEntry) -> Result<(), IngestError>,
    ) -> Result<io::Result<()>, IngestError> {
        self.entries(name, false, |reading, at, entry| match entry {
            StoreEntry::Conversation(entry) => take(reading, at, entry),
            StoreEntry::Memory(_) | StoreEntry::Relation(_) | StoreEntry::LeftOut(_) => Ok(()),
        })
    }

    /// Passes each entry of the store to `take`, with its index in its list; `counted`: the bytes read count as
    /// progress.
    fn entries(
        &mut self,
        name: &str,
        counted: bool,
        mut take: impl FnMut(&mut Self, usize, StoreEntry) -> Result<(), IngestError>,
    ) -> Result<io::Result<()>, IngestError> {
        let (bundle, cancel): (&Bundle, &CancelToken) = (self.run.bundle, self.run.cancel);
        let read = if counted { Arc::clone(&self.read) } else { Arc::new(AtomicU64::new(0)) };
        let scanned = self.stream(
            |push| {
                let wanted = Cell::new(true);
                let how = How { salvage: true, wanted: &|| wanted.get() && !cancel.cancelled() };
                parse::scan_store(&Counted::new(bundle, name, &read), how, &mut |at, entry| {
                    wanted.set(push((at, entry)));
                })
            },
            |(_, entry)| weight(entry),
            |reading, (at, entry)| take(reading, at, entry),
        )?;
        Ok(scanned.map(|_| ()))
    }

    fn left_out(&mut self, name: &str, entry: LeftOut) -> Result<(), IngestError> {
        let locator = format!("{name}:{}", entry.path());
        match entry.list {
            "memories" => return self.skip(RecordKind::Memory, locator, entry.reason),
            // The conversation's file, if there is one, is found and read without the index.
            "conversations_index" => self.warn(locator, format!("the entry is left out: {}", entry.reason)),
            _ => self.warn(locator, format!("the relation is left out: {}", entry.reason)),
        }
        Ok(())
    }
}

/// Returns the approximate memory that an entry takes, in bytes.
fn weight(entry: &StoreEntry) -> usize {
    match entry {
        StoreEntry::Memory(memory) => memory.content.len() + 2048,
        StoreEntry::Relation(_) => 512,
        StoreEntry::Conversation(entry) => 512 + 48 * entry.derived_memories.len(),
        StoreEntry::LeftOut(entry) => 128 + entry.reason.len(),
    }
}

pub(super) fn unreadable(name: &str, error: &io::Error) -> String {
    format!("{name:?} cannot be read: {error}")
}
