//! The guarantees of etcd's watch: ordered, unique, reliable, atomic, resumable, bookmarkable. The follower checks order,
//! uniqueness and whole revisions at each message; the tests compare what it has in the end.

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1;
use satchel_store::{Batch, Change};
use satchel_tests::{
    generate::Rng,
    test_core::TestCore,
    test_daemon::TestDaemon,
    test_device::{TestDevice, listening_daemon, policy},
};
use serde_json::json;
use tokio::task::JoinSet;
use tonic::transport::Channel;

use crate::watch_changes::{
    every_status,
    follower::Follower,
    watch,
    writers::{self, change_at_random},
};

const WRITERS: u64 = 4;
const STEPS: u64 = 60;

fn odd() -> v1::ChangeFilter {
    let memories = v1::MemoryFilter { tags_any: vec!["odd".to_owned()], ..v1::MemoryFilter::default() };
    v1::ChangeFilter { memories: Some(memories), ..v1::ChangeFilter::default() }
}

/// Follows the store with connections that break after a few messages, until `done` names the last revision.
async fn follow_with_cuts(
    channel: Channel,
    mut follower: Follower,
    mut done: tokio::sync::watch::Receiver<Option<i64>>,
    seed: u64,
) -> Result<Follower> {
    let mut rng = Rng::new(seed);
    loop {
        let last = *done.borrow_and_update();
        if let Some(last) = last {
            follower.follow_until(&channel, last).await?;
            return Ok(follower);
        }
        follower.follow_messages(&channel, 1 + rng.below(6)).await?;
    }
}

/// The owner, an agent, and both with a filter follow concurrent writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_a_bad_connection_misses_nothing_and_is_told_nothing_twice() -> Result<()> {
    let daemon = listening_daemon().await?;
    let agent = TestDevice::pair(&daemon, "agent", policy(v1::DeviceRole::Agent)).await?;
    let reader = TestDevice::pair(&daemon, "reader", policy(v1::DeviceRole::Reader)).await?;
    let (done, ended) = tokio::sync::watch::channel(None);
    let mut followers = Vec::new();
    let channels = [&daemon.channel, &agent.channel, &reader.channel];
    for (seed, channel) in channels.iter().enumerate() {
        for follower in [Follower::default(), Follower::with_filter(odd())] {
            let follow = follow_with_cuts((*channel).clone(), follower, ended.clone(), seed as u64);
            followers.push(((*channel).clone(), tokio::spawn(follow)));
        }
    }
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(change_at_random(daemon.channel.clone(), writer, STEPS));
    }
    while let Some(writer) = writers.join_next().await {
        writer??;
    }
    done.send_replace(Some(writers::revision(&daemon.channel).await?));
    for (at, (channel, follower)) in followers.into_iter().enumerate() {
        let follower = follower.await??;
        let filter = follower.filter.clone().and_then(|filter| filter.memories).unwrap_or_default();
        let filter = v1::MemoryFilter { statuses: (1..=5).collect(), include_expired: true, ..filter };
        follower.check_against_list(&channel, filter).await?;
        // The owner and the reader see each version, so each is told, as to a client that asks for all of them later.
        let mut later = Follower { filter: follower.filter.clone(), ..Follower::default() };
        later.follow_until(&channel, follower.revision).await?;
        ensure!(later.memories == follower.memories, "a later client has another copy");
        if !(2..4).contains(&at) {
            ensure!(later.told == follower.told, "client {at} was told something else");
        }
        // Pages tell the same.
        for page_size in [1_000, 7] {
            let mut pages = Follower { filter: follower.filter.clone(), ..Follower::default() };
            pages.list(&channel, page_size).await?;
            ensure!(
                pages.told == later.told && pages.memories == later.memories,
                "pages tell something else"
            );
        }
    }
    daemon.stop().await?;
    Ok(())
}

/// From each revision on, a client is told the rest of what a client from the beginning is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_can_continue_after_any_revision() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    change_at_random(daemon.channel.clone(), 1, 100).await?;
    let last = writers::revision(&daemon.channel).await?;
    let mut all = Follower::default();
    all.follow_until(&daemon.channel, last).await?;
    ensure!(all.told.len() >= 40);
    for revision in 0..=last {
        let mut rest = Follower { revision, ..Follower::default() };
        rest.follow_until(&daemon.channel, last).await?;
        let expected: Vec<_> = all.told.iter().filter(|told| told.0 > revision).collect();
        ensure!(rest.told.iter().collect::<Vec<_>>() == expected, "after {revision}");
    }
    daemon.stop().await?;
    Ok(())
}

/// Messages without changes move the revision, so that a client does not read again what its filter leaves out.
#[tokio::test(flavor = "multi_thread")]
async fn progress_is_told_when_nothing_matches() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut follower =
        Follower::with_filter(v1::ChangeFilter { without_memories: true, ..v1::ChangeFilter::default() });
    let mut stream = watch(&daemon.channel, follower.request()).await?;
    follower.read_until(&mut stream, 0).await?;
    writers::create(&daemon.channel, "It rains", v1::Visibility::Public).await?;
    let last = writers::revision(&daemon.channel).await?;
    ensure!(last > follower.revision);
    follower.read_until(&mut stream, last).await?;
    ensure!(follower.told.is_empty(), "{:?}", follower.told);
    daemon.stop().await?;
    Ok(())
}

fn many_memories(count: usize) -> Result<Vec<Change>> {
    let memory = |n: usize| {
        let text = format!("The number {n} is remembered");
        let memory = json!({
            "id": format!("memory-{n}"), "type": "fact", "status": "active", "content": text,
            "content_hash": satchel_pam::hash::ContentHash::of(&text).to_string(),
            "temporal": {"created_at": "2026-01-02T03:04:05Z"}, "provenance": {"platform": "chatgpt"},
        });
        Ok(Change::Memory(Box::new(serde_json::from_value(memory)?)))
    };
    (0..count).map(memory).collect()
}

/// A revision that does not fit into a message is sent in fragments; the follower fails if a part of it is applied.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_revision_comes_in_fragments() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(&folder.path().join("data"))?;
    let before = core.store.revision();
    core.store.commit(Batch { changes: many_memories(2_500)?, ..Batch::default() })?;
    core.close()?;
    let daemon = TestDaemon::start_in(folder).await?;
    let mut stream =
        watch(&daemon.channel, crate::watch_changes::after(i64::try_from(before.get())?)).await?;
    let (mut follower, mut fragments) = (Follower::default(), 0);
    loop {
        let message = stream.message().await?.context("the stream does not end")?;
        let (fragment, caught_up) = (message.fragment, message.caught_up);
        fragments += usize::from(fragment);
        follower.apply(message)?;
        ensure!(follower.memories.is_empty() || follower.memories.len() == 2_500);
        if caught_up {
            break;
        }
    }
    ensure!(fragments == 2, "{fragments} fragments");
    follower.check_against_list(&daemon.channel, every_status()).await?;
    daemon.stop().await?;
    Ok(())
}
