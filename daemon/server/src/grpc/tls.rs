//! Accepts clients over TLS: handshakes side by side, each with a time limit, and limits for each address and device.

use std::{
    collections::HashMap,
    hash::Hash,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
    time::Duration,
};

use satchel_devices::{DevicesError, KeyHash, key_hash_of};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig, server::TlsStream};
use tokio_stream::wrappers::ReceiverStream;

use super::{
    connection::{Connection, RemotePeer},
    unknown_clients::{Evicted, UnknownClients, UnknownPlace},
};

/// How long a client may take for its handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections of one device.
const MAX_PER_DEVICE: usize = 8;
/// Time until the next attempt if the system had no file descriptor for a connection.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// A listener for clients over TLS.
pub(crate) struct TlsListener {
    listener: TcpListener,
    config: Arc<ServerConfig>,
}

impl TlsListener {
    /// Listens with the settings of the daemon's authority.
    pub(crate) fn new(listener: TcpListener, config: Arc<ServerConfig>) -> Self {
        Self { listener, config }
    }
}

/// Returns the connections as their handshakes end, at most `limit` of known devices at once. Runs until the receiver is
/// dropped.
pub(super) fn incoming(listener: TlsListener, limit: usize) -> ReceiverStream<io::Result<Connection>> {
    let (sender, receiver) = mpsc::channel(1);
    let TlsListener { listener, config } = listener;
    let acceptor = Arc::new(Handshakes {
        acceptor: TlsAcceptor::from(config),
        unknown: UnknownClients::default(),
        connections: Arc::new(Semaphore::new(limit)),
        by_device: Counts::default(),
    });
    tokio::spawn(accept(listener, acceptor, sender));
    ReceiverStream::new(receiver)
}

async fn accept(
    listener: TcpListener,
    handshakes: Arc<Handshakes>,
    sender: mpsc::Sender<io::Result<Connection>>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = sender.closed() => return,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection yet");
                tokio::time::sleep(RETRY_DELAY).await;
                continue;
            }
        };
        let (handshakes, sender) = (Arc::clone(&handshakes), sender.clone());
        // Refused before a task is started for it: there may be many.
        let Some(place) = handshakes.unknown.admit(address.ip()) else { continue };
        tokio::spawn(async move {
            match handshakes.shake(stream, address, place).await {
                Ok(Some(connection)) => drop(sender.send(Ok(connection)).await),
                Ok(None) => tracing::debug!(%address, "too many connections"),
                Err(error) => tracing::debug!(%address, %error, "a TLS handshake failed"),
            }
        });
    }
}

/// What handshakes need, and their limits.
struct Handshakes {
    acceptor: TlsAcceptor,
    /// Places for clients whose device is not known, or not known yet.
    unknown: UnknownClients,
    /// Permits for connections of devices.
    connections: Arc<Semaphore>,
    by_device: Counts<KeyHash>,
}

impl Handshakes {
    /// Shakes hands. Returns `None` if the device has too many connections.
    async fn shake(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        (place, mut evicted): (UnknownPlace, Evicted),
    ) -> Result<Option<Connection>, HandshakeFailed> {
        stream.set_nodelay(true)?;
        let stream = tokio::select! {
            shaken = timeout(HANDSHAKE_TIMEOUT, self.acceptor.accept(stream)) => shaken??,
            _ = &mut evicted => return Err(HandshakeFailed::Evicted),
        };
        let Some(key) = peer_key(&stream)? else {
            let peer = RemotePeer { address, key: None, proved: Arc::clone(&place.proved) };
            return Ok(Some(Connection::remote(stream, peer, Some(evicted), place)));
        };
        let peer = RemotePeer { address, key: Some(key), proved: Arc::new(AtomicBool::new(true)) };
        let permit = Arc::clone(&self.connections).try_acquire_owned().ok();
        let counted = self.by_device.count(key, MAX_PER_DEVICE);
        Ok(permit.zip(counted).map(|permits| Connection::remote(stream, peer, None, permits)))
    }
}

/// The reason why a handshake failed.
#[derive(Debug, thiserror::Error)]
enum HandshakeFailed {
    #[error("it took longer than {} s", HANDSHAKE_TIMEOUT.as_secs())]
    Slow(#[from] tokio::time::error::Elapsed),
    #[error("another client got its place")]
    Evicted,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Certificate(#[from] DevicesError),
}

/// Returns the key of the client's certificate; `None` if it has none.
fn peer_key(stream: &TlsStream<TcpStream>) -> Result<Option<KeyHash>, DevicesError> {
    let (_, session) = stream.get_ref();
    let certificate = session.peer_certificates().and_then(|chain| chain.first());
    certificate.map(|certificate| key_hash_of(certificate)).transpose()
}

/// How many of each kind there are. Clones share the counts.
#[derive(Clone, Debug)]
struct Counts<K>(Arc<Mutex<HashMap<K, usize>>>);

/// One of a kind, which counts until it is dropped.
#[derive(Debug)]
struct Counted<K: Copy + Eq + Hash> {
    counts: Counts<K>,
    kind: K,
}

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Copy + Eq + Hash> Counts<K> {
    /// Counts one more of a kind; `None` if there are `limit` already.
    fn count(&self, kind: K, limit: usize) -> Option<Counted<K>> {
        let mut counts = self.counts();
        let count = counts.entry(kind).or_default();
        if *count >= limit {
            return None;
        }
        *count += 1;
        Some(Counted { counts: self.clone(), kind })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        // Each change is a single step, so a panic leaves no half of one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Copy + Eq + Hash> Drop for Counted<K> {
    fn drop(&mut self) {
        let mut counts = self.counts.counts();
        if let Some(count) = counts.get_mut(&self.kind) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.kind);
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn counts_end_with_what_they_count() {
        let counts = Counts::default();
        let held: Vec<_> = (0..3).map(|_| counts.count(7, 3).unwrap()).collect();
        assert!(counts.count(7, 3).is_none());
        assert!(counts.count(8, 3).is_some(), "another kind has a count of its own");
        drop(held);
        assert!(counts.counts().is_empty());
    }
}
