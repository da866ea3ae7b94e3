//! Codex: a file of lines for each session, in a folder for each day.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::Path,
};

use serde_json::{Value, json};

use super::{GeneratedCounts, answer, question, rfc3339, rng::Rng};

/// Writes sessions of about `bytes` bytes into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn codex(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    let (mut rng, mut counts, mut written) = (Rng::new(seed ^ 0xc0de), GeneratedCounts::default(), 0);
    while written < bytes {
        let (id, mut second) = (rng.uuid(), 1_770_000_000 + rng.below(9_000_000));
        let day = folder.join(format!("sessions/2026/02/{:02}", 1 + rng.below(28)));
        fs::create_dir_all(&day)?;
        let name = format!("rollout-2026-02-01T09-00-00-{id}.jsonl");
        let mut out = BufWriter::new(File::create(day.join(name))?);
        let meta = json!({"id": id, "timestamp": rfc3339(second), "cwd": "/home/mara/bakery", "originator": "codex-tui",
            "cli_version": "0.125.0", "source": "cli", "model_provider": "openai"});
        let mut lines = vec![("session_meta", meta)];
        for _ in 0..rng.log_normal(12.0, 1.0, 1, 400) {
            lines.extend(turn(&mut rng));
            counts.messages += 5;
        }
        for (kind, payload) in lines {
            second += 1 + rng.below(60);
            let line = json!({"timestamp": rfc3339(second), "type": kind, "payload": payload}).to_string();
            writeln!(out, "{line}")?;
            written += line.len() as u64 + 1;
        }
        out.flush()?;
        counts.conversations += 1;
    }
    Ok(counts)
}

/// A question, a thought, a call of a tool with its output, and an answer, with the events that repeat them.
fn turn(rng: &mut Rng) -> Vec<(&'static str, Value)> {
    let call = format!("call_{}", rng.uuid());
    let (asked, thought, output, said) = (question(rng), question(rng), answer(rng), answer(rng));
    let message = |role: &str, kind: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
    let tokens = json!({"total_token_usage": {"input_tokens": rng.below(90_000)}, "last_token_usage": {"output_tokens": 310}});
    vec![
        ("turn_context", json!({"cwd": "/home/mara/bakery", "model": "gpt-5.2-codex", "effort": "high"})),
        ("response_item", message("user", "input_text", &asked)),
        ("event_msg", json!({"type": "user_message", "message": asked})),
        (
            "response_item",
            json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": thought}], "content": null}),
        ),
        (
            "response_item",
            json!({"type": "function_call", "name": "shell_command", "arguments": "{\"command\":\"ls\"}", "call_id": call}),
        ),
        ("response_item", json!({"type": "function_call_output", "call_id": call, "output": output})),
        ("event_msg", json!({"type": "agent_message", "message": said})),
        ("response_item", message("assistant", "output_text", &said)),
        ("event_msg", json!({"type": "token_count", "info": tokens})),
    ]
}
