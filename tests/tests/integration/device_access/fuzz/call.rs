//! One call, with bytes as its request.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use prost_reflect::MethodDescriptor;
use satchel_tests::raw_codec::RawCodec;
use tokio::time::timeout;
use tokio_stream::StreamExt as _;
use tonic::{Code, Request, Status, Streaming, codegen::http::uri::PathAndQuery, transport::Channel};

/// How long an answer may take: the time limit of the daemon, and a margin for a busy machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(45);
/// How long a stream may be silent before the caller leaves, and how many messages it reads.
const SILENCE: Duration = Duration::from_millis(100);
const MESSAGES: usize = 20;

/// What came back.
pub(super) struct Answer {
    pub(super) bytes: Vec<u8>,
    /// The error, if it is one.
    pub(super) status: Option<Status>,
    pub(super) took: Duration,
}

impl Answer {
    pub(super) fn code(&self) -> Code {
        self.status.as_ref().map_or(Code::Ok, Status::code)
    }

    /// Returns all bytes that tell something, those of an error included.
    pub(super) fn all_bytes(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        if let Some(status) = &self.status {
            bytes.extend(status.message().as_bytes());
            bytes.extend(status.details());
        }
        bytes
    }
}

/// Returns the path of a method.
pub(super) fn path(method: &MethodDescriptor) -> String {
    format!("/{}/{}", method.parent_service().full_name(), method.name())
}

/// Calls a method with one request.
pub(super) async fn call(channel: &Channel, method: &MethodDescriptor, request: &[u8]) -> Result<Answer> {
    let (path, began) = (path(method), Instant::now());
    let mut bytes = Vec::new();
    let called = timeout(ANSWER_TIMEOUT, send(channel, method, &path, request, &mut bytes)).await;
    let status = called.context("no answer within the deadline")??.err();
    Ok(Answer { bytes, status, took: began.elapsed() })
}

async fn send(
    channel: &Channel,
    method: &MethodDescriptor,
    path: &str,
    request: &[u8],
    bytes: &mut Vec<u8>,
) -> Result<std::result::Result<(), Status>> {
    let mut client = tonic::client::Grpc::new(channel.clone()).max_decoding_message_size(8 << 20);
    client.ready().await?;
    let path: PathAndQuery = path.parse()?;
    let request = request.to_vec();
    let single = |request: Vec<u8>| Request::new(tokio_stream::iter([request]));
    Ok(match (method.is_client_streaming(), method.is_server_streaming()) {
        (false, false) => {
            let outcome = client.unary(Request::new(request), path, RawCodec).await;
            outcome.map(|response| bytes.extend(response.into_inner()))
        }
        (true, false) => {
            let outcome = client.client_streaming(single(request), path, RawCodec).await;
            outcome.map(|response| bytes.extend(response.into_inner()))
        }
        (false, true) => match client.server_streaming(Request::new(request), path, RawCodec).await {
            Ok(response) => read(response.into_inner(), bytes).await,
            Err(status) => Err(status),
        },
        (true, true) => match client.streaming(single(request), path, RawCodec).await {
            Ok(response) => read(response.into_inner(), bytes).await,
            Err(status) => Err(status),
        },
    })
}

/// Reads the messages of a stream, until it ends or is silent.
async fn read(mut messages: Streaming<Vec<u8>>, bytes: &mut Vec<u8>) -> std::result::Result<(), Status> {
    for _ in 0..MESSAGES {
        match timeout(SILENCE, messages.next()).await {
            Ok(Some(message)) => bytes.extend(message?),
            Ok(None) | Err(_) => break,
        }
    }
    Ok(())
}
