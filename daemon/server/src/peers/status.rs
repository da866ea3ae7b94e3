//! What is known of the exchange with a peer.

use std::collections::BTreeSet;

use satchel_devices::Selection;
use satchel_pam::hash::Sha256Digest;
use satchel_sync::{Frontier, OriginId, change_file::ChangeFileHeader};

/// Which of two daemons connects to the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// This daemon connects.
    Outgoing,
    /// The peer connects.
    Incoming,
}

/// How the exchange with a peer is going.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PeerState {
    /// There was none since the daemon started.
    #[default]
    Waiting,
    /// Changes are being exchanged.
    Syncing,
    /// The last one succeeded.
    Ok,
    /// The last one failed.
    Failed,
    /// The owner has paused it.
    Paused,
}

/// A peer, as it is shown.
#[derive(Clone, Debug)]
pub struct PeerView {
    pub name: String,
    pub direction: Direction,
    pub state: PeerState,
    pub addresses: Vec<String>,
    /// Of a peer that this daemon connects to.
    pub fingerprint: Option<String>,
    pub device_id: String,
    /// The peer's own series, once it is known.
    pub origin: Option<OriginId>,
    /// Whether both had the same changes at the last contact, and this store has none since.
    pub in_step: bool,
    /// Changes of this store that the peer lacks.
    pub behind: u64,
    /// Changes of the peer that this store lacks.
    pub ahead: u64,
    /// Microseconds since the Unix epoch.
    pub last_contact: Option<i64>,
    pub last_error: Option<String>,
    /// Changes that came from it, and went to it, since the daemon started.
    pub received: u64,
    pub sent: u64,
    /// Whether the files of attachments come from it only when they are wanted.
    pub on_demand: bool,
    /// What it gets of this store. If it is empty: everything.
    pub selection: Selection,
}

impl PeerView {
    /// Returns under what it is stored whether the peer is paused.
    pub(super) fn key(&self) -> &str {
        match self.direction {
            Direction::Outgoing => &self.name,
            Direction::Incoming => &self.device_id,
        }
    }
}

/// What a peer says about itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerIdentity {
    /// Its own series.
    pub(crate) origin: Option<OriginId>,
    /// The age recipient of files of changes for it.
    pub(crate) recipient: Option<String>,
}

/// What is known of a peer, and what happened since this daemon started.
#[derive(Clone, Debug, Default)]
pub(super) struct Contact {
    pub(super) state: PeerState,
    /// The peer's own series.
    pub(super) origin: Option<OriginId>,
    /// The age recipient of files of changes for the peer.
    pub(super) recipient: Option<String>,
    /// Which changes the peer had at the last contact.
    pub(super) theirs: Option<Frontier>,
    /// The files of attachments that it lacks, as its last file of changes said.
    pub(super) wanted: BTreeSet<Sha256Digest>,
    pub(super) last_contact: Option<i64>,
    pub(super) last_error: Option<String>,
    pub(super) received: u64,
    pub(super) sent: u64,
    /// What the peer said last about the payloads that it has for this store.
    pub(super) payload_state: String,
    /// What both stores said when payloads were exchanged last.
    pub(super) payloads: PayloadStates,
    /// What the peer said last about the payloads that it withholds.
    pub(super) withheld_state: String,
    /// What the peer and this store said about those when they were exchanged last.
    pub(super) withheld: WithheldStates,
}

/// What a peer and this store say about the payloads that they withhold from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WithheldStates {
    pub(super) theirs: String,
    pub(super) ours: String,
}

/// What the stores of this daemon and a peer say about payloads that were withheld: the one that has them, and the one that lacks them. Only if
/// one of the two says something else than the last time is there something to exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PayloadStates {
    pub(super) fetched: (String, String),
    pub(super) sent: (String, String),
}

impl Contact {
    /// Notes a call that succeeded.
    pub(super) fn reached(&mut self, now: i64, theirs: Option<Frontier>) {
        self.last_contact = Some(now);
        if theirs.is_some() {
            self.theirs = theirs;
        }
    }

