//! Claude Code: a file of lines for each session.

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
pub fn claude_code(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    let project = folder.join("projects/-home-mara-bakery");
    fs::create_dir_all(&project)?;
    let (mut rng, mut counts, mut written) = (Rng::new(seed ^ 0xc1a0), GeneratedCounts::default(), 0);
    while written < bytes {
        let id = rng.uuid();
        let mut out = BufWriter::new(File::create(project.join(format!("{id}.jsonl")))?);
        let mut session = Session { id, second: 1_770_000_000 + rng.below(9_000_000), parent: Value::Null };
        for _ in 0..rng.log_normal(12.0, 1.0, 1, 400) {
            for line in session.turn(&mut rng) {
                let text = line.to_string();
                writeln!(out, "{text}")?;
                written += text.len() as u64 + 1;
                counts.messages += 1;
            }
        }
        out.flush()?;
        counts.conversations += 1;
    }
    Ok(counts)
}

struct Session {
    id: String,
    second: u64,
    parent: Value,
}

impl Session {
    /// A question, a thought, a call of a tool with its result, and an answer.
    fn turn(&mut self, rng: &mut Rng) -> Vec<Value> {
        let (message, call) = (format!("msg_{}", rng.uuid()), format!("toolu_{}", rng.uuid()));
        let (asked, thought, output, said) = (question(rng), question(rng), answer(rng), answer(rng));
        let path = format!("/home/mara/bakery/src/{}.ts", rng.below(90));
        let use_tool = json!({"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": path}});
        let result = json!({"type": "tool_result", "tool_use_id": call, "content": output});
        let part = |block: Value| {
            json!({"id": message, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [block],
            "stop_reason": null, "usage": {"input_tokens": 12, "cache_read_input_tokens": 20_400, "output_tokens": 310}})
        };
        let lines = [
            ("user", json!({"role": "user", "content": asked})),
            (
                "assistant",
                part(json!({"type": "thinking", "thinking": thought, "signature": "c2lnbmF0dXJl"})),
            ),
            ("assistant", part(use_tool)),
            ("user", json!({"role": "user", "content": [result]})),
            ("assistant", part(json!({"type": "text", "text": said}))),
        ];
        lines.into_iter().map(|(kind, message)| self.line(kind, message, rng)).collect()
    }

    fn line(&mut self, kind: &str, message: Value, rng: &mut Rng) -> Value {
        self.second += 1 + rng.below(60);
        let uuid = Value::from(rng.uuid());
        let parent = std::mem::replace(&mut self.parent, uuid.clone());
        json!({"parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": "/home/mara/bakery",
            "sessionId": self.id, "version": "2.1.131", "gitBranch": "main", "type": kind, "message": message, "uuid": uuid,
            "timestamp": rfc3339(self.second)})
    }
}
