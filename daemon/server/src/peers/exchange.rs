//! One exchange of changes with a daemon that this one connects to.

mod files;
mod forks;
mod payloads;
mod unmoved;
mod withheld;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use satchel_proto::v1::{self, sync_service_client::SyncServiceClient};
use satchel_sync::{Frontier, OriginId, limits::VERSION};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Response, Status, Streaming, transport::Channel};

use self::unmoved::Unmoved;
use super::{
    Peers, PeersError, SelectionFilter, lock,
    outgoing::Outgoing,
    selections::filter,
    status::{PeerState, differing},
};
use crate::{
    connect::{connect_peer, renew},
    grpc::{
        change_batches::{BatchesEnd, ReadChanges, Visit, send_batches},
        guard::MAX_MESSAGE_BYTES,
        wire::sync::{
            WireChanges, changes_from_wire, frontier_from_wire, frontier_to_wire, identity_from_wire,
        },
    },
};

/// How long the peer may take for the next message with changes.
const STALL_TIMEOUT: Duration = Duration::from_mins(5);
/// How long the peer may take for a call that has one answer: with the first one, it writes all that it has as a series.
const CALL_TIMEOUT: Duration = Duration::from_hours(1);
/// Longest text with which a peer says which payloads it has and lacks.
const MAX_STATE_BYTES: usize = 256;
/// Messages that wait to be sent.
const BUFFERED_MESSAGES: usize = 1;

/// Connects to a peer, and renews the certificate of this daemon if it is due.
///
/// # Errors
/// When no address answers, or the peer does not accept the certificate.
pub(super) async fn connect(peers: &Peers, peer: &Arc<Outgoing>) -> Result<Channel, PeersError> {
    let credentials = peer.credentials();
    let channel = connect_peer(&credentials).await?;
    if credentials.renewal_due(peers.0.clock.now_micros())? {
        let renewed = renew(channel.clone(), &credentials).await?;
        let (folder, current) = (peers.folder(), Arc::clone(peer));
        let save = move || {
            // Otherwise a peer that is being removed would come back.
            if !current.is_removed() {
                current.change_credentials(&folder, |known| known.certificate = renewed.certificate)?;
            }
            Ok(())
        };
        blocking(save).await?;
    }
    Ok(channel)
}

/// Fetches what this store lacks, and sends what the peer lacks. Returns what could not take effect, or was refused, in words.
///
/// # Errors
/// When the connection breaks, the peer refuses, or a store fails. What was received stays.
pub(super) async fn exchange(
    peers: &Peers,
    peer: &Arc<Outgoing>,
    channel: &Channel,
) -> Result<Option<String>, PeersError> {
    let _alone = peer.exchanging.lock().await;
    lock(&peer.contact).state = PeerState::Syncing;
    let (client, mended) = (client(channel), BTreeSet::new());
    let mut exchange = Exchange { peers, peer, client, problem: None, moved: 0, mended };
    let outcome = loop {
        match exchange.run().await {
            Err(PeersError::Changed) => {}
            outcome => break outcome,
        }
    };
    let saved = peers.clone();
    blocking(move || {
        saved.save_contacts(false);
        Ok(())
    })
    .await?;
    outcome.map(|()| exchange.problem)
}

/// Returns a client for the exchange over a connection.
pub(super) fn client(channel: &Channel) -> SyncServiceClient<Channel> {
    SyncServiceClient::new(channel.clone())
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

struct Exchange<'a> {
    peers: &'a Peers,
    peer: &'a Arc<Outgoing>,
    client: SyncServiceClient<Channel>,
    /// What could not take effect, or was refused.
    problem: Option<String>,
    /// Changes that were new to one of the stores.
    moved: u64,
    /// The series with two branches that were united, or could not be.
    mended: BTreeSet<OriginId>,
}

