//! An accepted connection, and who is at its other end.

use std::{
    future::Future as _,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use satchel_devices::KeyHash;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::UnixStream,
    sync::OwnedSemaphorePermit,
    time::{Instant, Sleep, sleep_until},
};
use tonic::transport::server::Connected;

use super::unknown_clients::Evicted;

/// Who is at the other end of a connection.
#[derive(Clone, Debug)]
pub(super) enum Peer {
    /// A process on this machine, over the Unix socket.
    Local {
        /// Its user id, as reported by the kernel.
        uid: Option<u32>,
    },
    /// A client over TLS.
    Remote(RemotePeer),
    /// A client over gRPC-Web, on this machine.
    Web {
        /// Where it connects from.
        address: SocketAddr,
    },
}

/// A client over TLS.
#[derive(Clone, Debug)]
pub(super) struct RemotePeer {
    /// Where it connects from.
    pub(super) address: SocketAddr,
    /// The key of its certificate, which our authority has issued; `None` if it has none.
    pub(super) key: Option<KeyHash>,
    /// Set once the client has shown who it is: by its certificate, or by a token in a call.
    pub(super) proved: Arc<AtomicBool>,
}

/// How long a client over TLS may take to begin HTTP/2.
const OPENING_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes with which every HTTP/2 client begins.
const PREFACE_BYTES: usize = 24;
/// How long a client over TLS without a certificate may stay connected before it makes a call with a valid token. It is
/// enough to pair or to read the health.
const UNPROVED_TIMEOUT: Duration = Duration::from_mins(1);

/// What a connection reads from and writes to.
trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// An accepted connection, with the permits that are released when it ends.
pub(super) struct Connection {
    stream: Box<dyn ByteStream>,
    peer: Peer,
    /// Ends the connection of a client that does not go on; `None` once it cannot happen any more.
    opening: Option<Opening>,
    _permits: Box<dyn Send>,
}

/// The time limits of a client that only holds a connection. It would keep others from connecting for ever.
struct Opening {
    bytes: usize,
    proved: Arc<AtomicBool>,
    /// Completes if another client gets the place of this one.
    evicted: Option<Evicted>,
    began: Instant,
    deadline: Pin<Box<Sleep>>,
}

impl Opening {
    fn new(proved: Arc<AtomicBool>, evicted: Option<Evicted>) -> Self {
        let began = Instant::now();
        Self { bytes: 0, proved, evicted, began, deadline: Box::pin(sleep_until(began + OPENING_TIMEOUT)) }
    }

    /// Counts bytes that were read. Returns whether the time limits no longer apply.
    fn read(&mut self, bytes: usize) -> bool {
        let began = self.bytes >= PREFACE_BYTES;
        self.bytes = self.bytes.saturating_add(bytes);
        let begins = !began && self.bytes >= PREFACE_BYTES;
        let proved = self.proved.load(Ordering::Relaxed);
        if begins && !proved {
            self.deadline.as_mut().reset(self.began + UNPROVED_TIMEOUT);
        }
        proved && self.bytes >= PREFACE_BYTES
    }

    /// Returns ready if the client had all its time, or another client got its place.
    fn poll_expired(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        if let Some(evicted) = &mut self.evicted
            && Pin::new(evicted).poll(context).is_ready()
        {
            self.evicted = None;
            let reason = "another client got the place of this one, which does not show who it is";
            return Poll::Ready(io::Error::new(io::ErrorKind::ConnectionAborted, reason));
        }
        ready!(self.deadline.as_mut().poll(context));
        // A token may have come after the last read.
        if self.bytes >= PREFACE_BYTES && self.proved.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, "the client does not show who it is"))
    }
}

impl Connection {
    /// Returns the connection of a process on this machine.
    pub(super) fn local(stream: UnixStream, permit: Option<OwnedSemaphorePermit>) -> Self {
        let uid = stream.peer_cred().ok().map(|credentials| credentials.uid());
        Self {
            stream: Box::new(stream),
            peer: Peer::Local { uid },
            opening: None,
            _permits: Box::new(permit),
        }
    }

    /// Returns the connection of a client over TLS. It ends when `evicted` completes before the client has shown who it is.
    pub(super) fn remote(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        peer: RemotePeer,
        evicted: Option<Evicted>,
        permits: impl Send + 'static,
    ) -> Self {
        let opening = Some(Opening::new(Arc::clone(&peer.proved), evicted));
        Self { stream: Box::new(stream), peer: Peer::Remote(peer), opening, _permits: Box::new(permits) }
    }

    fn stream(self: Pin<&mut Self>) -> Pin<&mut dyn ByteStream> {
        Pin::new(&mut *self.get_mut().stream)
    }
}

/// What the guard finds in the extensions of each request.
pub(super) type ConnectionPeer = Arc<Peer>;

impl Connected for Connection {
    type ConnectInfo = ConnectionPeer;

    fn connect_info(&self) -> ConnectionPeer {
        Arc::new(self.peer.clone())
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let Some(opening) = &mut this.opening else {
            return Pin::new(&mut *this.stream).poll_read(context, buffer);
        };
        if let Poll::Ready(error) = opening.poll_expired(context) {
            return Poll::Ready(Err(error));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut *this.stream).poll_read(context, buffer);
        if opening.read(buffer.filled().len() - before) {
            this.opening = None;
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream().poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
