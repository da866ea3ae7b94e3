//! Peers that get only a part of a store.

use anyhow::{Context as _, Result, ensure};
use satchel_pam::hash::Sha256Digest;
use satchel_proto::v1::{self, DeviceRole, sync_service_client::SyncServiceClient};
use satchel_tests::{
    test_daemon::TestDaemon,
    test_device::{TestDevice, create_pairing, policy},
};
use tonic::Code;

use super::{
    change_files::carry,
    erasures::has,
    hostile::demo_with_file,
    peer_daemon::{add, content, eventually, in_step, listed, pair, peers, start, start_new, tag},
};

pub(super) fn tagged(tag: &str) -> v1::DeviceSelection {
    v1::DeviceSelection { tags: vec![tag.to_owned()], ..v1::DeviceSelection::default() }
}

/// Adds a memory with a tag; returns its id.
pub(super) async fn add_tagged(daemon: &TestDaemon, text: &str, of: &str) -> Result<String> {
    let id = add(daemon, text).await?;
    tag(daemon, &id, &[of]).await?;
    Ok(id)
}

pub(super) async fn restrict(daemon: &TestDaemon, peer: &str, selection: v1::DeviceSelection) -> Result<()> {
    let request = v1::UpdatePeerRequest {
        peer: peer.to_owned(),
        selection: Some(selection.clone()),
        ..v1::UpdatePeerRequest::default()
    };
    let answer = peers(daemon).update_peer(request).await?.into_inner();
    ensure!(answer.peer.context("the peer")?.selection == Some(selection));
    Ok(())
}

/// Lets `from` connect to `to`; each gets a part of the other one.
pub(super) async fn pair_parts(
    (from, from_gets): (&TestDaemon, Option<v1::DeviceSelection>),
    (to, to_gets): (&TestDaemon, Option<v1::DeviceSelection>),
) -> Result<()> {
    let policy = v1::DevicePolicy { selection: from_gets, ..policy(DeviceRole::Peer) };
    let pairing = create_pairing(to, "from", policy).await?;
    let request = v1::AddPeerRequest {
        code: pairing.uri,
        name: "to".to_owned(),
        device_name: "from".to_owned(),
        selection: to_gets,
        ..v1::AddPeerRequest::default()
    };
    peers(from).add_peer(request).await?;
    Ok(())
}

pub(super) async fn settled(daemons: &[&TestDaemon]) -> Result<()> {
    eventually("the daemons have the same changes", async || {
        for daemon in daemons {
            if !listed(daemon).await?.iter().all(|peer| peer.in_step) {
                return Ok(None);
            }
        }
        Ok(Some(()))
    })
    .await
}

async fn withheld(daemon: &TestDaemon) -> Result<i64> {
    let request = v1::GetSyncStatusRequest::default();
    Ok(peers(daemon).get_sync_status(request).await?.into_inner().missing_payloads)
}

pub(super) async fn comes(daemon: &TestDaemon, id: &str) -> Result<()> {
    eventually("the memory comes", async || Ok(content(daemon, id).await?.map(drop))).await
}

