//! Files of changes, for peers that cannot be reached.

use std::{
    collections::BTreeSet,
    io::{Read, Seek, Write},
    time::Duration,
};

use satchel_core::sync::{ChangeFileFailure, NewChangeFile, Received, Refused, WrittenChangeFile};
use satchel_pam::hash::Sha256Digest;
use satchel_sync::{
    OriginId, SignedChange,
    change_file::{ChangeFileError, ChangeFileHeader, ChangeFileVisitor},
};

use super::{Direction, FileError, Peers, PeersError, SelectionFilter, lock, status::Contact};
use crate::peers::PeerView;

/// Changes and bytes that are stored at once.
const BATCH_CHANGES: usize = 400;
const BATCH_BYTES: usize = 1 << 20;

/// What is said when not everything has taken effect.
const WAITS: &str = "not everything has taken effect yet: an erasure has to be completed first, or changes are missing that others had seen; import the file once more afterwards, for its attachments";

/// How long the reader of a file may take for the next bytes.
pub(crate) const STALL_TIMEOUT: Duration = Duration::from_mins(5);

/// Why a file of changes is not taken, or not written.
#[derive(Debug, thiserror::Error)]
pub enum ChangeFileRefusal {
    /// It cannot be read, is for another store, or was changed.
    #[error(transparent)]
    File(#[from] ChangeFileFailure),
    /// No peer of this store has written it.
    #[error(
        "it was written by a store that is no peer of this one (series {0}); `satchel peers list` lists the peers, and one whose data directory was restored has to be paired anew"
    )]
    UnknownSender(OriginId),
    /// Peers that are not the same say that the series is theirs.
    #[error("several peers say that the series {0} is theirs; remove the one that does not belong to you")]
    AmbiguousSender(OriginId),
    /// Changes are missing between those of this store and those of the file.
    #[error(
        "it continues from changes that this store does not have (series {0}); write it again with `satchel sync export FILE --for PEER --full`"
    )]
    Gap(OriginId),
}

/// What became of a file of changes.
#[derive(Debug)]
pub(crate) struct ImportedChanges {
    pub(crate) peer: PeerView,
    pub(crate) header: ChangeFileHeader,
    pub(crate) received: Received,
    /// Files of attachments that this store lacked.
    pub(crate) files: u64,
    /// What could not take effect, in words.
    pub(crate) problem: Option<String>,
}

impl Peers {
    /// Returns the age recipient of files of changes for this store. Blocks.
    ///
    /// # Errors
    /// When the key of the store's series is not known.
    pub(crate) fn file_recipient(&self) -> Result<String, PeersError> {
        Ok(self.0.sync.file_recipient()?)
    }

    /// Checks that a file can be encrypted for a peer.
    ///
    /// # Errors
    /// [`PeersError::KeyUnknown`] if the peer was never reached.
    pub(crate) fn check_key(&self, peer: &PeerView) -> Result<(), PeersError> {
        let known = self.contact(peer).recipient.is_some();
        if known { Ok(()) } else { Err(PeersError::KeyUnknown(peer.name.clone())) }
    }

    /// Writes the changes that a peer lacks into `sink`; all changes if `full` is set. Blocks.
    ///
    /// # Errors
    /// [`PeersError::KeyUnknown`] if the peer was never reached; when the store cannot be read, or `sink` fails.
    pub(crate) fn export_changes(
        &self,
        peer: &PeerView,
        full: bool,
        sink: impl Write,
    ) -> Result<WrittenChangeFile, PeersError> {
        let contact = self.contact(peer);
        let unknown = || PeersError::KeyUnknown(peer.name.clone());
        let recipient = contact.recipient.ok_or_else(unknown)?;
        self.prepare()?;
        // Also an import that has ended at this moment.
        self.0.sync.record_history()?;
        let base = if full { None } else { contact.theirs };
        let new = NewChangeFile {
            recipient,
            base: base.unwrap_or_default(),
            wanted: contact.wanted,
            created_at: self.0.clock.now_micros(),
        };
        let filter = self.filter_of(peer);
        Ok(self.0.sync.write_change_file(&new, SelectionFilter::of(filter.as_ref()), sink)?)
    }

