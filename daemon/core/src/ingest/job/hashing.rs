//! Decides when a source is hashed: before it is read if its bytes may have been imported before, otherwise in parallel
//! with reading.
//!
//! **Invariant:** the identity of a source, the stored records and the receipt do not depend on when the source was
//! hashed (`hashing` in `tests/`).

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread::{Scope, ScopedJoinHandle},
};

use satchel_pam::hash::Sha256Digest;
use satchel_source::{Bundle, Source};

use super::{ImportTask, report::SHOW_EVERY};
use crate::ingest::{Phase, error::IngestError, ledger, outcome::ReadOutcome, receipt::ImportRecord};

type Outcome = Result<Option<Sha256Digest>, IngestError>;

/// A source that is being hashed on its own thread.
pub(super) struct BackgroundHash<'scope> {
    thread: ScopedJoinHandle<'scope, Outcome>,
    state: &'scope HashProgress,
}

/// The progress of hashing, and what the reader has decided meanwhile.
#[derive(Default)]
pub(super) struct HashProgress {
    done: AtomicU64,
    total: u64,
    /// Hashing is all that is left, so its progress is shown.
    last: AtomicBool,
    /// The digest is no longer needed.
    unwanted: AtomicBool,
}

impl HashProgress {
    pub(super) fn of(source: &Source, files: &Bundle) -> Self {
        Self { total: bytes(source, files), ..Self::default() }
    }
}

/// Returns the number of bytes to hash.
fn bytes(source: &Source, files: &Bundle) -> u64 {
    if source.folder() { files.bytes() } else { source.length() }
}

impl ImportTask {
    /// Returns whether the source is hashed before it is read. Only a source of the same size as an imported one can
    /// have the same bytes.
    pub(super) fn hashed_first(&self, record: &ImportRecord) -> Result<bool, IngestError> {
        if self.request.again || self.request.apply.is_some() {
            return Ok(false);
        }
        ledger::size_known(&self.inner.store, record.bytes, self.request.dry_run)
    }

    /// Hashes a source of which `files` are read; `None` if it was cancelled.
    pub(super) fn hash(&self, source: &Source, files: &Bundle) -> Outcome {
        let total = bytes(source, files);
        self.show(|view| (view.phase, view.done, view.total) = (Phase::Hashing, 0, total));
        let mut shown = self.inner.clock.now_micros();
        digest(source, files, |bytes| {
            let now = self.inner.clock.now_micros();
            let due = now - shown >= SHOW_EVERY;
            if due {
                shown = now;
            }
            self.view.send_if_modified(|view| {
                view.done += bytes;
                due
            });
            satchel_failpoints::reached("bytes hashed");
            !self.cancel.cancelled()
        })
    }

    /// Hashes the source while another thread reads it. `files` have their own counters: bytes unpacked here do not
    /// count against the reader's limits.
    pub(super) fn hash_in_background<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        (source, files): (&'scope Source, Bundle),
        state: &'scope HashProgress,
    ) -> BackgroundHash<'scope> {
        let thread = scope.spawn(move || {
            digest(source, &files, |bytes| {
                let done = state.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
                if state.last.load(Ordering::Relaxed) {
                    self.view.send_modify(|view| view.done = done);
                }
                satchel_failpoints::reached("bytes hashed");
                !(state.unwanted.load(Ordering::Relaxed) || self.cancel.cancelled())
            })
        });
        BackgroundHash { thread, state }
    }

    /// Waits for the digest of the source, unless the reading was cancelled.
    pub(super) fn join_hash(
        &self,
        beside: BackgroundHash<'_>,
        outcome: Result<ReadOutcome, IngestError>,
        record: &mut ImportRecord,
    ) -> Result<ReadOutcome, IngestError> {
        // If the job is ended while its source hangs, the view has everything that was read.
        self.replace_last(record.clone());
        let BackgroundHash { thread, state } = beside;
        let wanted = !matches!(outcome, Ok(ReadOutcome::Cancelled) | Err(IngestError::Cancelled));
        if !wanted {
            state.unwanted.store(true, Ordering::Relaxed);
        } else if !thread.is_finished() {
            let done = state.done.load(Ordering::Relaxed);
            self.show(|view| (view.phase, view.done, view.total) = (Phase::Hashing, done, state.total));
            state.last.store(true, Ordering::Relaxed);
        }
        let digest = thread.join().map_err(|_| IngestError::Panicked)?;
        if !wanted {
            return outcome;
        }
        match digest {
            Ok(Some(digest)) => {
                satchel_failpoints::reached("source hashed");
                record.source_checksum = Some(digest.to_string());
                outcome
            }
            // The reason why reading failed is more useful than the failure of hashing.
            Ok(None) | Err(_) if !matches!(outcome, Ok(ReadOutcome::Done(_))) => outcome,
            Ok(None) => Ok(ReadOutcome::Cancelled),
            Err(error) => Err(error),
        }
    }
}

fn digest(source: &Source, files: &Bundle, progress: impl FnMut(u64) -> bool) -> Outcome {
    Ok(if source.folder() { files.checksum(progress)? } else { source.checksum(progress)? })
}
