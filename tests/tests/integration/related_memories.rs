//! Memories that are linked to one, that say the same, and that contradict each other.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use prost_types::Timestamp;
use satchel_pam::hash::ContentHash;
use satchel_proto::v1::{
    self, ContradictionReason, DuplicateReason, MemoryLinkKind, RelationType,
    memory_service_client::MemoryServiceClient, search_service_client::SearchServiceClient,
    supersede_memory_request::Replacement,
};
use satchel_tests::{
    test_daemon::TestDaemon,
    test_device::{TestDevice, listening_daemon, policy},
};
use serde_json::{Value, json};
use tonic::{Code, transport::Channel};

type Client = MemoryServiceClient<Channel>;

/// A memory of a PAM document.
fn memory(id: &str, platform: &str, content: &str) -> Value {
    json!({
        "id": id, "type": "fact", "status": "active", "content": content,
        "content_hash": ContentHash::of(content).to_string(), "tags": [],
        "temporal": {"created_at": "2026-01-02T03:04:05Z"}, "provenance": {"platform": platform},
        "access": {"visibility": "public"},
    })
}

/// The memory, which only the owner sees.
fn private(memory: Value) -> Value {
    with(memory, "access", json!({"visibility": "private"}))
}

fn with(mut memory: Value, field: &str, value: Value) -> Value {
    memory[field] = value;
    memory
}

fn relation(from: &str, relation_type: &str, to: &str) -> Value {
    json!({
        "id": format!("{from}-{to}"), "from": from, "to": to, "type": relation_type,
        "created_at": "2026-01-02T03:04:05Z",
    })
}

/// Imports a PAM document, as the owner.
async fn import(daemon: &TestDaemon, memories: Vec<Value>, relations: Vec<Value>) -> Result<()> {
    let document = json!({
        "schema": "portable-ai-memory", "schema_version": "1.0", "owner": {"id": "someone"},
        "memories": memories, "relations": relations, "conversations_index": [],
    });
    let folder = daemon.folder.path().join("bundle");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("memory-store.json"), serde_json::to_vec(&document)?)?;
    let import = daemon.import(&folder).await?;
    let receipt = import.imports().first().context("an import")?;
    ensure!(receipt.status() == v1::ImportStatus::Completed, "{receipt:?}");
    Ok(())
}

async fn related(client: &mut Client, id: &str, depth: i32) -> Result<v1::ListRelatedMemoriesResponse> {
    let request = v1::ListRelatedMemoriesRequest { id: id.to_owned(), depth, ..Default::default() };
    Ok(client.list_related_memories(request).await?.into_inner())
}

/// Each memory with its distance, by id.
fn distances(response: &v1::ListRelatedMemoriesResponse) -> Vec<(&str, i32)> {
    let mut all: Vec<(&str, i32)> = response
        .memories
        .iter()
        .map(|row| (row.memory.as_ref().map_or("", |memory| memory.id.as_str()), row.distance))
        .collect();
    all.sort_unstable();
    all
}

async fn duplicates(client: &mut Client, threshold: Option<f64>) -> Result<Vec<v1::DuplicateGroup>> {
    let mut request = v1::ListDuplicateMemoriesRequest { threshold, page_size: 1, ..Default::default() };
    let mut groups = Vec::new();
    loop {
        let page = client.list_duplicate_memories(request.clone()).await?.into_inner();
        ensure!(!page.truncated, "{page:?}");
        groups.extend(page.groups);
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            return Ok(groups);
        }
    }
}

fn ids(group: &v1::DuplicateGroup) -> Vec<&str> {
    group.memories.iter().map(|memory| memory.id.as_str()).collect()
}

async fn contradictions(client: &mut Client, include_settled: bool) -> Result<Vec<v1::Contradiction>> {
    let mut request = v1::ListContradictionsRequest { include_settled, page_size: 1, ..Default::default() };
    let mut all = Vec::new();
    loop {
        let page = client.list_contradictions(request.clone()).await?.into_inner();
        all.extend(page.contradictions);
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            return Ok(all);
        }
    }
}

/// The ids of a pair, and whether it is settled.
fn pair(found: &v1::Contradiction) -> (&str, &str, bool) {
    let first = found.first.as_ref().map_or("", |memory| memory.id.as_str());
    let second = found.second.as_ref().map_or("", |memory| memory.id.as_str());
    (first, second, found.settled)
}

