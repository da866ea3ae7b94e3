//! Series that forked: finds where the two branches begin to differ, and shows the store that writes the series the other branch, so that
//! it writes its own one again in a new series ([`satchel_core::sync::Sync::mend_fork`]).

use std::cmp::Ordering;

use satchel_proto::v1;
use satchel_sync::{Counter, Frontier, Head, OriginId};

use super::{Exchange, STALL_TIMEOUT, blocking, differing};
use crate::{
    grpc::wire::sync::{changes_from_wire, frontier_to_wire},
    peers::PeersError,
};

impl Exchange<'_> {
    /// Looks for series of this store or of the peer, `own` and `other`, of which the two have different branches, and shows its author
    /// the other branch. Returns whether that changed anything. Each series is tried once in an exchange.
    pub(super) async fn mend_forks(
        &mut self,
        (ours, theirs): (&Frontier, &Frontier),
        (own, other): (OriginId, OriginId),
    ) -> Result<bool, PeersError> {
        let before = self.moved.changes;
        for origin in differing(ours, theirs) {
            if ![own, other].contains(&origin) || !self.mended.insert(origin) {
                continue;
            }
            let Some(base) = self.last_common(origin, ours, theirs).await? else { continue };
            tracing::info!(%origin, counter = base.counter.get(), "the series has two branches, which differ after this change");
            if origin == own {
                self.move_changes(Some(&with_head(ours, origin, base)), None).await?;
            } else {
                self.move_changes(None, Some(with_head(theirs, origin, base))).await?;
            }
        }
        Ok(self.moved.changes > before)
    }

    /// Returns the last change of a series that both stores have; `None` if they do not have different branches of it.
    async fn last_common(
        &mut self,
        origin: OriginId,
        ours: &Frontier,
        theirs: &Frontier,
    ) -> Result<Option<Head>, PeersError> {
        let (Some(our_head), Some(their_head)) = (ours.head(origin), theirs.head(origin)) else {
            return Ok(None);
        };
        let mut differs = our_head.counter.min(their_head.counter).get();
        if self.peer_has(origin, differs, theirs).await?.is_some() {
            // One is ahead of the other, and something else keeps them apart.
            return Ok(None);
        }
        let Some(mut common) = self.peer_has(origin, Counter::FIRST.get(), theirs).await? else {
            return Ok(None);
        };
        while differs - common.counter.get() > 1 {
            let middle = common.counter.get().midpoint(differs);
            match self.peer_has(origin, middle, theirs).await? {
                Some(head) => common = head,
                None => differs = middle,
            }
        }
        Ok(Some(common))
    }

    /// Returns this store's change with this counter, if the peer has the same one.
    async fn peer_has(
        &mut self,
        origin: OriginId,
        counter: u64,
        theirs: &Frontier,
    ) -> Result<Option<Head>, PeersError> {
        let peers = self.peers.clone();
        let head = blocking(move || Ok(peers.0.sync.head_at(origin, counter)?)).await?;
        let (Some(head), Some(their_head)) = (head, theirs.head(origin)) else { return Ok(None) };
        let same = match head.counter.cmp(&their_head.counter) {
            Ordering::Greater => false,
            Ordering::Equal => head == their_head,
            // A store sends what follows a change only if it has this change.
            Ordering::Less => self.sends_after(&with_head(theirs, origin, head), origin).await?,
        };
        Ok(same.then_some(head))
    }

    /// Returns whether the peer sends changes of a series to a store that has what is in `frontier`.
    async fn sends_after(&mut self, frontier: &Frontier, origin: OriginId) -> Result<bool, PeersError> {
        let request = v1::DownloadChangesRequest { frontier: Some(frontier_to_wire(frontier)) };
        let mut stream = self.client.download_changes(request).await?.into_inner();
        loop {
            let message = tokio::time::timeout(STALL_TIMEOUT, stream.message()).await;
            let message = message.map_err(|_| PeersError::Stalled { seconds: STALL_TIMEOUT.as_secs() })??;
            let Some(v1::DownloadChangesResponse { changes, .. }) = message else { return Ok(false) };
            let read = changes_from_wire(&changes)
                .map_err(|error| PeersError::Malformed(format!("a change that cannot be read: {error}")))?;
            if read.changes.iter().any(|change| change.change().origin == origin) {
                return Ok(true);
            }
        }
    }
}

/// Returns a frontier with another head of an origin.
fn with_head(frontier: &Frontier, origin: OriginId, head: Head) -> Frontier {
    let mut changed = Frontier::new();
    let others = frontier.heads().filter(|(of, _)| *of != origin);
    for (of, head) in others.chain([(origin, head)]) {
        // As many origins as before, each once.
        changed.advance(of, head).ok();
    }
    changed
}
