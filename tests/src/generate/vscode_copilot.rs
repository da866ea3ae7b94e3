//! VS Code: a log of changes for each chat session, in the folder of one workspace.

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
pub fn vscode_copilot(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    let (mut rng, mut counts, mut written) = (Rng::new(seed ^ 0x5c0d), GeneratedCounts::default(), 0);
    let workspace = folder.join("User/workspaceStorage/1f3a");
    let sessions = workspace.join("chatSessions");
    fs::create_dir_all(&sessions)?;
    fs::write(workspace.join("workspace.json"), r#"{"folder":"file:///home/mara/bakery"}"#)?;
    while written < bytes {
        let (id, mut milli) = (rng.uuid(), 1_770_000_000_000 + rng.below(9_000_000_000));
        let mut out = BufWriter::new(File::create(sessions.join(format!("{id}.jsonl")))?);
        let mut lines =
            vec![json!({"kind": 0, "v": {"version": 3, "creationDate": milli, "initialLocation": "panel",
            "responderUsername": "GitHub Copilot", "sessionId": id, "requests": [], "pendingRequests": []}})];
        for number in 0..rng.log_normal(6.0, 1.0, 1, 200) {
            milli += 1_000 + rng.below(600_000);
            lines.extend(turn(&mut rng, number, milli));
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

/// A question, and an answer with a thought, two texts and a call of a tool, which grows in two steps.
fn turn(rng: &mut Rng, number: u64, milli: u64) -> [Value; 4] {
    let call = format!("call_{}", rng.uuid());
    let (asked, thought, output, first, last) =
        (question(rng), question(rng), answer(rng), question(rng), answer(rng));
    let request = json!({"requestId": format!("request_{}", rng.uuid()), "timestamp": milli,
        "message": {"parts": [{"kind": "text", "text": asked}], "text": asked}, "variableData": {"variables": []},
        "modelId": "copilot/claude-sonnet-4.5", "response": [{"kind": "thinking", "value": thought, "id": "t"}],
        "responseId": format!("response_{}", rng.uuid()), "responseTimestamp": milli + 40, "modelState": {"value": 0}});
    let invocation = json!({"kind": "toolInvocationSerialized", "toolId": "run_in_terminal", "toolCallId": call,
        "invocationMessage": "Running", "isComplete": true, "isConfirmed": {"type": 1}});
    let rounds = json!([{"id": "r", "response": first, "toolCalls": [{"id": format!("{call}__vscode-1"),
        "name": "run_in_terminal", "arguments": "{\"command\":\"ls\"}"}]}]);
    let results = json!({format!("{call}__vscode-1"): {"content": [{"value": output}]}});
    let metadata = json!({"toolCallRounds": rounds, "toolCallResults": results, "outputTokens": 310});
    [
        json!({"kind": 2, "k": ["requests"], "v": [request]}),
        json!({"kind": 2, "k": ["requests", number, "response"], "v": [{"value": first}, invocation]}),
        json!({"kind": 2, "k": ["requests", number, "response"], "v": [{"value": last}]}),
        json!({"kind": 1, "k": ["requests", number, "result"], "v": {"timings": {"totalElapsed": 900}, "metadata": metadata}}),
    ]
}
