//! Grok: conversations made of responses, with times in BSON form.

use std::{fs, io, path::Path};

use serde_json::{Value, json};

use super::{Counts, answer, dice::Dice, iso, list, question};

/// Writes a Grok export of about `bytes` bytes into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn grok(folder: &Path, bytes: u64, seed: u64) -> io::Result<Counts> {
    fs::create_dir_all(folder)?;
    let ends = ["{\"conversations\": [", "], \"projects\": [], \"tasks\": [], \"media_posts\": []}"];
    let path = folder.join("prod-grok-backend.json");
    list(&path, ends, bytes, &mut Dice::new(seed ^ 0x6a0c), conversation)
}

fn conversation(dice: &mut Dice, counts: &mut Counts) -> Value {
    let mut second = 1_750_000_000 + dice.below(30_000_000);
    let (id, begun) = (dice.uuid(), iso(second));
    let mut parent = dice.uuid();
    let mut responses = Vec::new();
    for _ in 0..dice.log_normal(4.0, 0.9, 1, 40) {
        for sender in ["human", "assistant"] {
            second += 1 + dice.below(300);
            let own = dice.uuid();
            let message = if sender == "human" { question(dice) } else { answer(dice) };
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
        "modify_time": iso(second), "title": dice.text(30).replace('\n', " "), "leaf_response_id": parent,
        "starred": dice.chance(5), "temporary": false}, "responses": responses})
}
