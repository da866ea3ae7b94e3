//! Status transitions of memories (PAM §7): of one memory, of one replaced by another, or of all that match a filter.

use satchel_pam::{
    lifecycle::{check_transition, supersede},
    memory::{Memory, Status},
    time::Timestamp,
};
use satchel_store::{Cursor, MemoryOrder, MemoryQuery};

use super::{Draft, EditContext, EditError, EditOutcome, Edits, Transaction};
use crate::each_row;

/// Maximum number of memories of one bulk change: they are held in memory until they are written.
pub const BULK_LIMIT: usize = 10_000;
/// Memories that are read per page.
const PAGE: usize = 500;

/// A change of status for all memories that match a query.
#[derive(Clone, Debug)]
pub struct BulkStatusChange {
    /// The query.
    pub query: MemoryQuery,
    /// The new status.
    pub status: Status,
    /// Only count the matching memories.
    pub dry_run: bool,
    /// The number of matches that a dry run returned.
    pub expected: Option<u64>,
}

impl Edits {
    /// Sets the status of a memory.
    ///
    /// # Errors
    /// [`EditError::Transition`], [`EditError::Changed`], or an error of the store.
    pub fn set_memory_status(
        &self,
        call: &EditContext,
        id: &str,
        etag: &str,
        status: Status,
    ) -> Result<EditOutcome, EditError> {
        self.transact(call, |act| {
            let shown = act.shown(id, etag)?.memory;
            if shown.status == status {
                act.name(id);
                return Ok(());
            }
            may_become(&shown, status)?;
            // An archived memory keeps the id of its successor.
            let successor = shown.temporal.superseded_by.clone();
            act.set_status(&shown, status, successor)
        })
    }

    /// Replaces a memory by another, new or existing one.
    ///
    /// # Errors
    /// [`EditError::Transition`], [`EditError::Changed`], a successor that is not active, or an error of the store.
    pub fn supersede_memory(
        &self,
        call: &EditContext,
        id: &str,
        etag: &str,
        by: Result<&Draft, &str>,
    ) -> Result<EditOutcome, EditError> {
        self.transact(call, |act| {
            let shown = act.shown(id, etag)?.memory;
            let successor = match by {
                Ok(draft) => act.add(draft)?,
                Err(existing) => existing.to_owned(),
            };
            let shown = act.pending(id).cloned().unwrap_or(shown);
            if shown.status == Status::Superseded && shown.temporal.superseded_by.as_ref() == Some(&successor)
            {
                act.name(id);
                return Ok(());
            }
            supersede(&shown, &successor, Timestamp::saturating(act.now))?;
            if by.is_err() || act.done.existed {
                let there = act.shown(&successor, "")?.memory;
                if there.status != Status::Active {
                    let problem = format!("memory {successor:?} is {}, so it replaces nothing", there.status);
                    return Err(EditError::state(&successor, problem));
                }
            }
            act.set_status(&shown, Status::Superseded, Some(successor))
        })
    }

    /// Sets the status of all memories that match, if they are as many as a dry run counted.
    ///
    /// # Errors
    /// [`EditError::Count`], [`EditError::TooMany`], [`EditError::Transition`], or an error of the store.
    pub fn set_status_of_all(
        &self,
        call: &EditContext,
        bulk: &BulkStatusChange,
    ) -> Result<EditOutcome, EditError> {
        if bulk.dry_run {
            let mut act = Transaction::new(&self.store, call, 0);
            for memory in fitting(&act, bulk)? {
                may_become(&memory, bulk.status)?;
                act.name(&memory.id);
            }
            act.done.revision = self.store.revision().get();
            return Ok(act.done);
        }
        self.transact(call, |act| {
            let memories = fitting(act, bulk)?;
            let matched = memories.len() as u64;
            let expected = bulk.expected.ok_or_else(|| {
                EditError::invalid("expected_count", "must be the count that a dry run gave")
            })?;
            if matched != expected {
                return Err(EditError::Count { matched, expected });
            }
            for memory in memories {
                may_become(&memory, bulk.status)?;
                let successor = memory.temporal.superseded_by.clone();
                act.set_status(&memory, bulk.status, successor)?;
            }
            Ok(())
        })
    }
}

/// Returns the memories that match and do not have the new status yet.
fn fitting(act: &Transaction<'_>, bulk: &BulkStatusChange) -> Result<Vec<Memory>, EditError> {
    // Ordering by id is stable, even if memories are written meanwhile.
    let query = MemoryQuery { order: MemoryOrder::IdAscending, ..bulk.query.clone() };
    let revision = act.store.revision();
    let mut found = Vec::new();
    let page = |after: Option<&Cursor>| Ok(act.store.memories(&query, after, PAGE, revision)?);
    each_row(page, |record| {
        found.extend(Some(record.memory).filter(|memory| memory.status != bulk.status));
        if found.len() > BULK_LIMIT { Err(EditError::TooMany { limit: BULK_LIMIT }) } else { Ok(()) }
    })?;
    Ok(found)
}

fn may_become(memory: &Memory, status: Status) -> Result<(), EditError> {
    if status == Status::Superseded {
        return Err(EditError::invalid(
            "status",
            "is superseded, which needs the memory that takes the place",
        ));
    }
    let id = || memory.id.clone();
    check_transition(memory.status, status).map_err(|error| EditError::Transition { id: id(), error })
}
