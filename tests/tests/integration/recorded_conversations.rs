//! Programs record conversations over gRPC: what is acknowledged stays, and is recorded once.

mod devices;
mod kill;
mod lineage;

use std::{collections::BTreeSet, path::Path};

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{self, conversation_service_client::ConversationServiceClient};
use satchel_tests::{operation, test_daemon::TestDaemon};
use serde_json::json;
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt as _;
use uuid::Uuid;

pub(crate) type Client = ConversationServiceClient<Channel>;

pub(crate) fn client(channel: &Channel) -> Client {
    ConversationServiceClient::new(channel.clone())
}

pub(crate) fn message(role: v1::Role, text: &str) -> v1::NewMessage {
    v1::NewMessage { role: role.into(), text: text.to_owned(), ..v1::NewMessage::default() }
}

/// The request of MemU's documentation.
pub(crate) fn memu_request() -> v1::RecordConversationRequest {
    v1::RecordConversationRequest {
        agent_id: "agent_001".to_owned(),
        user_id: "user_001".to_owned(),
        messages: vec![
            message(v1::Role::User, "用户消息内容"),
            message(v1::Role::Assistant, "AI助手回复内容"),
        ],
        session_id: "session_uuid_456".to_owned(),
        memory_id: "mem_uuid_123".to_owned(),
        ..v1::RecordConversationRequest::default()
    }
}

pub(crate) fn append_request(id: &str, messages: Vec<v1::NewMessage>) -> v1::AppendMessagesRequest {
    v1::AppendMessagesRequest {
        conversation_id: id.to_owned(),
        messages,
        ..v1::AppendMessagesRequest::default()
    }
}

pub(crate) fn code_and_reason<T>(outcome: Result<T, Status>) -> Result<(Code, String)> {
    let status = outcome.err().context("the call is refused")?;
    let details = status.get_error_details();
    Ok((status.code(), details.error_info().map(|info| info.reason.clone()).unwrap_or_default()))
}

/// Returns the field that a refusal names.
fn field<T>(outcome: Result<T, Status>) -> Result<String> {
    let status = outcome.err().context("the call is refused")?;
    ensure!(status.code() == Code::InvalidArgument, "{status:?}");
    let details = status.get_error_details();
    let violation = details.bad_request().and_then(|bad| bad.field_violations.first().cloned());
    Ok(violation.context("a violation")?.field)
}

pub(crate) async fn get(client: &mut Client, id: &str) -> Result<v1::Conversation, Status> {
    let request = v1::GetConversationRequest { id: id.to_owned(), as_of_revision: None };
    let response = client.get_conversation(request).await?.into_inner();
    response.conversation.ok_or_else(|| Status::internal("no conversation"))
}

pub(crate) async fn messages(client: &mut Client, id: &str) -> Result<Vec<v1::Message>, Status> {
    let (mut messages, mut request) = (Vec::new(), v1::ListMessagesRequest::default());
    request.conversation_id = id.to_owned();
    request.page_size = 1_000;
    loop {
        let page = client.list_messages(request.clone()).await?.into_inner();
        messages.extend(page.messages);
        if page.next_page_token.is_empty() {
            return Ok(messages);
        }
        request.page_token = page.next_page_token;
    }
}

