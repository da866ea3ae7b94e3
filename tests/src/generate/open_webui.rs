//! Open WebUI: rows with a tree of messages.

use std::{fs, io, path::Path};

use serde_json::{Map, Value, json};

use super::{GeneratedCounts, answer, question, rng::Rng, write_array};

/// Writes an export of Open WebUI of about `bytes` bytes into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn open_webui(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    fs::create_dir_all(folder)?;
    write_array(&folder.join("chat-export-1770000000000.json"), bytes, &mut Rng::new(seed ^ 0x0e3b), row)
}

fn row(rng: &mut Rng, counts: &mut GeneratedCounts) -> Value {
    let mut second = 1_760_000_000 + rng.below(10_000_000);
    let (begun, title) = (second, rng.text(30).replace('\n', " "));
    let (mut messages, mut above) = (Map::new(), Value::Null);
    for _ in 0..rng.log_normal(4.0, 0.9, 1, 40) {
        for role in ["user", "assistant"] {
            second += 1 + rng.below(300);
            let content = if role == "user" { question(rng) } else { answer(rng) };
            let id = rng.uuid();
            if let Some(parent) = above.as_str().and_then(|above| messages.get_mut(above)) {
                parent["childrenIds"] = json!([id]);
            }
            let message = json!({"id": id, "parentId": above, "childrenIds": [], "role": role, "content": content,
                "timestamp": second, "models": ["llama3.2:latest"], "done": true});
            above = Value::from(id.clone());
            messages.insert(id, message);
            counts.messages += 1;
        }
    }
    let history = json!({"currentId": above, "messages": messages});
    json!({"id": rng.uuid(), "user_id": "0e3b0000-0000-4000-8000-000000000001", "title": title, "created_at": begun,
        "updated_at": second, "archived": false, "pinned": false, "meta": {"tags": []}, "folder_id": null,
        "chat": {"title": title, "models": ["llama3.2:latest"], "history": history, "timestamp": begun * 1000}})
}
