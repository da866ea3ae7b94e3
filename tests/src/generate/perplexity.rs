//! Perplexity: a list of threads as saved by a browser tool.

use std::{fs, io, path::Path};

use serde_json::{Value, json};

use super::{Counts, answer, array, dice::Dice, iso, question};

/// Writes Perplexity threads of about `bytes` bytes into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn perplexity(folder: &Path, bytes: u64, seed: u64) -> io::Result<Counts> {
    fs::create_dir_all(folder)?;
    array(&folder.join("threads.json"), bytes, &mut Dice::new(seed ^ 0x9e31), thread)
}

fn thread(dice: &mut Dice, counts: &mut Counts) -> Value {
    let mut second = 1_750_000_000 + dice.below(30_000_000);
    let (id, begun) = (dice.uuid(), iso(second));
    let mut turns = Vec::new();
    for index in 0..dice.log_normal(4.0, 0.9, 1, 40) {
        second += 1 + dice.below(300);
        let page = json!({"title": dice.text(30), "url": format!("https://example.org/{}", dice.below(9_999)),
            "snippet": dice.text(120)});
        turns.push(json!({"index": index, "uuid": dice.uuid(), "query": question(dice), "answer": answer(dice),
            "model": "sonar", "mode": "CONCISE", "language": "en", "timestamp": iso(second), "sources": [page],
            "related_queries": [dice.text(40)]}));
    }
    counts.messages += 2 * turns.len() as u64;
    json!({"metadata": {"thread_title": dice.text(30).replace('\n', " "), "thread_id": id,
        "thread_url": format!("https://www.perplexity.ai/search/{id}"), "total_entries": turns.len(),
        "thread_created_at": begun, "thread_updated_at": iso(second)}, "conversations": turns})
}
