//! Invented exports of any size: the same provider, size and seed give the same bytes on every machine.
//!
//! The mix follows reports from owners of real exports: some branches, thoughts, tool calls, images, citations and
//! custom instructions; texts of log-normal length in three scripts, with code, emoji and escapes.

mod chatgpt;
mod claude;
mod claude_code;
mod codex;
mod copilot;
mod deepseek;
mod dti;
mod gemini;
mod gemini_cli;
mod goose;
mod grok;
mod jan;
mod librechat;
mod lm_studio;
mod memu;
mod mistral;
mod notes;
mod open_webui;
mod opencode;
mod perplexity;
mod rng;
mod snapchat;
mod vscode_copilot;

pub use chatgpt::{chatgpt, chatgpt_later, chatgpt_short};
pub use claude::claude;
pub use claude_code::claude_code;
pub use codex::codex;
pub use copilot::copilot;
pub use deepseek::deepseek;
pub use dti::dti;
pub use gemini::{gemini, gemini_pages};
pub use gemini_cli::gemini_cli;
pub use goose::goose;
pub use grok::grok;
pub use jan::jan;
pub use librechat::librechat;
pub use lm_studio::lm_studio;
pub use memu::memu;
pub use mistral::mistral;
pub use notes::notes;
pub use open_webui::open_webui;
pub use opencode::opencode;
pub use perplexity::perplexity;
pub use rng::Rng;
pub use snapchat::snapchat;
pub use vscode_copilot::vscode_copilot;

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

use serde_json::Value;

/// The content of a generated export, counted while it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GeneratedCounts {
    /// Number of conversations.
    pub conversations: u64,
    /// Number of nodes with a message, or of entries in `chat_messages`.
    pub messages: u64,
}

/// A function that writes an export of about this many bytes into a folder, from a seed.
pub type Generator = fn(&Path, u64, u64) -> io::Result<GeneratedCounts>;

/// The generators of all providers, by the name of the importer; Gemini has two, for its list and its page.
pub const GENERATORS: [(&str, Generator); 22] = [
    ("chatgpt", chatgpt),
    ("claude", claude),
    ("claude-code", claude_code),
    ("codex", codex),
    ("copilot", copilot),
    ("deepseek", deepseek),
    ("dti", dti),
    ("gemini", gemini),
    ("gemini", gemini_pages),
    ("gemini-cli", gemini_cli),
    ("goose", goose),
    ("grok", grok),
    ("jan", jan),
    ("librechat", librechat),
    ("lm-studio", lm_studio),
    ("memu", memu),
    ("mistral", mistral),
    ("open-webui", open_webui),
    ("opencode", opencode),
    ("perplexity", perplexity),
    ("snapchat", snapchat),
    ("vscode-copilot", vscode_copilot),
];

/// Returns a question of usual length.
fn question(rng: &mut Rng) -> String {
    let length = rng.log_normal(130.0, 1.0, 5, 4_000);
    rng.text(length)
}

/// Returns an answer of usual length.
fn answer(rng: &mut Rng) -> String {
    let length = rng.log_normal(1_000.0, 0.9, 20, 20_000);
    rng.text(length)
}

/// Writes a JSON array of about `bytes` bytes.
fn write_array(
    path: &Path,
    bytes: u64,
    rng: &mut Rng,
    one: impl FnMut(&mut Rng, &mut GeneratedCounts) -> Value,
) -> io::Result<GeneratedCounts> {
    write_list(path, ["[", "]"], bytes, rng, one)
}

/// Writes a list of about `bytes` bytes between the two texts of `ends`.
fn write_list(
    path: &Path,
    ends: [&str; 2],
    bytes: u64,
    rng: &mut Rng,
    mut one: impl FnMut(&mut Rng, &mut GeneratedCounts) -> Value,
) -> io::Result<GeneratedCounts> {
    write_list_while(path, ends, rng, |rng, counts, written| (written < bytes).then(|| one(rng, counts)))
}

/// Writes a list until `one` returns none; `one` receives the number of bytes written so far.
fn write_list_while(
    path: &Path,
    ends: [&str; 2],
    rng: &mut Rng,
    mut one: impl FnMut(&mut Rng, &mut GeneratedCounts, u64) -> Option<Value>,
) -> io::Result<GeneratedCounts> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut counts = GeneratedCounts::default();
    let mut written = 1;
    out.write_all(ends[0].as_bytes())?;
    while let Some(value) = one(rng, &mut counts, written) {
        let text = value.to_string();
        // The providers write with Python's `json.dumps`, which escapes everything but ASCII.
        let text = escape_non_ascii(&text);
        if counts.conversations > 0 {
            out.write_all(b", ")?;
        }
        out.write_all(text.as_bytes())?;
        written += text.len() as u64 + 2;
        counts.conversations += 1;
    }
    out.write_all(ends[1].as_bytes())?;
    out.flush()?;
    Ok(counts)
}

fn escape_non_ascii(text: &str) -> String {
    let mut plain = String::with_capacity(text.len() * 2);
    let mut units = [0; 2];
    for c in text.chars() {
        if c.is_ascii() {
            plain.push(c);
        } else {
            c.encode_utf16(&mut units).iter().for_each(|unit| plain.push_str(&format!("\\u{unit:04x}")));
        }
    }
    plain
}

/// Formats a second since the Unix epoch as RFC 3339.
fn rfc3339(second: u64) -> String {
    let second = i64::try_from(second).unwrap_or(0);
    satchel_pam::time::Timestamp::saturating(second * 1_000_000).to_string().replace('Z', ".000000Z")
}
