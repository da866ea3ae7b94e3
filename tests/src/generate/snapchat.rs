//! Snapchat: the chat with My AI, newest first.

use std::{fs, io, path::Path};

use serde_json::json;

use super::{GeneratedCounts, answer, question, rfc3339, rng::Rng, write_list};

/// Writes the file of My AI, of about `bytes` bytes, into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn snapchat(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    let folder = folder.join("json");
    fs::create_dir_all(&folder)?;
    let (mut second, mut by_ai) = (1_780_000_000, false);
    let ends = [r#"{"My AI Content":["#, r#"],"My AI Memory":[]}"#];
    let path = folder.join("snapchat_ai.json");
    let mut counts = write_list(&path, ends, bytes, &mut Rng::new(seed ^ 0x54a9), |rng, counts| {
        by_ai = !by_ai;
        // An answer comes at once; before a question there is a pause.
        second -= if by_ai { 20 + rng.below(900) } else { rng.below(5) };
        let time = rfc3339(second).replace('T', " ").replace(".000000Z", " UTC");
        counts.messages += 1;
        json!({"Timestamp": time, "Type": "CHAT", "Content": if by_ai { answer(rng) } else { question(rng) }})
    })?;
    counts.conversations = 1;
    Ok(counts)
}
