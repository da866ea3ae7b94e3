//! The tasks that keep this store in step with the daemons that it connects to, as long as the daemon runs.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, Weak},
    time::Duration,
};

use satchel_proto::v1;
use satchel_source::chain;
use satchel_store::Revision;
use tokio::{sync::watch, task::JoinSet, time::sleep};

use super::{
    Peers, PeersError,
    exchange::{blocking, client, connect, exchange, theirs},
    lock,
    outgoing::Outgoing,
};

/// How often changes are exchanged although no daemon has told of any.
const INTERVAL: Duration = Duration::from_mins(5);
/// How long to wait after a failure before the next attempt; after each further failure, twice as long.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_mins(1);
/// The shortest time between two exchanges with a peer.
const PAUSE: Duration = Duration::from_millis(5);
/// How often the frontier is read while an import changes the store all the time.
const IMPORT_PAUSE: Duration = Duration::from_millis(250);

impl Peers {
    /// Follows the store and all peers. Never returns.
    pub(crate) async fn run(self, revisions: watch::Receiver<Revision>) {
        tokio::join!(self.follow_store(revisions), self.follow_peers());
    }

    /// Tells of new changes of this store as soon as they are there.
    async fn follow_store(&self, mut revisions: watch::Receiver<Revision>) {
        let peers = self.clone();
        if let Err(error) = blocking(move || peers.complete()).await {
            tracing::error!(error = chain(&error), "changes that were received earlier cannot take effect");
        }
        let mut ends = self.0.imports.observe_ends();
        loop {
            revisions.mark_unchanged();
            ends.mark_unchanged();
            let peers = self.clone();
            if let Err(error) = blocking(move || peers.refresh()).await {
                tracing::error!(error = chain(&error), "the changes of this store cannot be read");
            }
            if self.0.imports.is_active() {
                sleep(IMPORT_PAUSE).await;
            }
            tokio::select! {
                changed = revisions.changed() => if changed.is_err() { return },
                changed = ends.changed() => if changed.is_err() { return },
                () = sleep(INTERVAL) => {}
            }
        }
    }

    /// Keeps one task for each daemon that this one connects to.
    async fn follow_peers(&self) {
        let (mut tasks, mut followed) = (JoinSet::new(), BTreeMap::<String, Weak<Outgoing>>::new());
        let mut added = self.0.added.subscribe();
        loop {
            added.mark_unchanged();
            let all: Vec<(String, Arc<Outgoing>)> =
                lock(&self.0.outgoing).iter().map(|(name, peer)| (name.clone(), Arc::clone(peer))).collect();
            for (name, peer) in all {
                let known = followed.get(&name).and_then(Weak::upgrade);
                if known.is_none_or(|known| !Arc::ptr_eq(&known, &peer)) {
                    followed.insert(name, Arc::downgrade(&peer));
                    tasks.spawn(follow(self.clone(), peer));
                }
            }
            tokio::select! {
                changed = added.changed() => if changed.is_err() { return },
                Some(ended) = tasks.join_next() => if let Err(error) = ended {
                    tracing::error!(%error, "a task that follows a peer panicked; please report this");
                },
            }
        }
    }
}

/// Keeps this store in step with a daemon, until that is removed.
async fn follow(peers: Peers, peer: Arc<Outgoing>) {
    let mut retry = FIRST_RETRY;
    while !peer.is_removed() {
        if peers.0.paused.contains(&peer.name()) {
            peer.woken.notified().await;
            continue;
        }
        let mut reached = false;
        let ended = tokio::select! {
            Err(error) = stay_in_step(&peers, &peer, &mut reached) => Some(error),
            // Its settings have changed, or it was removed.
            () = peer.woken.notified() => None,
        };
        if reached {
            retry = FIRST_RETRY;
        }
        let Some(error) = ended else { continue };
        let name = peer.name();
        tracing::warn!(
            peer = name,
            error = chain(&error),
            retry_s = retry.as_secs(),
            "the exchange with a peer failed"
        );
        peer.note(&Err(error));
        tokio::select! {
            () = sleep(jittered(retry)) => {}
            () = peer.woken.notified() => {}
        }
        retry = (retry * 2).min(LAST_RETRY);
    }
}

/// Exchanges changes with a peer, now and whenever one of the two stores has new ones. Ends only with an error.
async fn stay_in_step(
    peers: &Peers,
    peer: &Arc<Outgoing>,
    reached: &mut bool,
) -> Result<Infallible, PeersError> {
    let channel = connect(peers, peer).await?;
    let mut local = peers.watch_frontier();
    let mut remote = client(&channel).watch_frontier(v1::WatchFrontierRequest {}).await?.into_inner();
    loop {
        // A peer that tells of something all the time must not keep this daemon busy.
        sleep(PAUSE).await;
        local.mark_unchanged();
        let late = peers.0.payloads.late();
        let problem = exchange(peers, peer, &channel).await?;
        *reached = true;
        if let Some(problem) = &problem {
            tracing::warn!(peer = peer.name(), problem, "not everything can be exchanged with a peer");
        }
        peer.note(&Ok(problem));
        loop {
            tokio::select! {
                message = remote.message() => {
                    let message = message?.ok_or(PeersError::Malformed("the end of a watch".to_owned()))?;
                    // Often it tells of what has just been sent.
                    if peer.theirs() != Some(theirs(message.frontier)?)
                        || peer.contact().payload_state != message.payload_state
                    {
                        break;
                    }
                }
                changed = local.changed() => {
                    changed.map_err(|_| PeersError::Stopping)?;
                    if peer.theirs().as_ref() != Some(&*local.borrow_and_update())
                        || peers.0.payloads.late() != late
                        || peer.filter().is_some()
                    {
                        break;
                    }
                }
                () = sleep(jittered(INTERVAL)) => break,
            }
        }
    }
}

/// Lengthens a duration by up to a quarter, so that daemons that lost each other do not all call again at the same time.
fn jittered(duration: Duration) -> Duration {
    let part = u32::try_from(RandomState::new().hash_one(0) % 1_000).unwrap_or_default();
    duration + duration / 4 * part / 1_000
}
