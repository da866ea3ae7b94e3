//! Memories that agents write: quarantined until the owner reviews them, and invisible to everybody else meanwhile.

mod review;
mod stored;
mod trusted;

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{
    self, DeviceRole, ReviewDecision, Visibility, memory_service_client::MemoryServiceClient,
};
use satchel_tests::{
    test_daemon::TestDaemon,
    test_device::{TestDevice, listening_daemon, policy},
};
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt as _;

type Client = MemoryServiceClient<Channel>;

pub(crate) fn agent_policy(trusted_writes: bool) -> v1::DevicePolicy {
    v1::DevicePolicy { trusted_writes, ..policy(DeviceRole::Agent) }
}

/// A daemon with one agent.
pub(crate) struct Scene {
    pub(crate) daemon: TestDaemon,
    pub(crate) agent: Client,
    pub(crate) owner: Client,
}

impl Scene {
    pub(crate) async fn new(trusted_writes: bool) -> Result<Self> {
        let daemon = listening_daemon().await?;
        let agent = TestDevice::pair(&daemon, "Helper Bot", agent_policy(trusted_writes)).await?;
        let owner = MemoryServiceClient::new(daemon.channel.clone());
        Ok(Self { agent: MemoryServiceClient::new(agent.channel), owner, daemon })
    }
}

pub(crate) fn memory(content: &str) -> v1::Memory {
    v1::Memory { content: content.to_owned(), ..v1::Memory::default() }
}

pub(crate) fn create_request(memory: v1::Memory) -> v1::CreateMemoryRequest {
    v1::CreateMemoryRequest { memory: Some(memory), ..v1::CreateMemoryRequest::default() }
}

pub(crate) async fn create(client: &mut Client, content: &str) -> Result<v1::Memory> {
    let answer = client.create_memory(create_request(memory(content))).await?.into_inner();
    answer.memory.context("a memory")
}

pub(crate) async fn get(client: &mut Client, id: &str) -> std::result::Result<v1::Memory, Status> {
    let request = v1::GetMemoryRequest { id: id.to_owned(), view: 0, as_of_revision: None };
    let answer = client.get_memory(request).await?.into_inner();
    answer.memory.ok_or_else(|| Status::internal("no memory"))
}

pub(crate) async fn listed(client: &mut Client) -> Result<Vec<v1::Memory>> {
    Ok(client.list_memories(v1::ListMemoriesRequest::default()).await?.into_inner().memories)
}

pub(crate) async fn quarantined(
    client: &mut Client,
    state: v1::QuarantineState,
) -> Result<Vec<v1::QuarantinedMemory>> {
    let request = v1::ListQuarantinedMemoriesRequest { state: state.into(), ..Default::default() };
    Ok(client.list_quarantined_memories(request).await?.into_inner().memories)
}

pub(crate) fn review_request(ids: &[&str], decision: ReviewDecision) -> v1::ReviewMemoriesRequest {
    v1::ReviewMemoriesRequest {
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        decision: decision.into(),
        ..v1::ReviewMemoriesRequest::default()
    }
}

pub(crate) async fn review(
    client: &mut Client,
    ids: &[&str],
    decision: ReviewDecision,
) -> Result<v1::ReviewMemoriesResponse> {
    Ok(client.review_memories(review_request(ids, decision)).await?.into_inner())
}

/// Returns the code and the reason of an error.
pub(crate) fn refused<T>(outcome: std::result::Result<T, Status>) -> Result<(Code, String)> {
    let status = outcome.err().context("the call is refused")?;
    let reason = status.get_error_details().error_info().map(|info| info.reason.clone());
    Ok((status.code(), reason.unwrap_or_default()))
}