    /// Takes the changes of a file that a peer has written for this store. `open` opens the file; it is read twice, and nothing is stored
    /// before its signature was checked. Blocks.
    ///
    /// # Errors
    /// [`PeersError::ChangeFile`] if the file is not taken, [`PeersError::Paused`], or an error of the store.
    pub(crate) fn import_changes<R: Read + Seek>(
        &self,
        open: impl Fn() -> std::io::Result<R>,
    ) -> Result<ImportedChanges, PeersError> {
        let refused = |error: ChangeFileRefusal| PeersError::ChangeFile(Box::new(error));
        let opened = || open().map_err(ChangeFileFailure::from);
        let ours = self.prepare()?;
        let header = self.0.sync.check_change_file(opened()?)?;
        let senders = self.senders(header.sender.id()).map_err(refused)?;
        if let Some(paused) = senders.iter().find(|peer| self.0.paused.contains(peer.key())) {
            return Err(PeersError::Paused(paused.name.clone()));
        }
        if let Some(gap) = header.base.lacked_by(&ours).ranges.first() {
            return Err(refused(ChangeFileRefusal::Gap(gap.origin)));
        }
        let sender = senders.first().map(|peer| peer.key().to_owned()).unwrap_or_default();
        let mut receiver = Receiver::new(self, &header, sender);
        let read = self.0.sync.read_change_file(opened()?, &mut receiver);
        // What has come is applied in any case.
        let stored = receiver.store();
        let problem = self.apply()?;
        read?;
        stored?;
        let Receiver { received, files, problem: damaged, .. } = receiver;
        let unfinished = self.pending_erasures()? > 0 || self.0.sync.has_unapplied()?;
        if !unfinished {
            self.note_file(&senders, &header, received.new + received.completed);
        }
        let waits = unfinished.then(|| WAITS.to_owned());
        let problem = received.refused.first().map(refusal).or(problem).or(damaged).or(waits);
        let peer = senders.into_iter().next().ok_or(PeersError::Stopping)?;
        let peer = self.find(if peer.device_id.is_empty() { &peer.name } else { &peer.device_id })?;
        Ok(ImportedChanges { peer, header, received, files, problem })
    }

    /// Returns the peer of this series; two if each of the daemons connects to the other one.
    ///
    /// # Errors
    /// There is none, or several say so that are not one: what a peer says about itself is not proved.
    fn senders(&self, origin: OriginId) -> Result<Vec<PeerView>, ChangeFileRefusal> {
        let senders: Vec<PeerView> =
            self.list().into_iter().filter(|peer| peer.origin == Some(origin)).collect();
        let recipients: BTreeSet<Option<String>> =
            senders.iter().map(|peer| self.contact(peer).recipient).collect();
        match recipients.len() {
            0 => Err(ChangeFileRefusal::UnknownSender(origin)),
            1 => Ok(senders),
            _ => Err(ChangeFileRefusal::AmbiguousSender(origin)),
        }
    }

    fn contact(&self, peer: &PeerView) -> Contact {
        match peer.direction {
            Direction::Outgoing => {
                let outgoing = lock(&self.0.outgoing).get(&peer.name).cloned();
                outgoing.map(|outgoing| outgoing.contact()).unwrap_or_default()
            }
            Direction::Incoming => lock(&self.0.incoming).get(&peer.device_id).cloned().unwrap_or_default(),
        }
    }

