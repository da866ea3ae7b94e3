//! Accepted connections, limited in number. Further clients wait until a connection ends.

use std::{io, sync::Arc, time::Duration};

use rustix::process::{Resource, getrlimit};
use tokio::{
    net::UnixListener,
    sync::{Semaphore, mpsc},
};
use tokio_stream::wrappers::ReceiverStream;

use super::connection::Connection;

/// Largest number of connections. Every command uses one for a short time; a permanent client uses one.
const MAX_CONNECTIONS: u64 = 128;
/// Smallest number of connections, even if few files may be open.
const MIN_CONNECTIONS: u64 = 16;
/// One in this many of the files that may be open is for connections.
const FILES_PER_CONNECTION: u64 = 4;
/// Time until the next attempt if the system had no file descriptor for a connection.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// Returns the limit of connections, from the number of files that may be open.
pub(super) fn connection_limit() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from((files / FILES_PER_CONNECTION).clamp(MIN_CONNECTIONS, MAX_CONNECTIONS))
        .unwrap_or(usize::MAX)
}

/// Returns the connections of a listener as they arrive, at most `limit` at once. Runs until the receiver is dropped.
pub(super) fn incoming(listener: UnixListener, limit: usize) -> ReceiverStream<io::Result<Connection>> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(accept(listener, Arc::new(Semaphore::new(limit)), sender));
    ReceiverStream::new(receiver)
}

async fn accept(
    listener: UnixListener,
    permits: Arc<Semaphore>,
    sender: mpsc::Sender<io::Result<Connection>>,
) {
    loop {
        let permit = tokio::select! {
            permit = Arc::clone(&permits).acquire_owned() => permit,
            () = sender.closed() => return,
        };
        // The semaphore is never closed.
        let Ok(permit) = permit else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = sender.closed() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                if sender.send(Ok(Connection::local(stream, Some(permit)))).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                // All file descriptors are in use. Waiting clients are served when some of them are closed.
                tracing::warn!(%error, "cannot accept a connection yet");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use tokio::net::UnixStream;
    use tokio_stream::StreamExt as _;

    use super::*;

    #[tokio::test]
    async fn connections_beyond_the_limit_wait_until_one_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let mut connections = incoming(UnixListener::bind(&path).unwrap(), 2);
        let clients: Vec<UnixStream> = connect_clients(&path, 3).await;
        let first = connections.next().await.unwrap().unwrap();
        let _second = connections.next().await.unwrap().unwrap();
        let third = tokio::time::timeout(Duration::from_millis(50), connections.next()).await;
        assert!(third.is_err(), "the third waits");
        drop(first);
        assert!(connections.next().await.unwrap().is_ok());
        drop(clients);
    }

    async fn connect_clients(path: &std::path::Path, count: usize) -> Vec<UnixStream> {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(UnixStream::connect(path).await.unwrap());
        }
        all
    }

    #[test]
    fn the_connection_limit_is_within_its_bounds() {
        assert!((MIN_CONNECTIONS..=MAX_CONNECTIONS).contains(&(connection_limit() as u64)));
    }
}
