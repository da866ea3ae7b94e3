//! How a stream ends.

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{self, change::Record, device_service_client::DeviceServiceClient};
use satchel_tests::test_device::{TestDevice, listening_daemon, policy};
use tonic::Code;

use crate::watch_changes::{after, end_of, reason, watch, writers};

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_of_the_daemon_ends_streams_at_once() -> Result<()> {
    let daemon = listening_daemon().await?;
    let mut stream = watch(&daemon.channel, after(0)).await?;
    stream.message().await?.context("a message")?;
    let end = tokio::spawn(end_of(stream));
    let began = std::time::Instant::now();
    daemon.stop().await?;
    let status = end.await??;
    ensure!(status.code() == Code::Unavailable && reason(&status, "").0 == "SHUTTING_DOWN", "{status:?}");
    ensure!(began.elapsed().as_secs() < 5, "the daemon waited for the stream");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn revocation_and_a_new_policy_end_the_streams_of_a_device() -> Result<()> {
    let daemon = listening_daemon().await?;
    let device = TestDevice::pair(&daemon, "reader", policy(v1::DeviceRole::Reader)).await?;
    let private = writers::create(&daemon.channel, "It rains", v1::Visibility::Private).await?;
    let mut stream = watch(&device.channel, after(0)).await?;
    let first = stream.message().await?.context("a message")?;
    ensure!(first.changes.len() == 1, "{first:?}");
    let request = v1::UpdateDeviceRequest {
        device: device.device.id.clone(),
        policy: Some(policy(v1::DeviceRole::Agent)),
        name: String::new(),
    };
    DeviceServiceClient::new(daemon.channel.clone()).update_device(request).await?;
    // Whatever is changed now is judged by the new policy.
    writers::set_tags(&daemon.channel, &private, &["new"]).await?;
    let status = stream.message().await.err().context("an error, and not another change")?;
    ensure!(reason(&status, "").0 == "POLICY_CHANGED", "{status:?}");
    let mut stream = watch(&device.channel, after(0)).await?;
    let first = stream.message().await?.context("a message")?;
    ensure!(first.changes.is_empty() && first.caught_up, "{first:?}");
    device.revoke(&daemon).await?;
    let status = end_of(stream).await?;
    ensure!(reason(&status, "").0 == "DEVICE_REVOKED", "{status:?}");
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_holds_eight_watches() -> Result<()> {
    let daemon = listening_daemon().await?;
    let device = TestDevice::pair(&daemon, "reader", policy(v1::DeviceRole::Reader)).await?;
    let mut streams = Vec::new();
    for _ in 0..8 {
        let mut stream = watch(&device.channel, after(0)).await?;
        stream.message().await?.context("a message")?;
        streams.push(stream);
    }
    let status = watch(&device.channel, after(0)).await.err().context("an error")?;
    ensure!(status.code() == Code::ResourceExhausted, "{status:?}");
    ensure!(reason(&status, "").0 == "LIMIT_EXCEEDED", "{status:?}");
    writers::create(&daemon.channel, "It rains", v1::Visibility::Private).await?;
    for stream in &mut streams {
        while stream.message().await?.context("a message")?.changes.is_empty() {}
    }
    daemon.stop().await?;
    Ok(())
}

/// Streams that wait cost little: all of them are told of one change.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_watchers_are_told_of_a_change() -> Result<()> {
    let daemon = listening_daemon().await?;
    let mut streams = Vec::new();
    for _ in 0..40 {
        let channel = satchel_server::connect::connect(&daemon.data_dir()).await?;
        for _ in 0..25 {
            let mut stream = watch(&channel, v1::WatchChangesRequest::default()).await?;
            stream.message().await?.context("a message")?;
            streams.push(stream);
        }
    }
    let id = writers::create(&daemon.channel, "It rains", v1::Visibility::Private).await?;
    for stream in &mut streams {
        let message = stream.message().await?.context("a message")?;
        let change = message.changes.first().context("a change")?;
        ensure!(matches!(&change.record, Some(Record::Memory(memory)) if memory.id == id), "{message:?}");
    }
    drop(streams);
    daemon.stop().await?;
    Ok(())
}
