//! The state of an import job, as its subscribers see it.

use std::path::PathBuf;

use uuid::Uuid;

use super::receipt::ImportRecord;

/// The phase that a job is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The job is queued behind others.
    Waiting,
    /// The source is being opened, and its importer chosen.
    Looking,
    /// The bytes of the source are being hashed.
    Hashing,
    /// Records are being read and stored.
    Reading,
    /// Memories are being derived.
    Settling,
    /// The job has ended.
    Ended,
}

/// A snapshot of the state of a job.
#[derive(Clone, Debug)]
pub struct JobView {
    pub id: Uuid,
    pub path: PathBuf,
    pub phase: Phase,
    /// When the job was requested, in microseconds since the Unix epoch.
    pub created_at: i64,
    /// When the job ended, in microseconds since the Unix epoch.
    pub finished_at: Option<i64>,
    /// Bytes processed in this phase.
    pub done: u64,
    /// Total bytes of this phase.
    pub total: u64,
    /// One record for each export found so far; the last import may still be running.
    pub imports: Vec<ImportRecord>,
}

impl JobView {
    /// Returns the view of a job that has just been requested.
    pub(super) fn waiting(id: Uuid, path: PathBuf, created_at: i64) -> Self {
        let imports = Vec::new();
        Self { id, path, phase: Phase::Waiting, created_at, finished_at: None, done: 0, total: 0, imports }
    }

    pub(super) fn end(&mut self, now: i64) {
        self.phase = Phase::Ended;
        self.finished_at = Some(now);
    }
}
