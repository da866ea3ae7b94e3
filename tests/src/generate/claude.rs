//! Claude: messages made of blocks, thoughts, tools, and the memory of the account.

use std::{fs, io, path::Path};

use serde_json::{Value, json};

use super::{GeneratedCounts, rfc3339, rng::Rng, write_array};

/// Writes a Claude export of about `bytes` bytes into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn claude(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    fs::create_dir_all(folder)?;
    let mut rng = Rng::new(seed ^ 0xc1a0);
    let memories = json!([{
        "conversations_memory": format!("**Work context**\n\n{}\n\n**Personal context**\n\n{}", rng.text(900), rng.text(400)),
        "project_memories": {},
        "account_uuid": ACCOUNT,
    }]);
    fs::write(folder.join("memories.json"), memories.to_string())?;
    let users =
        json!([{"uuid": ACCOUNT, "full_name": "Mara Lindqvist", "email_address": "mara@example.org"}]);
    fs::write(folder.join("users.json"), users.to_string())?;
    write_array(&folder.join("conversations.json"), bytes, &mut rng, claude_conversation)
}

const ACCOUNT: &str = "7d0c2f7e-1111-4222-8333-944445555666";

fn claude_conversation(rng: &mut Rng, counts: &mut GeneratedCounts) -> Value {
    let mut second = 1_700_000_000 + rng.below(80_000_000);
    let start = rfc3339(second);
    let mut messages = Vec::new();
    for _ in 0..rng.log_normal(4.0, 0.9, 1, 40) {
        for sender in ["human", "assistant"] {
            second += rng.below(600);
            let at = rfc3339(second);
            let length = if sender == "human" {
                rng.log_normal(130.0, 1.0, 5, 4_000)
            } else {
                rng.log_normal(1_000.0, 0.9, 20, 20_000)
            };
            let text = rng.text(length);
            let mut blocks = Vec::new();
            if sender == "assistant" && rng.chance(10) {
                blocks.push(json!({"start_timestamp": at, "stop_timestamp": at, "type": "thinking", "thinking": rng.text(300),
                    "summaries": [{"summary": rng.text(30)}], "cut_off": false}));
            }
            if sender == "assistant" && rng.chance(8) {
                let id = format!("toolu_{}", rng.uuid());
                blocks.push(json!({"type": "tool_use", "id": id, "name": "web_search", "input": {"query": rng.text(30)}}));
                blocks.push(
                    json!({"type": "tool_result", "tool_use_id": id, "name": "web_search", "is_error": false,
                    "content": [{"type": "text", "text": rng.text(400)}]}),
                );
            }
            blocks.push(json!({"start_timestamp": at, "stop_timestamp": at, "flags": null, "type": "text", "text": text, "citations": []}));
            messages.push(json!({"uuid": rng.uuid(), "text": text, "content": blocks, "sender": sender, "created_at": at,
                "updated_at": at, "attachments": [], "files": []}));
        }
    }
    counts.messages += messages.len() as u64;
    json!({"uuid": rng.uuid(), "name": rng.text(30).replace('\n', " "), "summary": "", "created_at": start,
        "updated_at": rfc3339(second), "account": {"uuid": ACCOUNT}, "chat_messages": messages})
}
