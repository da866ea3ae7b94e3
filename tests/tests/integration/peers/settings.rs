//! Peers are added, paused and removed, and wrong requests are refused.

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{
    self, DeviceRole, PeerDirection, PeerState, device_service_client::DeviceServiceClient,
    sync_service_client::SyncServiceClient,
};
use satchel_tests::test_device::{create_pairing, policy};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::peer_daemon::{add, content, eventually, in_step, listed, pair, peers, start, start_new};

fn reason(status: &Status) -> String {
    status.get_details_error_info().map(|info| info.reason).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_peer_gets_nothing_until_it_is_resumed() -> Result<()> {
    let (desk, laptop) = (start_new().await?, start_new().await?);
    pair((&laptop, "laptop"), (&desk, "desk")).await?;
    in_step(&[&desk, &laptop]).await?;
    let pause = |peer: &str, paused| v1::UpdatePeerRequest {
        peer: peer.to_owned(),
        paused: Some(paused),
        ..Default::default()
    };
    // On the side that is connected to.
    let answer = peers(&desk).update_peer(pause("laptop", true)).await?.into_inner();
    ensure!(answer.peer.is_some_and(|peer| peer.state == i32::from(PeerState::Paused)));
    let id = add(&desk, "Not yet").await?;
    let answer = peers(&laptop).sync_peers(v1::SyncPeersRequest::default()).await?.into_inner();
    let refused = answer.peers.first().context("a peer")?;
    ensure!(refused.state == i32::from(PeerState::Failed), "{refused:?}");
    ensure!(refused.last_error.contains("paused"), "{refused:?}");
    ensure!(content(&laptop, &id).await?.is_none());
    // It stays paused after a restart.
    let desk = start(desk.stop().await?).await?;
    let known = listed(&desk).await?;
    ensure!(known[0].state == i32::from(PeerState::Paused), "{known:?}");
    peers(&desk).update_peer(pause("laptop", false)).await?;
    // Its port is another one after a restart.
    let address = {
        let mut devices = DeviceServiceClient::new(desk.channel.clone());
        let request =
            v1::CreatePairingRequest { policy: Some(policy(DeviceRole::Peer)), ..Default::default() };
        devices.create_pairing(request).await?.into_inner().addresses
    };
    let request = v1::UpdatePeerRequest { peer: "desk".to_owned(), addresses: address, ..Default::default() };
    peers(&laptop).update_peer(request).await?;
    in_step(&[&desk, &laptop]).await?;
    ensure!(content(&laptop, &id).await?.is_some());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_peer_gets_nothing_more() -> Result<()> {
    let (desk, laptop) = (start_new().await?, start_new().await?);
    pair((&laptop, "laptop"), (&desk, "desk")).await?;
    in_step(&[&desk, &laptop]).await?;
    let known = listed(&desk).await?;
    ensure!(known[0].direction == i32::from(PeerDirection::Incoming));
    peers(&desk).remove_peer(v1::RemovePeerRequest { peer: "laptop".to_owned() }).await?;
    ensure!(listed(&desk).await?.is_empty());
    let id = add(&desk, "Secret").await?;
    eventually("the peer is told", async || {
        let known = listed(&laptop).await?;
        let failed = known.first().is_some_and(|peer| peer.state == i32::from(PeerState::Failed));
        Ok(failed.then_some(()))
    })
    .await?;
    ensure!(content(&laptop, &id).await?.is_none());
    peers(&laptop).remove_peer(v1::RemovePeerRequest { peer: "desk".to_owned() }).await?;
    ensure!(listed(&laptop).await?.is_empty());
    let laptop = start(laptop.stop().await?).await?;
    ensure!(listed(&laptop).await?.is_empty());
    let missing = peers(&laptop).sync_peers(v1::SyncPeersRequest { peer: "desk".to_owned() }).await;
    ensure!(reason(&missing.err().context("there is none")?) == "PEER_NOT_FOUND");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_requests_are_refused() -> Result<()> {
    let (desk, laptop) = (start_new().await?, start_new().await?);
    let request = |code: &str, name: &str, addresses: &[&str]| v1::AddPeerRequest {
        code: code.to_owned(),
        addresses: addresses.iter().map(|address| (*address).to_owned()).collect(),
        name: name.to_owned(),
        device_name: "laptop".to_owned(),
        ..Default::default()
    };
    let refused = async |request| {
        let status = peers(&laptop).add_peer(request).await.err().context("it is refused")?;
        Ok::<_, anyhow::Error>((status.code(), reason(&status)))
    };
    let invalid = (Code::InvalidArgument, "FIELD_INVALID".to_owned());
    ensure!(refused(request("nonsense", "desk", &["127.0.0.1:1"])).await? == invalid);
    let pairing = create_pairing(&desk, "", policy(DeviceRole::Peer)).await?;
    ensure!(refused(request(&pairing.code, "desk", &[])).await? == invalid, "no address");
    ensure!(refused(request(&pairing.uri, "../desk", &[])).await? == invalid, "a name that is a path");
    let nobody = refused(request(&pairing.code, "desk", &["127.0.0.1:1"])).await?;
    ensure!(nobody == (Code::Unavailable, "PEER_UNREACHABLE".to_owned()), "{nobody:?}");
    // A code for a device is none for a peer.
    let device = create_pairing(&desk, "", policy(DeviceRole::Owner)).await?;
    let other = refused(request(&device.uri, "desk", &[])).await?;
    ensure!(other == (Code::FailedPrecondition, "PEER_REFUSED".to_owned()), "{other:?}");
    ensure!(listed(&laptop).await?.is_empty());
    pair((&laptop, "laptop"), (&desk, "desk")).await?;
    let pairing = create_pairing(&desk, "", policy(DeviceRole::Peer)).await?;
    ensure!(refused(request(&pairing.uri, "desk", &[])).await? == invalid, "the name is taken");
    // A peer does nothing else, and nobody else may exchange changes.
    for policy in [
        v1::DevicePolicy { scopes: vec![v1::Scope::MemoriesRead.into()], ..policy(DeviceRole::Peer) },
        v1::DevicePolicy { scopes: vec![v1::Scope::Sync.into()], ..policy(DeviceRole::Owner) },
    ] {
        let status = create_pairing(&desk, "x", policy.clone()).await.err().context("it is refused")?;
        ensure!(status.to_string().contains("policy"), "{policy:?}: {status}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_is_its_own_peer_is_told_so_and_stays_as_it_is() -> Result<()> {
    let desk = start_new().await?;
    add(&desk, "Alone").await?;
    pair((&desk, "myself"), (&desk, "me")).await?;
    let told = async || {
        let answer = peers(&desk).sync_peers(v1::SyncPeersRequest::default()).await?.into_inner();
        Ok::<_, anyhow::Error>(answer.peers.first().context("a peer")?.last_error.clone())
    };
    for _ in 0..3 {
        let error = told().await?;
        ensure!(error.contains("itself"), "{error}");
    }
    let mut sync = SyncServiceClient::new(desk.channel.clone());
    let heads = async |sync: &mut SyncServiceClient<_>| {
        let answer = sync.get_frontier(v1::GetFrontierRequest::default()).await?.into_inner();
        Ok::<_, anyhow::Error>(answer.frontier.unwrap_or_default().heads)
    };
    ensure!(heads(&mut sync).await?.len() == 1, "one series");
    peers(&desk).remove_peer(v1::RemovePeerRequest { peer: "me".to_owned() }).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_whose_key_is_damaged_is_listed_and_can_be_removed() -> Result<()> {
    let (desk, laptop) = (start_new().await?, start_new().await?);
    pair((&laptop, "laptop"), (&desk, "desk")).await?;
    let folder = laptop.stop().await?;
    std::fs::write(folder.path().join("data/peers/servers/desk.json"), "{")?;
    let laptop = start(folder).await?;
    let known = listed(&laptop).await?;
    ensure!(known[0].name == "desk" && known[0].state == i32::from(PeerState::Failed), "{known:?}");
    ensure!(known[0].last_error.contains("desk.json"), "{known:?}");
    peers(&laptop).remove_peer(v1::RemovePeerRequest { peer: "desk".to_owned() }).await?;
    ensure!(listed(&laptop).await?.is_empty());
    Ok(())
}
