//! What leaves the part that a peer gets is taken out there.

use anyhow::{Result, ensure};
use satchel_proto::v1::{self, DeviceRole, sync_service_client::SyncServiceClient};
use satchel_tests::{
    test_daemon::TestDaemon,
    test_device::{TestDevice, policy},
};
use tonic::Code;

use super::{
    erasures::has,
    parts::{add_tagged, comes, pair_parts, restrict, settled, tagged},
    peer_daemon::{add, content, eventually, pair, peers, start, start_new, tag},
};

const SECRET: &str = "xylophone-4712";

/// Waits until a memory is not shown and its text is not on the disk any more.
async fn goes(daemon: &TestDaemon, id: &str, text: &str) -> Result<()> {
    eventually("the memory is taken out", async || {
        // The daemon closes its store for a moment.
        let Ok(found) = content(daemon, id).await else { return Ok(None) };
        Ok(found.is_none_or(|text| text.is_empty()).then_some(()))
    })
    .await?;
    eventually("its text leaves the disk", async || Ok((!has(&daemon.data_dir(), text)?).then_some(()))).await
}

/// Waits until a memory is shown.
async fn is_shown(daemon: &TestDaemon, id: &str) -> Result<()> {
    eventually("the memory is shown", async || {
        let found = content(daemon, id).await.ok().flatten();
        Ok(found.filter(|text| !text.is_empty()).map(drop))
    })
    .await
}

/// `partial` gets a part of `whole`, which knows it as `peer`.
async fn check_revocation(whole: &TestDaemon, partial: &TestDaemon, peer: &str) -> Result<()> {
    let work = add_tagged(whole, "Writes reports", "work").await?;
    let secret = add_tagged(whole, SECRET, "work").await?;
    let own = add(partial, "Was written here").await?;
    comes(partial, &work).await?;
    comes(partial, &secret).await?;
    // A record leaves the part.
    tag(whole, &secret, &["home"]).await?;
    goes(partial, &secret, SECRET).await?;
    for id in [&work, &own] {
        is_shown(partial, id).await?;
    }
    ensure!(content(whole, &secret).await?.as_deref() == Some(SECRET), "it was not erased");
    // It comes back.
    tag(whole, &secret, &["home", "work"]).await?;
    is_shown(partial, &secret).await?;
    ensure!(content(partial, &secret).await?.as_deref() == Some(SECRET));
    // The part gets narrower, and then everything.
    restrict(whole, peer, tagged("nothing has this tag")).await?;
    goes(partial, &secret, SECRET).await?;
    is_shown(partial, &own).await?;
    restrict(whole, peer, v1::DeviceSelection::default()).await?;
    for id in [&work, &secret, &own] {
        is_shown(partial, id).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_calls_takes_out_what_leaves_its_part() -> Result<()> {
    let (whole, partial) = (start_new().await?, start_new().await?);
    pair_parts((&partial, Some(tagged("work"))), (&whole, None)).await?;
    check_revocation(&whole, &partial, "from").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_is_called_takes_out_what_leaves_its_part() -> Result<()> {
    let (whole, partial) = (start_new().await?, start_new().await?);
    pair_parts((&whole, None), (&partial, Some(tagged("work")))).await?;
    check_revocation(&whole, &partial, "to").await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_taken_out_that_another_peer_may_give() -> Result<()> {
    let (whole, partial, third) = (start_new().await?, start_new().await?, start_new().await?);
    pair_parts((&partial, Some(tagged("work"))), (&whole, None)).await?;
    let work = add_tagged(&whole, "Writes reports", "work").await?;
    comes(&partial, &work).await?;
    pair((&third, "third"), (&partial, "partial")).await?;
    comes(&third, &work).await?;
    tag(&whole, &work, &["home"]).await?;
    settled(&[&whole, &partial]).await?;
    let mut sync = SyncServiceClient::new(partial.channel.clone());
    sync.get_frontier(v1::GetFrontierRequest::default()).await?;
    ensure!(content(&partial, &work).await?.is_some());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_taken_out_that_a_former_peer_may_have_given() -> Result<()> {
    let (whole, partial, third) = (start_new().await?, start_new().await?, start_new().await?);
    pair((&partial, "partial"), (&third, "third")).await?;
    let given = add(&third, "Is from the third").await?;
    comes(&partial, &given).await?;
    let request = v1::RemovePeerRequest { peer: "third".to_owned() };
    peers(&partial).remove_peer(request).await?;
    pair_parts((&partial, Some(tagged("work"))), (&whole, None)).await?;
    comes(&whole, &given).await?;
    settled(&[&whole, &partial]).await?;
    // After a start, it asks for everything again.
    let partial = start(partial.stop().await?).await?;
    let work = add_tagged(&whole, "Writes reports", "work").await?;
    comes(&partial, &work).await?;
    tag(&whole, &work, &["home"]).await?;
    settled(&[&whole, &partial]).await?;
    peers(&partial).sync_peers(v1::SyncPeersRequest::default()).await?;
    for id in [&given, &work] {
        is_shown(&partial, id).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_ranges_are_refused_and_take_nothing_out() -> Result<()> {
    let (whole, partial) = (start_new().await?, start_new().await?);
    pair((&whole, "whole"), (&partial, "partial")).await?;
    let memory = add(&whole, "Keeps bees").await?;
    comes(&partial, &memory).await?;
    let device = TestDevice::pair(&partial, "other", policy(DeviceRole::Reader)).await?;
    let range = |first: i64, last: i64| {
        let origin = "0a1b2c3d-0000-4000-8000-000000000001".to_owned();
        v1::ChangeRange { origin, first, last }
    };
    let send = async |channel, messages: Vec<Vec<v1::ChangeRange>>| {
        let messages = messages.into_iter().map(|ranges| v1::UploadWithheldRangesRequest { ranges });
        let messages: Vec<_> = messages.collect();
        let answer =
            SyncServiceClient::new(channel).upload_withheld_ranges(tokio_stream::iter(messages)).await;
        answer.map(|answer| answer.into_inner().removed_records)
    };
    // The owner over the socket is no peer.
    let all = vec![vec![range(1, 1 << 26)]];
    ensure!(send(partial.channel.clone(), all.clone()).await? == 0);
    ensure!(send(device.channel, all).await.is_err_and(|status| status.code() == Code::PermissionDenied));
    for wrong in [vec![vec![range(1, 3), range(3, 4)]], vec![vec![range(5, 6)], vec![range(1, 2)]]] {
        let status = send(partial.channel.clone(), wrong).await.err();
        ensure!(status.as_ref().is_some_and(|status| status.code() == Code::InvalidArgument), "{status:?}");
    }
    ensure!(content(&partial, &memory).await?.is_some());
    Ok(())
}
