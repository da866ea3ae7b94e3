//! Le Chat: one file for each chat, with unordered messages.

use std::{fs, io, path::Path};

use serde_json::{Value, json};

use super::{GeneratedCounts, answer, escape_non_ascii, question, rfc3339, rng::Rng};

/// Writes a Le Chat export of about `bytes` bytes into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn mistral(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    fs::create_dir_all(folder)?;
    let (mut rng, mut counts, mut written) = (Rng::new(seed ^ 0x3157), GeneratedCounts::default(), 0);
    while written < bytes {
        let id = rng.uuid();
        let text = escape_non_ascii(&chat(&id, &mut rng, &mut counts).to_string());
        fs::write(folder.join(format!("chat-{id}.json")), &text)?;
        written += text.len() as u64;
        counts.conversations += 1;
    }
    Ok(counts)
}

fn chat(id: &str, rng: &mut Rng, counts: &mut GeneratedCounts) -> Value {
    let mut second = 1_750_000_000 + rng.below(30_000_000);
    let mut messages = Vec::new();
    for _ in 0..rng.log_normal(4.0, 0.9, 1, 40) {
        for role in ["user", "assistant"] {
            second += 1 + rng.below(300);
            let content = if role == "user" { question(rng) } else { answer(rng) };
            let chunks =
                if role == "user" { Value::Null } else { json!([{"type": "text", "text": content}]) };
            messages.push(
                json!({"version": 0, "chatId": id, "id": rng.uuid(), "role": role, "reaction": "neutral",
                "createdAt": rfc3339(second), "content": content, "contentChunks": chunks, "canvas": [],
                "quotes": [], "files": []}),
            );
        }
    }
    counts.messages += messages.len() as u64;
    messages.reverse();
    messages.into()
}