fn full_memory() -> v1::Memory {
    v1::Memory {
        summary: Some("Likes tea".to_owned()),
        tags: vec!["drinks".to_owned()],
        confidence: Some(v1::Confidence { initial: Some(0.42), ..Default::default() }),
        provenance: Some(v1::Provenance {
            conversation_ref: Some("no-such-conversation".to_owned()),
            message_ref: Some("no-such-message".to_owned()),
            extraction_method: v1::ExtractionMethod::ExplicitUserInput.into(),
            ..v1::Provenance::default()
        }),
        ..memory("Prefers green tea")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quarantined_memory_is_shown_only_to_its_agent_and_the_owner() -> Result<()> {
    let Scene { daemon, mut agent, mut owner } = Scene::new(false).await?;
    let mut other =
        MemoryServiceClient::new(TestDevice::pair(&daemon, "other", agent_policy(false)).await?.channel);
    let mut reader = MemoryServiceClient::new(
        TestDevice::pair(&daemon, "reader", policy(DeviceRole::Reader)).await?.channel,
    );
    let before = owner.list_memories(v1::ListMemoriesRequest::default()).await?.into_inner().header;
    let written = agent.create_memory(create_request(full_memory())).await?.into_inner();
    let written = written.memory.context("a memory")?;
    ensure!(written.quarantined && written.version == 0, "{written:?}");
    let provenance = written.provenance.clone().context("provenance")?;
    ensure!(provenance.platform == "helper-bot", "{provenance:?}");
    let access = written.access.clone().context("access")?;
    ensure!(access.visibility() == Visibility::Shared && access.shared_with[0].entity == "Helper Bot");
    ensure!(get(&mut agent, &written.id).await?.quarantined);
    for client in [&mut other, &mut reader, &mut owner] {
        ensure!(refused(get(client, &written.id).await)?.0 == Code::NotFound);
        ensure!(listed(client).await?.is_empty());
        let ids = client.list_memory_ids(v1::ListMemoryIdsRequest::default()).await?.into_inner().ids;
        ensure!(ids.is_empty(), "{ids:?}");
    }
    ensure!(listed(&mut agent).await?.is_empty(), "it is in no list, not even the agent's");
    let after = owner.list_memories(v1::ListMemoriesRequest::default()).await?.into_inner().header;
    ensure!(before == after, "the revision tells of a quarantined memory");
    for client in [&mut agent, &mut other, &mut reader] {
        let list = client.list_quarantined_memories(v1::ListQuarantinedMemoriesRequest::default()).await;
        ensure!(refused(list)?.0 == Code::PermissionDenied);
        let own = client.review_memories(review_request(&[&written.id], ReviewDecision::Approve)).await;
        ensure!(refused(own)?.0 == Code::PermissionDenied, "an agent approves its own memory");
    }
    let waiting = quarantined(&mut owner, v1::QuarantineState::Unspecified).await?;
    ensure!(waiting.len() == 1 && waiting[0].device_name == "Helper Bot", "{waiting:?}");
    let seen = waiting[0].memory.clone().context("a memory")?;
    ensure!(seen.id == written.id && seen.content == "Prefers green tea" && seen.quarantined, "{seen:?}");
    ensure!(seen.confidence.and_then(|confidence| confidence.initial) == Some(0.42));
    let provenance = seen.provenance.context("provenance")?;
    ensure!(provenance.conversation_ref.as_deref() == Some("no-such-conversation"), "{provenance:?}");
    ensure!(provenance.extraction_method() == v1::ExtractionMethod::ExplicitUserInput);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_with_the_same_statement_do_not_learn_of_each_other() -> Result<()> {
    let Scene { daemon, agent: mut first, mut owner } = Scene::new(false).await?;
    let mut second =
        MemoryServiceClient::new(TestDevice::pair(&daemon, "second", agent_policy(false)).await?.channel);
    create(&mut owner, "Has a secret").await?;
    let fresh = first.create_memory(create_request(memory("Has no secret"))).await?.into_inner();
    let known = first.create_memory(create_request(memory("Has a secret"))).await?.into_inner();
    let also = second.create_memory(create_request(memory("Has a secret"))).await?.into_inner();
    for answer in [&fresh, &known, &also] {
        ensure!(!answer.existed && answer.undo_token.is_empty(), "{answer:?}");
        ensure!(answer.header == fresh.header, "{answer:?}");
        let memory = answer.memory.as_ref().context("a memory")?;
        ensure!(memory.quarantined && memory.etag.is_empty() && memory.create_revision == 0, "{memory:?}");
    }
    let id = |answer: &v1::CreateMemoryResponse| answer.memory.clone().unwrap_or_default().id;
    ensure!(id(&known) != id(&also), "the agents share a memory");
    let again = first.create_memory(create_request(memory("Has a secret"))).await?.into_inner();
    ensure!(again.existed && id(&again) == id(&known), "{again:?}");
    ensure!(refused(get(&mut second, &id(&known)).await)?.0 == Code::NotFound);
    ensure!(quarantined(&mut owner, v1::QuarantineState::Waiting).await?.len() == 3);
    let of = |device: &str| v1::ListQuarantinedMemoriesRequest {
        device: device.to_owned(),
        page_size: 1,
        ..v1::ListQuarantinedMemoriesRequest::default()
    };
    let page = owner.list_quarantined_memories(of("second")).await?.into_inner();
    ensure!(page.memories.len() == 1 && page.memories[0].device_name == "second", "{page:?}");
    let mut request = of("Helper Bot");
    let mut seen = Vec::new();
    loop {
        let page = owner.list_quarantined_memories(request.clone()).await?.into_inner();
        seen.extend(page.memories.into_iter().filter_map(|entry| entry.memory).map(|memory| memory.id));
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
    }
    seen.sort();
    let mut expected = vec![id(&fresh), id(&known)];
    expected.sort();
    ensure!(seen == expected, "{seen:?}");
    let unknown = owner.list_quarantined_memories(of("nobody")).await;
    ensure!(refused(unknown)?.0 == Code::NotFound);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_may_not_state_is_refused() -> Result<()> {
    let Scene { daemon: _daemon, mut agent, mut owner } = Scene::new(false).await?;
    let provenance = |provenance| v1::Memory { provenance: Some(provenance), ..memory("Says") };
    let confidence = |initial| v1::Memory {
        confidence: Some(v1::Confidence { initial: Some(initial), ..Default::default() }),
        ..memory("Says")
    };
    let text = |text: &str| Some(text.to_owned());
    let method = v1::ExtractionMethod::Manual.into();
    let bad = [
        memory(" "),
        memory(&"x".repeat(70_000)),
        confidence(1.5),
        confidence(f64::NAN),
        v1::Memory { access: Some(v1::Access::default()), ..memory("Says") },
        v1::Memory { id: "own".to_owned(), ..memory("Says") },
        v1::Memory { quarantined: true, ..memory("Says") },
        v1::Memory { tags: vec!["Not A Tag".to_owned()], ..memory("Says") },
        provenance(v1::Provenance { platform: "chatgpt".to_owned(), ..Default::default() }),
        provenance(v1::Provenance { extractor: text("other/1.0.0"), ..Default::default() }),
        provenance(v1::Provenance { extraction_method: method, ..Default::default() }),
        provenance(v1::Provenance { message_ref: text("m"), ..Default::default() }),
        provenance(v1::Provenance { conversation_ref: text(&"c".repeat(400)), ..Default::default() }),
    ];
    for wrong in bad {
        let answer = agent.create_memory(create_request(wrong.clone())).await;
        ensure!(refused(answer)? == (Code::InvalidArgument, "FIELD_INVALID".to_owned()), "{wrong:?}");
    }
    ensure!(quarantined(&mut owner, v1::QuarantineState::Waiting).await?.is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_answered_once_across_a_restart() -> Result<()> {
    let Scene { daemon, mut agent, mut owner } = Scene::new(false).await?;
    let request = v1::CreateMemoryRequest {
        request_id: "7f0c1a52-0000-4000-8000-000000000001".to_owned(),
        reason: "heard it".to_owned(),
        ..create_request(memory("Keeps bees"))
    };
    let first = agent.create_memory(request.clone()).await?.into_inner();
    ensure!(agent.create_memory(request.clone()).await?.into_inner() == first && !first.existed);
    let other = v1::CreateMemoryRequest { memory: Some(memory("Keeps geese")), ..request };
    ensure!(refused(agent.create_memory(other).await)?.1 == "REQUEST_ID_REUSED");
    let before = quarantined(&mut owner, v1::QuarantineState::Waiting).await?;
    ensure!(before.len() == 1 && before[0].reason == "heard it", "{before:?}");
    drop((agent, owner));
    let daemon = TestDaemon::start_in(daemon.stop().await?).await?;
    let mut owner = MemoryServiceClient::new(daemon.channel.clone());
    ensure!(quarantined(&mut owner, v1::QuarantineState::Waiting).await? == before);
    let id = first.memory.context("a memory")?.id;
    let request = v1::ReviewMemoriesRequest {
        request_id: "7f0c1a52-0000-4000-8000-000000000002".to_owned(),
        ..review_request(&[&id], ReviewDecision::Approve)
    };
    let approved = owner.review_memories(request.clone()).await?.into_inner();
    ensure!(owner.review_memories(request).await?.into_inner() == approved);
    ensure!(listed(&mut owner).await?.len() == 1);
    Ok(())
}
