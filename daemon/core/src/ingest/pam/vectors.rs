//! Embeddings documents: their vectors are stored in batches, after the memories that they belong to.

use std::{
    cell::Cell,
    collections::BTreeSet,
    io,
    sync::{Arc, atomic::Ordering},
};

use satchel_merge::evidence::ExportTime;
use satchel_pam::{
    embedding::Embedding,
    parse::{self, EmbeddingsScan, ScanOptions, TextSource as _, UnreadableEntry},
    record::RecordKind,
};

use super::{
    DocumentImport, PamRun, Progress,
    claimed_ids::ClaimedIds,
    refusal,
    scan::{MOST_LEFT_OUT, unreadable},
    stream::Counted,
};
use crate::{
    ingest::{
        error::IngestError,
        receipt::ImportRecord,
        records::{DeferredRecords, DocumentVector},
        write::Writer,
    },
    provenance::vectors::DocumentVectors,
};

/// Approximate memory that the vectors of one batch take, in bytes. A vector is read with all of its commit.
const BATCH_BYTES: usize = 64 << 10;

/// The state of the import of the other documents that reading the embeddings needs.
#[derive(Default)]
pub(in crate::ingest) struct EmbeddingsState {
    pub(super) taken: ClaimedIds,
    pub(super) exported: Option<ExportTime>,
    pub(super) untrusted: Option<String>,
    /// Bytes read so far.
    pub(super) done: u64,
}

impl PamRun<'_> {
    /// Reads the embeddings.
    ///
    /// # Errors
    /// When the store refuses a write.
    pub(in crate::ingest) fn vectors(
        &self,
        before: EmbeddingsState,
        writer: &mut Writer<'_>,
        record: &mut ImportRecord,
        progress: &Progress<'_>,
    ) -> Result<(), IngestError> {
        if self.files.embeddings.is_empty() {
            return Ok(());
        }
        let mut reading = DocumentImport::new(self, writer, record, progress, before)?;
        for name in &self.files.embeddings {
            reading.embeddings(name)?;
        }
        Ok(())
    }
}

/// An embedding, or the reason why it could not be read.
type Entry = Result<Embedding, UnreadableEntry>;

impl DocumentImport<'_, '_, '_> {
    fn embeddings(&mut self, name: &str) -> Result<(), IngestError> {
        let mut left_out = BTreeSet::new();
        let looked = self.scan(name, |_, _, entry| {
            if let (Err(entry), true) = (entry, left_out.len() < MOST_LEFT_OUT) {
                left_out.insert(entry.path());
            }
            Ok(())
        })?;
        let scan = match looked {
            Ok(scan) if scan.schema_version.is_some() => scan,
            Ok(scan) => {
                return self.skip(RecordKind::File, name.to_owned(), refusal(name, &scan.issues));
            }
            Err(error) => return self.skip(RecordKind::File, name.to_owned(), unreadable(name, &error)),
        };
        self.tell(name, &scan.issues, &left_out, scan.broken.is_some());
        self.broken(name, scan.broken.as_ref())?;
        let mut batch = Batch::default();
        let read = self.scan(name, |reading, at, entry| reading.embedding(name, (at, entry), &mut batch))?;
        self.store_batch(batch)?;
        self.done += self.read.swap(0, Ordering::Relaxed) / 2;
        match read {
            Ok(_) => Ok(()),
            Err(error) => self.skip(RecordKind::File, name.to_owned(), unreadable(name, &error)),
        }
    }

    /// Passes each entry to `take`, with its index in the list.
    fn scan(
        &mut self,
        name: &str,
        mut take: impl FnMut(&mut Self, usize, Entry) -> Result<(), IngestError>,
    ) -> Result<io::Result<EmbeddingsScan>, IngestError> {
        let (bundle, cancel, read) = (self.run.bundle, self.run.cancel, Arc::clone(&self.read));
        let scanned = self.stream(
            |push| {
                let wanted = Cell::new(true);
                let options =
                    ScanOptions { salvage: true, keep_going: &|| wanted.get() && !cancel.cancelled() };
                let text = Counted::new(bundle, name, &read);
                let input = text.reader()?;
                parse::scan_embeddings(input, options, &mut |at, entry| wanted.set(push((at, entry))))
            },
            |(_, entry)| weight(entry),
            |reading, (at, entry)| take(reading, at, entry),
        )?;
        // No result means that the import was cancelled, which is reported elsewhere.
        Ok(scanned.map(Option::unwrap_or_default))
    }

    fn embedding(
        &mut self,
        name: &str,
        (at, entry): (usize, Entry),
        batch: &mut Batch,
    ) -> Result<(), IngestError> {
        let claimed = match entry {
            Ok(embedding) => self.taken.claim("embedding", &embedding.id).map(|()| embedding),
            Err(entry) => Err(entry.reason),
        };
        match claimed {
            Ok(embedding) => {
                batch.bytes += size(&embedding);
                let of = self.taken.content(&embedding.memory_id);
                batch.vectors.push(DocumentVector { embedding, of });
            }
            Err(reason) => {
                self.record.embeddings.leave_out();
                let message = format!("the embedding is left out: {reason}");
                self.warn(format!("{name}:$.embeddings[{at}]"), message);
            }
        }
        if batch.bytes >= BATCH_BYTES { self.store_batch(std::mem::take(batch)) } else { Ok(()) }
    }

    /// Stores some vectors, according to the memories as they are now.
    fn store_batch(&mut self, batch: Batch) -> Result<(), IngestError> {
        if batch.vectors.is_empty() {
            return Ok(());
        }
        let vector_statements = DocumentVectors { exported: self.exported, ..DocumentVectors::default() };
        let untrusted = self.deferred.untrusted.clone();
        let deferred = DeferredRecords {
            vectors: batch.vectors,
            vector_statements,
            untrusted,
            ..DeferredRecords::default()
        };
        self.writer.derive(deferred, self.record)
    }
}

/// Vectors that are stored together.
#[derive(Default)]
struct Batch {
    vectors: Vec<DocumentVector>,
    bytes: usize,
}

fn weight(entry: &Entry) -> usize {
    match entry {
        Ok(embedding) => size(embedding),
        Err(entry) => 128 + entry.reason.len(),
    }
}

fn size(embedding: &Embedding) -> usize {
    256 + embedding.vector.as_ref().map_or(0, |numbers| numbers.len() * size_of::<f64>())
}
