//! The notes that the importer of a new project reads.

use std::{fs, io, path::Path};

use serde_json::{Value, json};

use super::{GeneratedCounts, answer, question, rfc3339, rng::Rng, write_array};

/// Writes an export of notes of about `bytes` bytes into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn notes(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    fs::create_dir_all(folder)?;
    write_array(&folder.join("notes.json"), bytes, &mut Rng::new(seed ^ 0x0e5), note)
}

fn note(rng: &mut Rng, counts: &mut GeneratedCounts) -> Value {
    let mut second = 1_736_000_000 + rng.below(40_000_000);
    let number = counts.conversations;
    let entries: Vec<Value> = (0..2 * rng.log_normal(4.0, 0.9, 1, 40))
        .map(|entry| {
            second += 1 + rng.below(300);
            counts.messages += 1;
            let asked = entry % 2 == 0;
            let (by, text) = if asked { ("person", question(rng)) } else { ("assistant", answer(rng)) };
            json!({"entry_id": format!("e{number}-{entry}"), "by": by, "text": text, "at": rfc3339(second), "starred": rng.chance(5)})
        })
        .collect();
    json!({"note_id": format!("n{number}"), "title": rng.text(30).replace('\n', " "), "colour": "green", "entries": entries})
}
