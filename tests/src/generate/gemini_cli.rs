//! Gemini CLI: a log of lines for each chat of a project.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::Path,
};

use serde_json::{Value, json};

use super::{GeneratedCounts, answer, question, rfc3339, rng::Rng};

/// Writes chats of about `bytes` bytes into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn gemini_cli(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    let (mut rng, mut counts, mut written) = (Rng::new(seed ^ 0x6ec1), GeneratedCounts::default(), 0);
    let project = folder.join("bakery");
    fs::create_dir_all(project.join("chats"))?;
    fs::write(project.join(".project_root"), "/home/mara/bakery")?;
    while written < bytes {
        let (id, mut second) = (rng.uuid(), 1_770_000_000 + rng.below(9_000_000));
        let name = format!("session-2026-05-01T09-00-{id}.jsonl");
        let mut out = BufWriter::new(File::create(project.join("chats").join(name))?);
        let header = json!({"sessionId": id, "projectHash": "6d617261".repeat(8), "startTime": rfc3339(second),
            "lastUpdated": rfc3339(second), "kind": "main"});
        let mut lines = vec![header];
        for _ in 0..rng.log_normal(12.0, 1.0, 1, 400) {
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

/// A question, a thought, a call of a tool with its result, and an answer; the message with the call is written three times.
fn turn(rng: &mut Rng, second: u64) -> Vec<Value> {
    let at = |later: u64| rfc3339(second + later);
    let (asking, calling, telling, saying) = (rng.uuid(), rng.uuid(), rng.uuid(), rng.uuid());
    let (thought, output, call) = (question(rng), answer(rng), format!("read_file_{}", rng.uuid()));
    let args = json!({"file_path": "dough.txt"});
    let part = json!([{"functionCall": {"id": call, "name": "read_file", "args": args}}]);
    let result =
        json!([{"functionResponse": {"id": call, "name": "read_file", "response": {"output": output}}}]);
    let thoughts = json!([{"subject": "Looking", "description": thought, "timestamp": at(1)}]);
    let tokens = json!({"input": rng.below(90_000), "output": 310, "cached": 0, "thoughts": 40, "tool": 0, "total": 90_000});
    let mut asked = json!({"id": calling, "timestamp": at(2), "type": "gemini", "content": part, "thoughts": thoughts,
        "tokens": null, "model": "gemini-2.5-pro"});
    let mut lines = vec![
        json!({"id": asking, "timestamp": at(0), "type": "user", "content": [{"text": question(rng)}]}),
        json!({"$set": {"lastUpdated": at(0)}}),
        asked.clone(),
    ];
    asked["tokens"] = tokens.clone();
    lines.push(asked.clone());
    asked["toolCalls"] = json!([{"id": call, "name": "read_file", "args": args, "result": result, "status": "success",
        "timestamp": at(3), "displayName": "ReadFile", "description": "dough.txt"}]);
    lines.push(asked);
    lines.push(json!({"id": telling, "timestamp": at(4), "type": "user", "content": result}));
    lines.push(
        json!({"id": saying, "timestamp": at(5), "type": "gemini", "content": answer(rng), "thoughts": [],
        "tokens": tokens, "model": "gemini-2.5-pro"}),
    );
    lines
}
