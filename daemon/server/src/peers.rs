//! The daemons with which this one exchanges changes, and the exchange.
//!
//! Of two peers, one connects to the other: its daemon follows the frontiers of both stores, fetches what it lacks and sends what the
//! other one lacks (`follow`, `exchange`). The other daemon answers in `grpc::sync`. What is received is checked, stored and applied by
//! [`satchel_core::sync`].

mod attachments;
mod change_files;
mod changes;
mod contacts;
mod exchange;
mod follow;
mod outgoing;
mod selections;
mod status;
mod stored;
mod withheld;

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error as _,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use satchel_core::{
    clock::Clock,
    data_dir::PEERS,
    ingest::Imports,
    provenance::PurgeRecord,
    sync::{FileError, FileReferences, Sync, SyncError},
};
use satchel_devices::{Credentials, Device, DevicesError, Role, Selection};
use satchel_pam::hash::Sha256Digest;
use satchel_source::{CancelToken, chain};
use satchel_store::{Health, Revision, Store};
use satchel_sync::{Frontier, OriginId};
use tokio::sync::watch;
use uuid::Uuid;

pub use self::{
    change_files::ChangeFileRefusal,
    status::{Direction, PeerState, PeerView},
};
pub(crate) use self::{
    change_files::{ImportedChanges, STALL_TIMEOUT},
    selections::{PartState, SelectionFilter},
    status::PeerIdentity,
    withheld::{MAX_WITHHELD_RANGES, WITHHELD_RANGES},
};
use self::{
    contacts::ContactsFile,
    outgoing::Outgoing,
    selections::Given,
    status::Contact,
    stored::{ON_DEMAND, PAUSED, PeerSet, StoredError},
    withheld::PayloadCounts,
};
use crate::{connect::RemoteError, devices::Devices};

/// The peers of a data directory. Clones share them.
#[derive(Clone)]
pub struct Peers(Arc<Shared>);

struct Shared {
    sync: Sync,
    store: Store,
    imports: Imports,
    devices: Devices,
    clock: Arc<dyn Clock>,
    data_dir: PathBuf,
    /// A random id of this run of the daemon.
    instance_id: String,
    /// Whether a peer has shown in this run that one of the two stores is a copy of the other one. A peer that lies could otherwise make
    /// this store begin one series after the other.
    renewed: AtomicBool,
    /// Which changes the store has.
    frontier: watch::Sender<Frontier>,
    /// Held while the frontier is read and published.
    publishing: Mutex<()>,
    /// The imports that had ended, and the newest exports, when the history was recorded last; `None` before the first time.
    recorded: Mutex<Option<(u64, Vec<String>)>>,
    /// The daemons that this one connects to, by name.
    outgoing: Mutex<BTreeMap<String, Arc<Outgoing>>>,
    /// Those whose keys cannot be read, and why.
    unusable: Mutex<BTreeMap<String, String>>,
    /// Wakes when a daemon was added.
    added: watch::Sender<u64>,
    /// What is known of those that connect to this one, by the id of their device.
    incoming: Mutex<BTreeMap<String, Contact>>,
    paused: PeerSet,
    /// The peers from which attachments come only when they are wanted.
    on_demand: PeerSet,
    payloads: PayloadCounts,
    /// The keys of peers of which it is stored that they have given changes.
    givers: Mutex<BTreeSet<String>>,
    file_references: Mutex<FileReferences>,
    /// What peers that get a part were given in this run, by [`PeerView::key`].
    given: Mutex<BTreeMap<String, Given>>,
    /// The files that somebody wants.
    wanted_files: Mutex<BTreeSet<Sha256Digest>>,
    /// The number of files that were stored in this run.
    files_stored: watch::Sender<u64>,
    contacts: ContactsFile,
    /// What could not take effect when changes were applied last, in words.
    blocked: Mutex<Option<String>>,
    /// Whether an erasure waits for the store to be closed.
    erasing: watch::Sender<bool>,
    /// Whether one could not be completed when the store was opened.
    erasure_failed: bool,
    /// The conflicts at a revision.
    conflicts: Mutex<Option<(Revision, u64)>>,
    stopped: AtomicBool,
    cancel: CancelToken,
}

