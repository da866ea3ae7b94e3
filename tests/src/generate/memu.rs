//! MemU: conversations as its API returns them, and the memories of some agents.

use std::{fs, io, path::Path};

use serde_json::{Value, json};

use super::{GeneratedCounts, answer, question, rfc3339, rng::Rng, write_array};

/// Number of agents that have memories.
const AGENTS: u64 = 20;

/// Writes MemU files of about `bytes` bytes into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn memu(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    fs::create_dir_all(folder)?;
    let mut rng = Rng::new(seed ^ 0x3e30);
    let mut memories = Vec::new();
    for agent in 0..AGENTS {
        let mut lines = || -> Vec<String> {
            (0..8).map(|at| format!("{at} {}", rng.text(60).replace('\n', " ").trim())).collect()
        };
        memories.push(json!({"memory_id": format!("memory-{agent}"), "agent_id": format!("agent-{agent}"),
            "user_id": "mara", "created_at": "2025-07-01T10:00:00Z", "updated_at": "2025-07-03T09:30:00Z",
            "profile_content": lines(), "event_content": lines(), "mind_content": lines()}));
    }
    fs::write(folder.join("memories.json"), Value::from(memories).to_string())?;
    write_array(&folder.join("conversations.json"), bytes, &mut rng, conversation)
}

fn conversation(rng: &mut Rng, counts: &mut GeneratedCounts) -> Value {
    let mut second = 1_751_000_000 + rng.below(2_000_000);
    let begun = rfc3339(second);
    let mut messages = Vec::new();
    for _ in 0..rng.log_normal(4.0, 0.9, 1, 40) {
        for role in ["user", "assistant"] {
            second += 1 + rng.below(300);
            let content = if role == "user" { question(rng) } else { answer(rng) };
            messages.push(json!({"message_id": rng.uuid(), "role": role, "content": content,
                "message_index": messages.len(), "created_at": rfc3339(second)}));
        }
    }
    counts.messages += messages.len() as u64;
    json!({"conversation_id": rng.uuid(), "agent_id": format!("agent-{}", rng.below(AGENTS)), "user_id": "mara",
        "session_id": rng.uuid(), "created_at": begun, "turn_count": messages.len(), "messages": messages,
        "pipeline_result": {"modification_result": answer(rng), "update_result": {"profile_updated": true}}})
}
