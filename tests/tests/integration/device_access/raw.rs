//! Calls whose answers are kept as bytes: messages, and the message and details of a status.

use std::time::Duration;

use anyhow::{Context as _, Result};
use prost::Message as _;
use satchel_proto::v1::WatchChangesResponse;
use satchel_tests::raw_codec::RawCodec;
use tokio_stream::StreamExt as _;
use tonic::{Code, Request, Status, codegen::http::uri::PathAndQuery, transport::Channel};

use crate::device_access::probes::{Probe, Shape};

/// How long an answer may take; none of them waits for anything.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// An answer.
pub(crate) struct Answer {
    /// Every byte of it.
    pub(crate) bytes: Vec<u8>,
    pub(crate) code: Code,
}

/// Calls a method, and returns all that comes back.
pub(crate) async fn answer_bytes(channel: &Channel, path: &'static str, probe: &Probe) -> Result<Answer> {
    let mut answer = Answer { bytes: Vec::new(), code: Code::Ok };
    let called = tokio::time::timeout(ANSWER_TIMEOUT, call(channel, path, probe, &mut answer)).await;
    if let Err(status) = called.with_context(|| format!("{path} does not answer"))?? {
        answer.code = status.code();
        answer.bytes.extend(status.message().as_bytes());
        answer.bytes.extend(status.details());
    }
    Ok(answer)
}

async fn call(
    channel: &Channel,
    path: &'static str,
    probe: &Probe,
    answer: &mut Answer,
) -> Result<std::result::Result<(), Status>> {
    let mut client = tonic::client::Grpc::new(channel.clone());
    client.ready().await?;
    let path_and_query: PathAndQuery = path.parse()?;
    let request = probe.request.clone();
    let messages = match probe.shape {
        Shape::Unary => {
            let outcome = client.unary(Request::new(request), path_and_query, RawCodec).await;
            return Ok(outcome.map(|response| answer.bytes.extend(response.into_inner())));
        }
        Shape::ClientStream => {
            let requests = tokio_stream::iter([request]);
            let outcome = client.client_streaming(Request::new(requests), path_and_query, RawCodec).await;
            return Ok(outcome.map(|response| answer.bytes.extend(response.into_inner())));
        }
        Shape::ServerStream | Shape::EndlessStream => {
            client.server_streaming(Request::new(request), path_and_query, RawCodec).await
        }
    };
    let mut messages = match messages {
        Ok(response) => response.into_inner(),
        Err(status) => return Ok(Err(status)),
    };
    while let Some(message) = messages.next().await {
        let message = match message {
            Ok(message) => message,
            Err(status) => return Ok(Err(status)),
        };
        answer.bytes.extend(&message);
        let endless = probe.shape == Shape::EndlessStream;
        if endless && WatchChangesResponse::decode(message.as_slice())?.caught_up {
            break;
        }
    }
    Ok(Ok(()))
}
