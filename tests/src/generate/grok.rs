//! Grok: conversations made of responses, with times in BSON form.

use std::{fs, io, path::Path};

use serde_json::{Value, json};

use super::{GeneratedCounts, answer, question, rfc3339, rng::Rng, write_list};

/// Writes a Grok export of about `bytes` bytes into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn grok(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    fs::create_dir_all(folder)?;
    let ends = ["{\"conversations\": [", "], \"projects\": [], \"tasks\": [], \"media_posts\": []}"];
    let path = folder.join("prod-grok-backend.json");
    write_list(&path, ends, bytes, &mut Rng::new(seed ^ 0x6a0c), conversation)
}

fn conversation(rng: &mut Rng, counts: &mut GeneratedCounts) -> Value {
    let mut second = 1_750_000_000 + rng.below(30_000_000);
    let (id, begun) = (rng.uuid(), rfc3339(second));
    let mut parent = rng.uuid();
    let mut responses = Vec::new();
    for _ in 0..rng.log_normal(4.0, 0.9, 1, 40) {
        for sender in ["human", "assistant"] {
            second += 1 + rng.below(300);
            let own = rng.uuid();
            let message = if sender == "human" { question(rng) } else { answer(rng) };
            let time = json!({"$date": {"$numberLong": (second * 1_000).to_string()}});
            responses.push(
                json!({"response": {"_id": own, "conversation_id": id, "message": message, "sender": sender,
                "create_time": time, "parent_response_id": parent, "model": "grok-4", "partial": false,
                "manual": false, "metadata": {"request_metadata": {"mode": "auto"}}}, "share_link": null}),
            );
            parent = own;
            counts.messages += 1;
        }
    }
    json!({"conversation": {"id": id, "user_id": "a0000000-0000-4000-8000-000000000001", "create_time": begun,
        "modify_time": rfc3339(second), "title": rng.text(30).replace('\n', " "), "leaf_response_id": parent,
        "starred": rng.chance(5), "temporary": false}, "responses": responses})
}