    /// Notes what a file of changes says of the peer. It may have been written long ago.
    pub(super) fn read_file(&mut self, header: &ChangeFileHeader, received: u64, now: i64) {
        let older = |known: &Frontier| known.lacked_by(&header.frontier).ranges.is_empty();
        if self.theirs.as_ref().is_none_or(older) {
            self.theirs = Some(header.frontier.clone());
            self.wanted = header.wanted.iter().copied().collect();
        }
        // The clock of the peer may be ahead.
        self.last_contact = self.last_contact.max(Some(header.created_at.min(now)));
        self.received += received;
    }

    /// Notes what a peer says about itself over the network. What it does not say stays. The files that it lacks it fetches by itself.
    pub(super) fn identified(&mut self, identity: PeerIdentity) {
        self.wanted.clear();
        let PeerIdentity { origin, recipient } = identity;
        self.origin = origin.or(self.origin);
        self.recipient = recipient.or_else(|| self.recipient.take());
    }

    /// Returns how a peer is shown, given which changes this store has. Its names and addresses are left empty.
    pub(super) fn view(self, ours: &Frontier, paused: bool) -> PeerView {
        let Self { state, origin, theirs, last_contact, last_error, received, sent, .. } = self;
        let (behind, ahead) = match &theirs {
            None => (0, 0),
            Some(theirs) => (lacking(ours, theirs), lacking(theirs, ours)),
        };
        PeerView {
            name: String::new(),
            direction: Direction::Outgoing,
            state: if paused { PeerState::Paused } else { state },
            addresses: Vec::new(),
            fingerprint: None,
            device_id: String::new(),
            origin,
            in_step: theirs.is_some_and(|theirs| theirs == *ours),
            behind,
            ahead,
            last_contact,
            last_error,
            received,
            sent,
            on_demand: false,
            selection: Selection::default(),
        }
    }
}

/// Returns how many changes of `one` the `other` lacks.
fn lacking(one: &Frontier, other: &Frontier) -> u64 {
    let count = |range: satchel_sync::CounterRange| range.last.get() - range.first.get() + 1;
    one.lacked_by(other).ranges.into_iter().map(count).sum()
}

/// Returns the series of which two stores do not have the same changes.
pub(super) fn differing(one: &Frontier, other: &Frontier) -> Vec<OriginId> {
    let origins = |from: &Frontier, to: &Frontier| {
        let difference = from.lacked_by(to);
        let ahead = difference.ranges.iter().map(|range| range.origin).collect::<Vec<_>>();
        ahead.into_iter().chain(difference.forks.iter().map(|fork| fork.origin)).collect::<Vec<_>>()
    };
    [origins(one, other), origins(other, one)].concat()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use satchel_sync::{ChangeHash, Counter, Head};
    use uuid::Uuid;

    use super::*;

    fn frontier(heads: &[(u128, u64)]) -> Frontier {
        let mut frontier = Frontier::new();
        for (origin, counter) in heads {
            let head = Head {
                counter: Counter::new(*counter).unwrap(),
                hash: ChangeHash::from_bytes([u8::try_from(*counter).unwrap(); 32]),
            };
            frontier.advance(OriginId::from_uuid(Uuid::from_u128(*origin)), head).unwrap();
        }
        frontier
    }

    #[test]
    fn a_peer_is_in_step_if_it_has_the_same_changes() {
        let contact = |theirs| Contact { theirs, ..Contact::default() };
        let ours = frontier(&[(1, 5), (2, 3)]);
        let view = contact(Some(frontier(&[(1, 5), (2, 3)]))).view(&ours, false);
        assert!(view.in_step && view.behind == 0 && view.ahead == 0);
        let view = contact(Some(frontier(&[(1, 7), (3, 1)]))).view(&ours, true);
        assert_eq!((view.in_step, view.behind, view.ahead, view.state), (false, 3, 3, PeerState::Paused));
        let theirs = frontier(&[(1, 7), (3, 1)]);
        let mut origins: Vec<u128> =
            differing(&ours, &theirs).iter().map(|origin| origin.as_uuid().as_u128()).collect();
        origins.sort_unstable();
        assert_eq!(origins, [1, 2, 3]);
        assert_eq!(differing(&ours, &ours), []);
        let view = contact(None).view(&ours, false);
        assert_eq!((view.in_step, view.behind, view.state), (false, 0, PeerState::Waiting));
    }
}
