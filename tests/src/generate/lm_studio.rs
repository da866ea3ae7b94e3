//! LM Studio: a file for each chat, with thoughts, tool calls and answers that were generated again.

use std::{fs, io, path::Path};

use serde_json::{Value, json};

use super::{GeneratedCounts, answer, question, rng::Rng};

const MODEL: &str = "qwen3-8b";

/// Writes chats of LM Studio of about `bytes` bytes in total into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn lm_studio(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    let folder = folder.join("conversations");
    fs::create_dir_all(&folder)?;
    let (mut rng, mut counts, mut written) = (Rng::new(seed ^ 0x1357), GeneratedCounts::default(), 0);
    let mut now = 1_770_000_000_000;
    while written < bytes {
        now += 10_000_000 + rng.below(80_000_000);
        let text = format!("{:#}", chat(&mut rng, now, &mut counts));
        fs::write(folder.join(format!("{now}.conversation.json")), &text)?;
        written += text.len() as u64;
        counts.conversations += 1;
    }
    Ok(counts)
}

fn chat(rng: &mut Rng, begun: u64, counts: &mut GeneratedCounts) -> Value {
    let (mut messages, mut now) = (Vec::new(), begun);
    for number in 0..rng.log_normal(5.0, 0.9, 1, 60) {
        now += 10_000 + rng.below(60_000);
        // A number makes each prompt of a chat another one.
        let text = format!("{number}: {}", question(rng));
        messages.push(json!({"versions": [{"type": "singleStep", "role": "user", "content": [{"type": "text", "text": text}]}],
            "currentlySelected": 0}));
        let versions: Vec<Value> = (0..=rng.below(5) / 4).map(|_| spoken(rng, &mut now)).collect();
        counts.messages += 1 + 4 * versions.len() as u64;
        messages.push(json!({"currentlySelected": versions.len() - 1, "versions": versions}));
    }
    json!({"name": rng.text(30).replace('\n', " "), "pinned": false, "createdAt": begun, "preset": "", "tokenCount": 900,
        "userLastMessagedAt": now, "assistantLastMessagedAt": now, "systemPrompt": "", "messages": messages,
        "usePerChatPredictionConfig": true, "perChatPredictionConfig": {"fields": []}, "clientInput": "",
        "lastUsedModel": {"identifier": MODEL, "indexedModelIdentifier": MODEL}, "notes": [], "plugins": []})
}

/// An answer with a thought, a call, its result, and a text.
fn spoken(rng: &mut Rng, now: &mut u64) -> Value {
    let mut step = |rng: &mut Rng, part: Value| {
        *now += 1_000 + rng.below(9_000);
        json!({"type": "contentBlock", "stepIdentifier": format!("{now}-0.{}", rng.below(1 << 40)), "content": [part],
            "defaultShouldIncludeInContext": true, "shouldIncludeInContext": true})
    };
    let call = rng.uuid();
    let text =
        |text: String| json!({"type": "text", "text": text, "fromDraftModel": false, "tokensCount": 40});
    let thought = text(question(rng));
    let mut thought = step(rng, thought);
    thought["style"] = json!({"type": "thinking", "ended": true, "title": "Thought for 2 seconds"});
    let asked = json!({"type": "toolCallRequest", "callId": 1, "toolCallRequestId": call, "name": "read_file",
        "parameters": {"path": "dough.txt"}});
    let asked = step(rng, asked);
    let given =
        json!({"type": "toolCallResult", "callId": 1, "toolCallRequestId": call, "content": answer(rng)});
    let mut given = step(rng, given);
    given["roleOverride"] = json!("tool");
    let said = text(answer(rng));
    let mut said = step(rng, said);
    said["genInfo"] = json!({"identifier": MODEL, "indexedModelIdentifier": MODEL,
        "stats": {"stopReason": "eosFound", "promptTokensCount": 400, "predictedTokensCount": 90, "totalTokensCount": 490}});
    json!({"type": "multiStep", "role": "assistant", "senderInfo": {"senderName": MODEL}, "steps": [thought, asked, given, said]})
}
