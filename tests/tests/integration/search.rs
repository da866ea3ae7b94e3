//! Searches over gRPC: what is found, in which order and pages, and what is told of a query that is wrong.

mod access;
mod context;
mod earlier;
mod index;
mod meaning;
mod pages;

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{self, SearchHitKind, search_service_client::SearchServiceClient};
use satchel_tests::test_daemon::TestDaemon;
use serde_json::{Value, json};
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt as _;

/// Searches with a request that waits for what is stored.
async fn search(channel: &Channel, request: v1::SearchRequest) -> Result<v1::SearchResponse, Status> {
    let request = v1::SearchRequest { wait_until_current: request.page_token.is_empty(), ..request };
    let response = SearchServiceClient::new(channel.clone()).search(request).await?;
    Ok(response.into_inner())
}

fn query(text: &str) -> v1::SearchRequest {
    v1::SearchRequest { query: text.to_owned(), ..v1::SearchRequest::default() }
}

/// The ids of what has all words of a query, the best first.
async fn ids(channel: &Channel, text: &str) -> Result<Vec<String>> {
    let found = search(channel, query(text)).await?;
    ensure!(found.total == i64::try_from(found.hits.len())?, "{found:?}");
    let ids: Vec<String> = found.hits.into_iter().filter(|hit| !hit.relaxed).map(|hit| hit.id).collect();
    ensure!(found.strict_total == i64::try_from(ids.len())?, "{ids:?}");
    Ok(ids)
}

/// A ChatGPT conversation: each message is an id, its parent, a role and a text.
fn chat(id: &str, title: &str, current: &str, messages: &[(&str, &str, &str, &str)]) -> Value {
    let node = |(id, parent, role, text): &(&str, &str, &str, &str)| {
        let children: Vec<&str> =
            messages.iter().filter(|(_, of, ..)| of == id).map(|(child, ..)| *child).collect();
        let hidden = text.starts_with("HIDDEN");
        let node = json!({
            "id": id, "parent": (!parent.is_empty()).then_some(parent), "children": children,
            "message": {"id": id, "author": {"role": role}, "create_time": 1_746_180_000,
                "content": {"content_type": "text", "parts": [text]},
                "metadata": {"is_visually_hidden_from_conversation": hidden}, "recipient": "all"},
        });
        ((*id).to_owned(), node)
    };
    json!({
        "title": title, "create_time": 1_746_180_000, "conversation_id": id, "current_node": current,
        "mapping": messages.iter().map(node).collect::<serde_json::Map<_, _>>(),
    })
}

async fn import(daemon: &TestDaemon, name: &str, chats: &[Value]) -> Result<()> {
    let folder = daemon.folder.path().join(name);
    write_export(&folder, chats)?;
    let import = daemon.import(&folder).await?;
    let receipt = import.imports().first().context("an import")?;
    ensure!(receipt.status() == v1::ImportStatus::Completed, "{receipt:?}");
    Ok(())
}

fn write_export(folder: &Path, chats: &[Value]) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("conversations.json"), serde_json::to_vec(chats)?)?;
    Ok(())
}

