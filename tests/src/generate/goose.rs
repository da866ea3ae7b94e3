//! Goose: a file of lines for each session.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::Path,
};

use serde_json::{Value, json};

use super::{GeneratedCounts, answer, question, rng::Rng};

/// Writes sessions of about `bytes` bytes into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn goose(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    let (mut rng, mut counts, mut written) = (Rng::new(seed ^ 0x9005e), GeneratedCounts::default(), 0);
    let sessions = folder.join("sessions");
    fs::create_dir_all(&sessions)?;
    while written < bytes {
        let mut second = 1_740_000_000 + rng.below(9_000_000);
        let mut out = BufWriter::new(File::create(sessions.join(format!("{}.jsonl", rng.uuid())))?);
        let turns = rng.log_normal(12.0, 1.0, 1, 400);
        let mut lines = vec![
            json!({"working_dir": "/home/mara/bakery", "description": question(&mut rng), "schedule_id": null,
            "message_count": turns * 4, "total_tokens": rng.below(90_000), "input_tokens": 700, "output_tokens": 310}),
        ];
        for _ in 0..turns {
            second += 60 + rng.below(600);
            lines.extend(turn(&mut rng, second));
            counts.messages += 5;
        }
        for line in lines {
            let line = line.to_string();
            writeln!(out, "{line}")?;
            written += line.len() as u64 + 1;
        }
        out.flush()?;
        counts.conversations += 1;
    }
    Ok(counts)
}

/// A question, a thought with a call of a tool, its result, and an answer.
fn turn(rng: &mut Rng, second: u64) -> Vec<Value> {
    let call = format!("toolu_{}", rng.uuid());
    let message = |role: &str, after: u64, content: Value| json!({"role": role, "created": second + after, "content": content});
    let text = |text: String| json!({"type": "text", "text": text});
    let called =
        json!({"status": "success", "value": {"name": "developer__shell", "arguments": {"command": "ls"}}});
    let printed = json!({"status": "success", "value": [text(answer(rng))]});
    let thought = json!({"type": "thinking", "thinking": question(rng), "signature": "c2ln"});
    vec![
        message("user", 0, json!([text(question(rng))])),
        message("assistant", 2, json!([thought, {"type": "toolRequest", "id": call, "toolCall": called}])),
        message("user", 3, json!([{"type": "toolResponse", "id": call, "toolResult": printed}])),
        message("assistant", 9, json!([text(answer(rng))])),
    ]
}