/// A cycle a → b → c → a, with a tail c → d → e.
fn graph() -> (Vec<Value>, Vec<Value>) {
    let contents = ["Keeps bees", "Has a balcony", "Sells honey", "Visits the market", "Drives a van"];
    let memories = ["a", "b", "c", "d", "e"].iter().zip(contents);
    let memories = memories.map(|(id, content)| memory(&format!("memory-{id}"), "claude", content)).collect();
    let between =
        |from: &str, kind: &str, to: &str| relation(&format!("memory-{from}"), kind, &format!("memory-{to}"));
    let relations = vec![
        between("a", "supports", "b"),
        between("b", "related_to", "c"),
        between("c", "extends", "a"),
        between("c", "supports", "d"),
        between("d", "derived_from", "e"),
    ];
    (memories, relations)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graph_with_a_cycle_is_walked_by_distance() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let (memories, relations) = graph();
    import(&daemon, memories, relations).await?;
    let mut client = MemoryServiceClient::new(daemon.channel.clone());
    let near = related(&mut client, "memory-a", 1).await?;
    ensure!(distances(&near) == [("memory-b", 1), ("memory-c", 1)], "{near:?}");
    let default = related(&mut client, "memory-a", 0).await?;
    ensure!(distances(&default) == [("memory-b", 1), ("memory-c", 1), ("memory-d", 2)], "{default:?}");
    let all = related(&mut client, "memory-a", 5).await?;
    ensure!(all.memories.len() == 4 && !all.truncated, "{all:?}");
    let last = all.memories.last().context("a memory")?;
    let steps: Vec<(MemoryLinkKind, RelationType, v1::Direction)> =
        last.path.iter().map(|link| (link.kind(), link.relation_type(), link.direction())).collect();
    let expected = [
        (MemoryLinkKind::Relation, RelationType::Extends, v1::Direction::In),
        (MemoryLinkKind::Relation, RelationType::Supports, v1::Direction::Out),
        (MemoryLinkKind::Relation, RelationType::DerivedFrom, v1::Direction::Out),
    ];
    ensure!(steps == expected, "{last:?}");
    let only = v1::ListRelatedMemoriesRequest {
        id: "memory-a".to_owned(),
        depth: 5,
        types: vec![RelationType::Supports.into()],
        ..Default::default()
    };
    let only = client.list_related_memories(only).await?.into_inner();
    ensure!(distances(&only) == [("memory-b", 1)], "{only:?}");
    // In pages, the same memories in the same order.
    let mut request = v1::ListRelatedMemoriesRequest {
        id: "memory-a".to_owned(),
        depth: 5,
        page_size: 1,
        ..Default::default()
    };
    let mut paged = Vec::new();
    loop {
        let page = client.list_related_memories(request.clone()).await?.into_inner();
        paged.extend(page.memories);
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
    }
    ensure!(paged == all.memories);
    for depth in [-1, 6] {
        let refused = related(&mut client, "memory-a", depth).await;
        ensure!(refused.is_err(), "{depth}");
    }
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_revision_has_its_own_graph() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let (memories, relations) = graph();
    import(&daemon, memories, relations).await?;
    let mut client = MemoryServiceClient::new(daemon.channel.clone());
    let before = related(&mut client, "memory-a", 5).await?;
    let revision = before.header.as_ref().context("a header")?.revision;
    let cut = before.memories.iter().flat_map(|row| &row.path).find(|link| link.memory_id == "memory-d");
    let id = cut.context("a link")?.relation_id.clone();
    client.withdraw_relation(v1::WithdrawRelationRequest { id, ..Default::default() }).await?;
    let now = related(&mut client, "memory-a", 5).await?;
    ensure!(distances(&now) == [("memory-b", 1), ("memory-c", 1)], "{now:?}");
    let then = v1::ListRelatedMemoriesRequest {
        id: "memory-a".to_owned(),
        depth: 5,
        as_of_revision: Some(revision),
        ..Default::default()
    };
    let then = client.list_related_memories(then).await?.into_inner();
    ensure!(then == before, "{then:?}");
    let future = v1::ListRelatedMemoriesRequest {
        id: "memory-a".to_owned(),
        as_of_revision: Some(i64::MAX),
        ..Default::default()
    };
    let refused = client.list_related_memories(future).await.err().context("refused")?;
    ensure!(refused.code() == Code::InvalidArgument, "{refused:?}");
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_sees_no_path_over_a_hidden_memory() -> Result<()> {
    let daemon = listening_daemon().await?;
    let (mut memories, relations) = graph();
    memories[2] = private(memories[2].clone());
    // The same conversation links memories only for who may read it.
    let provenance = json!({"platform": "claude", "conversation_ref": "talk"});
    for at in [0, 4] {
        memories[at] = with(memories[at].clone(), "provenance", provenance.clone());
    }
    memories.push(memory("memory-x", "claude", "Plays chess on Sundays"));
    memories.push(private(memory("memory-y", "chatgpt", "plays CHESS on Sundays!")));
    let contradiction = relation("memory-x", "contradicts", "memory-y");
    import(&daemon, memories, [relations, vec![contradiction]].concat()).await?;
    let agent = TestDevice::pair(&daemon, "helper", policy(v1::DeviceRole::Agent)).await?;
    let mut client = MemoryServiceClient::new(agent.channel.clone());
    let seen = related(&mut client, "memory-a", 5).await?;
    ensure!(distances(&seen) == [("memory-b", 1)], "{seen:?}");
    let hidden = client
        .list_related_memories(v1::ListRelatedMemoriesRequest {
            id: "memory-c".to_owned(),
            ..Default::default()
        })
        .await;
    ensure!(hidden.is_err_and(|status| status.code() == Code::NotFound));
    ensure!(duplicates(&mut client, None).await?.is_empty());
    ensure!(contradictions(&mut client, true).await?.is_empty());
    let mut owner = MemoryServiceClient::new(daemon.channel.clone());
    let conversation = related(&mut owner, "memory-a", 1).await?;
    let linked = conversation.memories.iter().find(|row| row.path[0].kind() == MemoryLinkKind::Conversation);
    let linked = linked.context("a memory of the conversation")?;
    ensure!(linked.path[0].memory_id == "memory-e" && linked.path[0].conversation_id == "talk", "{linked:?}");
    ensure!(duplicates(&mut owner, None).await?.len() == 1);
    ensure!(contradictions(&mut owner, false).await?.len() == 1);
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicates_of_two_platforms_are_grouped() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let expired = json!({"created_at": "2020-01-02T03:04:05Z", "valid_until": "2021-01-01T00:00:00Z"});
    let memories = vec![
        memory("memory-1", "claude", "Prefers short answers."),
        memory("memory-2", "chatgpt", "prefers  SHORT answers"),
        memory("memory-3", "claude", "Keeps bees on the balcony of the house"),
        memory("memory-4", "chatgpt", "Also keeps bees on the balcony of the house"),
        memory("memory-5", "claude", "Lives in Bergen"),
        memory("memory-6", "chatgpt", "Lives in Oslo"),
        with(memory("memory-7", "claude", "Prefers short answers!"), "temporal", expired),
    ];
    import(&daemon, memories, Vec::new()).await?;
    let mut client = MemoryServiceClient::new(daemon.channel.clone());
    let groups = duplicates(&mut client, None).await?;
    ensure!(groups.len() == 2, "{groups:?}");
    ensure!(ids(&groups[0]) == ["memory-1", "memory-2"], "{groups:?}");
    ensure!(groups[0].reason() == DuplicateReason::SameText && groups[0].similarity >= 1.0, "{groups:?}");
    ensure!(ids(&groups[1]) == ["memory-3", "memory-4"] && groups[1].total == 2, "{groups:?}");
    ensure!(groups[1].reason() == DuplicateReason::SimilarText && groups[1].similarity < 1.0, "{groups:?}");
    ensure!(duplicates(&mut client, Some(1.0)).await?.len() == 1);
    for threshold in [0.0, 0.49, 1.01, f64::NAN, f64::INFINITY] {
        let request = v1::ListDuplicateMemoriesRequest { threshold: Some(threshold), ..Default::default() };
        let refused = client.list_duplicate_memories(request).await.err().context("refused")?;
        ensure!(refused.code() == Code::InvalidArgument, "{refused:?}");
    }
    // A duplicate that is superseded is none any more.
    let request = v1::SupersedeMemoryRequest {
        old_id: "memory-2".to_owned(),
        replacement: Some(Replacement::ExistingId("memory-1".to_owned())),
        ..Default::default()
    };
    client.supersede_memory(request).await?;
    let groups = duplicates(&mut client, None).await?;
    ensure!(groups.len() == 1 && ids(&groups[0]) == ["memory-3", "memory-4"], "{groups:?}");
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contradiction_is_settled_by_a_supersede() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let times = |field: &str, at: &str| json!({"created_at": "2020-01-02T03:04:05Z", field: at});
    let memories = vec![
        memory("memory-1", "claude", "Lives in Bergen"),
        memory("memory-2", "chatgpt", "Lives in Oslo"),
        with(
            memory("memory-3", "claude", "Rents a flat"),
            "temporal",
            times("valid_until", "2024-01-01T00:00:00Z"),
        ),
        with(
            memory("memory-4", "claude", "Owns a house"),
            "temporal",
            times("valid_from", "2024-01-01T00:00:00Z"),
        ),
    ];
    let relations = vec![
        relation("memory-1", "contradicts", "memory-2"),
        relation("memory-3", "contradicts", "memory-4"),
        relation("memory-1", "supports", "memory-4"),
    ];
    import(&daemon, memories, relations).await?;
    let mut client = MemoryServiceClient::new(daemon.channel.clone());
    let open = contradictions(&mut client, false).await?;
    ensure!(open.iter().map(pair).collect::<Vec<_>>() == [("memory-1", "memory-2", false)], "{open:?}");
    ensure!(open[0].reason() == ContradictionReason::Contradicts && open[0].relation.is_some(), "{open:?}");
    // Memories that were valid at different times do not contradict each other.
    let all = contradictions(&mut client, true).await?;
    let expected = [("memory-1", "memory-2", false), ("memory-3", "memory-4", true)];
    ensure!(all.iter().map(pair).collect::<Vec<_>>() == expected, "{all:?}");
    let request = v1::SupersedeMemoryRequest {
        old_id: "memory-2".to_owned(),
        replacement: Some(Replacement::ExistingId("memory-1".to_owned())),
        ..Default::default()
    };
    client.supersede_memory(request).await?;
    ensure!(contradictions(&mut client, false).await?.is_empty());
    let mut all = contradictions(&mut client, true).await?;
    all.sort_by_key(|found| pair(found).0.to_owned());
    let expected = [("memory-1", "memory-2", true), ("memory-3", "memory-4", true)];
    ensure!(all.iter().map(pair).collect::<Vec<_>>() == expected, "{all:?}");
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_find_what_was_valid_at_a_time() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut client = MemoryServiceClient::new(daemon.channel.clone());
    // 2020-01-01 and 2023-01-01.
    let (start, end) = (1_577_836_800, 1_672_531_200);
    let time = |seconds| Some(Timestamp { seconds, nanos: 0 });
    for (content, valid_from, valid_until) in [
        ("Bees in Oslo", time(start), time(end)),
        ("Bees in Bergen", time(end), None),
        ("Bees anywhere", None, None),
    ] {
        let temporal = v1::Temporal { valid_from, valid_until, ..v1::Temporal::default() };
        let memory =
            v1::Memory { content: content.to_owned(), temporal: Some(temporal), ..v1::Memory::default() };
        client.create_memory(v1::CreateMemoryRequest { memory: Some(memory), ..Default::default() }).await?;
    }
    for (query, expected) in [
        ("bees valid:2021", &["Bees anywhere", "Bees in Oslo"][..]),
        ("bees valid:2019", &["Bees anywhere"]),
        ("bees valid:now", &["Bees anywhere", "Bees in Bergen"]),
        ("bees expired:now", &["Bees in Oslo"]),
        ("bees expired:2022-12", &[]),
        ("bees", &["Bees anywhere", "Bees in Bergen", "Bees in Oslo"]),
    ] {
        let request =
            v1::SearchRequest { query: query.to_owned(), wait_until_current: true, ..Default::default() };
        let found = SearchServiceClient::new(daemon.channel.clone()).search(request).await?.into_inner();
        let text = |hit: &v1::SearchHit| hit.snippet.as_ref().map_or(String::new(), |one| one.text.clone());
        ensure!(found.hits.iter().all(|hit| hit.expired == text(hit).contains("Oslo")), "{found:?}");
        let mut texts: Vec<String> = found.hits.iter().map(text).collect();
        texts.sort();
        ensure!(texts == expected, "{query}: {texts:?}");
    }
    daemon.stop().await?;
    Ok(())
}