    /// Notes what a file says of the peer that has written it.
    fn note_file(&self, senders: &[PeerView], header: &ChangeFileHeader, received: u64) {
        let now = self.0.clock.now_micros();
        let note = |contact: &mut Contact| contact.read_file(header, received, now);
        for peer in senders {
            match peer.direction {
                Direction::Outgoing => {
                    if let Some(outgoing) = lock(&self.0.outgoing).get(&peer.name) {
                        outgoing.update(note);
                    }
                }
                Direction::Incoming => {
                    note(lock(&self.0.incoming).entry(peer.device_id.clone()).or_default());
                }
            }
        }
        self.save_contacts(true);
    }
}

/// Says in words what was refused.
fn refusal(refused: &Refused) -> String {
    let Refused { origin, counter, error } = refused;
    format!("change {} of the series {origin} was refused: {error}", counter.get())
}

/// Stores the changes and files of a file as they come.
struct Receiver<'a> {
    peers: &'a Peers,
    /// The key of the peer that has written the file.
    sender: String,
    pending: Vec<SignedChange>,
    bytes: usize,
    /// What the file said about itself when it was checked.
    header: &'a ChangeFileHeader,
    received: Received,
    files: u64,
    /// Which file of an attachment could not be stored, in words.
    problem: Option<String>,
    /// Whether changes were stored since it was determined which files are missing.
    changed: bool,
}

impl<'a> Receiver<'a> {
    fn new(peers: &'a Peers, header: &'a ChangeFileHeader, sender: String) -> Self {
        let (pending, received) = (Vec::new(), Received::default());
        Self { peers, sender, pending, bytes: 0, header, received, files: 0, problem: None, changed: true }
    }

    fn store(&mut self) -> Result<(), PeersError> {
        self.bytes = 0;
        let pending = std::mem::take(&mut self.pending);
        if pending.is_empty() {
            return Ok(());
        }
        let Received { new, repeated, completed, withheld: _, refused, own_fork: _ } =
            self.peers.receive(&self.sender, &pending)?;
        self.changed |= new + completed > 0;
        self.received.new += new;
        self.received.repeated += repeated;
        self.received.completed += completed;
        for refused in refused {
            if self.received.refused.iter().all(|known| known.origin != refused.origin) {
                self.received.refused.push(refused);
            }
        }
        Ok(())
    }
}

impl ChangeFileVisitor for Receiver<'_> {
    type Error = PeersError;

    fn header(&mut self, header: &ChangeFileHeader) -> Result<(), PeersError> {
        // Otherwise it was replaced after it had been checked.
        if header == self.header { Ok(()) } else { Err(ChangeFileFailure::Damaged.into()) }
    }

    fn change(&mut self, change: SignedChange) -> Result<(), PeersError> {
        self.bytes += change.payload().map_or(0, <[u8]>::len);
        self.pending.push(change);
        if self.pending.len() >= BATCH_CHANGES || self.bytes >= BATCH_BYTES { self.store() } else { Ok(()) }
    }

    fn file(&mut self, digest: Sha256Digest, _length: u64, source: &mut dyn Read) -> Result<(), PeersError> {
        self.store()?;
        if self.changed {
            // Which files are missing follows from the conversations.
            self.peers.apply()?;
            self.peers.0.sync.missing_files()?;
            self.changed = false;
        }
        match self.peers.put_file(digest, source) {
            Ok(_) => self.files += 1,
            // It is here already, or belongs to something that was erased.
            Err(FileError::NotWanted(_)) => {}
            // The others can be stored. A source that fails fails again below.
            Err(error @ FileError::Damaged(_)) => self.problem = Some(error.to_string()),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

impl From<ChangeFileFailure> for PeersError {
    fn from(error: ChangeFileFailure) -> Self {
        match error {
            ChangeFileFailure::Sync(error) => error.into(),
            ChangeFileFailure::Recipient => Self::KeyUnknown("the peer".to_owned()),
            error => Self::ChangeFile(Box::new(error.into())),
        }
    }
}

impl From<ChangeFileError> for PeersError {
    fn from(error: ChangeFileError) -> Self {
        ChangeFileFailure::from(error).into()
    }
}
