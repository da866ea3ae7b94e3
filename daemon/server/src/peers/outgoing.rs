//! What this daemon keeps of a daemon that it connects to.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use satchel_devices::{Credentials, DevicesError};
use satchel_pam::hash::Sha256Digest;
use satchel_sync::Frontier;
use tokio::sync::Notify;

use super::{
    PeersError, SelectionFilter, lock,
    selections::filter,
    status::{Contact, PeerState, PeerView},
};

/// A daemon that this one connects to.
pub(super) struct Outgoing {
    credentials: Mutex<Credentials>,
    pub(super) contact: Mutex<Contact>,
    /// Held during an exchange, so that there is only one at a time.
    pub(super) exchanging: tokio::sync::Mutex<()>,
    pub(super) woken: Notify,
    removed: AtomicBool,
    /// Files that could not be exchanged with the peer. They are not tried again in this run.
    pub(super) failed_files: Mutex<BTreeSet<Sha256Digest>>,
}

impl Outgoing {
    pub(super) fn new(credentials: Credentials, contact: Contact) -> Self {
        Self {
            credentials: Mutex::new(credentials),
            contact: Mutex::new(contact),
            exchanging: tokio::sync::Mutex::default(),
            woken: Notify::new(),
            removed: AtomicBool::new(false),
            failed_files: Mutex::default(),
        }
    }

    pub(super) fn name(&self) -> String {
        lock(&self.credentials).name.clone()
    }

    pub(super) fn credentials(&self) -> Credentials {
        lock(&self.credentials).clone()
    }

    /// Changes the credentials, and writes them into the folder of peers. Blocks.
    ///
    /// # Errors
    /// When they cannot be written. Nothing has changed then.
    pub(super) fn change_credentials(
        &self,
        folder: &Path,
        change: impl FnOnce(&mut Credentials),
    ) -> Result<(), DevicesError> {
        // Held to the end: two changes at once would undo each other.
        let mut known = lock(&self.credentials);
        let mut next = known.clone();
        change(&mut next);
        next.save(folder)?;
        *known = next;
        Ok(())
    }

    /// Returns what the peer gets; `None` if that is everything.
    pub(super) fn filter(&self) -> Option<SelectionFilter> {
        filter(lock(&self.credentials).selection.clone())
    }

    /// Lets the task that follows the peer look at its settings again.
    pub(super) fn wake(&self) {
        self.woken.notify_one();
    }

    pub(super) fn remove(&self) {
        self.removed.store(true, Ordering::Relaxed);
        self.wake();
    }

    pub(super) fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Relaxed)
    }

    /// Returns which changes the peer had at the last contact.
    pub(super) fn theirs(&self) -> Option<Frontier> {
        lock(&self.contact).theirs.clone()
    }

    /// Returns what is known of the peer.
    pub(super) fn contact(&self) -> Contact {
        lock(&self.contact).clone()
    }

    /// Changes what is known of the peer.
    pub(super) fn update(&self, change: impl FnOnce(&mut Contact)) {
        change(&mut lock(&self.contact));
    }

    pub(super) fn view(&self, ours: &Frontier, paused: bool) -> PeerView {
        let credentials = self.credentials();
        let contact = lock(&self.contact).clone();
        PeerView {
            name: credentials.name.clone(),
            addresses: credentials.addresses.clone(),
            fingerprint: credentials.fingerprint().ok().map(|fingerprint| fingerprint.to_string()),
            device_id: credentials.device_id().map(|id| id.to_string()).unwrap_or_default(),
            selection: credentials.selection.clone(),
            ..contact.view(ours, paused)
        }
    }

    /// Notes how an exchange, or the attempt to connect, ended.
    pub(super) fn note(&self, outcome: &Result<Option<String>, PeersError>) {
        let mut contact = lock(&self.contact);
        match outcome {
            Ok(problem) => {
                contact.state = PeerState::Ok;
                contact.last_error.clone_from(problem);
            }
            Err(error) => {
                contact.state = PeerState::Failed;
                contact.last_error = Some(satchel_source::chain(error));
            }
        }
    }
}
