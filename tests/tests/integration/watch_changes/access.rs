//! Changes of conversations, for those who may read them.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use satchel_proto::v1::{self, conversation_service_client::ConversationServiceClient};
use satchel_tests::{
    test_daemon::chatgpt_export,
    test_device::{TestDevice, listening_daemon, policy},
};
use tonic::transport::Channel;

use crate::watch_changes::{follower::Follower, watch, writers};

#[tokio::test(flavor = "multi_thread")]
async fn conversations_are_told_to_those_who_may_read_them() -> Result<()> {
    let daemon = listening_daemon().await?;
    let agent = TestDevice::pair(&daemon, "agent", policy(v1::DeviceRole::Agent)).await?;
    let reader = TestDevice::pair(&daemon, "reader", policy(v1::DeviceRole::Reader)).await?;
    let memory = writers::create(&daemon.channel, "It rains", v1::Visibility::Public).await?;
    daemon.import(&chatgpt_export(&daemon.folder.path().join("export"), 3)?).await?;
    let last = writers::revision(&daemon.channel).await?;
    let title = |text: &str| v1::ChangeFilter {
        conversations: Some(v1::ConversationFilter {
            title_contains: text.to_owned(),
            ..v1::ConversationFilter::default()
        }),
        ..v1::ChangeFilter::default()
    };
    let without = v1::ChangeFilter { without_conversations: true, ..v1::ChangeFilter::default() };
    let only = v1::ChangeFilter { without_memories: true, ..v1::ChangeFilter::default() };
    let cases = [
        (&daemon.channel, v1::ChangeFilter::default(), 4),
        (&daemon.channel, title("conversation 1"), 2),
        (&daemon.channel, without, 1),
        (&daemon.channel, only, 3),
        (&reader.channel, v1::ChangeFilter::default(), 4),
        (&agent.channel, v1::ChangeFilter::default(), 1),
    ];
    for (channel, filter, expected) in cases {
        let mut follower = Follower::with_filter(filter.clone());
        follower.follow_until(channel, last).await?;
        let ids: BTreeSet<&String> = follower.told.iter().map(|told| &told.1).collect();
        ensure!(ids.len() == expected, "{filter:?}: {:?}", follower.told);
        ensure!(filter.without_memories || ids.contains(&memory));
    }
    daemon.stop().await?;
    Ok(())
}

/// Records a conversation and returns its id.
async fn record(channel: &Channel) -> Result<String> {
    let request = v1::RecordConversationRequest {
        agent_id: "assistant".to_owned(),
        user_id: "someone".to_owned(),
        messages: vec![message("It rains")],
        ..v1::RecordConversationRequest::default()
    };
    let mut client = ConversationServiceClient::new(channel.clone());
    Ok(client.record_conversation(request).await?.into_inner().conversation_id)
}

async fn append(channel: &Channel, id: &str) -> Result<()> {
    let request = v1::AppendMessagesRequest {
        conversation_id: id.to_owned(),
        messages: vec![message("It snows")],
        ..v1::AppendMessagesRequest::default()
    };
    ConversationServiceClient::new(channel.clone()).append_messages(request).await?;
    Ok(())
}

fn message(text: &str) -> v1::NewMessage {
    v1::NewMessage { role: v1::Role::User.into(), text: text.to_owned(), ..v1::NewMessage::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_told_of_its_own_recordings_and_of_no_others() -> Result<()> {
    let daemon = listening_daemon().await?;
    let one = TestDevice::pair(&daemon, "one", policy(v1::DeviceRole::Agent)).await?;
    let two = TestDevice::pair(&daemon, "two", policy(v1::DeviceRole::Agent)).await?;
    let mut live = Follower::default();
    let mut stream = watch(&one.channel, live.request()).await?;
    let own = record(&one.channel).await?;
    let others = [record(&two.channel).await?, record(&daemon.channel).await?];
    append(&two.channel, &others[0]).await?;
    append(&one.channel, &own).await?;
    let last = writers::revision(&daemon.channel).await?;
    live.read_until(&mut stream, last).await?;
    let (mut later, mut listed) = (Follower::default(), Follower::default());
    later.follow_until(&one.channel, last).await?;
    listed.list(&one.channel, 2).await?;
    for follower in [&live, &later, &listed] {
        let told: Vec<(&String, bool)> = follower.told.iter().map(|told| (&told.1, told.2)).collect();
        ensure!(told == [(&own, true), (&own, true)], "{told:?}");
    }
    let mut by_owner = Follower::default();
    by_owner.follow_until(&daemon.channel, last).await?;
    ensure!(by_owner.told.len() == 5, "{:?}", by_owner.told);
    drop(stream);
    daemon.stop().await?;
    Ok(())
}
