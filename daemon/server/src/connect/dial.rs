//! Opens a TLS connection to the first address of a daemon that answers.

use std::{error::Error, io, sync::Arc, time::Duration};

use hyper_util::rt::TokioIo;
use satchel_devices::{HandshakeError, credentials::server_name};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpStream,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::{TlsConnector, client::TlsStream, rustls::ClientConfig};
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use super::{AddressFailure, RemoteError};

/// How long one address may take, from the name look-up to the first bytes of the daemon.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an address is tried alone before the next one is tried as well, as in RFC 8305.
const STAGGER: Duration = Duration::from_millis(250);
/// Interval of pings for commands, so that routers do not forget the connection, and a person does not wait long for a daemon that is
/// gone.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(20);
/// The same for connections that stay open while nothing happens, for which nobody waits.
const IDLE_KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(40);
/// How long the answer to a ping may take.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// A connection of which the first bytes of the daemon are in the buffer.
pub(super) type RemoteStream = BufReader<TlsStream<TcpStream>>;

/// The addresses of a daemon, and the TLS settings for it. Clones share them.
#[derive(Clone)]
pub(super) struct Dialer {
    addresses: Arc<[String]>,
    tls: TlsConnector,
    keep_alive: Duration,
}

/// A connection, and the address that answered.
pub(super) struct Dialed {
    pub(super) address: String,
    pub(super) stream: RemoteStream,
}

/// The reason why one address cannot be used.
enum AttemptError {
    NoAnswer(String),
    Handshake(HandshakeError),
}

impl Dialer {
    pub(super) fn new(addresses: Vec<String>, tls: Arc<ClientConfig>) -> Self {
        let tls = TlsConnector::from(tls);
        Self { addresses: addresses.into(), tls, keep_alive: KEEP_ALIVE_INTERVAL }
    }

    /// Prepares for a connection that stays open while nothing happens.
    pub(super) fn for_idling(self) -> Self {
        Self { keep_alive: IDLE_KEEP_ALIVE_INTERVAL, ..self }
    }

    /// Connects to the first address that answers. The next address is tried when one has failed, or has not answered
    /// for [`STAGGER`].
    ///
    /// # Errors
    /// None answers, or a daemon that is not the expected one does.
    pub(super) async fn dial(&self) -> Result<Dialed, RemoteError> {
        let mut untried = self.addresses.iter().cloned();
        let (mut attempts, mut failures) = (JoinSet::new(), Vec::new());
        loop {
            if let Some(address) = untried.next() {
                attempts.spawn(attempt(self.tls.clone(), address));
            }
            if attempts.is_empty() {
                return Err(failed(failures));
            }
            let next_soon = untried.len() > 0;
            tokio::select! {
                Some(ended) = attempts.join_next() => match ended {
                    Ok((address, Ok(stream))) => return Ok(Dialed { address, stream }),
                    Ok((address, Err(error))) => failures.push((address, error)),
                    Err(error) => tracing::debug!(%error, "an attempt to connect was aborted"),
                },
                () = sleep(STAGGER), if next_soon => {}
            }
        }
    }

    /// Returns a channel that begins with `first`, and dials again when the connection is lost.
    ///
    /// # Errors
    /// The daemon does not speak HTTP/2.
    pub(super) async fn channel(self, first: Dialed) -> Result<Channel, RemoteError> {
        let Dialed { address, stream } = first;
        let keep_alive = self.keep_alive;
        let mut first = Some(stream);
        let connector = service_fn(move |_: Uri| {
            let (dialer, first) = (self.clone(), first.take());
            async move {
                if let Some(stream) = first {
                    return Ok(TokioIo::new(stream));
                }
                dialer.dial().await.map(|dialed| TokioIo::new(dialed.stream))
            }
        });
        Endpoint::from_static("http://daemon.satchel.internal")
            .http2_keep_alive_interval(keep_alive)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true)
            .connect_with_connector(connector)
            .await
            .map_err(|source| RemoteError::Http { address, source: source.into() })
    }
}

async fn attempt(tls: TlsConnector, address: String) -> (String, Result<RemoteStream, AttemptError>) {
    let late = |_| AttemptError::NoAnswer(format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()));
    let outcome = timeout(CONNECT_TIMEOUT, open(&tls, &address)).await.map_err(late);
    let outcome = outcome.and_then(|outcome| outcome.map_err(|error| attempt_error(&error)));
    (address, outcome)
}

/// Connects, and waits for the first bytes of the daemon: only then has it accepted the certificate of this device.
async fn open(tls: &TlsConnector, address: &str) -> io::Result<RemoteStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let name = server_name().map_err(io::Error::other)?;
    let mut stream = BufReader::new(tls.connect(name, stream).await?);
    if stream.fill_buf().await?.is_empty() {
        return Err(io::Error::other("it closed the connection; it may have too many"));
    }
    Ok(stream)
}

fn attempt_error(error: &io::Error) -> AttemptError {
    if let Some(handshake) = HandshakeError::find(error as &(dyn Error + 'static)) {
        return AttemptError::Handshake(handshake);
    }
    AttemptError::NoAnswer(match error.raw_os_error() {
        // Without the number of the error, which tells a person nothing.
        Some(_) => error.kind().to_string(),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "it closed the connection; another program may listen there".to_owned()
        }
        None => error.to_string(),
    })
}

/// Returns the error for all addresses. A daemon that answers, but cannot be used, tells more than one that does not
/// answer.
fn failed(failures: Vec<(String, AttemptError)>) -> RemoteError {
    let mut unreachable = Vec::new();
    for (address, error) in failures {
        match error {
            AttemptError::Handshake(error) => return RemoteError::Handshake { address, error },
            AttemptError::NoAnswer(reason) => unreachable.push(AddressFailure { address, reason }),
        }
    }
    RemoteError::Unreachable { failures: unreachable }
}
