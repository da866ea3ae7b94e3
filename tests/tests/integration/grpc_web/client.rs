//! A client that speaks gRPC-Web over HTTP/1.1, like a page in a browser.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use bytes::{Buf as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    HeaderMap, Request,
    body::Incoming,
    client::conn::http1::{SendRequest, handshake},
};
use hyper_util::rt::TokioIo;
use prost::Message;
use prost_types::Timestamp;
use satchel_proto::v1::{self, device_service_client::DeviceServiceClient};
use satchel_server::config::Config;
use satchel_tests::test_daemon::TestDaemon;
use tokio::net::TcpStream;
use tonic::Code;

/// The page that the daemons of these tests know.
pub(crate) const ORIGIN: &str = "http://localhost:5173";
pub(crate) const BINARY: &str = "application/grpc-web+proto";
/// The flag of the frame with the trailers.
const TRAILERS: u8 = 0x80;

/// Makes a daemon accept gRPC-Web on a free port.
///
/// # Panics
/// Never: the texts are valid.
pub(crate) fn web(config: &mut Config) {
    config.web = Some("127.0.0.1:0".parse().unwrap());
    config.web_origins = vec![ORIGIN.parse().unwrap()];
}

/// Starts a daemon with gRPC-Web.
pub(crate) async fn web_daemon() -> Result<(TestDaemon, SocketAddr)> {
    let daemon = TestDaemon::start_with(tempfile::tempdir()?, web).await?;
    let address = daemon.web.context("it serves gRPC-Web")?;
    Ok((daemon, address))
}

/// Creates a token that expires in `seconds`.
pub(crate) async fn token(
    daemon: &TestDaemon,
    name: &str,
    role: v1::DeviceRole,
    seconds: i64,
) -> Result<v1::CreateTokenResponse> {
    let now = i64::try_from(std::time::UNIX_EPOCH.elapsed()?.as_secs())?;
    let request = v1::CreateTokenRequest {
        name: name.to_owned(),
        policy: Some(satchel_tests::test_device::policy(role)),
        expire_time: Some(Timestamp { seconds: now + seconds, nanos: 0 }),
    };
    Ok(DeviceServiceClient::new(daemon.channel.clone()).create_token(request).await?.into_inner())
}

/// Returns the headers of a call with a token.
pub(crate) fn bearer(token: &str) -> Vec<(&'static str, String)> {
    let own = [("content-type", BINARY.to_owned()), ("origin", ORIGIN.to_owned())];
    own.into_iter().chain([("authorization", format!("Bearer {token}"))]).collect()
}

/// A response whose head has arrived.
pub(crate) struct WebResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    /// Bytes that have arrived and are not read.
    unread: BytesMut,
    // The connection closes when it is dropped.
    _connection: SendRequest<Full<Bytes>>,
}

/// A frame of a response.
#[derive(Debug)]
pub(crate) enum Frame {
    Message(Bytes),
    Trailers(String),
}

/// Sends one request on a connection of its own. `Host` is the address unless the headers have another.
pub(crate) async fn send(
    address: SocketAddr,
    (method, path): (&str, &str),
    headers: &[(&'static str, String)],
    body: impl Into<Bytes>,
) -> Result<WebResponse> {
    let stream = TcpStream::connect(address).await?;
    let (mut connection, task) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(task);
    let mut request = Request::builder().method(method).uri(path);
    if !headers.iter().any(|(name, _)| *name == "host") {
        request = request.header("host", address.to_string());
    }
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    let response = connection.send_request(request.body(Full::new(body.into()))?).await?;
    let (head, body) = response.into_parts();
    Ok(WebResponse {
        status: head.status.as_u16(),
        headers: head.headers,
        body,
        unread: BytesMut::new(),
        _connection: connection,
    })
}

/// Calls a method with one message.
pub(crate) async fn call(
    address: SocketAddr,
    path: &str,
    headers: &[(&'static str, String)],
    message: &impl Message,
) -> Result<WebResponse> {
    send(address, ("POST", path), headers, frame(message)).await
}

/// Returns a message with its header.
pub(crate) fn frame(message: &impl Message) -> Vec<u8> {
    let encoded = message.encode_to_vec();
    let mut frame = vec![0];
    frame.extend(u32::try_from(encoded.len()).expect("a short message").to_be_bytes());
    frame.extend(encoded);
    frame
}

impl WebResponse {
    /// Returns the next frame; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.buffered() {
                return Ok(Some(frame));
            }
            let Some(received) = self.body.frame().await else {
                anyhow::ensure!(self.unread.is_empty(), "the last frame is incomplete");
                return Ok(None);
            };
            self.unread.extend(received?.into_data().ok().context("trailers are in the body")?);
        }
    }

    fn buffered(&mut self) -> Option<Frame> {
        let (flag, length) = self
            .unread
            .split_first_chunk::<5>()
            .map(|(head, _)| (head[0], u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize))?;
        if self.unread.len() < 5 + length {
            return None;
        }
        self.unread.advance(5);
        let content = self.unread.split_to(length).freeze();
        Some(if flag & TRAILERS == 0 {
            Frame::Message(content)
        } else {
            Frame::Trailers(String::from_utf8_lossy(&content).into_owned())
        })
    }

    /// Reads the only message of a response.
    pub(crate) async fn message<M: Message + Default>(mut self) -> Result<M> {
        let frame = self.next().await?;
        let Some(Frame::Message(content)) = frame else { anyhow::bail!("{frame:?}, {:?}", self.headers) };
        anyhow::ensure!(self.code().await? == Code::Ok);
        Ok(M::decode(content)?)
    }

    /// Reads the response to its end, and returns its status.
    pub(crate) async fn code(&mut self) -> Result<Code> {
        if let Some(code) = self.headers.get("grpc-status") {
            return Ok(Code::from_bytes(code.as_bytes()));
        }
        while let Some(frame) = self.next().await? {
            if let Frame::Trailers(text) = frame {
                let line = text.lines().find_map(|line| line.strip_prefix("grpc-status:"));
                return Ok(Code::from_bytes(line.context("a status")?.trim().as_bytes()));
            }
        }
        anyhow::bail!("no status in a response with HTTP status {}", self.status)
    }

    /// Reads a response that is no gRPC response.
    pub(crate) async fn text(self) -> Result<String> {
        Ok(String::from_utf8(self.body.collect().await?.to_bytes().to_vec())?)
    }
}
