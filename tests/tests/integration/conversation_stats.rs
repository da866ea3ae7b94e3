//! `GetConversationStats`, compared with what the lists of conversations and messages say.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{
    self, ConversationGrouping, DeviceRole, Role, conversation_service_client::ConversationServiceClient,
};
use satchel_tests::{
    samples::sample,
    test_daemon::TestDaemon,
    test_device::{TestDevice, listening_daemon, policy},
};
use tonic::{Code, transport::Channel};

type Client = ConversationServiceClient<Channel>;

/// Exports of chat services, and sessions of coding agents with directories, models and tokens.
const EXPORTS: [(&str, &str); 8] = [
    ("chatgpt", "shards-with-manifest"),
    ("claude", "branching"),
    ("claude-code", "old-version-with-a-sidechain"),
    ("claude-code", "subagents-and-full-outputs"),
    ("claude-code", "tools-and-branches"),
    ("codex", "session-with-tools-and-reasoning"),
    ("goose", "an-export"),
    ("opencode", "subagents-and-archived-sessions"),
];

/// The conversations, messages and tokens of a group, and the seconds of its first and last message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counts {
    conversations: BTreeSet<String>,
    messages: i64,
    tokens: i64,
    cost_micros: i64,
    times: BTreeSet<(i64, i32)>,
}

async fn filled(daemon: &TestDaemon) -> Result<()> {
    for (provider, behaviour) in EXPORTS {
        let import = daemon.import(&sample(provider, behaviour)).await?;
        ensure!(!import.imports().is_empty(), "{provider}/{behaviour}: {import:?}");
    }
    Ok(())
}

/// Returns all conversations with all of their messages, read page by page.
async fn everything(client: &mut Client) -> Result<Vec<(v1::Conversation, Vec<v1::Message>)>> {
    let request = v1::ListConversationsRequest { page_size: 1_000, ..Default::default() };
    let listed = client.list_conversations(request).await?.into_inner().conversations;
    let mut all = Vec::new();
    for row in listed {
        let request = v1::GetConversationRequest { id: row.id.clone(), as_of_revision: None };
        let conversation = client.get_conversation(request).await?.into_inner().conversation;
        let request = v1::ListMessagesRequest {
            conversation_id: row.id,
            page_size: 1_000,
            include_hidden: true,
            include_thoughts: true,
            include_raw_metadata: true,
            ..Default::default()
        };
        let messages = client.list_messages(request).await?.into_inner();
        ensure!(messages.next_page_token.is_empty(), "a conversation of more than a page");
        all.push((conversation.context("a conversation")?, messages.messages));
    }
    Ok(all)
}

/// Returns the group of a message; `None` if it counts in none.
fn group_of(
    grouping: ConversationGrouping,
    conversation: &v1::Conversation,
    message: &v1::Message,
) -> Option<String> {
    let raw: serde_json::Value = conversation
        .raw_metadata_json
        .as_deref()
        .and_then(|raw| serde_json::from_str(raw).ok())
        .unwrap_or_default();
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    match grouping {
        ConversationGrouping::Unspecified | ConversationGrouping::Platform => {
            Some(conversation.platform.clone())
        }
        ConversationGrouping::Project => {
            let fields = ["cwd", "directory", "working_dir"];
            Some(text(fields.iter().find_map(|field| raw[field].as_str())))
        }
        ConversationGrouping::Model => (message.role() == Role::Assistant)
            .then(|| text(message.model.as_deref().or(conversation.model.as_deref()))),
        ConversationGrouping::Month => Some(message.created_at.map_or_else(String::new, |time| {
            let time = time.to_string();
            time[..7].to_owned()
        })),
    }
}

/// Returns what a message cost, in millionths of a US dollar.
fn cost_micros(message: &v1::Message) -> Result<i64> {
    let raw = message.raw_metadata_json.as_deref().unwrap_or("null");
    let raw: serde_json::Value = serde_json::from_str(raw).unwrap_or_default();
    let places = ["/cost", "/costUSD", "/metadata/usage/cost"];
    let dollars = places.iter().find_map(|place| raw.pointer(place).and_then(serde_json::Value::as_f64));
    Ok(format!("{:.0}", dollars.unwrap_or_default() * 1e6).parse()?)
}

fn counted(
    all: &[(v1::Conversation, Vec<v1::Message>)],
    grouping: ConversationGrouping,
) -> Result<BTreeMap<String, Counts>> {
    let mut groups: BTreeMap<String, Counts> = BTreeMap::new();
    for (conversation, messages) in all {
        for message in messages {
            let Some(name) = group_of(grouping, conversation, message) else { continue };
            let counts = groups.entry(name).or_default();
            counts.conversations.insert(conversation.id.clone());
            counts.messages += 1;
            counts.tokens += message.token_count.unwrap_or_default();
            counts.cost_micros += cost_micros(message)?;
            counts.times.extend(message.created_at.map(|time| (time.seconds, time.nanos)));
        }
    }
    Ok(groups)
}

fn check_totals(totals: Option<v1::ConversationTotals>, counts: &Counts, what: &str) -> Result<()> {
    let time = |time: Option<&(i64, i32)>| {
        time.map(|(seconds, nanos)| prost_types::Timestamp { seconds: *seconds, nanos: *nanos })
    };
    let expected = v1::ConversationTotals {
        conversations: i64::try_from(counts.conversations.len())?,
        messages: counts.messages,
        tokens: counts.tokens,
        cost_micros: counts.cost_micros,
        first_message_at: time(counts.times.first()),
        last_message_at: time(counts.times.last()),
    };
    ensure!(totals == Some(expected), "{what}: {totals:?} instead of {expected:?}");
    Ok(())
}