/// Why the peers cannot be read, or changes not be exchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeersError {
    /// The changes cannot be stored, or cannot take effect.
    #[error(transparent)]
    Sync(#[from] SyncError),
    /// The file of an attachment cannot be stored.
    #[error(transparent)]
    File(#[from] FileError),
    /// The keys of the peers cannot be read or written.
    #[error(transparent)]
    Devices(#[from] DevicesError),
    /// Which peers are paused cannot be read or written.
    #[error(transparent)]
    Stored(#[from] StoredError),
    /// The peer cannot be reached.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The peer refused a call.
    #[error("the peer answered: {}", .0.message())]
    Refused(Box<tonic::Status>),
    /// The connection ended instead of an answer.
    #[error("the connection to the peer was lost")]
    ConnectionLost,
    /// The peer sent something that does not fit the contract.
    #[error("the peer sent {0}")]
    Malformed(String),
    /// The peer uses another format of changes.
    #[error(
        "the peer uses format {found} of changes, and this program knows {known}; use the same version of satchel on both machines"
    )]
    Version { found: i32, known: u16 },
    /// The address leads to this daemon.
    #[error("this peer is this daemon itself; remove it with `satchel peers remove`")]
    Itself,
    /// The store's own series has two branches, and its own one cannot be written again.
    #[error(
        "the series of this store, {origin}, has another end in the peer's store, and the two cannot be united; export this one with `satchel export`, apply the export to a new data directory, and pair that one with the peer"
    )]
    Forked { origin: OriginId },
    /// Nothing came from the peer for too long.
    #[error("the peer sent nothing for {seconds} s")]
    Stalled { seconds: u64 },
    /// A file of changes is not taken.
    #[error(transparent)]
    ChangeFile(Box<ChangeFileRefusal>),
    /// The owner has paused the exchange with the peer.
    #[error("the exchange with {0:?} is paused")]
    Paused(String),
    /// The peer has not told to which key files for it are encrypted.
    #[error(
        "the key of {0:?} is not known yet, so no file can be encrypted for it; exchange changes with it once over the network"
    )]
    KeyUnknown(String),
    /// There is no such peer.
    #[error("there is no peer {0:?}")]
    NotFound(String),
    /// The peer is given something else from now on.
    #[error("what the peer gets was changed; the exchange begins again")]
    Changed,
    /// The daemon stops.
    #[error("the daemon is stopping")]
    Stopping,
}

impl From<tonic::Status> for PeersError {
    fn from(status: tonic::Status) -> Self {
        // Only what this side could not send or read has a source; its message is one of the transport, which the peer did not send.
        if status.source().is_some() {
            tracing::debug!(%status, "the connection to a peer was lost");
            return Self::ConnectionLost;
        }
        Self::Refused(Box::new(status))
    }
}

/// What the peers need of the daemon.
pub(crate) struct PeersContext {
    pub(crate) store: Store,
    pub(crate) imports: Imports,
    pub(crate) devices: Devices,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) data_dir: PathBuf,
}

