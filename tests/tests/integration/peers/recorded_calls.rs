//! The calls of the first release between two daemons, as they were on the wire, are served by this one, and so are those of a later one.
//!
//! `SATCHEL_BLESS=1` records them anew. That is right only for a contract that was never released: otherwise keep the old file, and add a
//! new one.

use std::{fmt::Write as _, fs, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use prost::Message;
use satchel_core::{
    edits::{Draft, EditContext},
    sync::Sync,
};
use satchel_proto::v1::{self, DeviceRole};
use satchel_sync::{Author, Frontier, Kind, SignedChange, SigningKey};
use satchel_tests::{
    raw_codec::RawCodec,
    test_core::TestCore,
    test_daemon::TestDaemon,
    test_device::{TestDevice, policy},
};
use serde::{Deserialize, Serialize};
use tonic::{Code, Request, Status, client::Grpc, codegen::http::uri::PathAndQuery, transport::Channel};

use super::peer_daemon::{add, content, start_new};

/// A call as it was on the wire: messages of protobuf, in hex digits.
#[derive(Serialize, Deserialize)]
struct RecordedCall {
    method: String,
    requests: Vec<String>,
    responses: Vec<String>,
}

/// A method, and the messages that it is called with.
type NamedCall = (&'static str, Vec<Vec<u8>>);

fn kept() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("contract/peer-calls-1.json")
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        // Writing to a string does not fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

fn from_hex(digits: &str) -> Result<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| Ok(u8::from_str_radix(str::from_utf8(pair)?, 16)?)).collect()
}

/// Calls a method with these messages; returns the answers, of those of `WatchFrontier`, which does not end, only the first.
async fn call(channel: &Channel, method: &str, requests: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Status> {
    let path: PathAndQuery = format!("/satchel.v1.SyncService/{method}").parse().map_err(internal)?;
    let mut client = Grpc::new(channel.clone());
    client.ready().await.map_err(internal)?;
    let request = Request::new(tokio_stream::iter(requests));
    let mut stream = client.streaming(request, path, RawCodec).await?.into_inner();
    let mut answers = Vec::new();
    while let Some(answer) = stream.message().await? {
        answers.push(answer);
        if method == "WatchFrontier" {
            break;
        }
    }
    Ok(answers)
}

fn internal(error: impl ToString) -> Status {
    Status::internal(error.to_string())
}

/// The series of a store with one memory.
fn series_of_recorder() -> Result<Vec<SignedChange>> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(dir.path())?;
    let sync = Sync::new(&core.imports);
    sync.begin(SigningKey::from_bytes(&[5; 32]), [5; 16])?;
    let content = Some("Written by the peer".to_owned());
    let draft = Draft { content, ..Draft::default() };
    let call = EditContext { actor: "owner".to_owned(), ..EditContext::default() };
    core.imports.edits().add_memory(&call, &draft)?;
    let mut changes = Vec::new();
    sync.changes_after(&Frontier::new(), None, |change| {
        changes.push(change);
        true
    })?;
    Ok(changes)
}

/// Returns the requests of an exchange, with their methods.
fn requests() -> Result<Vec<NamedCall>> {
    let changes = series_of_recorder()?;
    let origin = changes.first().context("a genesis")?.change().origin.to_string();
    let empty = Some(v1::Frontier::default());
    let frontier = v1::GetFrontierRequest {
        caller_frontier: empty.clone(),
        caller_origin: origin,
        ..Default::default()
    };
    let upload = v1::UploadChangesRequest { changes: changes.iter().map(SignedChange::encode).collect() };
    let missing = v1::ListMissingFilesRequest { page_size: 10, page_token: String::new() };
    Ok(vec![
        ("GetFrontier", vec![frontier.encode_to_vec()]),
        ("DownloadChanges", vec![v1::DownloadChangesRequest { frontier: empty }.encode_to_vec()]),
        ("UploadChanges", vec![upload.encode_to_vec()]),
        ("ListMissingFiles", vec![missing.encode_to_vec()]),
        ("WatchFrontier", vec![v1::WatchFrontierRequest {}.encode_to_vec()]),
    ])
}

async fn daemon_and_peer() -> Result<(TestDaemon, TestDevice)> {
    let daemon = start_new().await?;
    let peer = TestDevice::pair(&daemon, "peer", policy(DeviceRole::Peer)).await?;
    Ok((daemon, peer))
}

async fn record() -> Result<()> {
    let (daemon, peer) = daemon_and_peer().await?;
    add(&daemon, "Written by the daemon").await?;
    let mut recorded = Vec::new();
    for (method, requests) in requests()? {
        let responses = call(&peer.channel, method, requests.clone()).await?;
        recorded.push(RecordedCall {
            method: method.to_owned(),
            requests: requests.iter().map(|bytes| to_hex(bytes)).collect(),
            responses: responses.iter().map(|bytes| to_hex(bytes)).collect(),
        });
    }
    Ok(fs::write(kept(), serde_json::to_string_pretty(&recorded)? + "\n")?)
}

fn read() -> Result<Vec<RecordedCall>> {
    Ok(serde_json::from_slice(&fs::read(kept())?)?)
}

