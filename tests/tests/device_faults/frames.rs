//! A client that writes the frames of HTTP/2 by itself, and so can do what no library does.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use satchel_devices::credentials::server_name;
use satchel_tests::test_device::TestDevice;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream, rustls::ClientConfig};

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
/// Error code of a stream that is not needed any more.
pub(crate) const CANCEL: [u8; 4] = [0, 0, 0, 8];
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Setting: how many bytes of each response the server may send before it is read.
const INITIAL_WINDOW_SIZE: [u8; 2] = [0, 4];
/// How long the server may take to send something.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// A frame that the server sent.
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) stream: u32,
}

/// A connection.
pub(crate) struct RawConnection(TlsStream<TcpStream>);

/// Opens a TCP connection from an address of this machine.
pub(crate) async fn connect_tcp(device: &TestDevice, from: Ipv4Addr) -> Result<TcpStream> {
    let address = device.credentials.addresses.first().context("an address")?.parse()?;
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    let stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Opens a connection with TLS, and sends nothing over it.
pub(crate) async fn connect_tls(
    device: &TestDevice,
    config: Arc<ClientConfig>,
    from: Ipv4Addr,
) -> Result<TlsStream<TcpStream>> {
    let stream = connect_tcp(device, from).await?;
    Ok(timeout(READ_TIMEOUT, TlsConnector::from(config).connect(server_name()?, stream)).await??)
}

impl RawConnection {
    /// Connects as a device, and waits until the server has begun HTTP/2. `window` is how many bytes of each response
    /// are read.
    pub(crate) async fn open(
        device: &TestDevice,
        config: Arc<ClientConfig>,
        from: Ipv4Addr,
        window: u32,
    ) -> Result<Self> {
        let mut connection = Self(connect_tls(device, config, from).await?);
        let mut begin = PREFACE.to_vec();
        let setting = [&INITIAL_WINDOW_SIZE[..], &window.to_be_bytes()].concat();
        begin.extend(frame(SETTINGS, 0, 0, &setting));
        connection.send(&begin).await?;
        let first = connection.read().await?.context("the server closes the connection")?;
        ensure!(first.kind == SETTINGS, "the server begins with frame {}", first.kind);
        Ok(connection)
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        // A server that neither reads nor closes must not hang the test.
        timeout(READ_TIMEOUT, self.0.write_all(bytes)).await??;
        timeout(READ_TIMEOUT, self.0.flush()).await??;
        Ok(())
    }

    /// Reads a frame; `None` at the end of the connection.
    pub(crate) async fn read(&mut self) -> Result<Option<Frame>> {
        let mut head = [0; 9];
        match timeout(READ_TIMEOUT, self.0.read_exact(&mut head)).await? {
            Ok(_) => {}
            // A connection that the server resets is closed too.
            Err(_) => return Ok(None),
        }
        let [a, b, c, kind, _, s1, s2, s3, s4] = head;
        let mut body = vec![0; u32::from_be_bytes([0, a, b, c]).try_into()?];
        if timeout(READ_TIMEOUT, self.0.read_exact(&mut body)).await?.is_err() {
            return Ok(None);
        }
        Ok(Some(Frame { kind, stream: u32::from_be_bytes([s1, s2, s3, s4]) }))
    }

    /// Reads until each of these streams has the headers of a response.
    pub(crate) async fn read_headers(&mut self, mut streams: Vec<u32>) -> Result<()> {
        while !streams.is_empty() {
            let Some(frame) = self.read().await? else { bail!("{} streams got no answer", streams.len()) };
            if frame.kind == HEADERS {
                streams.retain(|stream| *stream != frame.stream);
            }
        }
        Ok(())
    }

    /// Reads until the server closes the connection.
    pub(crate) async fn read_to_end(&mut self) -> Result<()> {
        while self.read().await?.is_some() {}
        Ok(())
    }
}

/// Returns the bytes of a frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(body);
    bytes
}

/// Returns the encoded headers of a call.
pub(crate) fn call_headers(path: &str, timeout: Option<&str>) -> Vec<u8> {
    let mut block = Vec::new();
    let timeout = timeout.map(|timeout| ("grpc-timeout", timeout));
    for (name, value) in [
        (":method", "POST"),
        (":scheme", "https"),
        (":path", path),
        (":authority", "satchel.local"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ]
    .into_iter()
    .chain(timeout)
    {
        // A literal that is not indexed. The lengths are below 127, so each is one byte.
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap_or(127));
            block.extend(text.bytes());
        }
    }
    block
}

/// Returns the frames of a call with one message.
pub(crate) fn call(stream: u32, path: &str, message: &[u8]) -> Vec<u8> {
    let mut bytes = frame(HEADERS, END_HEADERS, stream, &call_headers(path, None));
    bytes.extend(frame(DATA, END_STREAM, stream, &grpc_message(message)));
    bytes
}

/// Returns a message with the prefix of gRPC: not compressed, and its length.
pub(crate) fn grpc_message(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[0], &length[..], message].concat()
}
