//! A run of commits, attachments and notes, and its progress.

use std::path::Path;

use super::{
    disk::CrashDisk,
    fixture::{Model, TestRng, open},
    map::MapFolder,
};
use crate::{Batch, BlobRef, Durability, Ledger, LedgerWrite, Store, StoreError};

/// The progress of a run before it was interrupted.
#[derive(Default)]
pub(super) struct WorkloadRun {
    /// Batches that were acknowledged.
    pub(super) acknowledged: usize,
    /// Attachments that a commit acknowledged, and their bytes.
    pub(super) blobs: Vec<(BlobRef, Vec<u8>)>,
}

/// Batches, with the model after each. Every third one has an attachment, and one is large enough to be written to the file in
/// pieces.
pub(super) struct Workload {
    pub(super) batches: Vec<(Batch, Option<Vec<u8>>)>,
    pub(super) models: Vec<Model>,
}

impl Workload {
    pub(super) fn new(seed: u64) -> Self {
        let (mut model, mut rng) = (Model::default(), TestRng(seed));
        let mut workload = Self { batches: Vec::new(), models: vec![Model::default()] };
        for n in 0..9_u8 {
            let picture = (n % 3 == 1).then(|| vec![n; 3_000 + usize::from(n)]);
            let batch = if n == 4 { model.large_batch(&mut rng) } else { model.batch(&mut rng) };
            workload.models.push(model.clone());
            workload.batches.push((batch, picture));
        }
        workload
    }

    /// Runs the workload with a restart in the middle, as far as the disk allows.
    pub(super) fn run(&self, dir: &Path, disk: &CrashDisk, db: &MapFolder) -> WorkloadRun {
        let mut run = WorkloadRun::default();
        let half = self.batches.len() / 2;
        for part in [&self.batches[..half], &self.batches[half..]] {
            let Ok((store, _)) = open(dir, disk, db, "boot") else { return run };
            if part.iter().try_for_each(|step| run.step(&store, step)).is_err() {
                // A dead machine closes nothing, so the engine stays as it is.
                return run;
            }
        }
        run
    }
}

impl WorkloadRun {
    pub(super) fn step(
        &mut self,
        store: &Store,
        (batch, picture): &(Batch, Option<Vec<u8>>),
    ) -> Result<(), StoreError> {
        let blob = picture.as_ref().map(|bytes| store.blob_put(&mut bytes.as_slice())).transpose()?;
        store.commit(batch.clone())?;
        self.acknowledged += 1;
        if let (Some(blob), Some(bytes)) = (blob, picture) {
            self.blobs.push((blob, bytes.clone()));
        }
        let id = format!("note {}", self.acknowledged);
        let note = LedgerWrite::Entry { ledger: Ledger::Export, id, at_micros: 1, value: vec![7; 40] };
        store.put_ledger(note, Durability::WithNextCommit)
    }
}
