//! The changes of this store: which it has, which it takes, and what they erase.

use std::{sync::atomic::Ordering, time::Duration};

use satchel_core::{
    export_ledger,
    sync::{Received, SyncError},
};
use satchel_sync::{Frontier, SignedChange};

use super::{Peers, PeersError, lock};
use crate::grpc::operation::Operations;

/// Exports that are looked at to find new ones.
const NEWEST_EXPORTS: usize = 50;
/// How long to wait before the store is opened again for an erasure that could not be completed.
const ERASURE_RETRY: Duration = Duration::from_hours(1);
/// How often it is looked whether running work has ended.
const WORK_CHECK_INTERVAL: Duration = Duration::from_secs(1);

impl Peers {
    /// Makes sure that the store has a series, lets what was received earlier take effect, records what imports have brought, and returns
    /// which changes the store has. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub(crate) fn prepare(&self) -> Result<Frontier, PeersError> {
        self.0.sync.ensure_begun(&self.0.data_dir)?;
        self.complete()?;
        self.refresh()
    }

    /// Lets changes take effect that were received before the program was stopped, or before the store was closed for an erasure. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub(super) fn complete(&self) -> Result<(), PeersError> {
        if self.0.store.opened_read_only() {
            return Ok(());
        }
        self.0.sync.complete_merge()?;
        if self.0.sync.has_unapplied()? {
            self.apply()?;
        }
        Ok(())
    }

    /// Records what imports have brought, and which exports were made, since the last call, and returns which changes the store has. Does nothing if it has no series.
    /// Blocks.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub(super) fn refresh(&self) -> Result<Frontier, PeersError> {
        if self.0.sync.origin()?.is_none() {
            return Ok(Frontier::new());
        }
        let ended = *self.0.imports.observe_ends().borrow();
        // A machine whose clock is ahead may have made the newest ones.
        let newest = export_ledger::list(&self.0.store, None, NEWEST_EXPORTS).map_err(SyncError::from)?.items;
        let own = newest.into_iter().filter(|export| export.machine.is_none() && !export.applied);
        let history = Some((ended, own.map(|export| export.export_id).collect::<Vec<_>>()));
        {
            let mut recorded = lock(&self.0.recorded);
            if *recorded != history {
                self.0.sync.record_history()?;
                *recorded = history;
            }
        }
        self.publish_frontier()
    }

    fn publish_frontier(&self) -> Result<Frontier, PeersError> {
        // Otherwise a frontier that was read before could be published last.
        let _alone = lock(&self.0.publishing);
        let frontier = self.0.sync.frontier()?;
        self.0.frontier.send_if_modified(|known| {
            let changed = *known != frontier;
            if changed {
                known.clone_from(&frontier);
            }
            changed
        });
        Ok(frontier)
    }

    /// Stores changes of the peer with this [key](super::PeerView::key). If they show that this store was restored from an earlier copy of
    /// itself, it goes on with a new series. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub(crate) fn receive(&self, peer: &str, changes: &[SignedChange]) -> Result<Received, PeersError> {
        if !changes.is_empty() && !lock(&self.0.givers).contains(peer) {
            self.0.sync.note_giver(peer)?;
            lock(&self.0.givers).insert(peer.to_owned());
        }
        let received = self.store_changes(changes)?;
        self.0.payloads.note_received(peer, &received);
        Ok(received)
    }

    fn store_changes(&self, changes: &[SignedChange]) -> Result<Received, PeersError> {
        if self.0.stopped.load(Ordering::Relaxed) {
            return Err(PeersError::Stopping);
        }
        // A peer may send changes before it has asked for anything.
        self.0.sync.ensure_begun(&self.0.data_dir)?;
        match self.0.sync.receive(changes.iter().cloned()) {
            Err(error) if error.rolled_back() => {
                let origin = self.0.sync.renew_origin(&self.0.data_dir)?;
                tracing::warn!(%origin, "this store was restored from an earlier copy; it goes on with a new series of changes");
                Ok(self.0.sync.receive(changes.iter().cloned())?)
            }
            received => self.mend_fork(received?, changes),
        }
    }

    /// If changes were refused because this store's own series has two branches, writes its own branch again in a new series, and stores
    /// the changes then.
    fn mend_fork(&self, received: Received, changes: &[SignedChange]) -> Result<Received, PeersError> {
        let Some(proof) = &received.own_fork else { return Ok(received) };
        if self.0.sync.mend_fork(&self.0.data_dir, proof)?.is_none() {
            return Ok(received);
        }
        Ok(self.0.sync.receive(changes.iter().cloned())?)
    }

    /// Lets what was received take effect; returns what could not, in words. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub(crate) fn apply(&self) -> Result<Option<String>, PeersError> {
        let pending = self.0.payloads.take_pending();
        let mut applied = self.0.sync.apply(&self.0.cancel);
        while applied.as_ref().is_ok_and(|applied| applied.repeated > 0)
            && self.0.sync.drop_repeated(&self.0.data_dir)?
        {
            applied = self.0.sync.apply(&self.0.cancel);
        }
        let waits = applied.as_ref().map_or(true, |applied| applied.erasures > 0);
        let late = self.0.payloads.note_applied(pending, waits);
        self.publish_frontier()?;
        if late || self.restricts() {
            // The changes are the same, but more of them is given.
            self.0.frontier.send_modify(|_| {});
        }
        let applied = applied?;
        if applied.erasures > 0 {
            self.0.erasing.send_replace(true);
        }
        let blocked = applied.blocked.first().map(|blocked| {
            format!(
                "change {} of the series {} cannot take effect: {}",
                blocked.counter.get(),
                blocked.origin,
                blocked.reason
            )
        });
        lock(&self.0.blocked).clone_from(&blocked);
        Ok(blocked)
    }

    /// Completes when an erasure waits for the store to be closed, and neither an import nor an operation of `operations` is running.
    pub(crate) async fn erasure_due(&self, operations: &Operations) {
        let mut erasing = self.0.erasing.subscribe();
        if erasing.wait_for(|erasing| *erasing).await.is_err() {
            return std::future::pending().await;
        }
        if self.0.erasure_failed {
            tokio::time::sleep(ERASURE_RETRY).await;
        }
        while self.0.imports.is_active() || operations.open() > 0 {
            tokio::time::sleep(WORK_CHECK_INTERVAL).await;
        }
    }
}
