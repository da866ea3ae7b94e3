//! The calls that change memories by hand: etags, request ids, refusals with their reasons.

use anyhow::{Context as _, Result, ensure};
use prost_types::FieldMask;
use satchel_proto::v1::{
    self, memory_service_client::MemoryServiceClient, restore_memory_version_request::Target,
    supersede_memory_request::Replacement,
};
use satchel_tests::test_daemon::TestDaemon;
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt;

type Client = MemoryServiceClient<Channel>;

fn code_and_reason(status: &Status) -> (Code, String) {
    let details = status.get_error_details();
    (status.code(), details.error_info().map(|info| info.reason.clone()).unwrap_or_default())
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, Status>) -> Result<(Code, String)> {
    Ok(code_and_reason(&outcome.err().context("the call is refused")?))
}

fn memory_with_content(content: &str) -> v1::Memory {
    v1::Memory { content: content.to_owned(), ..v1::Memory::default() }
}

async fn create(client: &mut Client, content: &str) -> Result<v1::Memory> {
    let request =
        v1::CreateMemoryRequest { memory: Some(memory_with_content(content)), ..Default::default() };
    client.create_memory(request).await?.into_inner().memory.context("a memory")
}

fn update_tags_request(memory: &v1::Memory, tag: &str, etag: &str) -> v1::UpdateMemoryRequest {
    v1::UpdateMemoryRequest {
        memory: Some(v1::Memory { id: memory.id.clone(), tags: vec![tag.to_owned()], ..Default::default() }),
        update_mask: Some(FieldMask { paths: vec!["tags".to_owned()] }),
        etag: etag.to_owned(),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_etag_is_refused_with_the_current_one() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut client = MemoryServiceClient::new(daemon.channel.clone());
    let memory = create(&mut client, "Keeps bees").await?;
    ensure!(memory.etag.starts_with('"') && memory.etag.ends_with('"'), "{:?}", memory.etag);
    let changed = client.update_memory(update_tags_request(&memory, "one", &memory.etag)).await?.into_inner();
    let newest = changed.memory.context("a memory")?.etag;
    let status = client
        .update_memory(update_tags_request(&memory, "two", &memory.etag))
        .await
        .err()
        .context("refused")?;
    ensure!(code_and_reason(&status) == (Code::Aborted, "ETAG_MISMATCH".to_owned()));
    let details = status.get_error_details();
    let current = details.error_info().and_then(|info| info.metadata.get("current_etag").cloned());
    ensure!(current.as_ref() == Some(&newest), "{current:?}");
    let set = |etag: &str, status: v1::MemoryStatus| v1::SetMemoryStatusRequest {
        id: memory.id.clone(),
        status: status.into(),
        etag: etag.to_owned(),
        ..Default::default()
    };
    let stale = refused(client.set_memory_status(set(&memory.etag, v1::MemoryStatus::Archived)).await)?;
    ensure!(stale == (Code::Aborted, "ETAG_MISMATCH".to_owned()));
    client.set_memory_status(set(&newest, v1::MemoryStatus::Archived)).await?;
    let illegal = refused(client.set_memory_status(set("", v1::MemoryStatus::Deprecated)).await)?;
    ensure!(illegal == (Code::FailedPrecondition, "ILLEGAL_TRANSITION".to_owned()));
    let superseded = refused(client.set_memory_status(set("", v1::MemoryStatus::Superseded)).await)?;
    ensure!(superseded == (Code::InvalidArgument, "FIELD_INVALID".to_owned()));
    let folder = daemon.stop().await?;
    let daemon = TestDaemon::start_in(folder).await?;
    let request = v1::GetMemoryRequest { id: memory.id.clone(), view: 0, as_of_revision: None };
    let mut client = MemoryServiceClient::new(daemon.channel.clone());
    let shown = client.get_memory(request).await?.into_inner().memory.context("a memory")?;
    ensure!(shown.version == 3 && shown.status() == v1::MemoryStatus::Archived, "{shown:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_id_makes_a_call_idempotent_across_a_restart() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut client = MemoryServiceClient::new(daemon.channel.clone());
    let request = |content: &str| v1::CreateMemoryRequest {
        request_id: "7f0c1a52-0000-4000-8000-000000000001".to_owned(),
        memory: Some(memory_with_content(content)),
        reason: "once".to_owned(),
    };
    let first = client.create_memory(request("Keeps bees")).await?.into_inner();
    ensure!(client.create_memory(request("Keeps bees")).await?.into_inner() == first);
    let daemon = TestDaemon::start_in(daemon.stop().await?).await?;
    let mut client = MemoryServiceClient::new(daemon.channel.clone());
    let again = client.create_memory(request("Keeps bees")).await?.into_inner();
    ensure!(again == first && !again.existed, "{again:?}");
    let other = refused(client.create_memory(request("Keeps geese")).await)?;
    ensure!(other == (Code::InvalidArgument, "REQUEST_ID_REUSED".to_owned()));
    let bad = v1::CreateMemoryRequest { request_id: "once".to_owned(), ..request("Keeps bees") };
    ensure!(refused(client.create_memory(bad).await)? == (Code::InvalidArgument, "FIELD_INVALID".to_owned()));
    // The repeated call, made after its answer was lost, carries the etag that the change itself produced.
    let memory = again.memory.context("a memory")?;
    let id = "7f0c1a52-0000-4000-8000-000000000002".to_owned();
    let edit =
        v1::UpdateMemoryRequest { request_id: id, ..update_tags_request(&memory, "one", &memory.etag) };
    let edited = client.update_memory(edit.clone()).await?.into_inner();
    let etag = edited.memory.clone().context("a memory")?.etag;
    let repeated = client.update_memory(v1::UpdateMemoryRequest { etag, ..edit }).await?.into_inner();
    ensure!(repeated == edited);
    let request = v1::ListMemoryVersionsRequest { id: memory.id, ..Default::default() };
    let versions = client.list_memory_versions(request).await?.into_inner().versions;
    ensure!(versions.len() == 2, "{versions:?}");
    ensure!(versions[1].actor == "owner" && versions[1].reason == "once", "{versions:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn superseding_a_memory_can_be_undone() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut client = MemoryServiceClient::new(daemon.channel.clone());
    let old = create(&mut client, "Lives in Bergen").await?;
    let request = v1::SupersedeMemoryRequest {
        old_id: old.id.clone(),
        replacement: Some(Replacement::NewMemory(memory_with_content("Lives in Oslo"))),
        reason: "moved".to_owned(),
        ..Default::default()
    };
    let answer = client.supersede_memory(request).await?.into_inner();
    let (was, now) = (answer.old_memory.context("old")?, answer.new_memory.context("new")?);
    ensure!(was.status() == v1::MemoryStatus::Superseded, "{was:?}");
    ensure!(was.temporal.context("times")?.superseded_by == Some(now.id.clone()));
    let relation = answer.relation.context("a relation")?;
    ensure!(relation.r#type() == v1::RelationType::Supersedes && relation.from_id == now.id, "{relation:?}");
    let list = |direction: v1::Direction| v1::ListRelationsRequest {
        memory_id: old.id.clone(),
        direction: direction.into(),
        ..Default::default()
    };
    let incoming = client.list_relations(list(v1::Direction::In)).await?.into_inner().relations;
    ensure!(incoming == std::slice::from_ref(&relation));
    ensure!(client.list_relations(list(v1::Direction::Out)).await?.into_inner().relations.is_empty());
    let withdraw = v1::WithdrawRelationRequest { id: relation.id.clone(), ..Default::default() };
    let state = refused(client.withdraw_relation(withdraw).await)?;
    ensure!(state == (Code::FailedPrecondition, "MEMORY_STATE".to_owned()));
    let undo = v1::RestoreMemoryVersionRequest {
        target: Some(Target::UndoToken(answer.undo_token)),
        ..Default::default()
    };
    let undone = client.restore_memory_version(undo.clone()).await?.into_inner();
    ensure!(undone.matched == 2 && undone.memories.iter().any(|memory| memory.withdrawn), "{undone:?}");
    ensure!(client.list_relations(list(v1::Direction::Unspecified)).await?.into_inner().relations.is_empty());
    let twice = refused(client.restore_memory_version(undo).await)?;
    ensure!(twice == (Code::FailedPrecondition, "MEMORY_STATE".to_owned()));
    let unknown = Target::UndoToken("7f0c1a52-0000-4000-8000-000000000009".to_owned());
    let unknown = v1::RestoreMemoryVersionRequest { target: Some(unknown), ..Default::default() };
    let unknown = refused(client.restore_memory_version(unknown).await)?;
    ensure!(unknown == (Code::NotFound, "CHANGE_NOT_FOUND".to_owned()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_change_requires_a_filter_and_the_expected_count() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut client = MemoryServiceClient::new(daemon.channel.clone());
    for number in 0..7 {
        create(&mut client, &format!("Fact {number}")).await?;
    }
    let bulk = |filter, dry_run, expected_count| v1::BulkSetStatusRequest {
        filter,
        status: v1::MemoryStatus::Deprecated.into(),
        dry_run,
        expected_count,
        ..Default::default()
    };
    let facts = Some(v1::MemoryFilter { types: vec![v1::MemoryType::Fact.into()], ..Default::default() });
    for empty in [None, Some(v1::MemoryFilter::default())] {
        let answer = refused(client.bulk_set_status(bulk(empty, true, None)).await)?;
        ensure!(answer == (Code::InvalidArgument, "FIELD_INVALID".to_owned()));
    }
    let seen = client.bulk_set_status(bulk(facts.clone(), true, None)).await?.into_inner();
    ensure!(seen.matched == 7 && seen.sample_ids.len() == 7 && seen.undo_token.is_empty(), "{seen:?}");
    create(&mut client, "Fact 8").await?;
    let status =
        client.bulk_set_status(bulk(facts.clone(), false, Some(7))).await.err().context("refused")?;
    ensure!(code_and_reason(&status) == (Code::Aborted, "MATCH_COUNT_CHANGED".to_owned()));
    let done = client.bulk_set_status(bulk(facts.clone(), false, Some(8))).await?.into_inner();
    let undo = v1::RestoreMemoryVersionRequest {
        target: Some(Target::UndoToken(done.undo_token)),
        ..Default::default()
    };
    ensure!(client.restore_memory_version(undo).await?.into_inner().matched == 8);
    let again = client.bulk_set_status(bulk(facts, true, None)).await?.into_inner();
    ensure!(again.matched == 8);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_a_client_may_not_set_are_refused() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut client = MemoryServiceClient::new(daemon.channel.clone());
    let bad = |memory| v1::CreateMemoryRequest { memory, ..Default::default() };
    let provenance = Some(v1::Provenance { platform: "chatgpt".to_owned(), ..Default::default() });
    for memory in [
        None,
        Some(memory_with_content("")),
        Some(v1::Memory { provenance, ..memory_with_content("Keeps bees") }),
        Some(v1::Memory { status: v1::MemoryStatus::Archived.into(), ..memory_with_content("Keeps bees") }),
        Some(v1::Memory { tags: vec!["No Tag".to_owned()], ..memory_with_content("Keeps bees") }),
        Some(v1::Memory { metadata_json: Some("[]".to_owned()), ..memory_with_content("Keeps bees") }),
        Some(v1::Memory {
            metadata_json: Some("{\"satchel\":1}".to_owned()),
            ..memory_with_content("Keeps bees")
        }),
        Some(v1::Memory { r#type: v1::MemoryType::Custom.into(), ..memory_with_content("Keeps bees") }),
    ] {
        let answer = refused(client.create_memory(bad(memory.clone())).await)?;
        ensure!(answer == (Code::InvalidArgument, "FIELD_INVALID".to_owned()), "{memory:?}: {answer:?}");
    }
    let memory = create(&mut client, "Keeps bees").await?;
    for paths in [vec![], vec!["*".to_owned()], vec!["status".to_owned()]] {
        let update_mask = Some(FieldMask { paths });
        let request = v1::UpdateMemoryRequest { update_mask, ..update_tags_request(&memory, "one", "") };
        let answer = refused(client.update_memory(request).await)?;
        ensure!(answer == (Code::InvalidArgument, "FIELD_INVALID".to_owned()));
    }
    let nobody = v1::Memory { id: "nobody".to_owned(), ..Default::default() };
    let answer = refused(client.update_memory(update_tags_request(&nobody, "one", "")).await)?;
    ensure!(answer == (Code::NotFound, "MEMORY_NOT_FOUND".to_owned()));
    Ok(())
}
