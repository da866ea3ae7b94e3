//! Files of attachments that stay on a peer until somebody wants one.

use anyhow::{Context as _, Result, ensure};
use satchel_pam::hash::Sha256Digest;
use satchel_proto::v1::{
    self, DeviceRole, PeerAttachments, attachment_service_client::AttachmentServiceClient,
    conversation_service_client::ConversationServiceClient,
};
use satchel_tests::{
    test_daemon::TestDaemon,
    test_device::{create_pairing, policy},
};
use tonic::{Code, Status};

use super::{
    erasures::has,
    hostile::demo_with_file,
    peer_daemon::{eventually, in_step, listed, pair, peers, start, start_new},
};

const BYTES: &[u8] = b"a picture of a beehive";

/// A daemon that has a conversation with a file.
async fn with_file() -> Result<TestDaemon> {
    let (daemon, folder) = (start_new().await?, tempfile::tempdir()?);
    demo_with_file(folder.path(), BYTES)?;
    daemon.import(folder.path()).await?;
    Ok(daemon)
}

fn stored(daemon: &TestDaemon) -> Result<bool> {
    let blobs = daemon.data_dir().join("blobs");
    Ok(blobs.exists() && has(&blobs, "a picture of a beehive")?)
}

/// Fetches the file of the conversation, as a client does.
async fn fetch(daemon: &TestDaemon) -> Result<Vec<u8>, Status> {
    let mut conversations = ConversationServiceClient::new(daemon.channel.clone());
    let known = conversations.list_conversations(v1::ListConversationsRequest::default()).await?.into_inner();
    let id = known.conversations.first().map(|one| one.id.clone()).unwrap_or_default();
    let request = v1::ListMessagesRequest { conversation_id: id.clone(), ..Default::default() };
    let messages = conversations.list_messages(request).await?.into_inner().messages;
    let message = messages.iter().find(|one| !one.attachments.is_empty());
    let request = v1::DownloadAttachmentRequest {
        conversation_id: id,
        message_id: message.map(|one| one.id.clone()).unwrap_or_default(),
        sha256: Sha256Digest::of(BYTES).to_hex(),
        ..Default::default()
    };
    let mut stream =
        AttachmentServiceClient::new(daemon.channel.clone()).download_attachment(request).await?.into_inner();
    let mut bytes = Vec::new();
    while let Some(message) = stream.message().await? {
        bytes.extend(message.chunk.map(|chunk| chunk.data).unwrap_or_default());
    }
    Ok(bytes)
}

async fn set(daemon: &TestDaemon, peer: &str, attachments: PeerAttachments) -> Result<()> {
    let (peer, attachments) = (peer.to_owned(), attachments.into());
    let request = v1::UpdatePeerRequest { peer, attachments, ..Default::default() };
    let answer = peers(daemon).update_peer(request).await?.into_inner();
    ensure!(answer.peer.is_some_and(|peer| peer.attachments == attachments));
    Ok(())
}

/// Lets the laptop connect to the desk, and take files from it only when they are wanted.
async fn pair_on_demand(laptop: &TestDaemon, desk: &TestDaemon) -> Result<()> {
    let pairing = create_pairing(desk, "laptop", policy(DeviceRole::Peer)).await?;
    let request = v1::AddPeerRequest {
        code: pairing.uri,
        name: "desk".to_owned(),
        device_name: "laptop".to_owned(),
        attachments: PeerAttachments::OnDemand.into(),
        ..Default::default()
    };
    peers(laptop).add_peer(request).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_fetched_when_somebody_opens_it() -> Result<()> {
    let (desk, laptop) = (with_file().await?, start_new().await?);
    pair_on_demand(&laptop, &desk).await?;
    in_step(&[&desk, &laptop]).await?;
    // A further exchange fetches nothing either, also after a restart.
    let laptop = start(laptop.stop().await?).await?;
    peers(&laptop).sync_peers(v1::SyncPeersRequest::default()).await?;
    ensure!(!stored(&laptop)? && stored(&desk)?);
    ensure!(listed(&laptop).await?[0].attachments == i32::from(PeerAttachments::OnDemand));
    ensure!(fetch(&laptop).await? == BYTES);
    ensure!(stored(&laptop)?, "it stays");
    ensure!(fetch(&laptop).await? == BYTES);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_whose_peer_is_away_comes_later() -> Result<()> {
    let (desk, laptop) = (with_file().await?, start_new().await?);
    pair_on_demand(&laptop, &desk).await?;
    in_step(&[&desk, &laptop]).await?;
    let folder = desk.stop().await?;
    let status = fetch(&laptop).await.err().context("nobody has it")?;
    ensure!(status.code() == Code::Unavailable && status.message().contains("not here yet"), "{status:?}");
    let desk = start(folder).await?;
    let addresses = create_pairing(&desk, "", policy(DeviceRole::Peer)).await?.addresses;
    let request = v1::UpdatePeerRequest { peer: "desk".to_owned(), addresses, ..Default::default() };
    peers(&laptop).update_peer(request).await?;
    // It is still wanted.
    eventually("the file comes", async || Ok(stored(&laptop)?.then_some(()))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_calls_sends_only_what_is_wanted_until_all_is() -> Result<()> {
    let (desk, laptop, folder) = (start_new().await?, start_new().await?, tempfile::tempdir()?);
    // The desk calls the laptop.
    pair((&desk, "desk"), (&laptop, "laptop")).await?;
    set(&laptop, "desk", PeerAttachments::OnDemand).await?;
    demo_with_file(folder.path(), BYTES)?;
    desk.import(folder.path()).await?;
    in_step(&[&desk, &laptop]).await?;
    let sync = v1::SyncPeersRequest { peer: "laptop".to_owned() };
    peers(&desk).sync_peers(sync.clone()).await?;
    ensure!(stored(&desk)? && !stored(&laptop)?);
    let called = async {
        // Each call sends what is wanted by then.
        eventually("the file is sent", async || {
            peers(&desk).sync_peers(sync.clone()).await?;
            Ok(stored(&laptop)?.then_some(()))
        })
        .await
    };
    let (bytes, called) = tokio::join!(fetch(&laptop), called);
    called?;
    ensure!(bytes? == BYTES);
    set(&laptop, "desk", PeerAttachments::All).await
}
