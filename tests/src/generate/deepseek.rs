//! DeepSeek: trees of messages made of fragments.

use std::{fs, io, path::Path};

use serde_json::{Map, Value, json};

use super::{GeneratedCounts, answer, question, rfc3339, rng::Rng, write_array};

/// Writes a DeepSeek export of about `bytes` bytes into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn deepseek(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    fs::create_dir_all(folder)?;
    let user = json!({"user_id": "d0000000-0000-4000-8000-000000000001", "email": "mara@example.org"});
    fs::write(folder.join("user.json"), user.to_string())?;
    write_array(&folder.join("conversations.json"), bytes, &mut Rng::new(seed ^ 0xdee9), conversation)
}

fn conversation(rng: &mut Rng, counts: &mut GeneratedCounts) -> Value {
    let mut second = 1_736_000_000 + rng.below(40_000_000);
    let begun = rfc3339(second);
    let mut mapping = Map::new();
    let turns = rng.log_normal(4.0, 0.9, 1, 40);
    mapping.insert("root".into(), json!({"id": "root", "parent": null, "children": ["1"], "message": null}));
    for number in 1..=2 * turns {
        second += 1 + rng.below(300);
        let asked = number % 2 == 1;
        let fragments = if asked {
            json!([{"type": "REQUEST", "content": question(rng)}])
        } else if rng.chance(30) {
            counts.messages += 1;
            json!([{"type": "THINK", "content": answer(rng)}, {"type": "RESPONSE", "content": answer(rng)}])
        } else {
            json!([{"type": "RESPONSE", "content": answer(rng)}])
        };
        counts.messages += 1;
        let parent = if number == 1 { "root".to_owned() } else { (number - 1).to_string() };
        let children: Vec<String> =
            (number < 2 * turns).then(|| (number + 1).to_string()).into_iter().collect();
        let message = json!({"files": [], "model": "deepseek-chat", "inserted_at": rfc3339(second), "fragments": fragments});
        mapping.insert(
            number.to_string(),
            json!({"id": number.to_string(), "parent": parent, "children": children, "message": message}),
        );
    }
    json!({"id": rng.uuid(), "title": rng.text(30).replace('\n', " "), "inserted_at": begun,
        "updated_at": rfc3339(second), "mapping": mapping})
}
