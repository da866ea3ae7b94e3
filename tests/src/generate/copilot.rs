//! Copilot: the table from the privacy dashboard, newest row first.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::Path,
};

use super::{GeneratedCounts, answer, question, rfc3339, rng::Rng};

/// Time of the newest row, in seconds since the Unix epoch; the other rows are older.
const NEWEST: u64 = 1_780_000_000;

/// Writes a Copilot export of about `bytes` bytes into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn copilot(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    fs::create_dir_all(folder)?;
    let mut rng = Rng::new(seed ^ 0xc0b1);
    let mut out = BufWriter::new(File::create(folder.join("copilot-activity-history.csv"))?);
    let head = "\u{feff}Conversation,Time,Author,Message\r\n";
    out.write_all(head.as_bytes())?;
    let (mut counts, mut written, mut second) = (GeneratedCounts::default(), head.len() as u64, NEWEST);
    while written < bytes {
        let title =
            format!("{} {}", rng.text(20).replace(['\n', '"', ','], " ").trim(), counts.conversations);
        for _ in 0..rng.log_normal(4.0, 0.9, 1, 40) {
            second -= 1 + rng.below(600);
            let time = rfc3339(second).replace(".000000Z", "");
            for (author, text) in [("AI", answer(&mut rng)), ("Human", question(&mut rng))] {
                let row = format!("{},{time},{author},\"{}\"\r\n", cell(&title), text.replace('"', "\"\""));
                out.write_all(row.as_bytes())?;
                written += row.len() as u64;
                counts.messages += 1;
            }
        }
        counts.conversations += 1;
    }
    out.flush()?;
    Ok(counts)
}

fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
