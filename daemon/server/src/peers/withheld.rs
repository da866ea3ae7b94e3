//! Which payloads have come without being asked for, and which have not, since this daemon started.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use satchel_core::sync::{PayloadRange, Received, Revoked};

use super::{Peers, PeersError, lock};

/// Counts of payloads.
#[derive(Default)]
pub(super) struct PayloadCounts {
    /// How often payloads took effect that came after their changes.
    late: AtomicU64,
    /// Those that came and have not taken effect.
    pending: AtomicU64,
    /// Changes that came without their payloads, by the key of the peer that sent them.
    withheld: Mutex<BTreeMap<String, u64>>,
}

impl PayloadCounts {
    pub(super) fn late(&self) -> u64 {
        self.late.load(Ordering::Acquire)
    }

    /// Notes what has come from a peer.
    pub(super) fn note_received(&self, peer: &str, received: &Received) {
        if received.withheld > 0 {
            *lock(&self.withheld).entry(peer.to_owned()).or_default() += received.withheld;
        }
        self.pending.fetch_add(received.completed, Ordering::AcqRel);
    }

    /// Returns how many payloads have come that have not taken effect, and forgets them.
    pub(super) fn take_pending(&self) -> u64 {
        self.pending.swap(0, Ordering::AcqRel)
    }

    /// Notes that so many payloads took effect that came late; or that they still wait. Returns whether some took effect.
    pub(super) fn note_applied(&self, pending: u64, waits: bool) -> bool {
        if waits {
            self.pending.fetch_add(pending, Ordering::AcqRel);
        } else if pending > 0 {
            self.late.fetch_add(1, Ordering::AcqRel);
            return true;
        }
        false
    }

    /// Returns how many changes came without their payloads from others than this peer.
    fn withheld_by_others(&self, peer: &str) -> u64 {
        lock(&self.withheld).iter().filter(|(from, _)| *from != peer).map(|(_, count)| count).sum()
    }
}

/// Ranges of withheld changes in one message.
pub(crate) const WITHHELD_RANGES: usize = 10_000;
/// Most ranges of withheld changes that are read.
pub(crate) const MAX_WITHHELD_RANGES: usize = 1_000_000;

impl Peers {
    /// Takes out the records of which this store has only payloads that the peer with this [key](super::PeerView::key) withholds now. If
    /// others are or were peers, too, they may have given what this one withholds: then nothing is taken out. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub(crate) fn take_out(&self, peer: &str, withheld: &[PayloadRange]) -> Result<Revoked, PeersError> {
        let is_only_peer = self.list().len() == 1 && self.0.sync.givers()?.iter().all(|giver| giver == peer);
        if withheld.is_empty() || !is_only_peer {
            return Ok(Revoked::default());
        }
        let revoked = self.0.sync.revoke(withheld);
        if self.pending_erasures()? > 0 {
            // Closes the store for that.
            self.apply()?;
        }
        Ok(revoked?)
    }

    /// Returns a text that changes when this store comes to lack payloads that this peer did not withhold itself. It is empty if none is
    /// lacking. `key` is that of [`super::PeerView`]. Blocks.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(crate) fn missing_state(&self, key: &str) -> Result<String, PeersError> {
        if !self.0.sync.lacks_payloads()? {
            return Ok(String::new());
        }
        // What has come meanwhile may have changed the list while the peer read it.
        let (withheld, late) = (self.0.payloads.withheld_by_others(key), self.0.payloads.late());
        Ok(format!("{} {withheld} {late}", self.instance_id()))
    }

    /// Returns the number of changes of which this store lacks the payloads. Blocks.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(crate) fn missing_payloads(&self) -> Result<u64, PeersError> {
        let ranges = self.0.sync.missing_payloads()?;
        Ok(ranges.iter().map(|range| range.last.get() - range.first.get() + 1).sum())
    }
}
