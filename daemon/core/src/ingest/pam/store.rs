//! Memory stores. A store is read twice, first to judge it as a whole and then to import its entries, so that it is
//! never held in memory.

use std::{
    cell::Cell,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use satchel_bundle::manifest::{MANIFEST, VectorName};
use satchel_merge::evidence::ExportTime;
use satchel_pam::{
    parse::{self, ScanOptions, StoreEntry, UnreadableEntry},
    record::RecordKind,
    store::IndexEntry,
};
use satchel_source::{Bundle, CancelToken};

use super::{
    DocumentImport,
    admission::{self, Withdrawals},
    integrity,
    origin::DocumentOrigin,
    refusal,
    scan::{ScannedStore, scan_store, unreadable},
    stream::Counted,
};
use crate::{
    export_ledger::{DocumentInfo, ExportRecord},
    ingest::{error::IngestError, receipt::DocumentStanding, records::ReadDocument},
};

impl DocumentImport<'_, '_, '_> {
    /// Imports the memory store. Returns whether its index lists conversations, or why nothing of the bundle is
    /// imported.
    pub(super) fn store(&mut self, name: &str) -> Result<Result<bool, String>, IngestError> {
        let (run, read) = (self.run, Arc::clone(&self.read));
        let looked =
            self.aside(|| scan_store(&Counted::new(run.bundle, name, &read), &|| !run.cancel.cancelled()))?;
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
            admission::Admission::Refused(reason) => return Ok(Err(reason)),
            admission::Admission::LetPass(reason) => forced.push(reason),
            admission::Admission::Fits => {}
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
    fn introduce(&mut self, name: &str, looked: &ScannedStore, right: &DocumentOrigin) {
        if let Some(problem) =
            right.problem.as_ref().filter(|_| right.standing == DocumentStanding::Untrusted)
        {
            let message = format!(
                "taken as the unsigned document of a stranger: {problem}; `satchel verify` says more"
            );
            self.warn(name.to_owned(), message);
        }
        let header = &looked.root.header;
        self.exported = self.run.exported(header);
        self.deferred.vector_statements.exported = self.exported;
        let selection = self.run.selected(header);
        let record = admission::record(looked, right)
            .map(|record| ExportRecord { selection: selection.clone(), ..record });
        self.deferred.applied =
            Some(Box::new(ReadDocument { record, about: DocumentInfo::from_header(header) }));
        if let Some(selection) = selection {
            let message = format!("this is {}: what it leaves out stays as it is here", selection.describe());
            self.warn(name.to_owned(), message);
        }
        match self.run.withdrawals(header, right) {
            Ok(withdrawals) => self.take_back(name, withdrawals),
            Err(problem) => {
                let message = format!("what it lists as taken back is not followed: {problem}");
                self.warn(format!("{}{MANIFEST}", self.run.files.root), message);
            }
        }
        self.record.reason = Some(integrity::summary(looked, right));
        for warning in integrity::warnings(name, looked) {
            self.record.warn(warning);
        }
    }

    /// Records what was withdrawn at the origin of the export.
    fn take_back(&mut self, name: &str, withdrawals: Withdrawals) {
        let Withdrawals { withdrawn, undone, vectors, at } = withdrawals;
        self.deferred.withdrawn = withdrawn.into_iter().map(|id| (id, at)).collect();
        let at = self.exported.unwrap_or(ExportTime { at, revision: 0 });
        // The entry of a vector without a model name matches nothing.
        let named = vectors.into_iter().filter(|vector| !vector.model.is_empty());
        let places = named.map(|VectorName { memory_id, model }| ((memory_id, model), at));
        self.deferred.vector_statements.withdrawn = places.collect();
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
            StoreEntry::Unreadable(entry) => reading.left_out(name, entry),
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
            StoreEntry::Memory(_) | StoreEntry::Relation(_) | StoreEntry::Unreadable(_) => Ok(()),
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
                let options =
                    ScanOptions { salvage: true, keep_going: &|| wanted.get() && !cancel.cancelled() };
                parse::scan_store(&Counted::new(bundle, name, &read), options, &mut |at, entry| {
                    wanted.set(push((at, entry)));
                })
            },
            |(_, entry)| weight(entry),
            |reading, (at, entry)| take(reading, at, entry),
        )?;
        Ok(scanned.map(|_| ()))
    }

    fn left_out(&mut self, name: &str, entry: UnreadableEntry) -> Result<(), IngestError> {
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
        StoreEntry::Unreadable(entry) => 128 + entry.reason.len(),
    }
}
