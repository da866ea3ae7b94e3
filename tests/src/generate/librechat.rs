//! `LibreChat`: one conversation with a list of messages, some of which are made of content parts.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::Path,
};

use serde_json::{Value, json};

use super::{GeneratedCounts, answer, question, rng::Rng};

/// The id that the first message names as its parent.
const NO_PARENT: &str = "00000000-0000-0000-0000-000000000000";

/// Writes exports of LibreChat of about `bytes` bytes in total into `folder`, one file for each conversation.
///
/// # Errors
/// If the folder cannot be written.
pub fn librechat(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    fs::create_dir_all(folder)?;
    let (mut rng, mut counts, mut written) = (Rng::new(seed ^ 0x11b2), GeneratedCounts::default(), 0);
    while written < bytes {
        let text = conversation(&mut rng, &mut counts).to_string();
        let mut file = BufWriter::new(File::create(folder.join(format!("{}.json", rng.uuid())))?);
        file.write_all(text.as_bytes())?;
        file.flush()?;
        written += text.len() as u64;
        counts.conversations += 1;
    }
    Ok(counts)
}

fn conversation(rng: &mut Rng, counts: &mut GeneratedCounts) -> Value {
    let (id, title) = (rng.uuid(), rng.text(30).replace('\n', " "));
    let mut second = rng.below(2_000_000);
    let (mut messages, mut above) = (Vec::new(), NO_PARENT.to_owned());
    for _ in 0..rng.log_normal(4.0, 0.9, 1, 40) {
        for by_user in [true, false] {
            second += 1 + rng.below(300);
            let own = rng.uuid();
            let (text, content) = if by_user { (question(rng), Value::Null) } else { spoken(rng) };
            let mut message = json!({"messageId": own, "conversationId": id, "parentMessageId": above,
                "sender": if by_user { "User" } else { "GPT-4o" }, "isCreatedByUser": by_user, "text": text,
                "createdAt": time(second), "model": (!by_user).then_some("gpt-4o"), "error": false, "unfinished": false});
            if !content.is_null() {
                message["content"] = content;
                // Its thought becomes a message of its own.
                counts.messages += 1;
            }
            messages.push(message);
            counts.messages += 1;
            above = own;
        }
    }
    json!({"conversationId": id, "endpoint": "openAI", "title": title,
        "exportAt": "10:00:00 GMT+0000 (Coordinated Universal Time)", "branches": true, "recursive": false,
        "options": {"model": "gpt-4o", "endpoint": "openAI", "title": title}, "messages": messages})
}

/// The text and the content of an answer: one in three is made of parts.
fn spoken(rng: &mut Rng) -> (String, Value) {
    if rng.below(3) > 0 {
        return (answer(rng), Value::Null);
    }
    let call = json!({"type": "tool_call", "id": rng.uuid(), "name": "lookup", "args": "{\"n\":1}", "output": rng.text(80)});
    let parts = json!([{"type": "think", "think": rng.text(200)}, {"type": "tool_call", "tool_call": call},
        {"type": "text", "text": answer(rng)}]);
    (String::new(), parts)
}

/// A time in the spring of 2025.
fn time(second: u64) -> String {
    let (day, rest) = (second / 86_400 % 30 + 1, second % 86_400);
    format!(
        "2025-{:02}-{day:02}T{:02}:{:02}:{:02}.000Z",
        4 + second / 2_592_000 % 6,
        rest / 3_600,
        rest / 60 % 60,
        rest % 60
    )
}
