//! Where a stream begins, and what cannot be told.

use anyhow::{Context as _, Result, ensure};
use prost_types::Duration;
use satchel_core::{
    backup::{create, restore},
    vault::UnlockOptions,
};
use satchel_proto::v1::{self, watch_service_client::WatchServiceClient};
use satchel_tests::{test_core::TestCore, test_daemon::TestDaemon};
use tonic::Code;

use crate::watch_changes::{after, follower::Follower, reason, watch, writers};

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_from_now_on_begins_with_the_current_revision() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    writers::create(&daemon.channel, "It rains", v1::Visibility::Public).await?;
    let current = writers::revision(&daemon.channel).await?;
    let mut stream = watch(&daemon.channel, v1::WatchChangesRequest::default()).await?;
    let first = stream.message().await?.context("a message")?;
    ensure!(first.caught_up && first.changes.is_empty(), "{first:?}");
    ensure!(first.header.context("a header")?.revision == current);
    writers::create(&daemon.channel, "It snows", v1::Visibility::Public).await?;
    let second = stream.message().await?.context("a message")?;
    ensure!(second.caught_up && second.changes.len() == 1, "{second:?}");
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_cannot_be_answered_say_why() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let current = writers::revision(&daemon.channel).await?;
    let interval = |seconds, nanos| v1::WatchChangesRequest {
        progress_interval: Some(Duration { seconds, nanos }),
        ..v1::WatchChangesRequest::default()
    };
    let foreign = |store_id: &str| v1::WatchChangesRequest { store_id: store_id.to_owned(), ..after(0) };
    let types = v1::MemoryFilter { types: vec![99], ..v1::MemoryFilter::default() };
    let filter = v1::ChangeFilter { memories: Some(types), ..v1::ChangeFilter::default() };
    let cases = [
        (after(current + 1), Code::OutOfRange, "REVISION_IN_FUTURE"),
        (after(i64::MAX), Code::OutOfRange, "REVISION_IN_FUTURE"),
        (after(-1), Code::InvalidArgument, "FIELD_INVALID"),
        (foreign("0a1b2c3d-0000-4000-8000-000000000000"), Code::FailedPrecondition, "STORE_CHANGED"),
        (foreign("something"), Code::FailedPrecondition, "STORE_CHANGED"),
        (foreign(&"x".repeat(2_000)), Code::InvalidArgument, "FIELD_INVALID"),
        (interval(0, 999_999_999), Code::InvalidArgument, "FIELD_INVALID"),
        (interval(600, 1), Code::InvalidArgument, "FIELD_INVALID"),
        (interval(-1, 0), Code::InvalidArgument, "FIELD_INVALID"),
        (v1::WatchChangesRequest { view: 99, ..after(0) }, Code::InvalidArgument, "FIELD_INVALID"),
        (
            v1::WatchChangesRequest { filter: Some(filter), ..after(0) },
            Code::InvalidArgument,
            "FIELD_INVALID",
        ),
    ];
    for (request, code, expected) in cases {
        let status = watch(&daemon.channel, request.clone()).await.err().context("an error")?;
        ensure!(status.code() == code && reason(&status, "").0 == expected, "{request:?}: {status:?}");
        let v1::WatchChangesRequest { store_id, after_revision, filter, view, progress_interval } = request;
        if progress_interval != after(0).progress_interval {
            continue;
        }
        let list = v1::ListChangesRequest {
            store_id,
            after_revision: after_revision.unwrap_or_default(),
            filter,
            view,
            ..v1::ListChangesRequest::default()
        };
        let listed = WatchServiceClient::new(daemon.channel.clone()).list_changes(list).await;
        let status = listed.err().context("an error")?;
        ensure!(status.code() == code && reason(&status, "").0 == expected, "{status:?}");
    }
    let status = watch(&daemon.channel, after(current + 1)).await.err().context("an error")?;
    ensure!(reason(&status, "current").1 == Some(current.to_string()), "{status:?}");
    daemon.stop().await?;
    Ok(())
}

/// A restored store has the revisions of the backup, and will use those after it for other changes.
#[tokio::test(flavor = "multi_thread")]
async fn a_restored_store_is_another_one() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    writers::create(&daemon.channel, "It rains", v1::Visibility::Public).await?;
    let mut follower = Follower::default();
    follower.follow_until(&daemon.channel, 1).await?;
    let folder = daemon.stop().await?;
    let (data, backup) = (folder.path().join("data"), folder.path().join("backup"));
    let core = TestCore::open(&data)?;
    create::create(&core.store, &data, &backup, 1, &mut |_| true)?;
    core.close()?;
    restore::restore(&backup, &data, true, &UnlockOptions::default(), &mut |_| true)?;
    let daemon = TestDaemon::start_in(folder).await?;
    let status = watch(&daemon.channel, follower.request()).await.err().context("an error")?;
    let (reason, store_id) = reason(&status, "store_id");
    ensure!(reason == "STORE_CHANGED", "{status:?}");
    let store_id = store_id.context("the new id")?;
    let mut anew = Follower::default();
    anew.follow_until(&daemon.channel, follower.revision).await?;
    ensure!(anew.request().store_id == store_id && anew.memories.len() == 1);
    daemon.stop().await?;
    Ok(())
}