impl Exchange<'_> {
    /// Fetches and sends until both stores have the same changes, or nothing more can be moved.
    async fn run(&mut self) -> Result<(), PeersError> {
        let mut unmoved = Unmoved::default();
        loop {
            let ours = self.prepare().await?;
            // Also tells the peer which changes this store has now.
            let Answer { offered: given, held: theirs, origin, missing_state } =
                self.frontier_of_peer(&ours).await?;
            let offered = self.offered(ours.clone()).await?;
            let (own, now) = (self.own_origin().await?, self.peers.0.clock.now_micros());
            lock(&self.peer.contact).reached(now, Some(theirs.clone()));
            if own == origin && ours == theirs && !self.peers.0.renewed.swap(true, Ordering::Relaxed) {
                // A copy of the peer's store, which has not changed since.
                let shared = self.peers.clone();
                blocking(move || Ok(shared.0.sync.renew_origin(&shared.0.data_dir)?)).await?;
                continue;
            }
            let fetches = !given.lacked_by(&ours).ranges.is_empty();
            let sends = !offered.lacked_by(&theirs).ranges.is_empty();
            let before = self.moved;
            if fetches {
                self.download(&ours).await?;
            }
            if sends {
                self.upload(theirs.clone()).await?;
            }
            if self.moved == before {
                if (fetches || sends) && unmoved.looks_again(&ours, &theirs) {
                    continue;
                }
                if self.mend_forks((&ours, &theirs), (own, origin)).await? {
                    self.problem = None;
                    continue;
                }
                self.check_end((&ours, &theirs), (&offered, &given), (own, own == origin))?;
                if self.exchange_payloads(missing_state).await? {
                    continue;
                }
                self.exchange_withheld().await?;
                return self.exchange_files().await;
            }
        }
    }

    /// Names what is left to exchange, if anything.
    fn check_end(
        &mut self,
        (ours, theirs): (&Frontier, &Frontier),
        (offered, given): (&Frontier, &Frontier),
        (own, copied): (OriginId, bool),
    ) -> Result<(), PeersError> {
        let ahead = theirs.lacked_by(ours);
        let mut continued = ahead.ranges.iter().map(|range| range.origin);
        if copied
            || continued.any(|origin| origin == own)
            || ahead.forks.iter().any(|fork| fork.origin == own)
        {
            return Err(PeersError::Forked { origin: own });
        }
        let left = [offered.lacked_by(theirs), given.lacked_by(ours)];
        let forks = left.iter().flat_map(|left| left.forks.iter().map(|fork| fork.origin));
        let ranges = left.iter().flat_map(|left| left.ranges.iter().map(|range| range.origin));
        let told = ranges.chain(forks).next().map(|origin| {
            format!(
                "this store and the peer have different histories of the series {origin}, or one refuses what the other has; it is not exchanged"
            )
        });
        let blocked = lock(&self.peers.0.blocked).clone();
        self.problem = self.problem.take().or(blocked).or(told);
        Ok(())
    }

    /// Checks that the peer was not removed meanwhile.
    fn check_wanted(&self) -> Result<(), PeersError> {
        if self.peer.is_removed() || self.peers.0.stopped.load(Ordering::Relaxed) {
            return Err(PeersError::Stopping);
        }
        Ok(())
    }

    async fn prepare(&self) -> Result<Frontier, PeersError> {
        let peers = self.peers.clone();
        blocking(move || peers.prepare()).await
    }

    /// Returns which changes are offered to the peer.
    async fn offered(&self, ours: Frontier) -> Result<Frontier, PeersError> {
        let (peers, filter) = (self.peers.clone(), self.peer.filter());
        blocking(move || peers.offered(ours, filter.as_ref())).await
    }

    async fn own_origin(&self) -> Result<OriginId, PeersError> {
        let peers = self.peers.clone();
        blocking(move || Ok(peers.0.sync.ensure_begun(&peers.0.data_dir)?)).await
    }

    /// Tells the peer which changes this store has, and asks which it has.
    async fn frontier_of_peer(&mut self, ours: &Frontier) -> Result<Answer, PeersError> {
        let peers = self.peers.clone();
        let caller_file_recipient = blocking(move || peers.file_recipient()).await?;
        let request = v1::GetFrontierRequest {
            caller_frontier: Some(frontier_to_wire(ours)),
            caller_origin: self.own_origin().await?.to_string(),
            caller_file_recipient,
        };
        let v1::GetFrontierResponse {
            frontier,
            origin,
            format_version,
            header: _,
            instance_id,
            file_recipient,
            payload_state,
            missing_state,
            held_frontier,
            withheld_state,
        } = answered(self.client.get_frontier(request)).await?;
        if instance_id == self.peers.instance_id() {
            return Err(PeersError::Itself);
        }
        if format_version != i32::from(VERSION) {
            return Err(PeersError::Version { found: format_version, known: VERSION });
        }
        let malformed = |what: &str| PeersError::Malformed(what.to_owned());
        let identity = identity_from_wire(&origin, file_recipient)
            .map_err(|error| PeersError::Malformed(format!("an identity that cannot be read: {error}")))?;
        let origin = identity.origin.ok_or_else(|| malformed("no id of its series"))?;
        if [&payload_state, &missing_state, &withheld_state]
            .into_iter()
            .any(|state| state.len() > MAX_STATE_BYTES)
        {
            return Err(malformed("a state of its payloads that is too long"));
        }
        self.peer.update(|contact| {
            contact.identified(identity);
            contact.payload_state = payload_state;
            contact.withheld_state = withheld_state;
        });
        let offered = theirs(frontier)?;
        let held = held_frontier.map_or_else(|| Ok(offered.clone()), |held| theirs(Some(held)))?;
        Ok(Answer { offered, held, origin, missing_state })
    }

    /// Fetches what this store lacks, and lets it take effect.
    async fn download(&mut self, ours: &Frontier) -> Result<(), PeersError> {
        let request = v1::DownloadChangesRequest { frontier: Some(frontier_to_wire(ours)) };
        let mut stream = self.client.download_changes(request).await?.into_inner();
        let outcome = loop {
            match next_message(&mut stream).await {
                Ok(None) => break Ok(()),
                Ok(Some(message)) => {
                    if let Err(error) = self.receive(message.changes).await {
                        break Err(error);
                    }
                }
                Err(error) => break Err(error),
            }
        };
        // What has come is applied in any case.
        self.apply().await?;
        outcome
    }

    /// Lets what was received take effect.
    async fn apply(&mut self) -> Result<(), PeersError> {
        let peers = self.peers.clone();
        let blocked = blocking(move || peers.apply()).await?;
        self.problem = self.problem.take().or(blocked);
        Ok(())
    }

    async fn receive(&mut self, changes: Vec<Vec<u8>>) -> Result<(), PeersError> {
        self.check_wanted()?;
        let WireChanges { changes, newer } = changes_from_wire(&changes)
            .map_err(|error| PeersError::Malformed(format!("a change that cannot be read: {error}")))?;
        let peers = self.peers.clone();
        let name = self.peer.name();
        let received = blocking(move || peers.receive(&name, &changes)).await?;
        self.moved += received.new + received.completed;
        lock(&self.peer.contact).received += received.new + received.completed;
        let refused = received.refused.first().map(|refused| {
            let (origin, counter) = (refused.origin, refused.counter.get());
            format!("change {counter} of the series {origin} was refused: {}", refused.error)
        });
        let newer = newer.into_iter().next().map(|newer| newer.problem);
        self.problem = self.problem.take().or(newer).or(refused);
        Ok(())
    }

    /// Sends what the peer lacks.
    async fn upload(&mut self, theirs: Frontier) -> Result<(), PeersError> {
        self.send(move |sync, filter, _, visit| sync.changes_after(&theirs, filter, visit)).await
    }

    /// Sends the changes that `read` visits, with the payloads that it gives to the peer.
    async fn send(&mut self, read: impl ReadChanges) -> Result<(), PeersError> {
        let (sender, receiver) = mpsc::channel(BUFFERED_MESSAGES);
        self.check_wanted()?;
        let (peers, peer) = (self.peers.clone(), Arc::clone(self.peer));
        let selection = peer.credentials().selection;
        let before = selection.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let filter = filter(selection.clone());
            let filter = SelectionFilter::of(filter.as_ref());
            // A peer that is given less from now on gets nothing more by what held before.
            let gone = || peer.is_removed() || peer.credentials().selection != selection;
            let wanted = || !gone() && !peers.0.stopped.load(Ordering::Relaxed) && !sender.is_closed();
            let read = |visit: Visit<'_>| read(&peers.0.sync, filter, &wanted, visit);
            send_batches(read, STALL_TIMEOUT, |changes| {
                let (sender, gone) = (sender.clone(), gone());
                async move { !gone && sender.send(v1::UploadChangesRequest { changes }).await.is_ok() }
            })
        });
        let answer = self.client.upload_changes(ReceiverStream::new(receiver)).await;
        let sent = reading.await.map_err(|_| PeersError::Stopping)?;
        let v1::UploadChangesResponse { refused, new_changes, .. } = answer?.into_inner();
        self.moved += u64::try_from(new_changes).unwrap_or_default();
        match sent? {
            BatchesEnd::Done(count) => lock(&self.peer.contact).sent += count,
            // What is left is sent by the next exchange, as is given then.
            BatchesEnd::NotRead if self.peer.credentials().selection != before => {
                return Err(PeersError::Changed);
            }
            BatchesEnd::NotRead => return Err(PeersError::Stalled { seconds: STALL_TIMEOUT.as_secs() }),
        }
        let refused = refused.first().map(|refused| {
            let v1::RefusedChange { origin, counter, problem } = refused;
            format!("the peer refused change {counter} of the series {origin}: {problem}")
        });
        self.problem = self.problem.take().or(refused);
        Ok(())
    }
}

