//! Selects the importers to ask first: those whose signatures occur in the first bytes of the files. Compiling an
//! importer takes longer than reading most exports, and in a new data directory none is compiled yet.
//!
//! **Invariant:** a signature affects only the order in which importers are asked. An importer is skipped only if every
//! file that could be an export is already claimed with the highest confidence that any importer reports
//! (`the_order_in_which_importers_are_asked_does_not_matter` in `tests/`).

use std::io::Read as _;

use satchel_source::{Bundle, FileSet as _};

use super::Claim;

/// The confidence of an importer that found records of its own format; no importer reports more.
const CERTAIN: u8 = 95;
/// Bytes that are searched at the start of a file.
const HEAD: u64 = 64 << 10;
/// Maximum number of files that are examined.
const FILES: usize = 32;
/// File extensions, in lower case, that no importer takes for an export by themselves.
const MEDIA: [&str; 15] = [
    "png", "jpg", "jpeg", "webp", "gif", "heic", "svg", "wav", "mp3", "m4a", "mp4", "mov", "webm", "pdf",
    "dat",
];
/// For each importer, sets of strings; most of its exports have all strings of one set near their start. A missing
/// signature costs time, nothing else.
const SIGNATURES: [(&str, &[&[&str]]); 9] = [
    // DeepSeek has "mapping" too.
    ("chatgpt", &[&["\"mapping\"", "\"create_time\""]]),
    ("claude", &[&["\"chat_messages\""]]),
    ("copilot", &[&["Conversation,Time,Author,Message"], &["ChatName"], &["ClientApp"]]),
    ("deepseek", &[&["\"inserted_at\""]]),
    ("gemini", &[&["\"titleUrl\""], &["\"safeHtmlItem\""], &["\"userInteractions\""], &["outer-cell"]]),
    ("grok", &[&["\"responses\""]]),
    ("memu", &[&["\"agent_id\"", "\"user_id\""], &["\"recall_files\""], &["\"memory_categories\""]]),
    ("mistral", &[&["\"chatId\""]]),
    ("perplexity", &[&["\"query\""], &["\"query_str\""]]),
];

/// Returns the names of the importers whose signatures occur at the start of these files.
pub(super) fn likely_importers(bundle: &Bundle) -> Vec<&'static str> {
    let mut found = Vec::new();
    for entry in bundle.list().iter().filter(|entry| may_be_export(&entry.path)).take(FILES) {
        let mut head = Vec::new();
        let Ok(file) = bundle.open(&entry.path, 0) else { continue };
        if file.take(HEAD).read_to_end(&mut head).is_err() {
            continue;
        }
        let has = |text: &&str| head.windows(text.len()).any(|window| window == text.as_bytes());
        let matches = |set: &&[&str]| set.iter().all(has);
        found.extend(SIGNATURES.iter().filter(|(_, sets)| sets.iter().any(matches)).map(|(name, _)| *name));
    }
    found
}

/// Returns whether no other importer could claim any of the files.
pub(super) fn all_claimed(bundle: &Bundle, claims: &[Claim]) -> bool {
    let sure = |path: &str| {
        let mut by = claims.iter().filter(|claim| claim.confidence >= CERTAIN);
        by.any(|claim| claim.found.files.iter().any(|file| file == path))
    };
    bundle.list().iter().all(|entry| entry.size == 0 || !may_be_export(&entry.path) || sure(&entry.path))
}

/// Returns whether the file may be an export by itself, not only a part of one.
fn may_be_export(path: &str) -> bool {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    ending.is_none_or(|ending| !MEDIA.contains(&ending.as_str()))
}
