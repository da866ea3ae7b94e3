//! The lines for `grpcurl`, executed by a client that reads them as `grpcurl` does.

use std::{collections::BTreeSet, path::Path};

use anyhow::{Context as _, Result, bail, ensure};
use hyper_util::rt::TokioIo;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor};
use satchel_devices::SERVER_NAME;
use satchel_proto::v1::DeviceRole;
use satchel_tests::{
    raw_codec::RawCodec,
    test_core::demo_folder,
    test_daemon::TestDaemon,
    test_device::{TestDevice, listening_daemon, policy},
};
use tokio::net::UnixStream;
use tonic::{
    Request,
    codegen::http::uri::PathAndQuery,
    transport::{Channel, Endpoint, Uri},
};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};
use tower::service_fn;

use super::{conversations, page};

/// A command line of `grpcurl`.
#[derive(Debug, Default)]
struct GrpcurlLine {
    /// The options without a value.
    flags: BTreeSet<String>,
    authority: String,
    /// The request as JSON.
    body: String,
    /// The options that name files.
    files: BTreeSet<String>,
    address: String,
    /// The method; or `list`; or `describe` and a symbol.
    call: Vec<String>,
}

impl GrpcurlLine {
    fn parse(line: &str) -> Result<Self> {
        let mut parsed = Self::default();
        let mut words = shell_words(line).into_iter().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} has no value"));
            match word.as_str() {
                "-plaintext" | "-unix" => _ = parsed.flags.insert(word),
                "-authority" => parsed.authority = value()?,
                "-d" => parsed.body = value()?,
                "-cacert" | "-cert" | "-key" => {
                    value()?;
                    parsed.files.insert(word);
                }
                option if option.starts_with('-') => bail!("{option} is not known here"),
                _ if parsed.address.is_empty() => parsed.address = word,
                _ => parsed.call.push(word),
            }
        }
        Ok(parsed)
    }

    /// Connects as the line does, to the daemon of the test.
    async fn connect(&self, daemon: &TestDaemon, device: &TestDevice) -> Result<Channel> {
        if self.address.ends_with("/satchel.sock") {
            ensure!(self.flags.len() == 2 && self.files.is_empty(), "the socket has no TLS: {self:?}");
            return connect_to_socket(&daemon.data_dir().join("satchel.sock"), &self.authority).await;
        }
        ensure!(self.flags.is_empty() && self.files.len() == 3, "a device needs its certificate: {self:?}");
        ensure!(self.authority == SERVER_NAME, "{self:?}");
        Ok(device.channel.clone())
    }
}

/// Splits a line as a shell does, if it quotes whole words with `'` only.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        if at % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

async fn connect_to_socket(socket: &Path, authority: &str) -> Result<Channel> {
    let socket = socket.to_owned();
    let connector = service_fn(move |_: Uri| {
        let socket = socket.clone();
        async move { UnixStream::connect(socket).await.map(TokioIo::new) }
    });
    Ok(Endpoint::try_from(format!("http://{authority}"))?.connect_with_connector(connector).await?)
}

/// Asks the reflection service, as `list` and `describe` do.
async fn reflect(channel: &Channel, request: MessageRequest) -> Result<MessageResponse> {
    let ask = ServerReflectionRequest { host: String::new(), message_request: Some(request) };
    let mut client = ServerReflectionClient::new(channel.clone());
    let mut answers = client.server_reflection_info(tokio_stream::once(ask)).await?.into_inner();
    answers.message().await?.and_then(|answer| answer.message_response).context("an answer")
}

async fn list(channel: &Channel) -> Result<()> {
    let answer = reflect(channel, MessageRequest::ListServices(String::new())).await?;
    let MessageResponse::ListServicesResponse(listed) = answer else { bail!("{answer:?}") };
    let listed: BTreeSet<String> = listed.service.into_iter().map(|service| service.name).collect();
    for method in satchel_proto::METHODS {
        let service = method.path.split('/').nth(1).context("a service")?;
        ensure!(listed.contains(service), "{service} is not listed");
    }
    Ok(())
}

async fn describe(channel: &Channel, symbol: &str) -> Result<()> {
    let answer = reflect(channel, MessageRequest::FileContainingSymbol(symbol.to_owned())).await?;
    ensure!(matches!(answer, MessageResponse::FileDescriptorResponse(_)), "{symbol}: {answer:?}");
    Ok(())
}

fn method(name: &str) -> Result<MethodDescriptor> {
    let pool = DescriptorPool::decode(satchel_proto::DESCRIPTOR_SET)?;
    let (service, method) = name.split_once('/').context("a service and a method")?;
    let service = pool.get_service_by_name(service).with_context(|| format!("no {service}"))?;
    service.methods().find(|one| one.name() == method).with_context(|| format!("no {name}"))
}

/// Calls a method with one answer.
async fn call(channel: &Channel, name: &str, body: &str) -> Result<DynamicMessage> {
    let method = method(name)?;
    ensure!(!method.is_client_streaming() && !method.is_server_streaming(), "{name} streams");
    let mut json = serde_json::Deserializer::from_str(body);
    let request = DynamicMessage::deserialize(method.input(), &mut json)?;
    json.end()?;
    let mut client = tonic::client::Grpc::new(channel.clone());
    client.ready().await?;
    let path: PathAndQuery = format!("/{name}").parse()?;
    let answer = client.unary(Request::new(request.encode_to_vec()), path, RawCodec).await?;
    Ok(DynamicMessage::decode(method.output(), answer.into_inner().as_slice())?)
}

/// Returns whether a repeated field of an answer has an element.
fn filled(answer: &DynamicMessage, field: &str) -> bool {
    answer.get_field_by_name(field).is_some_and(|value| value.as_list().is_some_and(|list| !list.is_empty()))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_grpcurl_lines_of_the_manual_work() -> Result<()> {
    let daemon = listening_daemon().await?;
    daemon.import(&demo_folder().join("claude-export")).await?;
    let device = TestDevice::pair(&daemon, "laptop", policy(DeviceRole::Owner)).await?;
    let before = conversations(&daemon).await?.len();
    let (mut over_tls, mut recorded) = (0, 0);
    for line in page::shell_lines("grpcurl")? {
        let parsed = GrpcurlLine::parse(&line)?;
        let channel = parsed.connect(&daemon, &device).await?;
        over_tls += usize::from(!parsed.files.is_empty());
        let call: Vec<&str> = parsed.call.iter().map(String::as_str).collect();
        match call[..] {
            ["list"] => list(&channel).await?,
            ["describe", symbol] => describe(&channel, symbol).await?,
            [name] => {
                let answer = Box::pin(self::call(&channel, name, &parsed.body)).await.context(line)?;
                let lists = ["memories", "conversations", "changes"].iter().any(|it| filled(&answer, it));
                let records = name.ends_with("/RecordConversation");
                recorded += usize::from(records);
                ensure!(records || lists, "{name} answers {answer:?}");
            }
            _ => bail!("{line} calls nothing"),
        }
    }
    ensure!(over_tls > 0 && recorded > 0, "a way to connect or to write is missing on the page");
    ensure!(conversations(&daemon).await?.len() == before + recorded, "nothing was recorded");
    daemon.stop().await?;
    Ok(())
}