/// What a peer says of itself.
struct Answer {
    /// Which changes it offers.
    offered: Frontier,
    /// Which changes it holds.
    held: Frontier,
    origin: OriginId,
    /// What changes when it comes to lack payloads; empty if it lacks none.
    missing_state: String,
}

/// Waits for the next message of a stream; `None` at its end.
async fn next_message<T>(stream: &mut Streaming<T>) -> Result<Option<T>, PeersError> {
    let seconds = STALL_TIMEOUT.as_secs();
    let message = tokio::time::timeout(STALL_TIMEOUT, stream.message()).await;
    Ok(message.map_err(|_| PeersError::Stalled { seconds })??)
}

/// Waits for the answer of a call.
async fn answered<T>(call: impl Future<Output = Result<Response<T>, Status>>) -> Result<T, PeersError> {
    let seconds = CALL_TIMEOUT.as_secs();
    let answer = tokio::time::timeout(CALL_TIMEOUT, call).await;
    Ok(answer.map_err(|_| PeersError::Stalled { seconds })??.into_inner())
}

/// Reads the frontier of a peer.
pub(super) fn theirs(frontier: Option<v1::Frontier>) -> Result<Frontier, PeersError> {
    frontier_from_wire(frontier.unwrap_or_default())
        .map_err(|error| PeersError::Malformed(format!("a frontier that cannot be read: {error}")))
}