/// A conversation with a second answer, and with a message that the platform hides.
fn hive() -> Value {
    let messages = [
        ("m-system", "", "system", "HIDDEN the user keeps hornets"),
        ("m-question", "m-system", "user", "How do bees survive the winter in Norway?"),
        ("m-old", "m-question", "assistant", "They hibernate."),
        ("m-new", "m-question", "assistant", "They form a cluster around the queen. See https://example.org"),
    ];
    chat("hive", "Beekeeping in the cold", "m-new", &messages)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hit_says_where_it_is_and_shows_the_passage() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    import(&daemon, "export", &[hive()]).await?;
    let found = search(&daemon.channel, query("bee winter")).await?;
    // The title has a similar word.
    ensure!(found.strict_total == 1 && found.hits.iter().skip(1).all(|hit| hit.relaxed), "{found:?}");
    let hit = found.hits.first().context("a hit")?;
    ensure!(hit.kind() == SearchHitKind::Message && hit.role() == v1::Role::User, "{hit:?}");
    ensure!(hit.title == "Beekeeping in the cold" && hit.platform == "chatgpt", "{hit:?}");
    ensure!(hit.time.is_some_and(|time| time.seconds == 1_746_180_000), "{hit:?}");
    ensure!(hit.on_active_branch && !hit.hidden && hit.score > 0.0, "{hit:?}");
    let snippet = hit.snippet.as_ref().context("a snippet")?;
    let marked: Vec<&str> = snippet
        .marks
        .iter()
        .filter_map(|mark| {
            snippet.text.get(usize::try_from(mark.start).ok()?..usize::try_from(mark.end).ok()?)
        })
        .collect();
    ensure!(marked == ["bees", "winter"], "{snippet:?}");
    // The ids are those of the other services.
    let messages =
        v1::ListMessagesRequest { conversation_id: hit.conversation_id.clone(), ..Default::default() };
    let mut client = v1::conversation_service_client::ConversationServiceClient::new(daemon.channel.clone());
    let messages = client.list_messages(messages).await?.into_inner().messages;
    ensure!(messages.iter().any(|message| message.id == hit.id), "{messages:?}");
    // The answer that was not kept is found too, and said to be on another branch.
    let old = search(&daemon.channel, query("hibernate")).await?;
    ensure!(old.strict_total == 1 && !old.hits[0].on_active_branch, "{old:?}");
    let title = search(&daemon.channel, query("title:beekeeping")).await?;
    ensure!(title.hits.len() == 1 && title.hits[0].kind() == SearchHitKind::Title, "{title:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn hidden_messages_are_found_only_if_asked_for() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    import(&daemon, "export", &[hive()]).await?;
    ensure!(ids(&daemon.channel, "hornets").await?.is_empty(), "a hidden message was found");
    let all = v1::SearchRequest { include_hidden: true, ..query("hornets") };
    let found = search(&daemon.channel, all).await?;
    ensure!(found.hits.len() == 1 && found.hits[0].hidden, "{found:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_kinds_and_facets_agree() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    import(&daemon, "export", &[hive()]).await?;
    ensure!(ids(&daemon.channel, "has:link").await?.len() == 1, "a link");
    ensure!(ids(&daemon.channel, "role:assistant").await?.len() == 2, "the answers");
    ensure!(ids(&daemon.channel, "bees before:2025-05").await?.is_empty(), "a date");
    ensure!(ids(&daemon.channel, "bees on:2025-05-02").await?.len() == 1, "a day");
    let request = v1::SearchRequest {
        kinds: vec![SearchHitKind::Message.into()],
        facets: vec![v1::SearchFacetField::Role.into(), v1::SearchFacetField::Month.into()],
        ..query("platform:chatgpt")
    };
    let found = search(&daemon.channel, request).await?;
    ensure!(found.total == 3, "{found:?}");
    let counts = |facet: &v1::SearchFacet| -> Vec<(String, i64)> {
        facet.counts.iter().map(|count| (count.value.clone(), count.count)).collect()
    };
    let facets: Vec<_> = found.facets.iter().map(counts).collect();
    let expected =
        [vec![("assistant".to_owned(), 2), ("user".to_owned(), 1)], vec![("2025-05".to_owned(), 3)]];
    ensure!(facets == expected, "{facets:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_is_wrong_is_refused_with_the_place() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let refused = |text: &str| {
        let request = query(text);
        let channel = daemon.channel.clone();
        async move {
            let status = search(&channel, request).await.err().context("an error")?;
            ensure!(status.code() == Code::InvalidArgument, "{status:?}");
            let info = status.get_details_error_info().context("a reason")?;
            Ok((info.reason, info.metadata.get("start").cloned(), info.metadata.get("end").cloned()))
        }
    };
    let at =
        |start: &str, end: &str| ("QUERY_INVALID".to_owned(), Some(start.to_owned()), Some(end.to_owned()));
    ensure!(refused("bees role:boss").await? == at("10", "14"), "{:?}", refused("bees role:boss").await?);
    ensure!(refused("before:soon").await?.0 == "QUERY_INVALID", "a date");
    ensure!(refused(&"x".repeat(5_000)).await?.0 == "QUERY_INVALID", "a long query");
    ensure!(refused("  ").await?.0 == "FIELD_INVALID", "an empty query");
    let zone = v1::SearchRequest { time_zone: "Nowhere/Town".to_owned(), ..query("bees") };
    let status = search(&daemon.channel, zone).await.err().context("an error")?;
    ensure!(status.message().starts_with("time_zone"), "{status:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_nothing_has_are_suggested_and_some_of_the_words_are_enough_then() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    import(&daemon, "export", &[hive()]).await?;
    let found = search(&daemon.channel, query("hybernate")).await?;
    let words: Vec<&str> = found.suggestions.iter().map(|one| one.word.as_str()).collect();
    ensure!(words == ["hibernate"], "{found:?}");
    let found = search(&daemon.channel, query("queen zebra")).await?;
    ensure!(found.strict_total == 0 && found.hits.len() == 1 && found.hits[0].relaxed, "{found:?}");
    let found = search(&daemon.channel, query("queen cluster")).await?;
    ensure!(found.strict_total == 1 && found.hits.len() == 1 && !found.hits[0].relaxed, "{found:?}");
    Ok(())
}
