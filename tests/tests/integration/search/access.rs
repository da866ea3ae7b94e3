//! Devices find only what they may see, and counts tell them nothing of the rest.

use anyhow::{Context as _, Result, ensure};
use prost_types::FieldMask;
use satchel_proto::v1::{self, DeviceRole, Visibility, memory_service_client::MemoryServiceClient};
use satchel_tests::{
    test_daemon::TestDaemon,
    test_device::{TestDevice, listening_daemon, policy},
};

use crate::search::{hive, ids, import, query, search};

async fn remember(daemon: &TestDaemon, content: &str, visibility: Visibility) -> Result<String> {
    let access = v1::Access { visibility: visibility.into(), exportable: true, shared_with: Vec::new() };
    let memory = v1::Memory { content: content.to_owned(), access: Some(access), ..v1::Memory::default() };
    let request = v1::CreateMemoryRequest { memory: Some(memory), ..v1::CreateMemoryRequest::default() };
    let mut client = MemoryServiceClient::new(daemon.channel.clone());
    Ok(client.create_memory(request).await?.into_inner().memory.context("a memory")?.id)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_finds_what_is_public_and_no_conversation() -> Result<()> {
    let daemon = listening_daemon().await?;
    import(&daemon, "export", &[hive()]).await?;
    remember(&daemon, "Ana fears bees", Visibility::Private).await?;
    let public = remember(&daemon, "Ana likes honey of bees", Visibility::Public).await?;
    let policy = v1::DevicePolicy { entity: "helper".to_owned(), ..policy(DeviceRole::Agent) };
    let agent = TestDevice::pair(&daemon, "helper", policy).await?;
    ensure!(ids(&daemon.channel, "bees").await?.len() == 3, "the owner finds all");
    ensure!(ids(&agent.channel, "bees").await? == [public.as_str()], "{public}");
    // Neither counts nor facets nor suggestions tell of the rest.
    let request = v1::SearchRequest { facets: (1..=7).collect(), ..query("bees") };
    let found = search(&agent.channel, request).await?;
    let counted: i64 =
        found.facets.iter().flat_map(|facet| &facet.counts).map(|count| count.count).max().unwrap_or(0);
    ensure!(found.total == 1 && counted == 1, "{found:?}");
    let found = search(&agent.channel, query("winterr")).await?;
    ensure!(found.suggestions.is_empty() && found.total == 0, "{found:?}");
    // Neither do scores, which go by the frequency of words in all texts, nor explanations, which have words of them.
    let explained = |text: &str| v1::SearchRequest { explain: true, ..query(text) };
    let found = search(&agent.channel, explained("honey surviv")).await?;
    ensure!(found.hits.len() == 1 && found.hits[0].relaxed, "{found:?}");
    ensure!(
        found.hits.iter().all(|hit| hit.explanation.is_empty() && hit.score.to_bits() == 1.0_f32.to_bits())
    );
    let found = search(&daemon.channel, explained("honey surviv")).await?;
    ensure!(found.hits.iter().any(|hit| hit.explanation.contains("survive")), "{found:?}");
    Ok(())
}

/// Access that is withdrawn holds at once, even before the index knows of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_memory_that_is_private_now_is_not_shown() -> Result<()> {
    let daemon = listening_daemon().await?;
    let id = remember(&daemon, "Ana likes honey", Visibility::Public).await?;
    let policy = v1::DevicePolicy { entity: "helper".to_owned(), ..policy(DeviceRole::Agent) };
    let agent = TestDevice::pair(&daemon, "helper", policy).await?;
    ensure!(ids(&agent.channel, "honey").await?.len() == 1, "it is public");
    let access =
        v1::Access { visibility: Visibility::Private.into(), exportable: true, shared_with: Vec::new() };
    let request = v1::UpdateMemoryRequest {
        memory: Some(v1::Memory { id, access: Some(access), ..v1::Memory::default() }),
        update_mask: Some(FieldMask { paths: vec!["access".to_owned()] }),
        ..v1::UpdateMemoryRequest::default()
    };
    MemoryServiceClient::new(daemon.channel.clone()).update_memory(request).await?;
    let mut client = v1::search_service_client::SearchServiceClient::new(agent.channel.clone());
    let found = client.search(query("honey")).await?.into_inner();
    ensure!(found.hits.is_empty(), "{found:?}");
    ensure!(ids(&agent.channel, "honey").await?.is_empty(), "the index knows of it");
    Ok(())
}
