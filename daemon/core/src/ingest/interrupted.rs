//! Completes at the start what a stop of the program interrupted: undos and redos of imports, and changes by hand.
//!
//! The first write of an undo decides which imports count. What is shown follows from that, and is brought up to date
//! before any client reads it. A failure does not prevent the start: it is logged, and the same command completes the
//! work.

use satchel_source::{CancelToken, chain};
use satchel_store::Health;

use super::{Inner, error::IngestError, ledger};
use crate::{edits, provenance};

/// Completes every undo and every change that was begun and has not ended.
///
/// # Errors
/// When the ledger cannot be read.
pub(super) fn complete(inner: &Inner) -> Result<(), IngestError> {
    if inner.store.health() != Health::Good {
        return Ok(());
    }
    if let Err(error) = edits::complete_interrupted(&inner.store) {
        tracing::error!(error = chain(&error), "a change that was interrupted cannot be completed");
    }
    for note in provenance::unfinished_undos(&inner.store)? {
        let import = note.import;
        let Some(record) = ledger::get(&inner.store, &import.to_string())? else { continue };
        tracing::info!(%import, "an undo is completed that a stop of the program interrupted");
        let note = provenance::UndoRecord { completed_at: Some(inner.clock.now_micros()), ..note };
        if let Err(error) = inner.follow(note, &record, &CancelToken::new()) {
            tracing::error!(%import, error = chain(&error), "an undo that was interrupted cannot be completed");
        }
    }
    Ok(())
}