/// Sends the recorded requests, each with `more` bytes at its end, and checks that they have the recorded effect.
async fn replay(more: &[u8]) -> Result<()> {
    let (daemon, peer) = daemon_and_peer().await?;
    let mut uploaded = 0;
    for RecordedCall { method, requests, responses } in read()? {
        let requests: Vec<Vec<u8>> =
            requests.iter().map(|digits| Ok([&from_hex(digits)?, more].concat())).collect::<Result<_>>()?;
        let answers = call(&peer.channel, &method, requests).await.with_context(|| method.clone())?;
        ensure!(!answers.is_empty(), "{method}");
        if method == "UploadChanges" {
            let (now, then) = (&answers[0], from_hex(&responses[0])?);
            let now = v1::UploadChangesResponse::decode(now.as_slice())?;
            let then = v1::UploadChangesResponse::decode(then.as_slice())?;
            ensure!(now.new_changes == then.new_changes && now.refused.is_empty(), "{now:?}");
            uploaded = now.new_changes;
        }
    }
    ensure!(uploaded > 0);
    let store = series_of_recorder()?;
    let id = memory_in(&store)?;
    ensure!(content(&daemon, &id).await?.as_deref() == Some("Written by the peer"));
    Ok(())
}

/// Returns the id of the memory in these changes.
fn memory_in(changes: &[SignedChange]) -> Result<String> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(dir.path())?;
    let sync = Sync::new(&core.imports);
    sync.begin(SigningKey::from_bytes(&[6; 32]), [6; 16])?;
    sync.receive(changes.iter().cloned())?;
    let applied = sync.apply(&satchel_source::CancelToken::new())?;
    ensure!(applied.blocked.is_empty() && applied.unknown == 0, "{applied:?}");
    let query = satchel_store::MemoryQuery::default();
    let rows = core.store.memories(&query, None, 10, core.store.revision())?.items;
    ensure!(rows.len() == 1, "{rows:?}");
    Ok(rows[0].memory.id.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_calls_of_the_first_release_are_served() -> Result<()> {
    if std::env::var_os("SATCHEL_BLESS").is_some() {
        record().await?;
    }
    replay(&[]).await?;
    // What the first release answered is understood, and has the same effect.
    let mut changes = Vec::new();
    for RecordedCall { method, responses, .. } in read()? {
        for response in responses {
            let bytes = from_hex(&response)?;
            match method.as_str() {
                "GetFrontier" => {
                    let answer = v1::GetFrontierResponse::decode(bytes.as_slice())?;
                    ensure!(
                        answer.format_version == 1
                            && answer.frontier.is_some_and(|known| !known.heads.is_empty())
                    );
                }
                "DownloadChanges" => {
                    let answer = v1::DownloadChangesResponse::decode(bytes.as_slice())?;
                    for change in answer.changes {
                        changes.push(SignedChange::decode(&change)?);
                    }
                }
                _ => {}
            }
        }
    }
    memory_in(&changes).map(drop)
}

/// A later release has fields, methods, kinds of changes and a format of changes that this one does not know.
#[tokio::test(flavor = "multi_thread")]
async fn the_calls_of_a_later_release_are_served_as_far_as_they_are_known() -> Result<()> {
    // Field 1,000 is a number, field 1,001 a text.
    replay(&[0xc0, 0x3e, 0x07, 0xca, 0x3e, 0x05, b'l', b'a', b't', b'e', b'r']).await?;

    let (daemon, peer) = daemon_and_peer().await?;
    let unknown = call(&peer.channel, "ExchangeEverything", vec![Vec::new()]).await;
    let status = unknown.err().context("there is no such method")?;
    // A method that nobody knows has no permission that a peer could have.
    ensure!(matches!(status.code(), Code::Unimplemented | Code::PermissionDenied), "{status:?}");

    let author = |seed: u8| Author::begin(SigningKey::from_bytes(&[seed; 32]), [seed; 16], &Frontier::new());
    let ((mut later, later_genesis), (mut newest, newest_genesis)) = (author(7)?, author(8)?);
    let kind = later.append(Kind(60_000), b"what a later release does".to_vec(), &Frontier::new())?;
    let mut format = newest.append(Kind(1), b"in another format".to_vec(), &Frontier::new())?.encode();
    format[1] = 2;
    let upload = v1::UploadChangesRequest {
        changes: vec![later_genesis.encode(), kind.encode(), newest_genesis.encode(), format],
    };
    let answers = call(&peer.channel, "UploadChanges", vec![upload.encode_to_vec()]).await?;
    let answer = v1::UploadChangesResponse::decode(answers[0].as_slice())?;
    ensure!(answer.new_changes == 3 && answer.refused.len() == 1, "{answer:?}");
    let refused = &answer.refused[0];
    ensure!(refused.counter == 2 && refused.problem.contains("use a newer satchel"), "{refused:?}");
    // The change of a kind that is not known is held, and passed on.
    let request = v1::DownloadChangesRequest { frontier: Some(v1::Frontier::default()) };
    let answers = call(&peer.channel, "DownloadChanges", vec![request.encode_to_vec()]).await?;
    let mut passed_on = false;
    for answer in answers {
        let answer = v1::DownloadChangesResponse::decode(answer.as_slice())?;
        passed_on |= answer.changes.contains(&kind.encode());
    }
    ensure!(passed_on);
    add(&daemon, "Goes on").await.map(drop)
}
