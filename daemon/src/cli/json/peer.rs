//! JSON documents for peers, the exchange with them, and conflicts.

use std::path::Path;

use satchel_proto::v1;
use serde::Serialize;
use serde_json::Value;

use super::{device::Selection, non_empty, timestamp};
use crate::cli::labels;

/// `peers list`, and `sync`.
#[derive(Debug, Serialize)]
pub(crate) struct Peers<'a> {
    pub peers: Vec<Peer<'a>>,
}

/// `peers add`, `show`, `pause`, `resume`, `set-address`, `set-attachments` and `restrict`.
#[derive(Debug, Serialize)]
pub(crate) struct PeerDocument<'a> {
    pub peer: Peer<'a>,
}

/// `peers remove`.
#[derive(Debug, Serialize)]
pub(crate) struct RemovedPeer<'a> {
    pub removed: &'a str,
}

document! {
    /// A daemon with which this one exchanges changes.
    Peer<'a> from peer: v1::Peer {
        name: &'a str = &peer.name,
        /// `outgoing` if this daemon connects to it, or `incoming`.
        direction: String = labels::peer_direction(peer.direction),
        /// `waiting`, `syncing`, `ok`, `failed` or `paused`.
        state: String = labels::peer_state(peer.state),
        in_step: bool = peer.in_step,
        /// Changes of this store that the peer lacks.
        behind: i64 = peer.behind,
        /// Changes of the peer that this store lacks.
        ahead: i64 = peer.ahead,
        last_contact: Option<String> = timestamp(peer.last_contact_at.as_ref()),
        last_error: Option<&'a str> = non_empty(&peer.last_error),
        addresses: &'a [String] = &peer.addresses,
        fingerprint: Option<&'a str> = non_empty(&peer.fingerprint),
        device_id: &'a str = &peer.device_id,
        received_changes: i64 = peer.received_changes,
        sent_changes: i64 = peer.sent_changes,
        /// The peer's own series of changes.
        origin: Option<&'a str> = non_empty(&peer.origin),
        /// `all` or `on_demand`: which attachments come from it.
        attachments: String = labels::peer_attachments(peer.attachments),
        /// What it gets of this store.
        selection: Selection<'a> = Selection::new(peer.selection.as_ref()),
    }
}

/// `sync status`.
#[derive(Debug, Serialize)]
pub(crate) struct SyncStatus<'a> {
    pub peers: Vec<PeerStatus<'a>>,
    /// Of what the store shows, `sha256:…`.
    pub digest: &'a str,
    /// The store's own series of changes; null if it never had a peer.
    pub origin: Option<&'a str>,
    /// Fields of memories with several values.
    pub conflicts: i64,
    /// Erasures that wait for the store to be closed.
    pub pending_erasures: i64,
    /// Changes whose contents peers have withheld from this store, or erased before they came.
    pub withheld_changes: i64,
}

/// A peer in `sync status`.
#[derive(Debug, Serialize)]
pub(crate) struct PeerStatus<'a> {
    pub name: &'a str,
    pub in_step: bool,
    pub behind: i64,
    pub ahead: i64,
    pub last_contact: Option<String>,
    pub last_error: Option<&'a str>,
    pub state: String,
    /// Fields of memories with several values, one of which was given by this peer.
    pub conflicts: usize,
}

impl<'a> SyncStatus<'a> {
    pub(crate) fn new(
        status: &'a v1::GetSyncStatusResponse,
        peers: &'a [v1::Peer],
        conflicts_of_peers: &'a [v1::Conflict],
    ) -> Self {
        let v1::GetSyncStatusResponse {
            origin,
            digest,
            conflicts,
            pending_erasures,
            missing_payloads,
            header: _,
        } = status;
        let peer = |peer: &'a v1::Peer| {
            let Peer { name, state, in_step, behind, ahead, last_contact, last_error, .. } = Peer::new(peer);
            PeerStatus {
                name,
                in_step,
                behind,
                ahead,
                last_contact,
                last_error,
                state,
                conflicts: conflicts_of_peers.iter().filter(|conflict| involves(conflict, peer)).count(),
            }
        };
        Self {
            peers: peers.iter().map(peer).collect(),
            digest,
            origin: non_empty(origin),
            conflicts: *conflicts,
            pending_erasures: *pending_erasures,
            withheld_changes: *missing_payloads,
        }
    }
}

/// `sync export`.
#[derive(Debug, Serialize)]
pub(crate) struct ExportedChangeFile<'a> {
    pub file: String,
    pub peer: &'a str,
    pub changes: i64,
    /// Attachments.
    pub files: i64,
    pub size_bytes: i64,
}

impl<'a> ExportedChangeFile<'a> {
    pub(crate) fn new(file: &Path, peer: &'a str, summary: &v1::ChangeFileSummary) -> Self {
        let v1::ChangeFileSummary { changes, files, size_bytes } = *summary;
        Self { file: file.to_string_lossy().into_owned(), peer, changes, files, size_bytes }
    }
}

document! {
    /// `sync import`.
    ImportedChangeFile<'a> from imported: v1::ImportChangeFileResponse {
        peer: &'a str = imported.peer.as_ref().map_or("", |peer| peer.name.as_str()),
        /// By the clock of the peer.
        created_at: Option<String> = timestamp(imported.created_at.as_ref()),
        new_changes: i64 = imported.new_changes,
        repeated_changes: i64 = imported.repeated_changes,
        new_files: i64 = imported.new_files,
        refused: Vec<RefusedChange<'a>> = imported.refused.iter().map(RefusedChange::new).collect(),
        /// What could not take effect, in words.
        problem: Option<&'a str> = non_empty(&imported.problem),
    }
}

document! {
    /// A change that was refused; nothing that follows it in its series was stored.
    RefusedChange<'a> from refused: v1::RefusedChange {
        origin: &'a str = &refused.origin,
        counter: i64 = refused.counter,
        problem: &'a str = &refused.problem,
    }
}

/// Returns whether one of the values was given by a peer.
fn involves(conflict: &v1::Conflict, peer: &v1::Peer) -> bool {
    let mut edits = conflict.values.iter().flat_map(|value| &value.edits);
    edits.any(|edit| !edit.origin.is_empty() && edit.origin == peer.origin)
}

/// `conflicts`.
#[derive(Debug, Serialize)]
pub(crate) struct Conflicts<'a> {
    pub conflicts: Vec<Conflict<'a>>,
}

document! {
    /// A field of a memory with several values.
    Conflict<'a> from conflict: v1::Conflict {
        memory_id: &'a str = &conflict.memory_id,
        field: &'a str = &conflict.field,
        values: Vec<ConflictingValue<'a>> = conflict.values.iter().map(ConflictingValue::new).collect(),
    }
}

document! {
    /// One of the values.
    ConflictingValue<'a> from value: v1::ConflictingValue {
        value: Value = serde_json::from_str(&value.value_json).unwrap_or_default(),
        edits: Vec<ConflictingEdit<'a>> = value.edits.iter().map(ConflictingEdit::new).collect(),
    }
}

document! {
    /// A change that gave the field this value.
    ConflictingEdit<'a> from edit: v1::ConflictingEdit {
        change_id: &'a str = &edit.change_id,
        changed_at: Option<String> = timestamp(edit.changed_at.as_ref()),
        /// The series of the store in which it was made.
        origin: Option<&'a str> = non_empty(&edit.origin),
        /// The peer of that series; null for this store, and for stores that are not peers of it.
        peer: Option<&'a str> = non_empty(&edit.peer),
    }
}
