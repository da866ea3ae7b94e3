//! Peers, and conflicts of edits.

use std::collections::BTreeMap;

use satchel_merge::{
    causality,
    evidence::{ConflictingEdit, ConflictingValue, FieldConflict},
};
use satchel_proto::{integers::signed, v1};
use uuid::Uuid;

use super::{device::selection_to_wire, scalar::time_to_wire};
use crate::peers::{Direction, PeerState, PeerView};

/// Converts a peer to the wire.
#[must_use]
pub fn peer_to_wire(peer: PeerView) -> v1::Peer {
    let direction = match peer.direction {
        Direction::Outgoing => v1::PeerDirection::Outgoing,
        Direction::Incoming => v1::PeerDirection::Incoming,
    };
    let state = match peer.state {
        PeerState::Waiting => v1::PeerState::Waiting,
        PeerState::Syncing => v1::PeerState::Syncing,
        PeerState::Ok => v1::PeerState::Ok,
        PeerState::Failed => v1::PeerState::Failed,
        PeerState::Paused => v1::PeerState::Paused,
    };
    let attachments = if peer.on_demand { v1::PeerAttachments::OnDemand } else { v1::PeerAttachments::All };
    v1::Peer {
        attachments: attachments.into(),
        selection: Some(selection_to_wire(&peer.selection)),
        name: peer.name,
        direction: direction.into(),
        state: state.into(),
        addresses: peer.addresses,
        fingerprint: peer.fingerprint.unwrap_or_default(),
        device_id: peer.device_id,
        in_step: peer.in_step,
        behind: signed(peer.behind),
        ahead: signed(peer.ahead),
        last_contact_at: peer.last_contact.map(time_to_wire),
        last_error: peer.last_error.unwrap_or_default(),
        received_changes: signed(peer.received),
        sent_changes: signed(peer.sent),
        origin: peer.origin.map(|origin| origin.to_string()).unwrap_or_default(),
    }
}

/// Converts a conflict to the wire, given the names of peers by their series.
#[must_use]
pub fn conflict_to_wire(conflict: FieldConflict, names: &BTreeMap<Uuid, String>) -> v1::Conflict {
    let FieldConflict { memory, field, values } = conflict;
    let edit = |ConflictingEdit { edit_id, at, origin }: ConflictingEdit| {
        let origin = origin.map(causality::OriginId::as_uuid);
        v1::ConflictingEdit {
            change_id: edit_id,
            changed_at: Some(time_to_wire(at)),
            origin: origin.map(|origin| origin.to_string()).unwrap_or_default(),
            peer: origin.and_then(|origin| names.get(&origin)).cloned().unwrap_or_default(),
        }
    };
    let value = |ConflictingValue { value, edits }: ConflictingValue| v1::ConflictingValue {
        value_json: value.to_string(),
        edits: edits.into_iter().map(edit).collect(),
    };
    v1::Conflict {
        memory_id: memory,
        field: field.as_str().to_owned(),
        values: values.into_iter().map(value).collect(),
    }
}