/// Runs `work` on a thread that may block on the disk.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PeersError> + Send + 'static,
) -> Result<T, PeersError> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(PeersError::Stopping))
}

impl Peers {
    /// Exchanges changes now with the daemons that this one connects to: with the one of this name, or with all that are not paused.
    /// Returns the names of those that were tried, and whether that failed.
    ///
    /// # Errors
    /// [`PeersError::NotFound`] if there is none of this name.
    pub(crate) async fn exchange_now(&self, name: &str) -> Result<BTreeMap<String, bool>, PeersError> {
        let all: Vec<Arc<Outgoing>> = lock(&self.0.outgoing).values().cloned().collect();
        let chosen: Vec<Arc<Outgoing>> =
            all.into_iter().filter(|peer| name.is_empty() || peer.name() == name).collect();
        if chosen.is_empty() && !name.is_empty() {
            return Err(PeersError::NotFound(name.to_owned()));
        }
        let mut tried = BTreeMap::new();
        for peer in chosen {
            if self.0.paused.contains(&peer.name()) {
                // A paused one is only shown, if it was named.
                tried.extend((!name.is_empty()).then(|| (peer.name(), false)));
                continue;
            }
            let outcome = async {
                let channel = connect(self, &peer).await?;
                exchange(self, &peer, &channel).await
            };
            let outcome = outcome.await;
            peer.note(&outcome);
            tried.insert(peer.name(), outcome.is_err());
        }
        Ok(tried)
    }
}
