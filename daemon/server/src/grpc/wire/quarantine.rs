//! Memories that agents wrote, and their review.

use satchel_core::edits::{QuarantineState, QuarantinedMemory, ReviewDecision, Reviewer};
use satchel_proto::v1;

use super::{
    WireError,
    memory::{View, quarantined_to_wire},
    scalar::{enum_pair, time_to_wire},
};
use crate::grpc::status::CallError;

enum_pair!(decision_to_wire, decision_from_wire, ReviewDecision, v1::ReviewDecision, [
    Approve => Approve,
    Reject => Reject,
]);

/// The states that a list shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuarantineFilter {
    /// Those that wait.
    Waiting,
    /// Those that were approved.
    Approved,
    /// Those that were rejected.
    Rejected,
}

impl QuarantineFilter {
    /// Returns whether a memory in `state` is in the list.
    #[must_use]
    pub fn matches(self, state: &QuarantineState) -> bool {
        self == match state {
            QuarantineState::Waiting => Self::Waiting,
            QuarantineState::Approved { .. } => Self::Approved,
            QuarantineState::Rejected => Self::Rejected,
        }
    }
}

/// Reads the state in a request; unspecified means those that wait.
///
/// # Errors
/// An unknown number.
pub fn state_from_wire(wire: i32) -> Result<QuarantineFilter, WireError> {
    match v1::QuarantineState::try_from(wire) {
        Ok(v1::QuarantineState::Unspecified | v1::QuarantineState::Waiting) => Ok(QuarantineFilter::Waiting),
        Ok(v1::QuarantineState::Approved) => Ok(QuarantineFilter::Approved),
        Ok(v1::QuarantineState::Rejected) => Ok(QuarantineFilter::Rejected),
        Err(_) => Err(WireError::new("state", format!("holds {wire}, which is not a known value"))),
    }
}

/// Converts a memory that an agent wrote to the wire, for the owner.
///
/// # Errors
/// If the memory cannot be encoded as JSON, which does not happen.
pub fn entry_to_wire(entry: QuarantinedMemory, view: View) -> Result<v1::QuarantinedMemory, CallError> {
    let memory = entry.memory()?;
    let written_at = Some(time_to_wire(entry.written_at()));
    let QuarantinedMemory { device, device_name, entity: _, reason, evidence: _, state, reviewer } = entry;
    let waiting = state == QuarantineState::Waiting;
    let memory = v1::Memory { quarantined: waiting, ..quarantined_to_wire(memory, view)? };
    let (state, memory_id, existed) = match state {
        QuarantineState::Waiting => (v1::QuarantineState::Waiting, String::new(), false),
        QuarantineState::Approved { memory, existed } => (v1::QuarantineState::Approved, memory, existed),
        QuarantineState::Rejected => (v1::QuarantineState::Rejected, String::new(), false),
    };
    let reviewed_at = reviewer.as_ref().map(|reviewer| time_to_wire(reviewer.at));
    let (reviewed_by, review_reason) =
        reviewer.map(|Reviewer { actor, reason, at: _ }| (actor, reason)).unwrap_or_default();
    Ok(v1::QuarantinedMemory {
        memory: Some(memory),
        state: state.into(),
        device_id: device,
        device_name,
        written_at,
        reason,
        reviewed_at,
        reviewed_by,
        review_reason,
        memory_id,
        existed,
    })
}
