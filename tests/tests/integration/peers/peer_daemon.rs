//! A daemon with peers.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use satchel_proto::v1::{
    self, DeviceRole, memory_service_client::MemoryServiceClient, peer_service_client::PeerServiceClient,
};
use satchel_tests::{
    test_daemon::TestDaemon,
    test_device::{create_pairing, listen, policy},
};
use tempfile::TempDir;
use tonic::transport::Channel;

/// How long anything may take on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_mins(2);
/// How often it is looked whether something has happened.
const POLL: Duration = Duration::from_millis(20);

/// Starts a daemon that accepts peers and follows those that it has.
pub(crate) async fn start(folder: TempDir) -> Result<TestDaemon> {
    TestDaemon::start_with(folder, |config| {
        listen(config);
        config.watching.active = true;
    })
    .await
}

/// Starts a daemon on an empty data directory.
pub(crate) async fn start_new() -> Result<TestDaemon> {
    start(tempfile::tempdir()?).await
}

pub(crate) fn peers(daemon: &TestDaemon) -> PeerServiceClient<Channel> {
    PeerServiceClient::new(daemon.channel.clone())
}

pub(crate) fn memories(daemon: &TestDaemon) -> MemoryServiceClient<Channel> {
    MemoryServiceClient::new(daemon.channel.clone())
}

/// Lets `from` connect to `to`, each under the other's name.
pub(crate) async fn pair(from: (&TestDaemon, &str), to: (&TestDaemon, &str)) -> Result<()> {
    let pairing = create_pairing(to.0, from.1, policy(DeviceRole::Peer)).await?;
    let request = v1::AddPeerRequest {
        code: pairing.uri,
        addresses: Vec::new(),
        name: to.1.to_owned(),
        device_name: from.1.to_owned(),
        ..Default::default()
    };
    peers(from.0).add_peer(request).await?;
    Ok(())
}

/// Pauses or resumes the exchange of a daemon with a peer.
pub(crate) async fn pause(daemon: &TestDaemon, peer: &str, paused: bool) -> Result<()> {
    let (peer, paused) = (peer.to_owned(), Some(paused));
    let request = v1::UpdatePeerRequest { peer, paused, ..v1::UpdatePeerRequest::default() };
    peers(daemon).update_peer(request).await?;
    Ok(())
}

/// Returns the peers of a daemon.
pub(crate) async fn listed(daemon: &TestDaemon) -> Result<Vec<v1::Peer>> {
    Ok(peers(daemon).list_peers(v1::ListPeersRequest::default()).await?.into_inner().peers)
}

/// Returns the digest of what a daemon shows.
pub(crate) async fn digest(daemon: &TestDaemon) -> Result<String> {
    let request = v1::GetSyncStatusRequest { digest: true };
    Ok(peers(daemon).get_sync_status(request).await?.into_inner().digest)
}

/// Waits until `holds` returns something.
pub(crate) async fn eventually<T>(
    what: &str,
    mut holds: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let began = Instant::now();
    loop {
        if let Some(found) = holds().await.with_context(|| what.to_owned())? {
            return Ok(found);
        }
        if began.elapsed() > LIMIT {
            bail!("{what}: not within {LIMIT:?}");
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Waits until all daemons say that they are in step with all of their peers, and show the same.
pub(crate) async fn in_step(daemons: &[&TestDaemon]) -> Result<()> {
    eventually("the daemons come in step", async || {
        let mut digests = Vec::new();
        for daemon in daemons {
            // A daemon that is erasing something is not there for a moment.
            let Ok(known) = listed(daemon).await else { return Ok(None) };
            if !known.iter().all(|peer| peer.in_step) {
                return Ok(None);
            }
            let Ok(digest) = digest(daemon).await else { return Ok(None) };
            digests.push(digest);
        }
        Ok(digests.windows(2).all(|pair| pair[0] == pair[1]).then_some(()))
    })
    .await
}

/// Adds a memory; returns its id.
pub(crate) async fn add(daemon: &TestDaemon, content: &str) -> Result<String> {
    let memory = v1::Memory { content: content.to_owned(), ..v1::Memory::default() };
    let request = v1::CreateMemoryRequest { memory: Some(memory), ..v1::CreateMemoryRequest::default() };
    let answer = memories(daemon).create_memory(request).await?.into_inner();
    Ok(answer.memory.context("a memory")?.id)
}

/// Changes the text of a memory.
pub(crate) async fn rewrite(daemon: &TestDaemon, id: &str, content: &str) -> Result<()> {
    let memory = v1::Memory { id: id.to_owned(), content: content.to_owned(), ..v1::Memory::default() };
    update(daemon, memory, "content").await
}

/// Sets the tags of a memory.
pub(crate) async fn tag(daemon: &TestDaemon, id: &str, tags: &[&str]) -> Result<()> {
    let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    update(daemon, v1::Memory { id: id.to_owned(), tags, ..v1::Memory::default() }, "tags").await
}

async fn update(daemon: &TestDaemon, memory: v1::Memory, field: &str) -> Result<()> {
    let mask = prost_types::FieldMask { paths: vec![field.to_owned()] };
    let request = v1::UpdateMemoryRequest {
        memory: Some(memory),
        update_mask: Some(mask),
        ..v1::UpdateMemoryRequest::default()
    };
    memories(daemon).update_memory(request).await?;
    Ok(())
}

/// Returns the text of a memory; `None` if there is none.
pub(crate) async fn content(daemon: &TestDaemon, id: &str) -> Result<Option<String>> {
    let request = v1::GetMemoryRequest { id: id.to_owned(), view: 0, as_of_revision: None };
    match memories(daemon).get_memory(request).await {
        Ok(answer) => Ok(answer.into_inner().memory.map(|memory| memory.content)),
        Err(status) if status.code() == tonic::Code::NotFound => Ok(None),
        Err(status) => Err(status.into()),
    }
}
