//! Reads as of an earlier revision and as of a valid time.

use anyhow::{Context as _, Result, ensure};
use prost_types::{FieldMask, Timestamp};
use satchel_proto::v1::{self, memory_service_client::MemoryServiceClient};
use satchel_tests::test_daemon::TestDaemon;
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt;

type Client = MemoryServiceClient<Channel>;

/// 2020-01-01 and 2023-11-14, in seconds since 1970.
const YEAR_2020: i64 = 1_577_836_800;
const YEAR_2023: i64 = 1_700_000_000;

fn time(seconds: i64) -> Timestamp {
    Timestamp { seconds, nanos: 0 }
}

async fn create(client: &mut Client, content: &str, valid_until: Option<i64>) -> Result<(v1::Memory, i64)> {
    let temporal = v1::Temporal {
        valid_from: Some(time(YEAR_2020)),
        valid_until: valid_until.map(time),
        ..v1::Temporal::default()
    };
    let memory =
        v1::Memory { content: content.to_owned(), temporal: Some(temporal), ..v1::Memory::default() };
    let request = v1::CreateMemoryRequest { memory: Some(memory), ..Default::default() };
    let answer = client.create_memory(request).await?.into_inner();
    Ok((answer.memory.context("a memory")?, answer.header.context("a header")?.revision))
}

async fn edit(client: &mut Client, id: &str, content: &str) -> Result<i64> {
    let request = v1::UpdateMemoryRequest {
        memory: Some(v1::Memory { id: id.to_owned(), content: content.to_owned(), ..Default::default() }),
        update_mask: Some(FieldMask { paths: vec!["content".to_owned()] }),
        ..Default::default()
    };
    Ok(client.update_memory(request).await?.into_inner().header.context("a header")?.revision)
}

/// Lists the contents of all pages, two memories at a time.
async fn contents(client: &mut Client, request: v1::ListMemoriesRequest) -> Result<Vec<String>> {
    let mut request = v1::ListMemoriesRequest { page_size: 2, ..request };
    let mut contents = Vec::new();
    loop {
        let page = client.list_memories(request.clone()).await?.into_inner();
        contents.extend(page.memories.into_iter().map(|memory| memory.content));
        if page.next_page_token.is_empty() {
            contents.sort();
            return Ok(contents);
        }
        request.page_token = page.next_page_token;
    }
}

fn refused_field<T: std::fmt::Debug>(outcome: Result<T, Status>) -> Result<String> {
    let status = outcome.err().context("the call is refused")?;
    ensure!(status.code() == Code::InvalidArgument, "{status:?}");
    let details = status.get_error_details();
    let violations = &details.bad_request().context("field violations")?.field_violations;
    Ok(violations.first().context("a violation")?.field.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_show_the_store_as_of_any_revision_also_after_a_restart() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut client = MemoryServiceClient::new(daemon.channel.clone());
    let (bees, created) = create(&mut client, "Keeps bees", None).await?;
    let (_, two) = create(&mut client, "Lives in Bergen", None).await?;
    let edited = edit(&mut client, &bees.id, "Keeps geese").await?;
    create(&mut client, "Plays chess", None).await?;
    create(&mut client, "Reads Greek", None).await?;
    let daemon = TestDaemon::start_in(daemon.stop().await?).await?;
    let mut client = MemoryServiceClient::new(daemon.channel.clone());
    let get = async |client: &mut Client, as_of_revision| {
        let request = v1::GetMemoryRequest { id: bees.id.clone(), view: 0, as_of_revision };
        client.get_memory(request).await.map(tonic::Response::into_inner)
    };
    let first = get(&mut client, Some(created)).await?;
    ensure!(first.header.as_ref().map(|header| header.revision) == Some(created), "{first:?}");
    ensure!(first.memory.context("a memory")?.content == "Keeps bees");
    ensure!(get(&mut client, Some(edited)).await?.memory.context("a memory")?.content == "Keeps geese");
    let before = get(&mut client, Some(created - 1)).await.err().context("did not exist yet")?;
    ensure!(before.code() == Code::NotFound, "{before:?}");
    let list = |revision| v1::ListMemoriesRequest { as_of_revision: Some(revision), ..Default::default() };
    ensure!(contents(&mut client, list(0)).await?.is_empty());
    ensure!(contents(&mut client, list(created)).await? == ["Keeps bees"]);
    ensure!(contents(&mut client, list(two)).await? == ["Keeps bees", "Lives in Bergen"]);
    ensure!(contents(&mut client, list(edited)).await? == ["Keeps geese", "Lives in Bergen"]);
    let ids = vec![bees.id.clone()];
    let batch = v1::BatchGetMemoriesRequest { ids, view: 0, as_of_revision: Some(created) };
    let batch = client.batch_get_memories(batch).await?.into_inner();
    ensure!(batch.memories[0].content == "Keeps bees", "{batch:?}");
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_that_does_not_exist_and_an_order_that_is_not_kept_are_refused() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut client = MemoryServiceClient::new(daemon.channel.clone());
    let (memory, revision) = create(&mut client, "Keeps bees", None).await?;
    for as_of_revision in [Some(revision + 1), Some(-1), Some(i64::MAX)] {
        let get = v1::GetMemoryRequest { id: memory.id.clone(), view: 0, as_of_revision };
        ensure!(refused_field(client.get_memory(get).await)? == "as_of_revision");
        let list = v1::ListMemoriesRequest { as_of_revision, ..Default::default() };
        ensure!(refused_field(client.list_memories(list).await)? == "as_of_revision");
    }
    let by_update = v1::ListMemoriesRequest {
        order: v1::MemoryOrder::UpdatedDesc.into(),
        as_of_revision: Some(revision),
        ..Default::default()
    };
    ensure!(refused_field(client.list_memories(by_update).await)? == "order");
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_leave_out_expired_memories_unless_the_filter_says_otherwise() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut client = MemoryServiceClient::new(daemon.channel.clone());
    let (flat, _) = create(&mut client, "Rents a flat", Some(YEAR_2023 + 1)).await?;
    create(&mut client, "Keeps bees", None).await?;
    let list = |filter: v1::MemoryFilter| v1::ListMemoriesRequest {
        filter: Some(filter),
        ..v1::ListMemoriesRequest::default()
    };
    let at = |seconds| v1::MemoryFilter { valid_at: Some(time(seconds)), ..Default::default() };
    let everything = v1::MemoryFilter { include_expired: true, ..Default::default() };
    ensure!(contents(&mut client, v1::ListMemoriesRequest::default()).await? == ["Keeps bees"]);
    ensure!(contents(&mut client, list(everything.clone())).await? == ["Keeps bees", "Rents a flat"]);
    ensure!(contents(&mut client, list(at(YEAR_2023))).await? == ["Keeps bees", "Rents a flat"]);
    ensure!(contents(&mut client, list(at(YEAR_2023 + 1))).await? == ["Keeps bees"]);
    ensure!(contents(&mut client, list(at(YEAR_2020 - 1))).await?.is_empty());
    let both = v1::MemoryFilter { include_expired: true, ..at(YEAR_2023) };
    ensure!(refused_field(client.list_memories(list(both)).await)? == "filter.include_expired");
    // It is still there for who asks for it by name.
    let get = v1::GetMemoryRequest { id: flat.id, view: 0, as_of_revision: None };
    ensure!(client.get_memory(get).await?.into_inner().memory.context("a memory")?.content == "Rents a flat");
    daemon.stop().await?;
    Ok(())
}
