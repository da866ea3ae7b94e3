//! Changes by the owner, some of them at random.

use anyhow::{Context as _, Result};
use prost_types::FieldMask;
use satchel_proto::v1::{
    self, admin_service_client::AdminServiceClient, memory_service_client::MemoryServiceClient,
};
use satchel_tests::generate::Rng;
use tonic::transport::Channel;

/// Memories of one writer.
const MEMORIES: u64 = 8;

pub(crate) async fn create(channel: &Channel, content: &str, visibility: v1::Visibility) -> Result<String> {
    let memory = v1::Memory {
        content: content.to_owned(),
        tags: vec!["odd".to_owned()],
        access: Some(access(visibility)),
        ..v1::Memory::default()
    };
    let request = v1::CreateMemoryRequest { memory: Some(memory), ..Default::default() };
    let created = MemoryServiceClient::new(channel.clone()).create_memory(request).await?.into_inner();
    Ok(created.memory.context("a memory")?.id)
}

fn access(visibility: v1::Visibility) -> v1::Access {
    v1::Access { visibility: visibility.into(), exportable: true, shared_with: Vec::new() }
}

pub(crate) async fn update(channel: &Channel, memory: v1::Memory, field: &str) -> Result<()> {
    let request = v1::UpdateMemoryRequest {
        memory: Some(memory),
        update_mask: Some(FieldMask { paths: vec![field.to_owned()] }),
        ..v1::UpdateMemoryRequest::default()
    };
    MemoryServiceClient::new(channel.clone()).update_memory(request).await?;
    Ok(())
}

pub(crate) async fn set_visibility(channel: &Channel, id: &str, visibility: v1::Visibility) -> Result<()> {
    let access = Some(access(visibility));
    update(channel, v1::Memory { id: id.to_owned(), access, ..Default::default() }, "access").await
}

pub(crate) async fn set_tags(channel: &Channel, id: &str, tags: &[&str]) -> Result<()> {
    let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    update(channel, v1::Memory { id: id.to_owned(), tags, ..Default::default() }, "tags").await
}

pub(crate) async fn set_status(channel: &Channel, id: &str, status: v1::MemoryStatus) -> Result<()> {
    let (id, status) = (id.to_owned(), status.into());
    let request = v1::SetMemoryStatusRequest { id, status, ..Default::default() };
    MemoryServiceClient::new(channel.clone()).set_memory_status(request).await?;
    Ok(())
}

pub(crate) async fn relate(channel: &Channel, from: &str, to: &str) -> Result<String> {
    let relation = v1::Relation {
        from_id: from.to_owned(),
        to_id: to.to_owned(),
        r#type: v1::RelationType::Supports.into(),
        ..v1::Relation::default()
    };
    let request = v1::CreateRelationRequest { relation: Some(relation), ..Default::default() };
    let created = MemoryServiceClient::new(channel.clone()).create_relation(request).await?.into_inner();
    Ok(created.relation.context("a relation")?.id)
}

/// Returns the revision of the store.
pub(crate) async fn revision(channel: &Channel) -> Result<i64> {
    let status = AdminServiceClient::new(channel.clone()).get_status(v1::GetStatusRequest {}).await?;
    Ok(status.into_inner().header.context("a header")?.revision)
}

/// Makes `steps` random changes to memories of its own.
pub(crate) async fn change_at_random(channel: Channel, writer: u64, steps: u64) -> Result<()> {
    let mut rng = Rng::new(writer);
    let mut ids = Vec::new();
    for n in 0..MEMORIES {
        let visibility = if n % 2 == 0 { v1::Visibility::Public } else { v1::Visibility::Private };
        ids.push(create(&channel, &format!("Writer {writer} knows {n}"), visibility).await?);
    }
    for step in 0..steps {
        let id = &ids[usize::try_from(rng.below(MEMORIES))?];
        match rng.below(5) {
            0 => set_visibility(&channel, id, v1::Visibility::Public).await?,
            1 => set_visibility(&channel, id, v1::Visibility::Private).await?,
            2 => set_tags(&channel, id, &["odd"]).await?,
            3 => set_tags(&channel, id, &["even", &format!("step-{step}")]).await?,
            _ => {
                let summary = Some(format!("step {step}"));
                let memory = v1::Memory { id: id.clone(), summary, ..v1::Memory::default() };
                update(&channel, memory, "summary").await?;
            }
        }
    }
    Ok(())
}
