//! The header with which the owner makes a call as a device.

use anyhow::{Context as _, Result, ensure};
use satchel_proto::{
    DEVICE_HEADER,
    v1::{
        CreateMemoryRequest, Device, DeviceRole, GetCallerIdentityRequest, ListAuditEventsRequest,
        ListMemoriesRequest, Memory, MemoryType, device_service_client::DeviceServiceClient,
        memory_service_client::MemoryServiceClient,
    },
};
use satchel_tests::{
    test_core::demo_folder,
    test_device::{TestDevice, listening_daemon, policy},
};
use tonic::{Code, Request, transport::Channel};

/// Returns a request that names a device.
fn naming<T>(message: T, device: &str) -> Result<Request<T>> {
    let mut request = Request::new(message);
    request.metadata_mut().insert(DEVICE_HEADER, device.parse()?);
    Ok(request)
}

async fn caller(channel: &Channel, device: &str) -> Result<Result<Option<Device>, Code>> {
    let request = naming(GetCallerIdentityRequest {}, device)?;
    let answer = DeviceServiceClient::new(channel.clone()).get_caller_identity(request).await;
    Ok(answer.map(|answer| answer.into_inner().device).map_err(|status| status.code()))
}

fn new_memory() -> CreateMemoryRequest {
    let memory = Memory {
        content: "The hives face south".into(),
        r#type: MemoryType::Fact.into(),
        ..Memory::default()
    };
    CreateMemoryRequest { memory: Some(memory), ..CreateMemoryRequest::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_names_a_device_has_its_permissions_and_no_others() -> Result<()> {
    let daemon = listening_daemon().await?;
    daemon.import(&demo_folder().join("claude-export")).await?;
    let reader = TestDevice::pair(&daemon, "kitchen", policy(DeviceRole::Reader)).await?;
    let agent = TestDevice::pair(&daemon, "küche bot", policy(DeviceRole::Agent)).await?;
    let (owner, id) = (&daemon.channel, &reader.device.id);

    for name in ["kitchen", id.as_str()] {
        let device = caller(owner, name).await?.ok().flatten().context("a device")?;
        ensure!(&device.id == id, "{name}: {device:?}");
    }
    let mut memories = MemoryServiceClient::new(owner.clone());
    let seen = memories.list_memories(naming(ListMemoriesRequest::default(), "kitchen")?).await?.into_inner();
    ensure!(!seen.memories.is_empty(), "a reader sees everything");
    let refused = memories.create_memory(naming(new_memory(), "kitchen")?).await.err().context("refused")?;
    ensure!(refused.code() == Code::PermissionDenied, "{refused:?}");
    // A name with characters beyond ASCII needs the id.
    let written = memories.create_memory(naming(new_memory(), &agent.device.id)?).await?.into_inner();
    ensure!(written.memory.is_some_and(|memory| memory.quarantined), "what an agent writes waits for review");
    let events = ListAuditEventsRequest { page_size: 100, ..ListAuditEventsRequest::default() };
    let events = DeviceServiceClient::new(owner.clone()).list_audit_events(events).await?.into_inner().events;
    let logged = |path: &str, device: &str| {
        events.iter().any(|event| event.method.ends_with(path) && event.device_id == device)
    };
    ensure!(logged("ListMemories", id) && logged("CreateMemory", &agent.device.id), "{events:?}");

    // The beginning of a name or id is for people who type it.
    for unknown in ["nobody", "", "kitche", &id[..12]] {
        ensure!(caller(owner, unknown).await? == Err(Code::Unauthenticated), "{unknown:?}");
    }
    // A device cannot make a call as another one.
    let itself = caller(&agent.channel, "kitchen").await?.ok().flatten().context("a device")?;
    ensure!(itself.id == agent.device.id, "{itself:?}");
    reader.revoke(&daemon).await?;
    ensure!(caller(owner, id).await?.is_err(), "a revoked device");
    daemon.stop().await?;
    Ok(())
}
