//! The files of attachments that are fetched from a peer only when somebody wants one.

use std::{collections::BTreeSet, io::Read, time::Duration};

use satchel_core::sync::FileError;
use satchel_devices::Device;
use satchel_pam::hash::Sha256Digest;

use super::{PeerView, Peers, PeersError, exchange::blocking, lock, outgoing::Outgoing};

/// How long somebody who wants a file waits for it.
const WAIT: Duration = Duration::from_secs(30);

impl Peers {
    /// Sets whether the files of attachments come from a peer only when somebody wants one. Blocks.
    ///
    /// # Errors
    /// When that cannot be stored.
    pub(crate) fn set_on_demand(&self, peer: &PeerView, on_demand: bool) -> Result<(), PeersError> {
        self.0.on_demand.set(peer.key(), on_demand)?;
        if let Some(outgoing) = lock(&self.0.outgoing).get(&peer.name) {
            outgoing.wake();
        }
        Ok(())
    }

    /// Returns the files that this store lacks and fetches from a peer that it connects to. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(super) fn files_to_fetch(&self, peer: &Outgoing) -> Result<BTreeSet<Sha256Digest>, PeersError> {
        self.files_from(&peer.name())
    }

    /// Returns the files that this store lacks and that an incoming peer may send; all of them without a peer. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn files_to_take(
        &self,
        device: Option<&Device>,
    ) -> Result<BTreeSet<Sha256Digest>, PeersError> {
        match device {
            Some(device) => self.files_from(device.id.as_str()),
            None => Ok(self.0.sync.missing_files()?),
        }
    }

    fn files_from(&self, key: &str) -> Result<BTreeSet<Sha256Digest>, PeersError> {
        let mut missing = self.0.sync.missing_files()?;
        if self.0.on_demand.contains(key) {
            let wanted = lock(&self.0.wanted_files);
            missing.retain(|digest| wanted.contains(digest));
        }
        Ok(missing)
    }

    /// Stores a file that this store lacks; returns its size in bytes. Blocks.
    ///
    /// # Errors
    /// As [`satchel_core::sync::Sync::put_file`].
    pub(crate) fn put_file(&self, digest: Sha256Digest, source: &mut dyn Read) -> Result<u64, FileError> {
        let stored = self.0.sync.put_file(digest, source);
        if stored.is_ok() {
            lock(&self.0.wanted_files).remove(&digest);
            self.0.files_stored.send_modify(|count| *count += 1);
        }
        stored
    }

    /// Returns whether the store has a file, after waiting for the peers if it lacks it and one of them sends files only when they are
    /// wanted.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) async fn fetch_file(&self, digest: Sha256Digest) -> Result<bool, PeersError> {
        let mut stored = self.0.files_stored.subscribe();
        if self.0.on_demand.is_empty() || !self.lacks(digest).await? {
            return Ok(true);
        }
        lock(&self.0.wanted_files).insert(digest);
        let came = async {
            // Those that connect to this daemon fetch what is wanted at their next exchange.
            self.exchange_now("").await?;
            while self.lacks(digest).await? {
                if !self.may_be_sent() {
                    return Ok(false);
                }
                if stored.changed().await.is_err() {
                    return Err(PeersError::Stopping);
                }
            }
            Ok(true)
        };
        match tokio::time::timeout(WAIT, came).await {
            Ok(came) => came,
            // It is fetched when a peer that has it can be reached.
            Err(_) => Ok(false),
        }
    }

    /// Returns whether an incoming peer may send a file when it calls.
    fn may_be_sent(&self) -> bool {
        let outgoing = lock(&self.0.outgoing);
        self.0.on_demand.contains_other(|key| outgoing.contains_key(key))
    }

    async fn lacks(&self, digest: Sha256Digest) -> Result<bool, PeersError> {
        let peers = self.clone();
        blocking(move || Ok(peers.0.sync.lacks_file(&digest)?)).await
    }
}
