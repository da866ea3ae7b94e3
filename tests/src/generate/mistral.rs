//! Le Chat: one file for each chat, with unordered messages.

use std::{fs, io, path::Path};

use serde_json::{Value, json};

use super::{Counts, answer, ascii, dice::Dice, iso, question};

/// Writes a Le Chat export of about `bytes` bytes into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn mistral(folder: &Path, bytes: u64, seed: u64) -> io::Result<Counts> {
    fs::create_dir_all(folder)?;
    let (mut dice, mut counts, mut written) = (Dice::new(seed ^ 0x3157), Counts::default(), 0);
    while written < bytes {
        let id = dice.uuid();
        let text = ascii(&chat(&id, &mut dice, &mut counts).to_string());
        fs::write(folder.join(format!("chat-{id}.json")), &text)?;
        written += text.len() as u64;
        counts.conversations += 1;
    }
    Ok(counts)
}

fn chat(id: &str, dice: &mut Dice, counts: &mut Counts) -> Value {
    let mut second = 1_750_000_000 + dice.below(30_000_000);
    let mut messages = Vec::new();
    for _ in 0..dice.log_normal(4.0, 0.9, 1, 40) {
        for role in ["user", "assistant"] {
            second += 1 + dice.below(300);
            let content = if role == "user" { question(dice) } else { answer(dice) };
            let chunks =
                if role == "user" { Value::Null } else { json!([{"type": "text", "text": content}]) };
            messages.push(
                json!({"version": 0, "chatId": id, "id": dice.uuid(), "role": role, "reaction": "neutral",
                "createdAt": iso(second), "content": content, "contentChunks": chunks, "canvas": [],
                "quotes": [], "files": []}),
            );
        }
    }
    counts.messages += messages.len() as u64;
    messages.reverse();
    messages.into()
}
