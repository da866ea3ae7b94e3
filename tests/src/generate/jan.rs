//! Jan: a folder for each thread, with thoughts, tool calls and answers that were generated again.

use std::{fmt::Write as _, fs, io, path::Path};

use serde_json::{Value, json};

use super::{GeneratedCounts, answer, question, rng::Rng};

const MODEL: &str = "qwen3-8b";

/// Writes threads of Jan of about `bytes` bytes in total into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn jan(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    let (mut rng, mut counts, mut written) = (Rng::new(seed ^ 0x2468), GeneratedCounts::default(), 0);
    let mut now = 1_770_000_000_000;
    while written < bytes {
        now += 10_000_000 + rng.below(80_000_000);
        let id = rng.uuid();
        let folder = folder.join("threads").join(&id);
        fs::create_dir_all(&folder)?;
        let begun = now;
        let messages = messages(&mut rng, &id, &mut now, &mut counts);
        let head = json!({"id": id, "object": "thread", "title": rng.text(30).replace('\n', " "),
            "assistants": [{"id": "jan", "name": "Jan", "instructions": "", "model": {"id": MODEL, "engine": "llamacpp"}}],
            "created": begun / 1_000, "updated": now / 1_000, "metadata": {"order": 1, "is_favorite": false}});
        let head = format!("{head:#}");
        fs::write(folder.join("thread.json"), &head)?;
        fs::write(folder.join("messages.jsonl"), &messages)?;
        written += (head.len() + messages.len()) as u64;
        counts.conversations += 1;
    }
    Ok(counts)
}

/// The lines of a thread.
fn messages(rng: &mut Rng, thread: &str, now: &mut u64, counts: &mut GeneratedCounts) -> String {
    let (mut lines, mut parent) = (String::new(), Value::Null);
    let mut add = |rng: &mut Rng, parent: &Value, role: &str, content: Value| {
        *now += 1_000 + rng.below(60_000);
        let id = rng.uuid();
        let mut metadata = json!({"parentId": parent});
        if role == "assistant" {
            metadata["modelId"] = json!(MODEL);
            metadata["usage"] = json!({"inputTokens": 400, "outputTokens": 90, "totalTokens": 490});
        }
        let line = json!({"id": id, "object": "thread.message", "thread_id": thread, "type": "text", "role": role,
            "content": content, "status": "ready", "created_at": *now, "completed_at": *now, "metadata": metadata});
        let (Ok(()) | Err(_)) = writeln!(lines, "{line}");
        json!(id)
    };
    for _ in 0..rng.log_normal(5.0, 0.9, 1, 60) {
        let text = question(rng);
        parent = add(rng, &parent, "user", json!([part("text", &text)]));
        counts.messages += 1;
        let asked = parent.clone();
        for _ in 0..=rng.below(5) / 4 {
            let content = spoken(rng);
            parent = add(rng, &asked, "assistant", content);
            counts.messages += 4;
        }
    }
    lines
}

/// An answer with a thought, a call with its result, and a text.
fn spoken(rng: &mut Rng) -> Value {
    let (thought, given, said) = (question(rng), answer(rng), answer(rng));
    json!([part("reasoning", &thought),
        {"type": "tool_call", "tool_call_id": rng.uuid(), "tool_name": "read_file", "input": {"path": "dough.txt"},
            "output": {"content": [{"type": "text", "text": given}]}},
        part("text", &said)])
}

fn part(kind: &str, text: &str) -> Value {
    json!({"type": kind, "text": {"value": text, "annotations": []}})
}