/// Returns the ids of the conversations that pass a filter.
pub(crate) async fn list(client: &mut Client, filter: v1::ConversationFilter) -> Result<BTreeSet<String>> {
    let request = v1::ListConversationsRequest { filter: Some(filter), ..Default::default() };
    let page = client.list_conversations(request).await?.into_inner();
    Ok(page.conversations.into_iter().map(|conversation| conversation.id).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn memus_example_is_recorded() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut client = client(&daemon.channel);
    let recorded = client.record_conversation(memu_request()).await?.into_inner();
    ensure!(Uuid::parse_str(&recorded.conversation_id).is_ok(), "{recorded:?}");
    ensure!(recorded.session_id == "session_uuid_456" && recorded.message_count == 2, "{recorded:?}");
    ensure!(recorded.summary == "Conversation with 2 turns: 用户消息内容...", "{recorded:?}");
    let conversation = get(&mut client, &recorded.conversation_id).await?;
    ensure!(conversation.created_at == recorded.created_at && conversation.created_at.is_some());
    ensure!(conversation.platform == "local" && conversation.message_count == 2, "{conversation:?}");
    ensure!(conversation.agent_id.as_deref() == Some("agent_001"), "{conversation:?}");
    ensure!(conversation.user_id.as_deref() == Some("user_001"), "{conversation:?}");
    ensure!(conversation.session_id.as_deref() == Some("session_uuid_456"), "{conversation:?}");
    ensure!(conversation.summary.as_ref() == Some(&recorded.summary), "{conversation:?}");
    let raw: serde_json::Value =
        serde_json::from_str(conversation.raw_metadata_json.as_deref().unwrap_or_default())?;
    ensure!(raw["memory_id"] == "mem_uuid_123", "{raw}");
    let messages = messages(&mut client, &recorded.conversation_id).await?;
    let ids: Vec<&String> = messages.iter().map(|message| &message.id).collect();
    ensure!(ids == recorded.message_ids.iter().collect::<Vec<_>>(), "{messages:?}");
    ensure!(messages[1].parent_id.as_ref() == Some(ids[0]) && messages[0].parent_id.is_none());
    let text = |at: usize| messages[at].content.as_ref().and_then(|content| content.text.clone());
    ensure!(text(0).as_deref() == Some("用户消息内容") && text(1).as_deref() == Some("AI助手回复内容"));
    // A session is generated, and the second conversation is another one.
    let second = v1::RecordConversationRequest { session_id: String::new(), ..memu_request() };
    let second = client.record_conversation(second).await?.into_inner();
    ensure!(Uuid::parse_str(&second.session_id).is_ok(), "{second:?}");
    ensure!(second.conversation_id != recorded.conversation_id);
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_gets_the_same_response_after_a_restart() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let record = v1::RecordConversationRequest { request_id: Uuid::new_v4().to_string(), ..memu_request() };
    let recorded = client(&daemon.channel).record_conversation(record.clone()).await?.into_inner();
    let append = v1::AppendMessagesRequest {
        request_id: Uuid::new_v4().to_string(),
        ..append_request(&recorded.conversation_id, vec![message(v1::Role::User, "再见")])
    };
    let appended = client(&daemon.channel).append_messages(append.clone()).await?.into_inner();
    ensure!(appended.message_count == 3 && appended.summary.starts_with("Conversation with 3 turns: "));
    ensure!(appended.session_id == recorded.session_id && appended.created_at == recorded.created_at);
    // Later changes do not show in the repeated response.
    let more = append_request(&recorded.conversation_id, vec![message(v1::Role::Assistant, "再见!")]);
    client(&daemon.channel).append_messages(more).await?;
    let daemon = TestDaemon::start_in(daemon.stop().await?).await?;
    let mut client = client(&daemon.channel);
    ensure!(client.record_conversation(record.clone()).await?.into_inner() == recorded);
    ensure!(client.append_messages(append.clone()).await?.into_inner() == appended);
    ensure!(messages(&mut client, &recorded.conversation_id).await?.len() == 4);
    let reused = (Code::InvalidArgument, "REQUEST_ID_REUSED".to_owned());
    let other = v1::AppendMessagesRequest { parent_id: recorded.message_ids[0].clone(), ..append.clone() };
    ensure!(code_and_reason(client.append_messages(other).await)? == reused);
    let other = v1::RecordConversationRequest { request_id: append.request_id, ..record };
    ensure!(code_and_reason(client.record_conversation(other).await)? == reused);
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_name_the_field_or_the_missing_record() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut client = client(&daemon.channel);
    let id = client.record_conversation(memu_request()).await?.into_inner().conversation_id;
    let text = || message(v1::Role::User, "x");
    let append = |messages| append_request(&id, messages);
    let too_many = vec![text(); 1_001];
    let too_long = vec![message(v1::Role::User, &"x".repeat((1 << 20) + 1))];
    for (expected, messages) in [
        ("messages", Vec::new()),
        ("messages", too_many),
        ("messages[0]", too_long),
        ("messages[0]", vec![message(v1::Role::User, "")]),
        ("messages[1].role", vec![text(), message(v1::Role::Unspecified, "x")]),
        ("messages[0].client_id", vec![v1::NewMessage { client_id: "x".repeat(257), ..text() }]),
    ] {
        ensure!(field(client.append_messages(append(messages)).await)? == expected, "{expected}");
    }
    for (expected, request) in [
        ("agent_id", v1::RecordConversationRequest { agent_id: String::new(), ..memu_request() }),
        ("user_id", v1::RecordConversationRequest { user_id: String::new(), ..memu_request() }),
        ("platform", v1::RecordConversationRequest { platform: "Not this".to_owned(), ..memu_request() }),
        ("request_id", v1::RecordConversationRequest { request_id: "1".to_owned(), ..memu_request() }),
    ] {
        ensure!(field(client.record_conversation(request).await)? == expected, "{expected}");
    }
    let missing = append_request("no-such-id", vec![text()]);
    let expected = (Code::NotFound, "CONVERSATION_NOT_FOUND".to_owned());
    ensure!(code_and_reason(client.append_messages(missing).await)? == expected);
    let wrong = v1::AppendMessagesRequest { parent_id: "no-such-id".to_owned(), ..append(vec![text()]) };
    let expected = (Code::NotFound, "MESSAGE_NOT_FOUND".to_owned());
    ensure!(code_and_reason(client.append_messages(wrong).await)? == expected);
    // The longest conversation, in the fewest calls.
    let many = vec![text(); 1_000];
    for _ in 0..9 {
        client.append_messages(append(many.clone())).await?;
    }
    client.append_messages(append(vec![text(); 998])).await?;
    let expected = (Code::ResourceExhausted, "LIMIT_EXCEEDED".to_owned());
    ensure!(code_and_reason(client.append_messages(append(vec![text()])).await)? == expected);
    ensure!(get(&mut client, &id).await?.message_count == 10_000);
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_clients_append_to_one_conversation() -> Result<()> {
    const EACH: usize = 25;
    let daemon = TestDaemon::start().await?;
    let mut first = client(&daemon.channel);
    let id = first.record_conversation(memu_request()).await?.into_inner().conversation_id;
    let append = |mut client: Client, id: String, name: &'static str| async move {
        let mut ids = Vec::new();
        for at in 0..EACH {
            let message = message(v1::Role::User, &format!("{name} {at}"));
            let appended = client.append_messages(append_request(&id, vec![message])).await?;
            ids.extend(appended.into_inner().message_ids);
        }
        anyhow::Ok(ids)
    };
    let other = satchel_server::connect::connect(&daemon.data_dir()).await?;
    let tasks = [
        tokio::spawn(append(client(&daemon.channel), id.clone(), "one")),
        tokio::spawn(append(client(&other), id.clone(), "two")),
    ];
    let mut acknowledged = BTreeSet::new();
    for task in tasks {
        acknowledged.extend(task.await??);
    }
    ensure!(acknowledged.len() == 2 * EACH);
    let messages = messages(&mut first, &id).await?;
    let stored: BTreeSet<String> = messages.iter().map(|message| message.id.clone()).collect();
    ensure!(stored.is_superset(&acknowledged) && messages.len() == 2 * EACH + 2);
    ensure!(messages.iter().all(|message| message.on_active_branch), "nothing forks");
    drop(other);
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_filter_by_agent_user_and_session() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut client = client(&daemon.channel);
    let record = |agent: &str, user: &str, session: &str| v1::RecordConversationRequest {
        agent_id: agent.to_owned(),
        user_id: user.to_owned(),
        session_id: session.to_owned(),
        ..memu_request()
    };
    let mut ids = Vec::new();
    for request in [record("a", "u", "s"), record("b", "u", "s"), record("a", "v", "t")] {
        ids.push(client.record_conversation(request).await?.into_inner().conversation_id);
    }
    // MemU's own export, which says the same of its conversation.
    let export = daemon.folder.path().join("conversations.json");
    let memu = json!([{
        "conversation_id": "conv-1", "agent_id": "a", "user_id": "u", "session_id": "s",
        "created_at": "2025-07-02T08:00:00Z", "turn_count": 1,
        "messages": [{"message_id": "m-0", "role": "user", "content": "When do bees swarm?", "message_index": 0,
            "created_at": "2025-07-02T08:00:00Z"}],
    }]);
    std::fs::write(&export, serde_json::to_vec(&memu)?)?;
    daemon.import(&export).await?;
    let of_memu = v1::ConversationFilter { platforms: vec!["memu".to_owned()], ..Default::default() };
    ids.extend(list(&mut client, of_memu).await?);
    ensure!(ids.len() == 4, "{ids:?}");
    let imported = get(&mut client, &ids[3]).await?;
    ensure!(imported.agent_id.as_deref() == Some("a") && imported.session_id.as_deref() == Some("s"));
    ensure!(imported.summary.as_deref() == Some("Conversation with 1 turns: When do bees swarm?..."));
    let one = |value: &str| vec![value.to_owned()];
    let none = v1::ConversationFilter::default;
    for (filter, expected) in [
        (v1::ConversationFilter { agent_ids: one("a"), ..none() }, vec![0, 2, 3]),
        (v1::ConversationFilter { user_ids: one("u"), ..none() }, vec![0, 1, 3]),
        (v1::ConversationFilter { session_ids: one("t"), ..none() }, vec![2]),
        (
            v1::ConversationFilter { session_ids: vec!["s".to_owned(), "t".to_owned()], ..none() },
            vec![0, 1, 2, 3],
        ),
        (v1::ConversationFilter { agent_ids: one("a"), user_ids: one("u"), ..none() }, vec![0, 3]),
        (
            v1::ConversationFilter { agent_ids: one("a"), user_ids: one("u"), accounts: one("v"), ..none() },
            vec![],
        ),
        (v1::ConversationFilter { agent_ids: one("A"), ..none() }, vec![]),
    ] {
        let expected: BTreeSet<String> = expected.into_iter().map(|at: usize| ids[at].clone()).collect();
        ensure!(list(&mut client, filter.clone()).await? == expected, "{filter:?}");
    }
    let long = v1::ConversationFilter { agent_ids: one(&"x".repeat(1_025)), ..none() };
    let request = v1::ListConversationsRequest { filter: Some(long), ..Default::default() };
    ensure!(field(client.list_conversations(request).await)? == "filter.agent_ids");
    daemon.stop().await?;
    Ok(())
}

/// A full export contains what was recorded, verifies, and gives the same in another data directory.
#[tokio::test(flavor = "multi_thread")]
async fn an_export_contains_recorded_conversations() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut here = client(&daemon.channel);
    let recorded = here.record_conversation(memu_request()).await?.into_inner();
    let named = v1::NewMessage {
        name: "Ana".to_owned(),
        model: "m-1".to_owned(),
        client_id: "c-1".to_owned(),
        ..message(v1::Role::User, "再见")
    };
    here.append_messages(append_request(&recorded.conversation_id, vec![named])).await?;
    let empty = v1::RecordConversationRequest { messages: Vec::new(), ..memu_request() };
    let empty = here.record_conversation(empty).await?.into_inner();
    ensure!(empty.summary == "Empty conversation" && empty.message_count == 0, "{empty:?}");
    let bundle = export_and_verify(&daemon, "bundle").await?;
    let other = TestDaemon::start().await?;
    let imported = other.import(&bundle).await?;
    ensure!(imported.imports().first().is_some_and(|import| import.status() == v1::ImportStatus::Completed));
    let mut there = client(&other.channel);
    for id in [&recorded.conversation_id, &empty.conversation_id] {
        let (mut one, mut two) = (get(&mut here, id).await?, get(&mut there, id).await?);
        for shown in [&mut one, &mut two] {
            (shown.mod_revision, shown.import_metadata) = (0, None);
            // A bundle indents its JSON.
            let raw: serde_json::Value =
                serde_json::from_str(shown.raw_metadata_json.as_deref().context("notes")?)?;
            shown.raw_metadata_json = Some(raw.to_string());
        }
        ensure!(one == two, "{one:?} {two:?}");
        ensure!(messages(&mut here, id).await? == messages(&mut there, id).await?);
    }
    other.stop().await?;
    daemon.stop().await?;
    Ok(())
}

async fn export_and_verify(daemon: &TestDaemon, name: &str) -> Result<std::path::PathBuf> {
    let output = daemon.folder.path().join(name);
    let text = |path: &Path| path.to_str().map(str::to_owned).context("UTF-8");
    let request = v1::CreateExportRequest { output: text(&output)?, ..v1::CreateExportRequest::default() };
    let export = operation::export(&daemon.channel, request).await?;
    ensure!(export.conversations == 2, "{export:?}");
    let bundle = Some(v1::verify_export_request::Bundle::Path(text(&output)?));
    let request = v1::VerifyExportRequest { bundle, strict: true, ..v1::VerifyExportRequest::default() };
    let verified = operation::verify(&daemon.channel, request).await?;
    ensure!(verified.valid, "{verified:?}");
    Ok(output)
}
