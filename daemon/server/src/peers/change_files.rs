//! Files of changes, for peers that cannot be reached.

use std::{
    io::{Read, Seek, Write},
    time::Duration,
};

use satchel_core::sync::{ChangeFileFailure, NewChangeFile, Received, Refused, WrittenChangeFile};
use satchel_pam::hash::Sha256Digest;
use satchel_sync::{
    OriginId, SignedChange,
    change_file::{ChangeFileError, ChangeFileHeader, ChangeFileVisitor},
};

use super::{Direction, FileError, Peers, PeersError, lock, status::Contact};
use crate::peers::PeerView;

/// Changes and bytes that are stored at once.
const BATCH_CHANGES: usize = 400;
const BATCH_BYTES: usize = 1 << 20;

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
        let base = if full { None } else { contact.theirs };
        let new = NewChangeFile {
            recipient,
            base: base.unwrap_or_default(),
            wanted: contact.wanted,
            created_at: self.0.clock.now_micros(),
        };
        Ok(self.0.sync.write_change_file(&new, sink)?)
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
        let sender = header.sender.id();
        let peer = self.list().into_iter().find(|peer| peer.origin == Some(sender));
        let peer = peer.ok_or_else(|| refused(ChangeFileRefusal::UnknownSender(sender)))?;
        if self.0.paused.contains(peer.key()) {
            return Err(PeersError::Paused(peer.name));
        }
        if let Some(gap) = header.base.lacked_by(&ours).ranges.first() {
            return Err(refused(ChangeFileRefusal::Gap(gap.origin)));
        }
        let mut receiver = Receiver::new(self);
        let read = self.0.sync.read_change_file(opened()?, &mut receiver);
        // What has come is applied in any case.
        let stored = receiver.store();
        let problem = self.apply()?;
        read?;
        stored?;
        let Receiver { received, files, .. } = receiver;
        self.note_file(&peer, &header, received.new + received.completed);
        let problem = received.refused.first().map(refusal).or(problem);
        let peer = self.find(if peer.device_id.is_empty() { &peer.name } else { &peer.device_id })?;
        Ok(ImportedChanges { peer, header, received, files, problem })
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
    fn note_file(&self, peer: &PeerView, header: &ChangeFileHeader, received: u64) {
        let note = |contact: &mut Contact| contact.read_file(header, received);
        match peer.direction {
            Direction::Outgoing => {
                if let Some(outgoing) = lock(&self.0.outgoing).get(&peer.name) {
                    outgoing.update(note);
                }
            }
            Direction::Incoming => note(lock(&self.0.incoming).entry(peer.device_id.clone()).or_default()),
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
    pending: Vec<SignedChange>,
    bytes: usize,
    received: Received,
    files: u64,
    /// Whether changes were stored since it was determined which files are missing.
    changed: bool,
}

impl<'a> Receiver<'a> {
    fn new(peers: &'a Peers) -> Self {
        let (pending, received) = (Vec::new(), Received::default());
        Self { peers, pending, bytes: 0, received, files: 0, changed: true }
    }

    fn store(&mut self) -> Result<(), PeersError> {
        self.bytes = 0;
        let pending = std::mem::take(&mut self.pending);
        if pending.is_empty() {
            return Ok(());
        }
        self.changed = true;
        let Received { new, repeated, completed, refused } = self.peers.receive(&pending)?;
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

    fn header(&mut self, _header: &ChangeFileHeader) -> Result<(), PeersError> {
        Ok(())
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
        match self.peers.0.sync.put_file(digest, source) {
            Ok(_) => self.files += 1,
            // It is here already, or belongs to something that was erased.
            Err(FileError::NotWanted(_)) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

impl From<ChangeFileFailure> for PeersError {
    fn from(error: ChangeFileFailure) -> Self {
        match error {
            ChangeFileFailure::Sync(error) => error.into(),
            error => Self::ChangeFile(Box::new(error.into())),
        }
    }
}

impl From<ChangeFileError> for PeersError {
    fn from(error: ChangeFileError) -> Self {
        ChangeFileFailure::from(error).into()
    }
}
