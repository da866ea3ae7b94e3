//! The AI conversation history of the Data Transfer Initiative: a file for each conversation.

use std::{fs, io, path::Path};

use serde_json::{Value, json};

use super::{GeneratedCounts, answer, question, rfc3339, rng::Rng};

/// The person who asks.
const MAIL: &str = "mara@example.org";

/// Writes histories of about `bytes` bytes into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn dti(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    fs::create_dir_all(folder)?;
    let (mut rng, mut counts, mut written) = (Rng::new(seed ^ 0x0d71), GeneratedCounts::default(), 0);
    while written < bytes {
        let text = history(&mut rng, &mut counts).to_string();
        fs::write(folder.join(format!("history-{}.json", rng.uuid())), &text)?;
        written += text.len() as u64;
        counts.conversations += 1;
    }
    Ok(counts)
}

fn history(rng: &mut Rng, counts: &mut GeneratedCounts) -> Value {
    let mut second = 1_770_000_000 + rng.below(9_000_000);
    let mut messages = Vec::new();
    for _ in 0..rng.log_normal(4.0, 0.9, 1, 40) {
        for sender in [MAIL, "AI"] {
            second += 1 + rng.below(300);
            let text = if sender == MAIL { question(rng) } else { answer(rng) };
            messages
                .push(json!({"sentAt": rfc3339(second), "sender": sender, "text": text, "channel": "Web"}));
            counts.messages += 1;
        }
    }
    let details = json!({"createdBy": "Lantern Chat", "createdAt": rfc3339(1_780_000_000),
        "startTime": messages.first().map(|first| first["sentAt"].clone()),
        "endTime": messages.last().map(|last| last["sentAt"].clone()), "modality": "text"});
    let identifiers = json!([{"name": "Mara", "type": "email", "identifier": MAIL}]);
    json!({"details": details, "identifiers": identifiers, "messages": messages})
}