impl Peers {
    /// Opens the peers of a data directory, and reads the key of the store's own series.
    ///
    /// # Errors
    /// When a file cannot be read, or is damaged.
    pub(crate) fn open(context: PeersContext) -> Result<Self, PeersError> {
        let PeersContext { store, imports, devices, clock, data_dir } = context;
        let (sync, folder) = (Sync::new(&imports), data_dir.join(PEERS));
        // A store that is only read may go on with its series when it can be written again.
        if !store.opened_read_only() && store.health() == Health::Good {
            sync.resume(&data_dir)?;
        }
        let (contacts, mut known) = ContactsFile::load(&folder);
        let (mut outgoing, mut unusable) = (BTreeMap::new(), BTreeMap::new());
        for name in Credentials::list(&folder)? {
            match Credentials::load(&folder, &name) {
                Ok(credentials) => {
                    let contact = known.remove(&name).unwrap_or_default();
                    outgoing.insert(name, Arc::new(Outgoing::new(credentials, contact)));
                }
                Err(error) => {
                    let error = chain(&error);
                    tracing::error!(peer = name, error, "a peer cannot be used");
                    unusable.insert(name, error);
                }
            }
        }
        // An erasure that is still pending could not be completed when the store was opened.
        let erasure_failed = !PurgeRecord::pending(&store).unwrap_or_default().is_empty();
        let frontier = sync.frontier().unwrap_or_else(|error| {
            tracing::error!(error = chain(&error), "the changes of this store cannot be exchanged");
            Frontier::new()
        });
        let frontier = watch::Sender::new(frontier);
        Ok(Self(Arc::new(Shared {
            sync,
            store,
            imports,
            devices,
            clock,
            instance_id: Uuid::new_v4().to_string(),
            renewed: AtomicBool::new(false),
            unusable: Mutex::new(unusable),
            frontier,
            publishing: Mutex::default(),
            recorded: Mutex::default(),
            outgoing: Mutex::new(outgoing),
            added: watch::Sender::new(0),
            incoming: Mutex::new(known),
            contacts,
            paused: PeerSet::load(&folder, PAUSED)?,
            on_demand: PeerSet::load(&folder, ON_DEMAND)?,
            payloads: PayloadCounts::default(),
            givers: Mutex::default(),
            file_references: Mutex::default(),
            given: Mutex::default(),
            wanted_files: Mutex::default(),
            files_stored: watch::Sender::new(0),
            blocked: Mutex::default(),
            erasing: watch::Sender::new(erasure_failed),
            erasure_failed,
            conflicts: Mutex::default(),
            stopped: AtomicBool::new(false),
            cancel: CancelToken::new(),
            data_dir,
        })))
    }

    /// Returns the exchange of changes of the store.
    pub(crate) fn sync(&self) -> &Sync {
        &self.0.sync
    }

    /// Returns a random id of this run of the daemon.
    pub(crate) fn instance_id(&self) -> &str {
        &self.0.instance_id
    }

