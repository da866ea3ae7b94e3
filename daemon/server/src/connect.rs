//! Connections of a client to a daemon: that of a data directory, or a paired one on another machine.

mod dial;
mod remote;

use std::{
    error::Error,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use hyper_util::rt::TokioIo;
use tokio::{net::UnixStream, sync::mpsc};
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

pub use remote::{
    AddressFailure, Paired, PairingAttempt, RemoteError, connect_pinned, connect_remote, pair, renew,
};

pub(crate) use remote::connect_peer;

use crate::socket::{self, SocketError};

/// A local socket responds at once or not at all.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why a client cannot connect to a daemon.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No process listens on the socket of the data directory.
    #[error("no daemon is running for {dir:?}; start one with `satchel serve`")]
    NotRunning { dir: PathBuf },
    /// The process at the other end belongs to another user.
    #[error("{path:?} is served by user {uid}, not by you; remove it if you do not know it")]
    OtherUser { path: PathBuf, uid: u32 },
    /// The location of the socket cannot be read.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// A process listens, but the connection fails.
    #[error("cannot connect to {path:?}")]
    Failed { path: PathBuf, source: Box<dyn Error + Send + Sync> },
}

/// A connector to a daemon inside this process. Such a daemon has no socket because its disk cannot hold one.
#[derive(Clone, Debug)]
pub struct InProcessConnector(mpsc::Sender<UnixStream>);

impl InProcessConnector {
    /// Returns the connector, and the receiver of its connections.
    pub(crate) fn new() -> (Self, mpsc::Receiver<UnixStream>) {
        let (sender, receiver) = mpsc::channel(1);
        (Self(sender), receiver)
    }

    /// Connects to the daemon.
    ///
    /// # Errors
    /// If the daemon has ended.
    pub async fn connect(self) -> Result<Channel, ConnectError> {
        let connector = service_fn(move |_: Uri| {
            let streams = self.0.clone();
            async move {
                let (client_end, server_end) = UnixStream::pair()?;
                let ended = |_| io::Error::from(io::ErrorKind::ConnectionRefused);
                streams.send(server_end).await.map_err(ended)?;
                Ok::<_, io::Error>(TokioIo::new(client_end))
            }
        });
        let failed = |source: tonic::transport::Error| ConnectError::Failed {
            path: PathBuf::from("this process"),
            source: source.into(),
        };
        Endpoint::from_static("http://satchel.local").connect_with_connector(connector).await.map_err(failed)
    }
}

/// Connects to the daemon of `data_dir`.
///
/// # Errors
/// [`ConnectError::NotRunning`] if no process listens: there is no socket, or a killed daemon left it behind.
pub async fn connect(data_dir: &Path) -> Result<Channel, ConnectError> {
    let not_running = || ConnectError::NotRunning { dir: data_dir.to_owned() };
    let path = socket::socket_path(data_dir)?.ok_or_else(not_running)?;
    match connect_socket(&path).await {
        Err(ConnectError::Failed { source, .. }) if no_listener(source.as_ref()) => Err(not_running()),
        outcome => outcome,
    }
}

/// Connects to the daemon that listens on the socket `path`, wherever its data directory is.
///
/// # Errors
/// If no process listens there, or a process of another user does.
pub async fn connect_socket(path: &Path) -> Result<Channel, ConnectError> {
    let path = path.to_owned();
    // Open the first stream here, so that its error keeps its kind.
    drop(open_stream(&path).await?);
    let target = path.clone();
    let connector = service_fn(move |_: Uri| {
        let target = target.clone();
        async move { open_stream(&target).await.map(TokioIo::new) }
    });
    Endpoint::from_static("http://satchel.local")
        .connect_timeout(CONNECT_TIMEOUT)
        .connect_with_connector(connector)
        .await
        .map_err(|source| ConnectError::Failed { path, source: source.into() })
}

/// Returns whether a process listens on the socket of `data_dir`.
pub async fn is_listening(data_dir: &Path) -> bool {
    match socket::socket_path(data_dir) {
        Ok(Some(path)) => open_stream(&path).await.is_ok(),
        Ok(None) | Err(_) => false,
    }
}

async fn open_stream(path: &Path) -> Result<UnixStream, ConnectError> {
    let failed = |source: io::Error| ConnectError::Failed { path: path.to_owned(), source: source.into() };
    let stream = UnixStream::connect(path).await.map_err(failed)?;
    let uid = stream.peer_cred().map_err(failed)?.uid();
    if uid != rustix::process::geteuid().as_raw() {
        return Err(ConnectError::OtherUser { path: path.to_owned(), uid });
    }
    Ok(stream)
}

fn no_listener(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| {
        matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_a_socket_no_daemon_runs() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(connect(dir.path()).await, Err(ConnectError::NotRunning { .. })));
        assert!(!is_listening(dir.path()).await);
    }

    #[tokio::test]
    async fn the_socket_of_a_killed_daemon_counts_as_not_running() {
        let dir = tempfile::tempdir().unwrap();
        drop(std::os::unix::net::UnixListener::bind(dir.path().join("satchel.sock")).unwrap());
        assert!(matches!(connect(dir.path()).await, Err(ConnectError::NotRunning { .. })));
        assert!(!is_listening(dir.path()).await);
    }

    #[tokio::test]
    async fn a_client_connects_to_a_listening_socket() {
        let dir = tempfile::tempdir().unwrap();
        let _listener = socket::Listener::bind(dir.path(), dir.path()).unwrap();
        assert!(is_listening(dir.path()).await);
        assert!(connect(dir.path()).await.is_ok());
    }
}
