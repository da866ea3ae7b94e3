//! Records that leave the view of a client, and come back.

use anyhow::{Context as _, Result, ensure};
use satchel_core::purge::{self, Target};
use satchel_devices::{Credentials, PairingSecret};
use satchel_proto::v1::{self, memory_service_client::MemoryServiceClient};
use satchel_tests::{
    test_core::TestCore,
    test_daemon::TestDaemon,
    test_device::{TestDevice, create_pairing, listening_daemon, listening_daemon_in, policy},
};

use crate::watch_changes::{
    after, end_of, every_status,
    follower::{Follower, Told, list_memories},
    reason, watch, writers,
};

/// Follows a filter while `id` is changed, and returns what was told of it.
async fn told_of(follower: &mut Follower, daemon: &TestDaemon, id: &str) -> Result<Vec<bool>> {
    let last = writers::revision(&daemon.channel).await?;
    follower.follow_until(&daemon.channel, last).await?;
    Ok(told(&follower.told, id))
}

fn told(all: &[Told], id: &str) -> Vec<bool> {
    all.iter().filter(|told| told.1 == id).map(|told| told.2).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_that_no_longer_matches_leaves_once() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let channel = &daemon.channel;
    let filter = |memories| {
        Follower::with_filter(v1::ChangeFilter { memories: Some(memories), ..v1::ChangeFilter::default() })
    };
    let active = v1::MemoryStatus::Active.into();
    let mut active = filter(v1::MemoryFilter { statuses: vec![active], ..Default::default() });
    let mut odd = filter(v1::MemoryFilter { tags_any: vec!["odd".to_owned()], ..Default::default() });
    let mut all = Follower::default();
    let id = writers::create(channel, "It rains", v1::Visibility::Private).await?;
    ensure!(told_of(&mut active, &daemon, &id).await? == [true]);
    ensure!(told_of(&mut odd, &daemon, &id).await? == [true]);
    writers::set_status(channel, &id, v1::MemoryStatus::Archived).await?;
    ensure!(told_of(&mut active, &daemon, &id).await? == [true, false]);
    ensure!(told_of(&mut odd, &daemon, &id).await? == [true, true], "every status is in the feed");
    writers::set_tags(channel, &id, &["even"]).await?;
    ensure!(told_of(&mut active, &daemon, &id).await? == [true, false], "nothing more is told");
    ensure!(told_of(&mut odd, &daemon, &id).await? == [true, true, false]);
    writers::set_tags(channel, &id, &["odd"]).await?;
    ensure!(told_of(&mut active, &daemon, &id).await? == [true, false]);
    ensure!(told_of(&mut odd, &daemon, &id).await? == [true, true, false, true]);
    ensure!(told_of(&mut all, &daemon, &id).await? == [true; 4]);
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn access_that_the_owner_withdraws_ends_the_view() -> Result<()> {
    let daemon = listening_daemon().await?;
    let owner = &daemon.channel;
    let agent = TestDevice::pair(&daemon, "agent", policy(v1::DeviceRole::Agent)).await?;
    let secret = writers::create(owner, "Never seen", v1::Visibility::Private).await?;
    let once = writers::create(owner, "Seen before", v1::Visibility::Public).await?;
    writers::set_visibility(owner, &once, v1::Visibility::Private).await?;
    let id = writers::create(owner, "It rains", v1::Visibility::Public).await?;
    let other = writers::create(owner, "It snows", v1::Visibility::Public).await?;
    let mut live = Follower::default();
    let mut stream = watch(&agent.channel, live.request()).await?;
    live.read_until(&mut stream, writers::revision(owner).await?).await?;
    let visible = live.revision;
    let relation = writers::relate(owner, &id, &other).await?;
    let hidden_relation = writers::relate(owner, &id, &secret).await?;
    writers::set_visibility(owner, &id, v1::Visibility::Private).await?;
    writers::set_tags(owner, &id, &["hidden"]).await?;
    writers::set_tags(owner, &secret, &["hidden"]).await?;
    let hidden = writers::revision(owner).await?;
    // The last change is one that the agent sees, so its stream comes to it.
    writers::set_tags(owner, &other, &["seen"]).await?;
    let last = writers::revision(owner).await?;
    live.read_until(&mut stream, last).await?;
    ensure!(told(&live.told, &id) == [true, false], "{:?}", live.told);
    for never in [&secret, &once, &hidden_relation] {
        ensure!(told(&live.told, never).is_empty(), "{:?}", live.told);
    }
    ensure!(!live.memories.contains_key(&id));
    // A client that continues after the memory was visible is told; one that comes later never hears of it.
    let mut resumed = Follower { revision: visible, ..Follower::default() };
    resumed.follow_until(&agent.channel, last).await?;
    ensure!(told(&resumed.told, &id) == [false], "{:?}", resumed.told);
    ensure!(!resumed.relations.contains(&relation), "one of its memories is hidden");
    for start in [0, hidden] {
        let mut later = Follower { revision: start, ..Follower::default() };
        later.follow_until(&agent.channel, last).await?;
        ensure!(told(&later.told, &id).is_empty(), "after {start}: {:?}", later.told);
    }
    writers::set_visibility(owner, &id, v1::Visibility::Public).await?;
    live.read_until(&mut stream, writers::revision(owner).await?).await?;
    ensure!(told(&live.told, &id) == [true, false, true], "{:?}", live.told);
    live.check_against_list(&agent.channel, every_status()).await?;
    drop(stream);
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn relations_are_told_to_those_who_see_both_memories() -> Result<()> {
    let daemon = listening_daemon().await?;
    let owner = &daemon.channel;
    let agent = TestDevice::pair(&daemon, "agent", policy(v1::DeviceRole::Agent)).await?;
    let mut ids = Vec::new();
    for (content, visibility) in
        [("a", v1::Visibility::Public), ("b", v1::Visibility::Public), ("c", v1::Visibility::Private)]
    {
        ids.push(writers::create(owner, content, visibility).await?);
    }
    let seen = writers::relate(owner, &ids[0], &ids[1]).await?;
    let hidden = writers::relate(owner, &ids[0], &ids[2]).await?;
    let (mut by_owner, mut by_agent) = (Follower::default(), Follower::default());
    let last = writers::revision(owner).await?;
    by_owner.follow_until(owner, last).await?;
    by_agent.follow_until(&agent.channel, last).await?;
    ensure!(by_owner.relations == [seen.clone(), hidden.clone()].into());
    ensure!(by_agent.relations == [seen.clone()].into());
    let mut client = MemoryServiceClient::new(owner.clone());
    for id in [&seen, &hidden] {
        client
            .withdraw_relation(v1::WithdrawRelationRequest { id: id.clone(), ..Default::default() })
            .await?;
    }
    let last = writers::revision(owner).await?;
    by_owner.follow_until(owner, last).await?;
    by_agent.follow_until(&agent.channel, last).await?;
    ensure!(by_owner.relations.is_empty() && by_agent.relations.is_empty());
    ensure!(told(&by_agent.told, &seen) == [true, false] && told(&by_agent.told, &hidden).is_empty());
    daemon.stop().await?;
    Ok(())
}

/// What is permanently erased leaves the view of those who see everything. The others read everything again, because it
/// is not known any more what they saw.
#[tokio::test(flavor = "multi_thread")]
async fn erased_memories_leave_every_view() -> Result<()> {
    let daemon = listening_daemon().await?;
    let owner = &daemon.channel;
    let agent = TestDevice::pair(&daemon, "agent", policy(v1::DeviceRole::Agent)).await?;
    let id = writers::create(owner, "It rains", v1::Visibility::Public).await?;
    let stays = writers::create(owner, "It snows", v1::Visibility::Public).await?;
    let odd = v1::MemoryFilter { tags_any: vec!["odd".to_owned()], ..v1::MemoryFilter::default() };
    let filter = v1::ChangeFilter { memories: Some(odd), ..v1::ChangeFilter::default() };
    let (mut all, mut filtered) = (Follower::default(), Follower::with_filter(filter));
    let last = writers::revision(owner).await?;
    all.follow_until(owner, last).await?;
    filtered.follow_until(owner, last).await?;
    let (credentials, device) = (agent.credentials.clone(), agent.device.clone());
    drop(agent);
    let folder = daemon.stop().await?;
    let data = folder.path().join("data");
    let store = TestCore::open(&data)?.into_store()?;
    let plan = purge::planned(&store, &Target::Memory(id.clone()), 1)?.context("a plan")?;
    purge::record_purge(&store, &plan.record)?;
    purge::erase_recorded(&data, store, None, &mut |_| {})?;
    let daemon = listening_daemon_in(folder).await?;
    let owner = &daemon.channel;
    let current = writers::revision(owner).await?;
    for follower in [&mut all, &mut filtered] {
        follower.follow_until(owner, current).await?;
        ensure!(told(&follower.told, &id) == [true, false], "{:?}", follower.told);
        ensure!(follower.memories.keys().eq([&stays]));
    }
    let mut anew = Follower::default();
    anew.follow_until(owner, current).await?;
    ensure!(told(&anew.told, &id).is_empty() && anew.memories.keys().eq([&stays]));
    // The daemon has another port now, which it names in the link of a pairing.
    let pairing = create_pairing(&daemon, "another", policy(v1::DeviceRole::Agent)).await?;
    let addresses = PairingSecret::parse(&pairing.uri)?.addresses;
    let agent = TestDevice::connect(Credentials { addresses, ..credentials }, device).await?;
    let status = end_of(watch(&agent.channel, after(last)).await?).await?;
    let (reason, oldest) = reason(&status, "oldest");
    ensure!(reason == "REVISION_COMPACTED", "{status:?}");
    let oldest: i64 = oldest.unwrap_or_default().parse()?;
    ensure!(oldest > last && oldest <= current, "{oldest}");
    // It reads everything again, and continues.
    let mut agent_again = Follower { revision: current, ..Follower::default() };
    agent_again.memories = list_memories(&agent.channel, every_status()).await?;
    agent_again.follow_until(&agent.channel, current).await?;
    ensure!(agent_again.memories.keys().eq([&stays]));
    daemon.stop().await?;
    Ok(())
}
