//! Untrusted documents, full of dangling references.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use satchel_pam::hash::ContentHash;
use serde_json::{Value, json};

use super::History;

/// Number of memory ids in untrusted documents; small, so that the documents share ids.
const MEMORIES: u64 = 8;
/// Number of conversation ids in untrusted documents.
const CONVERSATIONS: u64 = 4;

impl History {
    /// Writes an untrusted document, full or incremental, with references to records inside it, outside it, and to
    /// nothing.
    pub(super) fn write_untrusted_document(&mut self, changes: bool) -> Result<PathBuf> {
        let path = self.new_path("stranger");
        fs::create_dir_all(path.join("conversations"))?;
        let all = MEMORIES;
        let memories: Vec<Value> = (0..all)
            .filter(|_| self.rng.chance(60))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|id| self.memory(id))
            .collect();
        let relations: Vec<Value> = (0..3)
            .map(|id| {
                let (from, to) = (self.rng.below(all), self.rng.below(all));
                json!({"id": format!("r{id}"), "from": format!("m{from}"), "to": format!("m{to}"),
                    "type": "related_to", "created_at": "2025-03-01T00:00:00Z"})
            })
            .collect();
        let mut index = Vec::new();
        for id in 0..CONVERSATIONS {
            if self.rng.chance(60) {
                index.push(self.index_entry(id, &path)?);
            }
        }
        let mut store = json!({
            "schema": "portable-ai-memory", "schema_version": "1.0", "owner": {"id": "a stranger"},
            "export_type": "full", "memories": memories, "relations": relations, "conversations_index": index,
        });
        if changes {
            store["export_type"] = "incremental".into();
            store["base_export_id"] = "0b5e1a52-0000-4000-8000-000000000001".into();
            store["since"] = "2025-01-01T00:00:00Z".into();
        }
        fs::write(path.join("memory-store.json"), store.to_string())?;
        let vectors: Vec<Value> = (0..all)
            .filter(|_| self.rng.chance(30))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|id| self.vector(id))
            .collect();
        let embeddings = json!({"schema": "portable-ai-memory-embeddings", "schema_version": "1.0", "embeddings": vectors});
        fs::write(path.join("embeddings.json"), embeddings.to_string())?;
        Ok(path)
    }

    fn vector(&mut self, id: u64) -> Value {
        json!({
            "id": format!("e{id}"), "memory_id": format!("m{id}"), "model": "small", "dimensions": 2,
            "created_at": format!("2025-0{}-01T00:00:00Z", 1 + self.rng.below(6)),
            "vector": [0.5, self.rng.below(8)],
        })
    }

    fn memory(&mut self, id: u64) -> Value {
        let content = format!("A stranger says {} of {id}", self.rng.below(4));
        let mut memory = json!({
            "id": format!("m{id}"), "type": "fact", "content": content, "tags": [],
            "content_hash": ContentHash::of(&content).to_string(), "status": "active",
            "temporal": {
                "created_at": "2025-01-01T00:00:00Z",
                "updated_at": format!("2025-0{}-02T00:00:00Z", 1 + self.rng.below(6)),
            },
            "provenance": {"platform": "elsewhere"},
        });
        if self.rng.chance(40) {
            memory["provenance"]["conversation_ref"] =
                format!("c{}", self.rng.below(CONVERSATIONS + 2)).into();
        }
        if self.rng.chance(30) {
            memory["status"] = "superseded".into();
            memory["temporal"]["superseded_by"] = format!("m{}", self.rng.below(MEMORIES + 2)).into();
        }
        if self.rng.chance(40) {
            memory["embedding_ref"] = format!("e{}", self.rng.below(MEMORIES)).into();
        }
        if self.rng.chance(20) {
            memory["metadata"] = json!({"language": if self.rng.chance(50) { "English" } else { "en_us" }});
        }
        memory
    }

    /// Returns an index entry: with its file, with a missing file, with an address, or without storage.
    fn index_entry(&mut self, id: u64, folder: &Path) -> Result<Value> {
        let mut entry = json!({
            "id": format!("c{id}"), "platform": "elsewhere", "title": format!("Talk {id}"), "message_count": 2,
            "temporal": {"created_at": "2025-01-01T00:00:00Z"}, "tags": ["told"],
            "derived_memories": [format!("m{}", self.rng.below(MEMORIES))],
        });
        match self.rng.below(4) {
            0 => {
                let name = format!("conversations/c{id}.json");
                let second = if self.rng.chance(50) { json!("nowhere") } else { Value::Null };
                let conversation = json!({
                    "schema": "portable-ai-memory-conversation", "schema_version": "1.0", "id": format!("c{id}"),
                    "provider": {"name": "elsewhere"}, "title": format!("Talk {id}"),
                    "temporal": {"created_at": "2025-01-01T00:00:00Z"},
                    "messages": [
                        {"id": format!("c{id}-0"), "role": "user", "created_at": "2025-01-01T00:00:00Z",
                            "content": {"type": "text", "text": "Hello"}},
                        {"id": format!("c{id}-1"), "role": "assistant", "created_at": "2025-01-01T00:00:01Z",
                            "content": {"type": "text", "text": "Hello you"}, "parent_id": second},
                    ],
                });
                fs::write(folder.join(&name), conversation.to_string())?;
                entry["storage"] = json!({"type": "file", "ref": name, "format": "json"});
            }
            1 => entry["storage"] = json!({"type": "file", "ref": "conversations/gone.json"}),
            2 => entry["storage"] = json!({"type": "uri", "ref": "https://example.org/talks"}),
            _ => {}
        }
        Ok(entry)
    }
}
