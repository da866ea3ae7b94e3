//! The life of a memory (PAM 1.0 §7 and §8): which way its status may go, when it holds, how its confidence fades.
//!
//! Views and decisions only: nothing here reads a clock, and no stored score is ever replaced by a faded one.

use crate::{
    memory::{Memory, Status, Temporal},
    time::Timestamp,
};

mod confidence;
mod succession;
#[cfg(test)]
mod tests;

pub use confidence::{HalfLives, REINFORCEMENT, decayed, reinforced};
pub use succession::{Fault, Problem, Replacement, SupersedeError, faults, supersede};

/// A way that §7.1 does not let a memory's status go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[error("{from} → {to} is not allowed: {}", ways(*from))]
pub struct Arrow {
    /// Where it stands.
    pub from: Status,
    /// Where it should go.
    pub to: Status,
}

/// Whether a person or a client may set the status to `to` (rule ). Staying is no transition, and always allowed.
///
/// Undo restores an older version and is not bound by this; neither is a merge, which notes the jump and goes on.
///
/// # Errors
/// The arrow, with the ways that there are.
pub fn allowed(from: Status, to: Status) -> Result<(), Arrow> {
    if from == to || from.may_become(to) { Ok(()) } else { Err(Arrow { from, to }) }
}

/// What a status may become, in words.
fn ways(from: Status) -> String {
    let ways: Vec<&str> =
        Status::ALL.iter().filter(|to| from.may_become(**to)).map(|status| status.as_str()).collect();
    match ways.as_slice() {
        [] => format!("{from} is final; add a new memory instead"),
        ways => format!("{from} may become {}", ways.join(" or ")),
    }
}

/// Where a time lies in the interval in which a memory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// Before `valid_from`.
    NotYet,
    /// Inside.
    Valid,
    /// At `valid_until` or after it.
    Expired,
}

/// Whether a memory holds at a time: from `valid_from` on, until just before `valid_until`; a missing end is open.
///
/// Instants are compared, whatever the offsets they are written with. An interval that ends before it begins is never
/// valid: [`Validity::Expired`] from its end on.
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

/// Whether a memory is to be used at a time: it is active, and it holds.
#[must_use]
pub fn current_at(memory: &Memory, at: Timestamp) -> bool {
    memory.status == Status::Active && valid_at(&memory.temporal, at) == Validity::Valid
}

/// When a memory last changed: the latest of `created_at`, `updated_at` and `last_reinforced`. Microseconds.
#[must_use]
pub fn changed_at(memory: &Memory) -> i64 {
    let reinforced = memory.confidence.as_ref().and_then(|confidence| confidence.last_reinforced);
    let later = [memory.temporal.updated_at, reinforced].into_iter().flatten().map(Timestamp::micros);
    later.fold(memory.temporal.created_at.micros(), i64::max)
}
