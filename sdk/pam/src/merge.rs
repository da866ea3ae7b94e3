//! Merging a document into a store (PAM 1.0 §16.3; where the specification is silent).
//!
//! The functions decide and write nothing: the caller looks up the record that it holds, calls [`memory`], [`relation`],
//! [`index_entry`] or [`embedding`], and writes the result. [`State`] does both for a store in memory.
//!
//! **Invariants** (property tests in `tests/pam/merge`): a full export and a delta based on it give the full export of the delta's
//! revision, to the byte; merging is idempotent; a retracted memory is never restored.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    embedding::Embedding,
    lifecycle::{TransitionError, changed_at, check_transition},
    memory::{Memory, Status},
    names::names,
    relation::Relation,
    store::IndexEntry,
    time::Timestamp,
};

mod base;
mod state;

pub use base::{BaseError, BaseStatus, Ledger, check_base};
pub use state::{Plan, State, plan};

names! {
    /// What to do with an incoming record.
    Action {
        /// Write it, because it is new.
        Insert = "insert",
        /// Write it in place of the held record, which is kept as an older version.
        Replace = "replace",
        /// Keep the held record; the incoming one is kept as a version and listed as a conflict.
        Keep = "keep",
        /// Nothing, because both are equal.
        Same = "same",
    }
}

names! {
    /// The reason for a verdict.
    Reason {
        /// No record with this id is held (§16.3 rule 3). A retracted memory is inserted as retracted.
        Unknown = "unknown",
        /// All fields are equal.
        Equal = "equal",
        /// The incoming record changed later.
        Newer = "newer",
        /// Both changed at the same time and differ, so the document wins (§16.3 rule 3).
        SameTime = "same_time",
        /// The incoming memory is retracted (§16.3 rule 5), regardless of times.
        Retracts = "retracts",
        /// The held record changed later.
        Older = "older",
        /// The held memory is retracted, and a document cannot restore it.
        StaysRetracted = "stays_retracted",
        /// The document has an earlier record with this id.
        Repeated = "repeated",
    }
}

/// The decision about one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The reason, which determines [`Verdict::action`].
    pub reason: Reason,
    /// Set if the action is a replacement and §7.1 forbids the change of status. Report it, but do not drop the record.
    pub forbidden: Option<TransitionError>,
}

impl Verdict {
    const fn of(reason: Reason) -> Self {
        Self { reason, forbidden: None }
    }

    /// What to do with the record.
    #[must_use]
    pub const fn action(self) -> Action {
        match self.reason {
            Reason::Unknown => Action::Insert,
            Reason::Equal => Action::Same,
            Reason::Newer | Reason::SameTime | Reason::Retracts => Action::Replace,
            Reason::Older | Reason::StaysRetracted | Reason::Repeated => Action::Keep,
        }
    }

    /// Whether the incoming record is written.
    pub(super) const fn writes(self) -> bool {
        matches!(self.action(), Action::Insert | Action::Replace)
    }

    /// Whether both versions are kept and should be reviewed.
    #[must_use]
    pub const fn conflict(self) -> bool {
        matches!(self.action(), Action::Keep)
    }
}

/// Decides about a memory. Memories are replaced as a whole, never field by field.
///
/// A retraction wins and is final. Otherwise the memory that changed later by [`changed_at`] wins, and at equal times the incoming one.
#[must_use]
pub fn memory(held: Option<&Memory>, incoming: &Memory) -> Verdict {
    memory_by(held, incoming, changed_at)
}

/// Decides like [`memory`], with the caller's time of change in microseconds.
///
/// For stores that know changes which none of PAM's times shows.
#[must_use]
pub fn memory_by(held: Option<&Memory>, incoming: &Memory, changed: impl Fn(&Memory) -> i64) -> Verdict {
    let Some(held) = held else { return Verdict::of(Reason::Unknown) };
    if held == incoming {
        return Verdict::of(Reason::Equal);
    }
    let retracted = |memory: &Memory| memory.status == Status::Retracted;
    let reason = match (retracted(held), retracted(incoming)) {
        (true, false) => Reason::StaysRetracted,
        (false, true) => Reason::Retracts,
        _ => by_time(changed(held), changed(incoming)),
    };
    let verdict = Verdict::of(reason);
    let replaces = verdict.action() == Action::Replace;
    Verdict {
        forbidden: if replaces { check_transition(held.status, incoming.status).err() } else { None },
        ..verdict
    }
}

/// Decides about a relation with the same id: the one created later wins.
#[must_use]
pub fn relation(held: Option<&Relation>, incoming: &Relation) -> Verdict {
    latest(held, incoming, |record| record.created_at)
}

/// Decides about an embedding with the same `memory_id`, which has at most one: the one created later wins.
///
/// Whether the vector still matches the content of the memory is not checked.
#[must_use]
pub fn embedding(held: Option<&Embedding>, incoming: &Embedding) -> Verdict {
    latest(held, incoming, |record| record.created_at)
}

/// Decides about an entry of the index of conversations with the same id: the one that changed later wins.
///
/// Write the result of [`merged_index_entry`]: `derived_memories` is a hint that can be rebuilt and only grows.
#[must_use]
pub fn index_entry(held: Option<&IndexEntry>, incoming: &IndexEntry) -> Verdict {
    let changed = |entry: &IndexEntry| {
        let created = entry.temporal.created_at.micros();
        entry.temporal.updated_at.map_or(created, |updated| updated.micros().max(created))
    };
    Verdict::of(match held {
        None => Reason::Unknown,
        Some(held) if *held == merged_index_entry(held, incoming) => Reason::Equal,
        Some(held) => by_time(changed(held), changed(incoming)),
    })
}

/// Merges two index entries: `incoming` with the derived memories of both, those of `held` first. Title, count and storage are taken
/// from `held` if absent, because an incremental export has no file for a conversation that only its base contains.
#[must_use]
pub fn merged_index_entry(held: &IndexEntry, incoming: &IndexEntry) -> IndexEntry {
    let known: BTreeSet<&str> = held.derived_memories.iter().map(String::as_str).collect();
    let more = incoming.derived_memories.iter().filter(|id| !known.contains(id.as_str()));
    let derived_memories = held.derived_memories.iter().chain(more).cloned().collect();
    IndexEntry {
        derived_memories,
        title: incoming.title.clone().or_else(|| held.title.clone()),
        message_count: incoming.message_count.or(held.message_count),
        storage: incoming.storage.clone().or_else(|| held.storage.clone()),
        ..incoming.clone()
    }
}

fn latest<T: PartialEq>(held: Option<&T>, incoming: &T, created_at: impl Fn(&T) -> Timestamp) -> Verdict {
    Verdict::of(match held {
        None => Reason::Unknown,
        Some(held) if held == incoming => Reason::Equal,
        Some(held) => by_time(created_at(held).micros(), created_at(incoming).micros()),
    })
}

fn by_time(held: i64, incoming: i64) -> Reason {
    match incoming.cmp(&held) {
        std::cmp::Ordering::Less => Reason::Older,
        std::cmp::Ordering::Equal => Reason::SameTime,
        std::cmp::Ordering::Greater => Reason::Newer,
    }
}

/// Counts verdicts by action, for a receipt.
#[must_use]
pub fn counts<'v>(verdicts: impl IntoIterator<Item = &'v Verdict>) -> BTreeMap<Action, u64> {
    let mut counts = BTreeMap::new();
    for verdict in verdicts {
        *counts.entry(verdict.action()).or_default() += 1;
    }
    counts
}
