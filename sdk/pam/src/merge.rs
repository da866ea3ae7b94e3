//! Merging a document into what is held (PAM 1.0 §16.3, and rules where it is silent): what to do, as data.
//!
//! Facts in, decisions out: the caller fetches what it holds of a record, asks [`memory`], [`relation`],
//! [`index_entry`] or [`embedding`], and writes. [`State`] is the same for stores that fit into memory, and the model of the laws.
//!
//! **Invariants** (properties in `tests/pam/merge`): a full export and a delta on it give the full export of the delta's
//! revision, to the byte; applying twice is applying once; nothing that was retracted comes back.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    embedding::Embedding,
    lifecycle::{Arrow, allowed, changed_at},
    memory::{Memory, Status},
    names::names,
    relation::Relation,
    store::IndexEntry,
};

mod base;
mod state;

pub use base::{BaseError, Footing, Ledger, check_base};
pub use state::{Plan, State, plan};

names! {
    /// What to do with a record that came.
    Action {
        /// It is new: write it.
        Insert = "insert",
        /// It takes the place of the held one, which stays as a version.
        Replace = "replace",
        /// The held one stays; the one that came is kept as a version and listed as a conflict.
        Keep = "keep",
        /// Nothing: both are the same.
        Same = "same",
    }
}

names! {
    /// Why.
    Reason {
        /// None with this id is held (§16.3 rule 3). A retracted one is inserted as such.
        Unknown = "unknown",
        /// Every field is equal.
        Equal = "equal",
        /// It changed after the held one.
        Newer = "newer",
        /// It changed at the same time, and differs: the document counts (§16.3 rule 3).
        SameTime = "same_time",
        /// It is retracted (§16.3 rule 5), whenever it changed.
        Retracts = "retracts",
        /// The held one changed later.
        Older = "older",
        /// The held one is retracted, and a document of another does not bring it back.
        StaysRetracted = "stays_retracted",
        /// A record with this id stood in the document before.
        Repeated = "repeated",
    }
}

/// What to do with one record, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Why; says [`Verdict::action`].
    pub reason: Reason,
    /// Of a replacement: that §7.1 does not know the way of its status. To be told, never a reason to drop it.
    pub jump: Option<Arrow>,
}

impl Verdict {
    const fn of(reason: Reason) -> Self {
        Self { reason, jump: None }
    }

    /// What to do.
    #[must_use]
    pub const fn action(self) -> Action {
        match self.reason {
            Reason::Unknown => Action::Insert,
            Reason::Equal => Action::Same,
            Reason::Newer | Reason::SameTime | Reason::Retracts => Action::Replace,
            Reason::Older | Reason::StaysRetracted | Reason::Repeated => Action::Keep,
        }
    }

    /// Whether somebody should look at both: what came is kept beside what is held.
    #[must_use]
    pub const fn conflict(self) -> bool {
        matches!(self.action(), Action::Keep)
    }
}

/// Decides over one memory. Whole objects are exchanged, never fields.
///
/// A retraction wins over anything, and stays; else what changed later, by [`changed_at`]; at equal times the document.
#[must_use]
pub fn memory(held: Option<&Memory>, came: &Memory) -> Verdict {
    memory_by(held, came, changed_at)
}

/// As [`memory`], with the caller's own way to tell when a memory changed, in microseconds.
///
/// For a store whose memories change without one of PAM's times: two that changed at the same time by PAM may not have.
#[must_use]
pub fn memory_by(held: Option<&Memory>, came: &Memory, changed: impl Fn(&Memory) -> i64) -> Verdict {
    let Some(held) = held else { return Verdict::of(Reason::Unknown) };
    if held == came {
        return Verdict::of(Reason::Equal);
    }
    let retracted = |memory: &Memory| memory.status == Status::Retracted;
    let reason = match (retracted(held), retracted(came)) {
        (true, false) => Reason::StaysRetracted,
        (false, true) => Reason::Retracts,
        _ => by_time(changed(held), changed(came)),
    };
    let verdict = Verdict::of(reason);
    let replaces = verdict.action() == Action::Replace;
    Verdict { jump: if replaces { allowed(held.status, came.status).err() } else { None }, ..verdict }
}

/// Decides over one relation: by id; of two that differ the one drawn later.
#[must_use]
pub fn relation(held: Option<&Relation>, came: &Relation) -> Verdict {
    Verdict::of(match held {
        None => Reason::Unknown,
        Some(held) if held == came => Reason::Equal,
        Some(held) => by_time(held.created_at.micros(), came.created_at.micros()),
    })
}

/// Decides over the vector of one memory: `held` and `came` are of the same `memory_id`, which has one at most; of two
/// that differ the one computed later.
///
/// Whether a vector still belongs to the memory's content is not looked at.
#[must_use]
pub fn embedding(held: Option<&Embedding>, came: &Embedding) -> Verdict {
    Verdict::of(match held {
        None => Reason::Unknown,
        Some(held) if held == came => Reason::Equal,
        Some(held) => by_time(held.created_at.micros(), came.created_at.micros()),
    })
}

/// Decides over one entry of the conversations' index: by id; of two that differ the one that changed later.
///
/// Write what [`united`] makes of both: `derived_memories` is a hint that is rebuilt, and grows only.
#[must_use]
pub fn index_entry(held: Option<&IndexEntry>, came: &IndexEntry) -> Verdict {
    let changed = |entry: &IndexEntry| {
        let created = entry.temporal.created_at.micros();
        entry.temporal.updated_at.map_or(created, |updated| updated.micros().max(created))
    };
    Verdict::of(match held {
        None => Reason::Unknown,
        Some(held) if *held == united(held, came) => Reason::Equal,
        Some(held) => by_time(changed(held), changed(came)),
    })
}

/// `entry` with the derived memories of both, `held`'s first. Title, count and storage that it leaves out stay as they are held: an
/// incremental export has no file of a conversation that only its base has.
#[must_use]
pub fn united(held: &IndexEntry, entry: &IndexEntry) -> IndexEntry {
    let known: BTreeSet<&str> = held.derived_memories.iter().map(String::as_str).collect();
    let more = entry.derived_memories.iter().filter(|id| !known.contains(id.as_str()));
    let derived_memories = held.derived_memories.iter().chain(more).cloned().collect();
    IndexEntry {
        derived_memories,
        title: entry.title.clone().or_else(|| held.title.clone()),
        message_count: entry.message_count.or(held.message_count),
        storage: entry.storage.clone().or_else(|| held.storage.clone()),
        ..entry.clone()
    }
}

fn by_time(held: i64, came: i64) -> Reason {
    match came.cmp(&held) {
        std::cmp::Ordering::Less => Reason::Older,
        std::cmp::Ordering::Equal => Reason::SameTime,
        std::cmp::Ordering::Greater => Reason::Newer,
    }
}

/// Verdicts by the number of each action, for a receipt.
#[must_use]
pub fn counts<'v>(verdicts: impl IntoIterator<Item = &'v Verdict>) -> BTreeMap<Action, u64> {
    let mut counts = BTreeMap::new();
    for verdict in verdicts {
        *counts.entry(verdict.action()).or_default() += 1;
    }
    counts
}
