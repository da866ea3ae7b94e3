//! The records of the test, each with a text of its own in every field that can hold one.

use std::{collections::BTreeMap, fs};

use anyhow::{Context as _, Result, ensure};
use prost_types::FieldMask;
use satchel_pam::hash::ContentHash;
use satchel_proto::v1::{
    self, embedding_service_client::EmbeddingServiceClient, memory_service_client::MemoryServiceClient,
};
use satchel_tests::test_daemon::TestDaemon;
use serde_json::{Value, json};
use tonic::transport::Channel;

use crate::device_access::callers::{CallerKind, PART};

/// The name of the memory that an agent has written and that waits for review.
pub(crate) const QUARANTINED: &str = "quarantined";

/// The memories: a name, the platform, and the access block. The name is part of every text of the memory.
fn memories() -> Vec<(&'static str, &'static str, Value)> {
    let shared = |entity: &str| {
        json!({"visibility": "shared", "exportable": true,
            "shared_with": [{"entity": entity, "permissions": ["read"]}]})
    };
    vec![
        ("private", "elsewhere", json!({"visibility": "private"})),
        ("shared-a", "elsewhere", shared("agent-a")),
        ("shared-b", "elsewhere", shared("agent-b")),
        ("shared-nobody", "elsewhere", json!({"visibility": "shared", "shared_with": []})),
        ("public", "elsewhere", json!({"visibility": "public"})),
        ("public-too", "elsewhere", json!({"visibility": "public"})),
        // Public in its first version, private in the second.
        ("once-public", "elsewhere", json!({"visibility": "public"})),
        ("of-part", PART, json!({"visibility": "private"})),
        ("public-of-part", PART, json!({"visibility": "public"})),
    ]
}

/// What the test looks for in answers.
pub(crate) struct Records {
    /// The ids of memories by their names.
    ids: BTreeMap<&'static str, String>,
    pub(crate) conversations: BTreeMap<&'static str, String>,
    pub(crate) import: String,
}

/// The model of the vectors of the memories.
pub(crate) const MODEL: &str = "canary-model";

impl Records {
    /// Imports all records, as the owner.
    pub(crate) async fn create(daemon: &TestDaemon) -> Result<Self> {
        let folder = daemon.folder.path().join("bundle");
        fs::create_dir_all(folder.join("conversations"))?;
        fs::write(folder.join("memory-store.json"), serde_json::to_vec(&document())?)?;
        for (name, platform) in [("conversation", "elsewhere"), ("conversation-of-part", PART)] {
            let path = folder.join("conversations").join(format!("{name}-id.json"));
            fs::write(path, serde_json::to_vec(&conversation(name, platform))?)?;
        }
        let import = daemon.import(&folder).await?;
        let receipt = import.imports().first().context("an import")?;
        ensure!(receipt.status() == v1::ImportStatus::Completed, "{receipt:?}");
        let memories = receipt.memories.context("counts")?;
        ensure!(memories.new == i64::try_from(self::memories().len())?, "{receipt:?}");
        let ids = self::memories().into_iter().map(|(name, ..)| (name, memory_id(name))).collect();
        let conversations = ["conversation", "conversation-of-part"].map(|name| (name, format!("{name}-id")));
        let records = Self { ids, conversations: conversations.into(), import: receipt.id.clone() };
        set_visibility(daemon, records.id("once-public"), v1::Visibility::Private).await?;
        put_vectors(daemon).await?;
        Ok(records)
    }

    /// Adds a memory that an agent writes, and that nobody reviews.
    pub(crate) async fn add_quarantined(&mut self, agent: &Channel) -> Result<()> {
        let text = canary(QUARANTINED);
        let memory = v1::Memory {
            content: format!("Remembers {text}"),
            summary: Some(format!("In short {text}")),
            tags: vec![tag(QUARANTINED)],
            metadata_json: Some(json!({"x-note": format!("note {text}")}).to_string()),
            ..v1::Memory::default()
        };
        let request = v1::CreateMemoryRequest {
            memory: Some(memory),
            reason: format!("because of {text}"),
            ..v1::CreateMemoryRequest::default()
        };
        let answer = MemoryServiceClient::new(agent.clone()).create_memory(request).await?.into_inner();
        self.ids.insert(QUARANTINED, answer.memory.context("a memory")?.id);
        Ok(())
    }

    pub(crate) fn id(&self, name: &str) -> &str {
        self.ids.get(name).map_or("", String::as_str)
    }

    /// Returns the ids of all records.
    pub(crate) fn all_ids(&self) -> impl Iterator<Item = &str> {
        let ids = self.ids.values().chain(self.conversations.values());
        ids.map(String::as_str).chain([self.import.as_str()])
    }

