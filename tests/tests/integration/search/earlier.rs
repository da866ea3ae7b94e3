//! Searches of the memories as they were at an earlier revision.

use anyhow::{Context as _, Result, ensure};
use prost_types::FieldMask;
use satchel_proto::v1::{
    self, DeviceRole, MemoryStatus, SearchFacetField, SearchHitKind,
    memory_service_client::MemoryServiceClient,
};
use satchel_tests::{
    test_daemon::TestDaemon,
    test_device::{TestDevice, listening_daemon, policy},
};
use tonic::{Code, transport::Channel};
use tonic_types::StatusExt as _;

use super::{hive, import, query, search};

async fn create(channel: &Channel, content: &str) -> Result<(String, i64)> {
    let memory = v1::Memory { content: content.to_owned(), ..v1::Memory::default() };
    let request = v1::CreateMemoryRequest { memory: Some(memory), ..Default::default() };
    let created = MemoryServiceClient::new(channel.clone()).create_memory(request).await?.into_inner();
    Ok((created.memory.context("a memory")?.id, created.header.context("a header")?.revision))
}

async fn edit(channel: &Channel, id: &str, content: &str) -> Result<i64> {
    let memory = v1::Memory { id: id.to_owned(), content: content.to_owned(), ..v1::Memory::default() };
    let request = v1::UpdateMemoryRequest {
        memory: Some(memory),
        update_mask: Some(FieldMask { paths: vec!["content".to_owned()] }),
        ..Default::default()
    };
    let updated = MemoryServiceClient::new(channel.clone()).update_memory(request).await?.into_inner();
    Ok(updated.header.context("a header")?.revision)
}

fn at(revision: i64, text: &str) -> v1::SearchRequest {
    v1::SearchRequest { as_of_revision: Some(revision), ..query(text) }
}

/// The texts of the hits.
async fn texts(channel: &Channel, request: v1::SearchRequest) -> Result<Vec<String>> {
    let wanted = request.as_of_revision;
    let found = search(channel, request).await?;
    ensure!(found.header.as_ref().map(|header| header.revision) == wanted, "{found:?}");
    ensure!(found.total == i64::try_from(found.hits.len())?, "{found:?}");
    Ok(found.hits.into_iter().filter_map(|hit| hit.snippet).map(|snippet| snippet.text).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn memories_are_found_by_what_they_said_at_a_revision() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let channel = &daemon.channel;
    let (bees, created) = create(channel, "Keeps bees behind the barn").await?;
    import(&daemon, "export", &[hive()]).await?;
    let (_, two) = create(channel, "Sells honey of bees").await?;
    let edited = edit(channel, &bees, "Keeps geese").await?;
    ensure!(texts(channel, at(created, "bees")).await? == ["Keeps bees behind the barn"]);
    ensure!(texts(channel, at(two, "bees")).await?.len() == 2, "the messages about bees are not found");
    ensure!(texts(channel, at(edited, "bees")).await? == ["Sells honey of bees"]);
    ensure!(texts(channel, at(edited, "geese")).await? == ["Keeps geese"]);
    ensure!(texts(channel, at(0, "bees")).await?.is_empty());

    // Its status then is the one that filters and counts see.
    let archive = v1::SetMemoryStatusRequest {
        id: bees,
        status: MemoryStatus::Archived.into(),
        ..v1::SetMemoryStatusRequest::default()
    };
    let archived = MemoryServiceClient::new(channel.clone()).set_memory_status(archive).await?.into_inner();
    let archived = archived.header.context("a header")?.revision;
    let active = |revision| v1::SearchRequest {
        facets: vec![SearchFacetField::Status.into()],
        ..at(revision, "geese status:active")
    };
    let before = search(channel, active(edited)).await?;
    ensure!(before.total == 1 && before.facets[0].counts[0].value == "active", "{before:?}");
    ensure!(search(channel, active(archived)).await?.total == 0);
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_revision_show_the_same_list() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let channel = &daemon.channel;
    let mut last = 0;
    for number in 0..9 {
        last = create(channel, &format!("Hive {number} has {}bees", "many ".repeat(number))).await?.1;
    }
    create(channel, "Bees of another day").await?;
    let whole = texts(channel, at(last, "bees")).await?;
    ensure!(whole.len() == 9, "{whole:?}");
    let (mut request, mut all) = (v1::SearchRequest { page_size: 4, ..at(last, "bees") }, Vec::new());
    loop {
        let page = search(channel, request.clone()).await?;
        ensure!(page.total == 9, "{page:?}");
        all.extend(page.hits.into_iter().filter_map(|hit| hit.snippet).map(|snippet| snippet.text));
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
        // Searches of other revisions in between do not matter, as long as they are few.
        ensure!(texts(channel, at(last - 1, "bees")).await?.len() == 8);
    }
    ensure!(all == whole, "{all:?} {whole:?}");
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_earlier_revision_does_not_have_is_refused() -> Result<()> {
    let daemon = listening_daemon().await?;
    let (id, revision) = create(&daemon.channel, "Keeps bees").await?;
    let meaning = v1::SearchMeaning {
        source: Some(v1::search_meaning::Source::MemoryId(id)),
        ..v1::SearchMeaning::default()
    };
    for (request, field) in [
        (at(revision + 1, "bees"), "as_of_revision"),
        (at(-1, "bees"), "as_of_revision"),
        (v1::SearchRequest { kinds: vec![SearchHitKind::Message.into()], ..at(revision, "bees") }, "kinds"),
        (v1::SearchRequest { meaning: Some(meaning), ..at(revision, "bees") }, "meaning"),
    ] {
        let status = search(&daemon.channel, request).await.err().context("a refusal")?;
        let details = status.get_details_bad_request().context("fields")?;
        ensure!(details.field_violations[0].field == field, "{status:?}");
    }
    let memories = v1::SearchRequest { kinds: vec![SearchHitKind::Memory.into()], ..at(revision, "bees") };
    ensure!(texts(&daemon.channel, memories).await? == ["Keeps bees"]);

    // Who does not see everything now gets no earlier list, as its counts would tell of what was there.
    let policy = v1::DevicePolicy { entity: "helper".to_owned(), ..policy(DeviceRole::Agent) };
    let agent = TestDevice::pair(&daemon, "helper", policy).await?;
    let status = search(&agent.channel, at(revision, "bees")).await.err().context("a refusal")?;
    ensure!(status.code() == Code::PermissionDenied, "{status:?}");
    daemon.stop().await?;
    Ok(())
}
