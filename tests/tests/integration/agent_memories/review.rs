//! What the owner's review does.

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify::{self, VerifyOptions};
use satchel_proto::v1::{
    self, QuarantineState, ReviewDecision, admin_service_client::AdminServiceClient,
    export_service_client::ExportServiceClient, restore_memory_version_request::Target,
};
use satchel_tests::{operation, test_daemon::TestDaemon};
use serde_json::Value;
use tonic::Code;

use super::{
    Scene, create, create_request, full_memory, get, listed, memory, quarantined, refused, review,
    review_request,
};

/// Makes an export, verifies it, and returns its memories.
async fn exported(daemon: &TestDaemon, name: &str) -> Result<Vec<Value>> {
    let output = daemon.folder.path().join(name);
    let request = v1::CreateExportRequest {
        output: output.to_str().context("UTF-8")?.to_owned(),
        ..v1::CreateExportRequest::default()
    };
    let started = ExportServiceClient::new(daemon.channel.clone()).create_export(request).await?.into_inner();
    let ended = operation::wait(&daemon.channel, &started.operation.context("an operation")?.id).await?;
    ensure!(ended.state() == v1::OperationState::Succeeded, "{ended:?}");
    let report = verify::path(&output, &VerifyOptions { strict: true, ..VerifyOptions::default() })?;
    ensure!(report.valid, "{:?}", report.issues);
    let document: Value = serde_json::from_slice(&std::fs::read(output.join("memory-store.json"))?)?;
    Ok(document["memories"].as_array().context("memories")?.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_memory_keeps_the_provenance_that_the_agent_stated() -> Result<()> {
    let Scene { daemon, mut agent, mut owner } = Scene::new(false).await?;
    let written = agent.create_memory(create_request(full_memory())).await?.into_inner();
    let id = written.memory.context("a memory")?.id;
    ensure!(exported(&daemon, "before").await?.is_empty(), "an export has a quarantined memory");
    let request = v1::ReviewMemoriesRequest {
        reason: "true".to_owned(),
        ..review_request(&[&id, &id], ReviewDecision::Approve)
    };
    let answer = owner.review_memories(request).await?.into_inner();
    ensure!(answer.memories.len() == 1 && !answer.undo_token.is_empty(), "{answer:?}");
    let entry = &answer.memories[0];
    ensure!(entry.state() == QuarantineState::Approved && entry.memory_id == id && !entry.existed);
    ensure!(entry.reviewed_by == "owner" && entry.review_reason == "true", "{entry:?}");
    ensure!(quarantined(&mut owner, QuarantineState::Waiting).await?.is_empty());
    let shown = get(&mut owner, &id).await?;
    ensure!(!shown.quarantined && shown.version == 1, "{shown:?}");
    ensure!(shown.confidence.and_then(|confidence| confidence.initial) == Some(0.42));
    let provenance = shown.provenance.context("provenance")?;
    ensure!(provenance.platform == "helper-bot", "{provenance:?}");
    ensure!(provenance.conversation_ref.is_none() && provenance.message_ref.is_none(), "{provenance:?}");
    let versions = v1::ListMemoryVersionsRequest { id: id.clone(), ..Default::default() };
    let versions = owner.list_memory_versions(versions).await?.into_inner().versions;
    ensure!(versions.len() == 1 && versions[0].actor == "device:Helper Bot", "{versions:?}");
    ensure!(versions[0].reason == "approved by owner: true", "{versions:?}");
    let own = get(&mut agent, &id).await?;
    ensure!(own.content == "Prefers green tea" && !own.quarantined, "{own:?}");
    ensure!(listed(&mut agent).await?.len() == 1);
    let exports = exported(&daemon, "after").await?;
    ensure!(exports.len() == 1 && exports[0]["provenance"]["platform"] == "helper-bot", "{exports:?}");
    let undo = v1::RestoreMemoryVersionRequest {
        target: Some(Target::UndoToken(answer.undo_token)),
        ..v1::RestoreMemoryVersionRequest::default()
    };
    owner.restore_memory_version(undo).await?;
    ensure!(listed(&mut owner).await?.is_empty() && listed(&mut agent).await?.is_empty());
    let again = agent.create_memory(create_request(full_memory())).await;
    ensure!(refused(again)? == (Code::FailedPrecondition, "MEMORY_STATE".to_owned()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_memory_is_recorded_and_can_still_be_approved() -> Result<()> {
    let Scene { daemon, mut agent, mut owner } = Scene::new(false).await?;
    let id = create(&mut agent, "Is a liar").await?.id;
    let answer = review(&mut owner, &[&id], ReviewDecision::Reject).await?;
    ensure!(answer.undo_token.is_empty(), "{answer:?}");
    ensure!(quarantined(&mut owner, QuarantineState::Waiting).await?.is_empty());
    let rejected = quarantined(&mut owner, QuarantineState::Rejected).await?;
    ensure!(rejected.len() == 1 && rejected[0].reviewed_by == "owner", "{rejected:?}");
    for client in [&mut agent, &mut owner] {
        ensure!(refused(get(client, &id).await)?.0 == Code::NotFound);
    }
    // Writing it again does not bring it back to the owner.
    let again = agent.create_memory(create_request(memory("Is a liar"))).await;
    ensure!(refused(again)?.1 == "MEMORY_STATE");
    ensure!(quarantined(&mut owner, QuarantineState::Waiting).await?.is_empty());
    review(&mut owner, &[&id], ReviewDecision::Reject).await?;
    review(&mut owner, &[&id], ReviewDecision::Approve).await?;
    ensure!(listed(&mut owner).await?.len() == 1);
    let late = owner.review_memories(review_request(&[&id], ReviewDecision::Reject)).await;
    ensure!(refused(late)? == (Code::FailedPrecondition, "MEMORY_STATE".to_owned()));
    ensure!(quarantined(&mut owner, QuarantineState::Rejected).await?.is_empty());
    drop(daemon);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicates_are_found_at_the_time_of_approval() -> Result<()> {
    let Scene { daemon, mut agent, mut owner } = Scene::new(false).await?;
    let second = satchel_tests::test_device::TestDevice::pair(&daemon, "second", super::agent_policy(false));
    let mut second = v1::memory_service_client::MemoryServiceClient::new(second.await?.channel);
    let private = create(&mut owner, "Has a secret").await?;
    let known = create(&mut agent, "Has a secret").await?.id;
    let answer = review(&mut owner, &[&known], ReviewDecision::Approve).await?;
    ensure!(answer.memories[0].existed && answer.memories[0].memory_id == private.id, "{answer:?}");
    ensure!(answer.undo_token.is_empty() && listed(&mut owner).await?.len() == 1);
    let unchanged = get(&mut owner, &private.id).await?;
    ensure!(unchanged == get(&mut owner, &private.id).await? && unchanged.version == 1);
    // The agent gets the same answers as for a memory that was rejected.
    let rejected = create(&mut agent, "Is a liar").await?.id;
    review(&mut owner, &[&rejected], ReviewDecision::Reject).await?;
    let mut answers = Vec::new();
    for (id, content) in [(&known, "Has a secret"), (&rejected, "Is a liar")] {
        let neutral = |status: tonic::Status| {
            let details = String::from_utf8_lossy(status.details()).replace(id.as_str(), "ID");
            (status.code(), status.message().replace(id.as_str(), "ID"), details)
        };
        let read = get(&mut agent, id).await.err().context("hidden")?;
        let again = agent.create_memory(create_request(memory(content))).await.err().context("refused")?;
        answers.push((neutral(read), neutral(again)));
    }
    ensure!(answers[0] == answers[1], "{answers:?}");
    // Of two agents with the same statement, one gets a memory, also if both are approved at once.
    let ids = [create(&mut agent, "Skates").await?.id, create(&mut second, "Skates").await?.id];
    let answer = review(&mut owner, &[&ids[0], &ids[1]], ReviewDecision::Approve).await?;
    let existed: Vec<bool> = answer.memories.iter().map(|entry| entry.existed).collect();
    ensure!(existed == [false, true] && answer.memories[1].memory_id == ids[0], "{answer:?}");
    ensure!(listed(&mut owner).await?.len() == 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_is_all_or_nothing() -> Result<()> {
    let Scene { daemon, mut agent, mut owner } = Scene::new(false).await?;
    let mut admin = AdminServiceClient::new(daemon.channel.clone());
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(create(&mut agent, &format!("Fact {number}")).await?.id);
    }
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let waiting = admin.get_status(v1::GetStatusRequest {}).await?.into_inner().quarantined_memories;
    ensure!(waiting == 5, "{waiting}");
    let unknown = owner.review_memories(review_request(&[ids[0], "unknown"], ReviewDecision::Approve)).await;
    ensure!(refused(unknown)? == (Code::NotFound, "MEMORY_NOT_FOUND".to_owned()));
    for (ids, decision) in [(vec![], ReviewDecision::Approve), (vec!["x"; 101], ReviewDecision::Approve)] {
        let refusal = refused(owner.review_memories(review_request(&ids, decision)).await)?;
        ensure!(refusal == (Code::InvalidArgument, "FIELD_INVALID".to_owned()));
    }
    let undecided = owner.review_memories(review_request(&ids, ReviewDecision::Unspecified)).await;
    ensure!(refused(undecided)?.1 == "FIELD_INVALID");
    ensure!(quarantined(&mut owner, QuarantineState::Waiting).await?.len() == 5);
    let answer = review(&mut owner, &ids[..4], ReviewDecision::Approve).await?;
    let order: Vec<String> =
        answer.memories.iter().filter_map(|entry| entry.memory.as_ref()).map(|one| one.id.clone()).collect();
    ensure!(order == ids[..4], "{order:?}");
    let waiting = admin.get_status(v1::GetStatusRequest {}).await?.into_inner().quarantined_memories;
    ensure!(waiting == 1 && listed(&mut owner).await?.len() == 4, "{waiting}");
    let undo = v1::RestoreMemoryVersionRequest {
        target: Some(Target::UndoToken(answer.undo_token)),
        ..v1::RestoreMemoryVersionRequest::default()
    };
    let undone = owner.restore_memory_version(undo).await?.into_inner();
    ensure!(undone.matched == 4 && listed(&mut owner).await?.is_empty(), "{undone:?}");
    Ok(())
}