    /// Returns the records of which these bytes tell: by a text, or by an id that the request does not have.
    pub(crate) fn canaries_in(&self, bytes: &[u8], request: &[u8]) -> Vec<&'static str> {
        let (bytes, request) = (lower(bytes), lower(request));
        let names = memories().into_iter().map(|(name, ..)| name).chain(self.conversations.keys().copied());
        let told = |name: &&str| {
            let id = self.conversations.get(name).cloned().unwrap_or_else(|| memory_id(name));
            let id = if *name == QUARANTINED { self.id(name).to_owned() } else { id };
            // An agent gets back what it has written itself.
            let tells = |text: &str| bytes.contains(text) && !request.contains(text);
            [id, canary(name), tag(name)].iter().any(|text| tells(text))
        };
        names.chain(self.ids.contains_key(QUARANTINED).then_some(QUARANTINED)).filter(told).collect()
    }

    /// Returns whether a caller may see a record.
    pub(crate) fn visible_to(name: &str, kind: CallerKind) -> bool {
        if name == QUARANTINED {
            return matches!(kind, CallerKind::AgentA | CallerKind::Owner);
        }
        let public = matches!(name, "public" | "public-too" | "public-of-part");
        match kind {
            CallerKind::Nobody | CallerKind::Revoked => false,
            CallerKind::AgentA => public || name == "shared-a",
            CallerKind::AgentB => public || name == "shared-b",
            CallerKind::AgentWithConversations => matches!(name, "public-of-part" | "conversation-of-part"),
            CallerKind::ReaderOfPart => {
                matches!(name, "of-part" | "public-of-part" | "conversation-of-part")
            }
            CallerKind::Reader | CallerKind::Owner => true,
        }
    }
}

/// The text of a record that no other record has: no name is the beginning of another one with a full stop behind it.
fn canary(name: &str) -> String {
    format!("canary-{name}.")
}

fn tag(name: &str) -> String {
    format!("tag-{name}-x")
}

fn lower(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).to_lowercase()
}

fn memory_id(name: &str) -> String {
    format!("memory-{name}-id")
}

fn document() -> Value {
    let memories: Vec<Value> = memories()
        .into_iter()
        .map(|(name, platform, access)| {
            let text = canary(name);
            let content = format!("Remembers {text}");
            json!({
                "id": memory_id(name), "type": "fact", "status": "active", "content": content,
                "content_hash": ContentHash::of(&content).to_string(), "summary": format!("In short {text}"),
                "tags": [tag(name)], "temporal": {"created_at": "2026-01-02T03:04:05Z"},
                "provenance": {"platform": platform, "platform_user_id": format!("account {text}"),
                    "conversation_ref": "conversation-id", "message_ref": "message-1"},
                "metadata": {"x-note": format!("note {text}")}, "access": access,
            })
        })
        .collect();
    json!({
        "schema": "portable-ai-memory", "schema_version": "1.0", "owner": {"id": "someone"},
        "memories": memories,
        "relations": [
            {"id": "relation-id", "from": memory_id("private"), "to": memory_id("public"), "type": "related_to",
                "created_at": "2026-01-02T03:04:05Z"},
            {"id": "relation-2", "from": memory_id("public"), "to": memory_id("public-too"), "type": "supports",
                "created_at": "2026-01-02T03:04:05Z"},
            {"id": "relation-3", "from": memory_id("public-too"), "to": memory_id("private"), "type": "contradicts",
                "created_at": "2026-01-02T03:04:05Z"},
            {"id": "relation-4", "from": memory_id("public"), "to": memory_id("public-too"), "type": "contradicts",
                "created_at": "2026-01-02T03:04:05Z"},
        ],
        "conversations_index": [],
    })
}

fn conversation(name: &str, platform: &str) -> Value {
    let text = canary(name);
    json!({
        "schema": "portable-ai-memory-conversation", "schema_version": "1.0", "id": format!("{name}-id"),
        "provider": {"name": platform, "account_id": format!("account {text}")}, "title": format!("About {text}"),
        "temporal": {"created_at": "2026-01-02T03:04:05Z"}, "tags": [],
        "messages": [{"id": "message-1", "role": "user", "created_at": "2026-01-02T03:04:05Z",
            "content": {"type": "text", "text": format!("Said {text}")}}],
    })
}

/// Changes who sees a memory, as the owner.
/// Gives each memory a vector.
async fn put_vectors(daemon: &TestDaemon) -> Result<()> {
    let mut client = EmbeddingServiceClient::new(daemon.channel.clone());
    let model = MODEL.to_owned();
    let missing =
        v1::ListMissingEmbeddingsRequest { model: model.clone(), page_size: 1_000, ..Default::default() };
    let missing = client.list_missing_embeddings(missing).await?.into_inner().missing;
    let embeddings = missing.into_iter().map(|missing| v1::MemoryEmbedding {
        memory_id: missing.memory_id,
        content_hash: missing.content_hash,
        vector: vec![1.0, 0.5],
    });
    let put = v1::PutEmbeddingsRequest { model, embeddings: embeddings.collect(), ..Default::default() };
    client.put_embeddings(put).await?;
    Ok(())
}

pub(crate) async fn set_visibility(daemon: &TestDaemon, id: &str, visibility: v1::Visibility) -> Result<()> {
    let access = v1::Access { visibility: visibility.into(), exportable: true, shared_with: Vec::new() };
    let request = v1::UpdateMemoryRequest {
        memory: Some(v1::Memory { id: id.to_owned(), access: Some(access), ..v1::Memory::default() }),
        update_mask: Some(FieldMask { paths: vec!["access".to_owned()] }),
        reason: "canary-private. is the reason".to_owned(),
        ..v1::UpdateMemoryRequest::default()
    };
    MemoryServiceClient::new(daemon.channel.clone()).update_memory(request).await?;
    Ok(())
}