/// Checks that a peer gets what is in its part, also later and after restarts, and everything in the end. `partial` is that peer.
async fn check_part(whole: TestDaemon, partial: TestDaemon, peer: &str, partial_calls: bool) -> Result<()> {
    let work = add_tagged(&whole, "Writes reports", "work").await?;
    let home = add_tagged(&whole, "Keeps bees", "home").await?;
    let other = add_tagged(&whole, "Is tired", "home").await?;
    settled(&[&whole, &partial]).await?;
    comes(&partial, &work).await?;
    for hidden in [&home, &other] {
        ensure!(content(&partial, hidden).await?.is_none());
    }
    ensure!(withheld(&partial).await? > 0 && withheld(&whole).await? == 0);
    // After a restart of both, the restriction holds.
    let (whole, partial) = if partial_calls {
        (whole, start(partial.stop().await?).await?)
    } else {
        (start(whole.stop().await?).await?, partial)
    };
    let third = add_tagged(&whole, "Sleeps late", "home").await?;
    tag(&whole, &home, &["home", "work"]).await?;
    comes(&partial, &home).await?;
    ensure!(content(&partial, &third).await?.is_none());
    // What the other one makes of it comes back.
    tag(&partial, &home, &["work"]).await?;
    settled(&[&whole, &partial]).await?;
    ensure!(content(&partial, &other).await?.is_none());
    restrict(&whole, peer, v1::DeviceSelection::default()).await?;
    comes(&partial, &other).await?;
    in_step(&[&whole, &partial]).await?;
    ensure!(withheld(&partial).await? == 0);
    // From now on it gets less again.
    restrict(&whole, peer, tagged("work")).await?;
    let last = add(&whole, "Likes cake").await?;
    settled(&[&whole, &partial]).await?;
    ensure!(content(&partial, &last).await?.is_none());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_calls_gets_its_part() -> Result<()> {
    let (whole, partial) = (start_new().await?, start_new().await?);
    pair_parts((&partial, Some(tagged("work"))), (&whole, None)).await?;
    ensure!(listed(&whole).await?[0].selection == Some(tagged("work")));
    check_part(whole, partial, "from", true).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_is_called_gets_its_part() -> Result<()> {
    let (whole, partial) = (start_new().await?, start_new().await?);
    pair_parts((&whole, None), (&partial, Some(tagged("work")))).await?;
    ensure!(listed(&whole).await?[0].selection == Some(tagged("work")));
    check_part(whole, partial, "to", false).await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_peers_can_give_each_other_a_part() -> Result<()> {
    let (one, two) = (start_new().await?, start_new().await?);
    pair_parts((&one, Some(tagged("b"))), (&two, Some(tagged("a")))).await?;
    let (a, b) = (add_tagged(&one, "Of one", "a").await?, add_tagged(&two, "Of two", "b").await?);
    let (own, other) = (add(&one, "Only of one").await?, add(&two, "Only of two").await?);
    comes(&two, &a).await?;
    comes(&one, &b).await?;
    settled(&[&one, &two]).await?;
    ensure!(content(&two, &own).await?.is_none() && content(&one, &other).await?.is_none());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_for_a_peer_has_only_its_part() -> Result<()> {
    let (whole, partial) = (start_new().await?, start_new().await?);
    pair_parts((&partial, Some(tagged("work"))), (&whole, None)).await?;
    settled(&[&whole, &partial]).await?;
    // They do not reach each other any more.
    let request = v1::UpdatePeerRequest {
        peer: "to".to_owned(),
        addresses: vec!["127.0.0.1:1".to_owned()],
        ..v1::UpdatePeerRequest::default()
    };
    peers(&partial).update_peer(request).await?;
    eventually("the peer is not reached", async || {
        let state = listed(&partial).await?.first().map(|peer| peer.state);
        Ok((state == Some(v1::PeerState::Failed.into())).then_some(()))
    })
    .await?;
    let work = add_tagged(&whole, "Writes reports", "work").await?;
    let home = add_tagged(&whole, "Keeps bees", "home").await?;
    let (written, imported) = carry(&whole, "from", &partial).await?;
    ensure!(imported.new_changes == written.changes && imported.problem.is_empty(), "{imported:?}");
    ensure!(content(&partial, &work).await?.is_some() && content(&partial, &home).await?.is_none());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_peer_withholds_comes_from_another_one() -> Result<()> {
    let (whole, partial, third) = (start_new().await?, start_new().await?, start_new().await?);
    pair_parts((&partial, Some(tagged("work"))), (&whole, None)).await?;
    let home = add_tagged(&whole, "Keeps bees", "home").await?;
    settled(&[&whole, &partial]).await?;
    // The third one first hears of it from the one that does not have it.
    pair((&third, "third"), (&partial, "partial")).await?;
    settled(&[&partial, &third]).await?;
    ensure!(withheld(&third).await? > 0 && content(&third, &home).await?.is_none());
    pair((&third, "third"), (&whole, "whole")).await?;
    comes(&third, &home).await?;
    eventually("nothing is missing", async || Ok((withheld(&third).await? == 0).then_some(()))).await?;
    in_step(&[&whole, &third]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_gets_no_file_of_other_records() -> Result<()> {
    let (desk, folder) = (start_new().await?, tempfile::tempdir()?);
    let bytes = b"a picture of a beehive";
    demo_with_file(folder.path(), bytes)?;
    desk.import(folder.path()).await?;
    let gets = async |name: &str, platform: &str| {
        let platforms = vec![platform.to_owned()];
        let selection = Some(v1::DeviceSelection { platforms, ..v1::DeviceSelection::default() });
        let policy = v1::DevicePolicy { selection, ..policy(DeviceRole::Peer) };
        let peer = TestDevice::pair(&desk, name, policy).await?;
        let request = v1::DownloadFileRequest { sha256: Sha256Digest::of(bytes).to_hex() };
        match SyncServiceClient::new(peer.channel).download_file(request).await {
            Ok(mut stream) => Ok(stream.get_mut().message().await?.is_some()),
            Err(status) if status.code() == Code::NotFound => Ok(false),
            Err(status) => Err(anyhow::Error::from(status)),
        }
    };
    ensure!(gets("one", "chatgpt").await?);
    ensure!(!gets("two", "claude").await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_what_a_peer_has_come_whatever_it_gets() -> Result<()> {
    for partial_calls in [true, false] {
        let (whole, partial) = (start_new().await?, start_new().await?);
        if partial_calls {
            pair_parts((&partial, Some(tagged("work"))), (&whole, None)).await?;
        } else {
            pair_parts((&whole, None), (&partial, Some(tagged("work")))).await?;
        }
        let folder = tempfile::tempdir()?;
        demo_with_file(folder.path(), b"a picture of a beehive")?;
        partial.import(folder.path()).await?;
        eventually("the file comes", async || {
            // Files are exchanged after the changes that refer to them.
            for daemon in [&whole, &partial] {
                peers(daemon).sync_peers(v1::SyncPeersRequest::default()).await?;
            }
            let blobs = whole.data_dir().join("blobs");
            Ok((blobs.exists() && has(&blobs, "a picture of a beehive")?).then_some(()))
        })
        .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_that_overlap_are_refused() -> Result<()> {
    let desk = start_new().await?;
    let peer = TestDevice::pair(&desk, "peer", policy(DeviceRole::Peer)).await?;
    let range = |first: i64, last: i64| {
        let origin = "0a1b2c3d-0000-4000-8000-000000000001".to_owned();
        v1::ChangeRange { origin, first, last }
    };
    let ask = async |ranges: Vec<v1::ChangeRange>| {
        let mut sync = SyncServiceClient::new(peer.channel.clone());
        sync.download_payloads(v1::DownloadPayloadsRequest { ranges }).await.map(drop)
    };
    ask(vec![range(1, 3), range(4, 1 << 26)]).await?;
    let many = (1..=10_001).map(|at| range(at, at)).collect();
    for wrong in [vec![], vec![range(1, 3), range(3, 4)], vec![range(5, 6), range(1, 2)], many] {
        let status = ask(wrong).await.err().context("it is refused")?;
        ensure!(status.code() == Code::InvalidArgument && status.message().contains("ranges"), "{status:?}");
    }
    Ok(())
}

/// Many memories enter the part while payloads are exchanged.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_that_enters_the_part_during_an_exchange() -> Result<()> {
    let (whole, partial) = (start_new().await?, start_new().await?);
    pair_parts((&partial, Some(tagged("work"))), (&whole, None)).await?;
    let mut ids = Vec::new();
    for number in 0..30 {
        ids.push(add_tagged(&whole, &format!("Fact {number}"), "home").await?);
    }
    settled(&[&whole, &partial]).await?;
    for id in &ids {
        tag(&whole, id, &["work"]).await?;
    }
    for id in &ids {
        comes(&partial, id).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_restrictions_are_refused() -> Result<()> {
    let (desk, laptop) = (start_new().await?, start_new().await?);
    pair((&laptop, "laptop"), (&desk, "desk")).await?;
    let wrong = [
        v1::DeviceSelection { tags: vec![String::new()], ..Default::default() },
        v1::DeviceSelection { types: vec![99], ..Default::default() },
        v1::DeviceSelection { created: Some(v1::TimeRange::default()), ..Default::default() },
    ];
    for (daemon, peer) in [(&desk, "laptop"), (&laptop, "desk")] {
        for selection in &wrong {
            let request = v1::UpdatePeerRequest {
                peer: peer.to_owned(),
                selection: Some(selection.clone()),
                ..v1::UpdatePeerRequest::default()
            };
            let status = peers(daemon).update_peer(request).await.err().context("it is refused")?;
            ensure!(status.message().contains("selection"), "{status:?}");
        }
        ensure!(listed(daemon).await?[0].selection == Some(v1::DeviceSelection::default()));
    }
    Ok(())
}
