//! Perplexity: a list of threads as saved by a browser tool.

use std::{fs, io, path::Path};

use serde_json::{Value, json};

use super::{GeneratedCounts, answer, question, rfc3339, rng::Rng, write_array};

/// Writes Perplexity threads of about `bytes` bytes into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn perplexity(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    fs::create_dir_all(folder)?;
    write_array(&folder.join("threads.json"), bytes, &mut Rng::new(seed ^ 0x9e31), thread)
}

fn thread(rng: &mut Rng, counts: &mut GeneratedCounts) -> Value {
    let mut second = 1_750_000_000 + rng.below(30_000_000);
    let (id, begun) = (rng.uuid(), rfc3339(second));
    let mut turns = Vec::new();
    for index in 0..rng.log_normal(4.0, 0.9, 1, 40) {
        second += 1 + rng.below(300);
        let page = json!({"title": rng.text(30), "url": format!("https://example.org/{}", rng.below(9_999)),
            "snippet": rng.text(120)});
        turns.push(json!({"index": index, "uuid": rng.uuid(), "query": question(rng), "answer": answer(rng),
            "model": "sonar", "mode": "CONCISE", "language": "en", "timestamp": rfc3339(second), "sources": [page],
            "related_queries": [rng.text(40)]}));
    }
    counts.messages += 2 * turns.len() as u64;
    json!({"metadata": {"thread_title": rng.text(30).replace('\n', " "), "thread_id": id,
        "thread_url": format!("https://www.perplexity.ai/search/{id}"), "total_entries": turns.len(),
        "thread_created_at": begun, "thread_updated_at": rfc3339(second)}, "conversations": turns})
}