fn request(group_by: ConversationGrouping) -> v1::GetConversationStatsRequest {
    v1::GetConversationStatsRequest { group_by: group_by.into(), ..Default::default() }
}

#[tokio::test]
async fn groups_have_the_counts_of_the_lists() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    filled(&daemon).await?;
    let mut client = Client::new(daemon.channel.clone());
    let all = everything(&mut client).await?;
    for grouping in [
        ConversationGrouping::Unspecified,
        ConversationGrouping::Platform,
        ConversationGrouping::Project,
        ConversationGrouping::Model,
        ConversationGrouping::Month,
    ] {
        let answer = client.get_conversation_stats(request(grouping)).await?.into_inner();
        let expected = counted(&all, grouping)?;
        ensure!(expected.len() > 2, "{grouping:?} is tried with {} groups", expected.len());
        ensure!(answer.groups.len() == expected.len(), "{grouping:?}: {:?}", answer.groups);
        for group in &answer.groups {
            let counts = expected.get(&group.name).with_context(|| format!("no group {:?}", group.name))?;
            check_totals(group.totals, counts, &format!("{grouping:?} {:?}", group.name))?;
        }
        let sizes = answer.groups.iter().map(|group| group.totals.unwrap_or_default().messages);
        let sorted = match grouping {
            ConversationGrouping::Month => {
                answer.groups.iter().map(|group| &group.name).is_sorted_by(|a, b| a > b)
            }
            _ => sizes.is_sorted_by(|a, b| a >= b),
        };
        ensure!(sorted, "{grouping:?}: {:?}", answer.groups);
        if grouping == ConversationGrouping::Platform {
            let costly: BTreeSet<&str> = answer
                .groups
                .iter()
                .filter(|group| group.totals.is_some_and(|totals| totals.cost_micros > 0))
                .map(|group| group.name.as_str())
                .collect();
            ensure!(costly == BTreeSet::from(["claude-code", "goose", "opencode"]), "{costly:?}");
        }
        ensure!(answer.others.is_none() && answer.other_groups == 0, "{answer:?}");
        let whole = counted(&all, ConversationGrouping::Platform)?.into_values().reduce(merged);
        check_totals(answer.total, &whole.unwrap_or_default(), "all")?;
    }
    daemon.stop().await?;
    Ok(())
}

fn merged(mut one: Counts, mut other: Counts) -> Counts {
    one.conversations.append(&mut other.conversations);
    one.times.append(&mut other.times);
    Counts {
        messages: one.messages + other.messages,
        tokens: one.tokens + other.tokens,
        cost_micros: one.cost_micros + other.cost_micros,
        ..one
    }
}

#[tokio::test]
async fn what_does_not_fit_is_counted_together() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    filled(&daemon).await?;
    let mut client = Client::new(daemon.channel.clone());
    let all = client.get_conversation_stats(request(ConversationGrouping::Model)).await?.into_inner();
    let first = v1::GetConversationStatsRequest { max_groups: 1, ..request(ConversationGrouping::Model) };
    let short = client.get_conversation_stats(first).await?.into_inner();
    ensure!(short.groups.as_slice() == all.groups.get(..1).context("a group")?, "{short:?}");
    ensure!(short.other_groups == i64::try_from(all.groups.len())? - 1, "{short:?}");
    let left_out = all.groups.iter().skip(1).filter_map(|group| group.totals.as_ref());
    let messages: i64 = left_out.clone().map(|totals| totals.messages).sum();
    let others = short.others.context("the others")?;
    ensure!(others.messages == messages, "{others:?}");
    ensure!(
        others.first_message_at
            == left_out.filter_map(|totals| totals.first_message_at).min_by_key(|time| time.seconds)
    );
    ensure!(short.total == all.total);

    let filter = v1::ConversationFilter { platforms: vec!["codex".to_owned()], ..Default::default() };
    let codex = v1::GetConversationStatsRequest { filter: Some(filter), ..Default::default() };
    let codex = client.get_conversation_stats(codex).await?.into_inner();
    ensure!(codex.groups.len() == 1 && codex.groups[0].name == "codex", "{codex:?}");
    ensure!(codex.groups[0].totals == codex.total, "{codex:?}");
    for wrong in [
        v1::GetConversationStatsRequest { max_groups: -1, ..Default::default() },
        v1::GetConversationStatsRequest { group_by: 99, ..Default::default() },
    ] {
        let refused = client.get_conversation_stats(wrong).await.err().context("accepted")?;
        ensure!(refused.code() == Code::InvalidArgument, "{refused:?}");
    }
    daemon.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_device_counts_only_what_it_sees() -> Result<()> {
    let daemon = listening_daemon().await?;
    filled(&daemon).await?;
    let part = v1::DeviceSelection { platforms: vec!["claude-code".to_owned()], ..Default::default() };
    let part = v1::DevicePolicy { selection: Some(part), ..policy(DeviceRole::Reader) };
    let device = TestDevice::pair(&daemon, "reader", part).await?;
    let mut client = Client::new(device.channel.clone());
    let seen = client.get_conversation_stats(v1::GetConversationStatsRequest::default()).await?.into_inner();
    ensure!(seen.groups.len() == 1 && seen.groups[0].name == "claude-code", "{seen:?}");
    ensure!(
        seen.groups[0].totals == seen.total && seen.total.is_some_and(|total| total.messages > 0),
        "{seen:?}"
    );
    daemon.stop().await?;
    Ok(())
}
