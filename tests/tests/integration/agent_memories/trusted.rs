//! What agents may change, with and without trusted writes.

use anyhow::{Context as _, Result, ensure};
use prost_types::FieldMask;
use satchel_proto::v1::{
    self, DeviceRole, QuarantineState, Visibility, device_service_client::DeviceServiceClient,
    restore_memory_version_request::Target, supersede_memory_request::Replacement,
};
use satchel_tests::test_device::policy;
use tonic::Code;

use super::{Client, Scene, agent_policy, create, create_request, get, listed, memory, quarantined, refused};

fn update(id: &str, path: &str) -> v1::UpdateMemoryRequest {
    let access =
        v1::Access { visibility: Visibility::Public.into(), exportable: true, ..v1::Access::default() };
    v1::UpdateMemoryRequest {
        memory: Some(v1::Memory {
            id: id.to_owned(),
            summary: Some("New".to_owned()),
            access: Some(access),
            ..v1::Memory::default()
        }),
        update_mask: Some(FieldMask { paths: vec![path.to_owned()] }),
        ..v1::UpdateMemoryRequest::default()
    }
}

/// Calls each method that changes a memory, and returns the codes.
async fn changes(agent: &mut Client, id: &str, other: &str) -> Result<Vec<Code>> {
    let mut codes = vec![refused(agent.update_memory(update(id, "summary")).await)?.0];
    let status = v1::SetMemoryStatusRequest {
        id: id.to_owned(),
        status: v1::MemoryStatus::Archived.into(),
        ..v1::SetMemoryStatusRequest::default()
    };
    codes.push(refused(agent.set_memory_status(status).await)?.0);
    let supersede = v1::SupersedeMemoryRequest {
        old_id: id.to_owned(),
        replacement: Some(Replacement::ExistingId(other.to_owned())),
        ..v1::SupersedeMemoryRequest::default()
    };
    codes.push(refused(agent.supersede_memory(supersede).await)?.0);
    let target = Some(Target::LastChangeOf(id.to_owned()));
    let restore = v1::RestoreMemoryVersionRequest { target, ..v1::RestoreMemoryVersionRequest::default() };
    codes.push(refused(agent.restore_memory_version(restore).await)?.0);
    let relation = v1::Relation {
        from_id: id.to_owned(),
        to_id: other.to_owned(),
        r#type: v1::RelationType::RelatedTo.into(),
        ..v1::Relation::default()
    };
    let relation = v1::CreateRelationRequest { relation: Some(relation), ..Default::default() };
    codes.push(refused(agent.create_relation(relation).await)?.0);
    Ok(codes)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_untrusted_agent_changes_nothing() -> Result<()> {
    let Scene { daemon, mut agent, mut owner } = Scene::new(false).await?;
    let entity = "Helper Bot".to_owned();
    let permissions = (1..=3).collect();
    let access = v1::Access {
        visibility: Visibility::Shared.into(),
        exportable: true,
        shared_with: vec![v1::AccessGrant { entity, permissions }],
    };
    let mut ids = Vec::new();
    for content in ["Shared one", "Shared two"] {
        let shared = v1::Memory { access: Some(access.clone()), ..memory(content) };
        let created = owner.create_memory(create_request(shared)).await?.into_inner();
        ids.push(created.memory.context("a memory")?.id);
    }
    ensure!(listed(&mut agent).await?.len() == 2, "the agent sees both");
    let codes = changes(&mut agent, &ids[0], &ids[1]).await?;
    ensure!(codes.iter().all(|code| *code == Code::PermissionDenied), "{codes:?}");
    // The answer is the same for a memory that does not exist.
    ensure!(changes(&mut agent, "missing", "missing").await? == codes);
    ensure!(get(&mut owner, &ids[0]).await?.version == 1);
    drop(daemon);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_agent_writes_at_once_but_not_access() -> Result<()> {
    let Scene { daemon, mut agent, mut owner } = Scene::new(true).await?;
    create(&mut owner, "Has a secret").await?;
    for content in ["Has a secret", "Has no secret"] {
        let answer = agent.create_memory(create_request(memory(content))).await?.into_inner();
        ensure!(!answer.existed, "{answer:?}");
        let memory = answer.memory.context("a memory")?;
        ensure!(!memory.quarantined && memory.version == 1, "{memory:?}");
        let again = agent.create_memory(create_request(super::memory(content))).await?.into_inner();
        ensure!(again.existed && again.memory.context("a memory")?.id == memory.id);
    }
    ensure!(quarantined(&mut owner, QuarantineState::Waiting).await?.is_empty());
    ensure!(listed(&mut owner).await?.len() == 3 && listed(&mut agent).await?.len() == 2);
    let own = create(&mut agent, "Rows").await?;
    let changed = agent.update_memory(update(&own.id, "summary")).await?.into_inner();
    ensure!(changed.memory.context("a memory")?.summary.as_deref() == Some("New"));
    let wider = refused(agent.update_memory(update(&own.id, "access")).await)?;
    ensure!(wider == (Code::PermissionDenied, "ACCESS_DENIED".to_owned()));
    let target = Some(Target::LastChangeOf(own.id.clone()));
    let restore = v1::RestoreMemoryVersionRequest { target, ..v1::RestoreMemoryVersionRequest::default() };
    ensure!(refused(agent.restore_memory_version(restore).await)?.0 == Code::PermissionDenied);
    // Once the owner hides the memory, writing it again does not show it to the agent.
    let private =
        v1::Access { visibility: Visibility::Private.into(), exportable: true, ..Default::default() };
    let mut hide = update(&own.id, "access");
    if let Some(memory) = &mut hide.memory {
        memory.access = Some(private);
    }
    owner.update_memory(hide).await?;
    let again = refused(agent.create_memory(create_request(memory("Rows"))).await)?;
    ensure!(again == (Code::FailedPrecondition, "MEMORY_STATE".to_owned()));
    drop(daemon);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_changes_whether_an_agent_is_trusted() -> Result<()> {
    let Scene { daemon, mut agent, mut owner } = Scene::new(false).await?;
    let mut devices = DeviceServiceClient::new(daemon.channel.clone());
    let set = |policy| v1::UpdateDeviceRequest {
        device: "Helper Bot".to_owned(),
        policy: Some(policy),
        ..v1::UpdateDeviceRequest::default()
    };
    create(&mut agent, "First").await?;
    let answer = devices.update_device(set(agent_policy(true))).await?.into_inner();
    ensure!(answer.device.and_then(|device| device.policy).is_some_and(|policy| policy.trusted_writes));
    ensure!(!create(&mut agent, "Second").await?.quarantined);
    devices.update_device(set(agent_policy(false))).await?;
    ensure!(create(&mut agent, "Third").await?.quarantined);
    ensure!(quarantined(&mut owner, QuarantineState::Waiting).await?.len() == 2);
    let reader = v1::DevicePolicy { trusted_writes: true, ..policy(DeviceRole::Reader) };
    ensure!(refused(devices.update_device(set(reader)).await)?.1 == "FIELD_INVALID");
    Ok(())
}
