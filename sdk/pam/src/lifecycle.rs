//! The lifecycle of a memory (PAM 1.0 §7 and §8): transitions of its status, validity in time, decay of its confidence.
//!
//! Nothing here reads a clock, and stored scores are never replaced by decayed ones.

use crate::{
    memory::{Memory, Status, Temporal},
    time::Timestamp,
};

mod confidence;
mod succession;
#[cfg(test)]
mod tests;

pub use confidence::{HalfLives, REINFORCEMENT, decayed, reinforced};
pub use succession::{
    Inconsistency, InconsistencyKind, Replacement, SupersedeError, inconsistencies, supersede,
};

/// A transition of the status that §7.1 does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[error("{from} → {to} is not allowed: {}", describe_transitions(*from))]
pub struct TransitionError {
    /// Current status.
    pub from: Status,
    /// Requested status.
    pub to: Status,
}

/// Checks that §7.1 allows a transition. Keeping the status is always allowed.
///
/// It applies to changes by a person or a client. Undo restores an older version regardless, and a merge only reports the error.
///
/// # Errors
/// If the transition is not allowed; the message lists the allowed ones.
pub fn check_transition(from: Status, to: Status) -> Result<(), TransitionError> {
    if from == to || from.may_become(to) { Ok(()) } else { Err(TransitionError { from, to }) }
}

/// Describes the allowed transitions from a status.
fn describe_transitions(from: Status) -> String {
    let allowed: Vec<&str> =
        Status::ALL.iter().filter(|to| from.may_become(**to)).map(|status| status.as_str()).collect();
    match allowed.as_slice() {
        [] => format!("{from} is final; add a new memory instead"),
        allowed => format!("{from} may become {}", allowed.join(" or ")),
    }
}

/// Position of a time relative to the validity of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// Before `valid_from`.
    NotYet,
    /// Within the validity.
    Valid,
    /// At `valid_until` or after it.
    Expired,
}

/// Whether a memory is valid at a time: from `valid_from`, inclusive, to `valid_until`, exclusive; a missing bound is open.
///
/// Instants are compared, regardless of their offsets. A memory whose validity ends before it begins is never valid, and
/// [`Validity::Expired`] from its end on.
#[must_use]
pub fn valid_at(temporal: &Temporal, at: Timestamp) -> Validity {
    let at = at.micros();
    if temporal.valid_until.is_some_and(|until| at >= until.micros()) {
        Validity::Expired
    } else if temporal.valid_from.is_some_and(|from| at < from.micros()) {
        Validity::NotYet
    } else {
        Validity::Valid
    }
}

/// Whether a memory is active and valid at a time.
#[must_use]
pub fn current_at(memory: &Memory, at: Timestamp) -> bool {
    memory.status == Status::Active && valid_at(&memory.temporal, at) == Validity::Valid
}

/// When a memory last changed: the latest of `created_at`, `updated_at` and `last_reinforced`, in microseconds since the Unix epoch.
#[must_use]
pub fn changed_at(memory: &Memory) -> i64 {
    let reinforced = memory.confidence.as_ref().and_then(|confidence| confidence.last_reinforced);
    let later = [memory.temporal.updated_at, reinforced].into_iter().flatten().map(Timestamp::micros);
    later.fold(memory.temporal.created_at.micros(), i64::max)
}