    /// Ends what runs: nothing more is received or applied.
    pub(crate) fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
        self.0.cancel.cancel();
    }

    /// Wakes whenever the store has more changes.
    pub(crate) fn watch_frontier(&self) -> watch::Receiver<Frontier> {
        self.0.frontier.subscribe()
    }

    /// Returns whether the owner has paused the exchange with an incoming peer.
    pub(crate) fn is_paused(&self, device: &Device) -> bool {
        self.0.paused.contains(device.id.as_str())
    }

    /// Notes that an incoming peer has called, and which changes it has.
    pub(crate) fn note_contact(&self, device: &Device, theirs: Option<Frontier>, received: u64, sent: u64) {
        let mut incoming = lock(&self.0.incoming);
        let contact = incoming.entry(device.id.to_string()).or_default();
        contact.reached(self.0.clock.now_micros(), theirs);
        contact.state = PeerState::Ok;
        contact.received += received;
        contact.sent += sent;
    }

    /// Notes what an incoming peer says about itself. Blocks.
    pub(crate) fn note_identity(&self, device: &Device, identity: PeerIdentity) {
        lock(&self.0.incoming).entry(device.id.to_string()).or_default().identified(identity);
        self.save_contacts(false);
    }

    /// Writes down what is known of the peers: at once if `now` is set or another peer is there, otherwise from time to time. Blocks.
    pub(crate) fn save_contacts(&self, now: bool) {
        let unusable: BTreeSet<String> = lock(&self.0.unusable).keys().cloned().collect();
        let saved = self.0.contacts.save(|| self.known_contacts(), &unusable, now);
        if let Err(error) = saved {
            tracing::warn!(error = chain(&error), "what is known of peers cannot be stored");
        }
    }

    fn known_contacts(&self) -> BTreeMap<String, Contact> {
        let outgoing: Vec<Arc<Outgoing>> = lock(&self.0.outgoing).values().cloned().collect();
        let mut contacts: BTreeMap<String, Contact> =
            outgoing.iter().map(|peer| (peer.name(), peer.contact())).collect();
        let devices = self.0.devices.registry().list(false);
        let incoming = lock(&self.0.incoming);
        for device in &devices {
            if let Some(contact) = incoming.get(device.id.as_str()) {
                contacts.insert(device.id.to_string(), contact.clone());
            }
        }
        contacts
    }

    /// Notes what an incoming peer sent and could not be stored or take effect.
    pub(crate) fn note_problem(&self, device: &Device, problem: Option<String>) {
        lock(&self.0.incoming).entry(device.id.to_string()).or_default().last_error = problem;
    }

    /// Returns whether an erasure has the file of an attachment, which may still be on the disk. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn is_erased_file(&self, digest: &Sha256Digest) -> Result<bool, PeersError> {
        let pending = PurgeRecord::pending(&self.0.store).map_err(SyncError::from)?;
        Ok(pending.iter().any(|record| record.attachments.contains(&digest.to_hex())))
    }

    /// Returns all peers, first those that this daemon connects to. Blocks.
    pub(crate) fn list(&self) -> Vec<PeerView> {
        let ours = self.0.frontier.borrow().clone();
        let outgoing: Vec<Arc<Outgoing>> = lock(&self.0.outgoing).values().cloned().collect();
        let mut views: Vec<PeerView> =
            outgoing.iter().map(|peer| peer.view(&ours, self.0.paused.contains(&peer.name()))).collect();
        for view in &mut views {
            view.on_demand = self.0.on_demand.contains(&view.name);
        }
        let unusable = lock(&self.0.unusable).clone();
        views.extend(unusable.into_iter().map(|(name, error)| PeerView {
            name,
            state: PeerState::Failed,
            last_error: Some(error),
            ..Contact::default().view(&ours, false)
        }));
        let incoming = lock(&self.0.incoming);
        let devices = self.0.devices.registry().list(false);
        for device in devices.iter().filter(|device| device.policy.role == Role::Peer) {
            let contact = incoming.get(device.id.as_str()).cloned().unwrap_or_default();
            views.push(PeerView {
                name: device.name.clone(),
                direction: Direction::Incoming,
                addresses: device.last_address.clone().into_iter().collect(),
                fingerprint: None,
                device_id: device.id.to_string(),
                on_demand: self.0.on_demand.contains(device.id.as_str()),
                selection: device.policy.selection.clone(),
                ..contact.view(&ours, self.0.paused.contains(device.id.as_str()))
            });
        }
        views
    }

    /// Finds a peer by its name, or by the id of its device. Blocks.
    ///
    /// # Errors
    /// [`PeersError::NotFound`].
    pub(crate) fn find(&self, text: &str) -> Result<PeerView, PeersError> {
        let mut all = self.list();
        let at = all.iter().position(|peer| peer.name == text || peer.device_id == text);
        at.map(|at| all.swap_remove(at)).ok_or_else(|| PeersError::NotFound(text.to_owned()))
    }

    /// Pauses or resumes the exchange with a peer. Blocks.
    ///
    /// # Errors
    /// When that cannot be stored.
    pub(crate) fn set_paused(&self, peer: &PeerView, paused: bool) -> Result<(), PeersError> {
        self.0.paused.set(peer.key(), paused)?;
        if let Some(outgoing) = lock(&self.0.outgoing).get(&peer.name) {
            outgoing.wake();
        }
        Ok(())
    }

    /// Changes where a peer is reached. Blocks.
    ///
    /// # Errors
    /// When that cannot be stored, or this daemon does not connect to the peer.
    pub(crate) fn set_addresses(&self, peer: &PeerView, addresses: Vec<String>) -> Result<(), PeersError> {
        let outgoing = lock(&self.0.outgoing).get(&peer.name).cloned();
        let outgoing = outgoing.ok_or_else(|| PeersError::NotFound(peer.name.clone()))?;
        outgoing.change_credentials(&self.folder(), |known| known.addresses = addresses)?;
        outgoing.wake();
        Ok(())
    }

    /// Stores the credentials of a new peer, and begins to exchange changes with it; `on_demand` says whether the files of attachments come
    /// only when somebody wants one, and `selection` what the peer gets. Blocks.
    ///
    /// # Errors
    /// When they cannot be stored.
    pub(crate) fn add(
        &self,
        credentials: Credentials,
        on_demand: bool,
        selection: Selection,
    ) -> Result<(), PeersError> {
        let credentials = Credentials { selection, ..credentials };
        credentials.save(&self.folder())?;
        let name = credentials.name.clone();
        self.0.paused.set(&name, false)?;
        self.0.on_demand.set(&name, on_demand)?;
        let new = Arc::new(Outgoing::new(credentials, Contact::default()));
        let earlier = lock(&self.0.outgoing).insert(name, new);
        if let Some(earlier) = earlier {
            earlier.remove();
        }
        self.0.added.send_modify(|added| *added += 1);
        Ok(())
    }

    /// Ends the exchange with a peer for good. Blocks.
    ///
    /// # Errors
    /// When that cannot be stored.
    pub(crate) fn remove(&self, peer: &PeerView) -> Result<(), PeersError> {
        match peer.direction {
            Direction::Outgoing => {
                Credentials::remove(&self.folder(), &peer.name)?;
                lock(&self.0.unusable).remove(&peer.name);
                if let Some(outgoing) = lock(&self.0.outgoing).remove(&peer.name) {
                    outgoing.remove();
                }
            }
            Direction::Incoming => {
                let registry = self.0.devices.registry();
                let device = registry.find(&peer.device_id)?;
                registry.revoke(&device.id, "removed as a peer", self.0.clock.now_micros())?;
                lock(&self.0.incoming).remove(&peer.device_id);
            }
        }
        self.save_contacts(true);
        self.0.on_demand.set(peer.key(), false)?;
        Ok(self.0.paused.set(peer.key(), false)?)
    }

    /// Returns the number of conflicts. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn conflicts(&self) -> Result<u64, PeersError> {
        let revision = self.0.store.revision();
        if let Some((at, known)) = *lock(&self.0.conflicts)
            && at == revision
        {
            return Ok(known);
        }
        let found = if self.0.sync.origin()?.is_some() { self.0.sync.conflicts()?.len() as u64 } else { 0 };
        *lock(&self.0.conflicts) = Some((revision, found));
        Ok(found)
    }

    /// Returns the number of erasures that wait for the store to be closed. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn pending_erasures(&self) -> Result<u64, PeersError> {
        let pending = PurgeRecord::pending(&self.0.store).map_err(SyncError::from)?;
        Ok(pending.len() as u64)
    }

    fn folder(&self) -> PathBuf {
        self.0.data_dir.join(PEERS)
    }
}

/// Locks a mutex. What it guards is whole also after a panic: each change of it is a single assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tonic::Status;

    use super::*;

    #[test]
    fn a_connection_that_was_lost_is_no_answer_of_the_peer() {
        let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        let lost = PeersError::from(Status::from_error(reset.into()));
        assert_eq!(lost.to_string(), "the connection to the peer was lost");
        let refused = PeersError::from(Status::resource_exhausted("no space left"));
        assert_eq!(refused.to_string(), "the peer answered: no space left");
    }
}
