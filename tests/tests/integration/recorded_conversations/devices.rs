//! Agents record over TLS, and continue and read only what they recorded themselves.

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{self, DeviceRole, Scope};
use satchel_tests::test_device::{TestDevice, listening_daemon, policy};
use tonic::Code;

use super::{append_request, client, code_and_reason, get, list, memu_request, message, messages};

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_reads_and_continues_only_its_own_conversations() -> Result<()> {
    let daemon = listening_daemon().await?;
    let one = TestDevice::pair(&daemon, "Agent One", policy(DeviceRole::Agent)).await?;
    let two = TestDevice::pair(&daemon, "agent-two", policy(DeviceRole::Agent)).await?;
    let mut owner = client(&daemon.channel);
    let (mut one_client, mut two_client) = (client(&one.channel), client(&two.channel));
    let owners = owner.record_conversation(memu_request()).await?.into_inner().conversation_id;
    let own = one_client.record_conversation(memu_request()).await?.into_inner().conversation_id;
    let others = two_client.record_conversation(memu_request()).await?.into_inner().conversation_id;
    ensure!(get(&mut owner, &own).await?.platform == "agent-one", "the platform is that of the agent");
    let append = |id: &str| append_request(id, vec![message(v1::Role::User, "more")]);
    one_client.append_messages(append(&own)).await?;
    ensure!(messages(&mut one_client, &own).await?.len() == 3);
    ensure!(get(&mut one_client, &own).await?.message_count == 3);
    ensure!(list(&mut one_client, v1::ConversationFilter::default()).await? == [own.clone()].into());
    let users = v1::ConversationFilter { user_ids: vec!["user_001".to_owned()], ..Default::default() };
    ensure!(list(&mut one_client, users.clone()).await? == [own.clone()].into());
    ensure!(list(&mut owner, users).await?.len() == 3);
    let ids = one_client.list_conversation_ids(v1::ListConversationIdsRequest::default()).await?.into_inner();
    ensure!(ids.ids.iter().map(|id| &id.id).collect::<Vec<_>>() == [&own], "{ids:?}");
    let missing = (Code::NotFound, "CONVERSATION_NOT_FOUND".to_owned());
    for hidden in [&owners, &others, &"no-such-id".to_owned()] {
        ensure!(code_and_reason(one_client.append_messages(append(hidden)).await)? == missing);
        ensure!(code_and_reason(get(&mut one_client, hidden).await)? == missing);
        ensure!(code_and_reason(messages(&mut one_client, hidden).await)? == missing);
    }
    // The owner continues any of them.
    owner.append_messages(append(&own)).await?;
    ensure!(messages(&mut one_client, &own).await?.len() == 4);
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_cannot_choose_its_platform_or_use_the_requests_of_others() -> Result<()> {
    let daemon = listening_daemon().await?;
    let agent = TestDevice::pair(&daemon, "agent-one", policy(DeviceRole::Agent)).await?;
    let mut client = client(&agent.channel);
    let chosen = v1::RecordConversationRequest { platform: "chatgpt".to_owned(), ..memu_request() };
    let refused = (Code::InvalidArgument, "FIELD_INVALID".to_owned());
    ensure!(code_and_reason(client.record_conversation(chosen).await)? == refused);
    let own = v1::RecordConversationRequest { platform: "agent-one".to_owned(), ..memu_request() };
    client.record_conversation(own).await?;
    let request_id = uuid::Uuid::new_v4().to_string();
    let request = v1::RecordConversationRequest { request_id, ..memu_request() };
    let of_owner = super::client(&daemon.channel).record_conversation(request.clone()).await?.into_inner();
    let of_agent = client.record_conversation(request.clone()).await?.into_inner();
    ensure!(of_owner.conversation_id != of_agent.conversation_id, "request ids belong to a caller");
    ensure!(client.record_conversation(request).await?.into_inner() == of_agent);
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn permissions_decide_who_records_and_who_reads() -> Result<()> {
    let daemon = listening_daemon().await?;
    let of_owner = client(&daemon.channel).record_conversation(memu_request()).await?.into_inner();
    let id = of_owner.conversation_id;
    let append = || append_request(&id, vec![message(v1::Role::User, "more")]);
    let denied = |reason: &str| (Code::PermissionDenied, reason.to_owned());
    let reader = TestDevice::pair(&daemon, "reader", policy(DeviceRole::Reader)).await?;
    let mut reader = client(&reader.channel);
    ensure!(code_and_reason(reader.record_conversation(memu_request()).await)? == denied("SCOPE_MISSING"));
    ensure!(code_and_reason(reader.append_messages(append()).await)? == denied("SCOPE_MISSING"));
    ensure!(messages(&mut reader, &id).await?.len() == 2, "a reader reads it");
    let scopes = |scopes: &[Scope]| v1::DevicePolicy {
        scopes: scopes.iter().map(|scope| (*scope).into()).collect(),
        ..policy(DeviceRole::Agent)
    };
    // An agent without either permission reads nothing.
    let other = TestDevice::pair(&daemon, "memories", scopes(&[Scope::MemoriesRead])).await?;
    let mut other = client(&other.channel);
    ensure!(code_and_reason(get(&mut other, &id).await)? == denied("SCOPE_MISSING"));
    ensure!(code_and_reason(other.append_messages(append()).await)? == denied("SCOPE_MISSING"));
    // An agent that reads all conversations continues only its own ones.
    let both = scopes(&[Scope::ConversationsRead, Scope::ConversationsWrite]);
    let both = TestDevice::pair(&daemon, "both", both).await?;
    let mut both = client(&both.channel);
    ensure!(get(&mut both, &id).await?.message_count == 2);
    ensure!(code_and_reason(both.append_messages(append()).await)? == denied("ACCESS_DENIED"));
    // The device of an owner continues all.
    let owner = TestDevice::pair(&daemon, "laptop", policy(DeviceRole::Owner)).await?;
    client(&owner.channel).append_messages(append()).await?;
    let shown = get(&mut both, &id).await?;
    ensure!(shown.message_count == 3 && shown.active_leaf_id.context("a leaf")? != of_owner.message_ids[1]);
    daemon.stop().await?;
    Ok(())
}
