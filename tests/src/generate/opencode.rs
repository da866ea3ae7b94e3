//! `OpenCode`: a file for each session, each message and each part of a message.

use std::{fs, io, path::Path};

use serde_json::{Value, json};

use super::{GeneratedCounts, answer, question, rng::Rng};

/// The id of the project of all sessions.
const PROJECT: &str = "6d6172616d6172616d6172616d6172616d617261";

/// A storage that is written.
struct Storage<'f> {
    folder: &'f Path,
    bytes: u64,
}

/// Writes a storage of about `bytes` bytes into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn opencode(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    let (mut rng, mut counts) = (Rng::new(seed ^ 0x09e4), GeneratedCounts::default());
    let mut storage = Storage { folder, bytes: 0 };
    let project = json!({"id": PROJECT, "worktree": "/home/mara/bakery", "vcs": "git"});
    storage.write(&format!("project/{PROJECT}.json"), &project)?;
    while storage.bytes < bytes {
        let session = format!("ses_{}", rng.uuid().replace('-', ""));
        let begun = (1_770_000_000 + rng.below(9_000_000)) * 1_000;
        let mut now = begun;
        for _ in 0..rng.log_normal(12.0, 1.0, 1, 400) {
            now += 60_000 + rng.below(600_000);
            storage.turn(&mut rng, &session, now)?;
            counts.messages += 5;
        }
        let own = json!({"id": session, "version": "1.1.25", "projectID": PROJECT, "directory": "/home/mara/bakery",
            "title": question(&mut rng), "time": {"created": begun, "updated": now}});
        storage.write(&format!("session/{PROJECT}/{session}.json"), &own)?;
        counts.conversations += 1;
    }
    Ok(counts)
}

impl Storage<'_> {
    /// A question, and an answer with a thought, a call with its result, and a text.
    fn turn(&mut self, rng: &mut Rng, session: &str, now: u64) -> io::Result<()> {
        let time = |from: u64, to: u64| json!({"start": now + from, "end": now + to});
        let asked = json!({"role": "user", "time": {"created": now}, "agent": "build",
            "model": {"providerID": "anthropic", "modelID": "claude-sonnet-4-5"}});
        let prompt = json!({"type": "text", "text": question(rng)});
        self.message(rng, session, asked, vec![prompt])?;
        let tokens = json!({"input": rng.below(90_000), "output": 310, "reasoning": 40, "cache": {"read": 0, "write": 0}});
        let answered = json!({"role": "assistant", "time": {"created": now + 1_000, "completed": now + 9_000}, "mode": "build",
            "modelID": "claude-sonnet-4-5", "providerID": "anthropic", "path": {"cwd": "/home/mara/bakery", "root": "/home/mara/bakery"},
            "cost": 0.01, "tokens": tokens, "finish": "stop"});
        let state = json!({"status": "completed", "input": {"filePath": "dough.txt"}, "output": answer(rng), "title": "dough.txt",
            "metadata": {}, "time": time(3_000, 4_000)});
        let parts = vec![
            json!({"type": "step-start"}),
            json!({"type": "reasoning", "text": question(rng), "time": time(2_000, 3_000)}),
            json!({"type": "tool", "callID": format!("toolu_{}", rng.uuid()), "tool": "read", "state": state}),
            json!({"type": "text", "text": answer(rng), "time": time(5_000, 9_000)}),
            json!({"type": "step-finish", "reason": "stop", "cost": 0.01, "tokens": tokens}),
        ];
        self.message(rng, session, answered, parts)
    }

    fn message(
        &mut self,
        rng: &mut Rng,
        session: &str,
        mut info: Value,
        parts: Vec<Value>,
    ) -> io::Result<()> {
        let id = format!("msg_{}", rng.uuid().replace('-', ""));
        info["id"] = Value::from(id.as_str());
        info["sessionID"] = Value::from(session);
        self.write(&format!("message/{session}/{id}.json"), &info)?;
        for (number, mut part) in parts.into_iter().enumerate() {
            // The program reads parts in the order of their ids.
            let own = format!("prt_{number}{}", rng.uuid().replace('-', ""));
            part["id"] = Value::from(own.as_str());
            part["sessionID"] = Value::from(session);
            part["messageID"] = Value::from(id.as_str());
            self.write(&format!("part/{id}/{own}.json"), &part)?;
        }
        Ok(())
    }

    fn write(&mut self, name: &str, value: &Value) -> io::Result<()> {
        let path = self.folder.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let text = format!("{value:#}");
        self.bytes += text.len() as u64;
        fs::write(path, text)
    }
}
