//! An accepted connection, and who is at its other end.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use satchel_devices::KeyHash;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::UnixStream,
    sync::OwnedSemaphorePermit,
};
use tonic::transport::server::Connected;

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
}

/// A client over TLS.
#[derive(Clone, Debug)]
pub(super) struct RemotePeer {
    /// Where it connects from.
    pub(super) address: SocketAddr,
    /// The key of its certificate, which our authority has issued; `None` if it has none.
    pub(super) key: Option<KeyHash>,
}

/// What a connection reads from and writes to.
trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// An accepted connection, with the permits that are released when it ends.
pub(super) struct Connection {
    stream: Box<dyn ByteStream>,
    peer: Peer,
    _permits: Box<dyn Send>,
}

impl Connection {
    /// Returns the connection of a process on this machine.
    pub(super) fn local(stream: UnixStream, permit: Option<OwnedSemaphorePermit>) -> Self {
        let uid = stream.peer_cred().ok().map(|credentials| credentials.uid());
        Self { stream: Box::new(stream), peer: Peer::Local { uid }, _permits: Box::new(permit) }
    }

    /// Returns the connection of a client over TLS.
    pub(super) fn remote(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        peer: RemotePeer,
        permits: impl Send + 'static,
    ) -> Self {
        Self { stream: Box::new(stream), peer: Peer::Remote(peer), _permits: Box::new(permits) }
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
        self.stream().poll_read(context, buffer)
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
