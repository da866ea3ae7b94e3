//! Who is asked first about files: an importer whose signs stand in their heads. To compile one takes longer than to read most
//! exports, and in a new data directory none is compiled yet.
//!
//! **Invariant:** a sign decides only the order of the questions. Nobody is left unasked unless every file that could be an
//! export has been claimed by those who were asked, as surely as any importer ever claims
//! (`who_is_asked_first_takes_nothing_from_others` in `tests/`).

use std::io::Read as _;

use satchel_source::{Bundle, Files as _};

use super::Claim;

/// The confidence of an importer that saw records of its own; none says more.
const SURE: u8 = 95;
/// Bytes of a head that are looked at.
const HEAD: u64 = 64 << 10;
/// Files that are looked at.
const FILES: usize = 32;
/// Endings of files that no importer takes for an export by themselves, in lower case.
const MEDIA: [&str; 15] = [
    "png", "jpg", "jpeg", "webp", "gif", "heic", "svg", "wav", "mp3", "m4a", "mp4", "mov", "webm", "pdf",
    "dat",
];
/// What stands in the head of most exports of these importers. A sign that is missing costs time, and nothing else.
const SIGNS: [(&str, &[&str]); 6] = [
    ("chatgpt", &["\"mapping\""]),
    ("claude", &["\"chat_messages\""]),
    ("deepseek", &["\"inserted_at\""]),
    ("gemini", &["\"titleUrl\"", "\"safeHtmlItem\"", "\"userInteractions\"", "outer-cell"]),
    ("grok", &["\"responses\""]),
    ("memu", &["\"recall_files\"", "\"memory_categories\""]),
];

/// The names of importers whose signs stand in the heads of these files.
pub(super) fn names(bundle: &Bundle) -> Vec<&'static str> {
    let mut found = Vec::new();
    for entry in bundle.list().iter().filter(|entry| telling(&entry.path)).take(FILES) {
        let mut head = Vec::new();
        let Ok(file) = bundle.open(&entry.path, 0) else { continue };
        if file.take(HEAD).read_to_end(&mut head).is_err() {
            continue;
        }
        let has = |sign: &&str| head.windows(sign.len()).any(|window| window == sign.as_bytes());
        found.extend(SIGNS.iter().filter(|(_, signs)| signs.iter().any(has)).map(|(name, _)| *name));
    }
    found
}

/// Whether nobody else could claim anything of it.
pub(super) fn settled(bundle: &Bundle, claims: &[Claim]) -> bool {
    let sure = |path: &str| {
        let mut by = claims.iter().filter(|claim| claim.confidence >= SURE);
        by.any(|claim| claim.found.files.iter().any(|file| file == path))
    };
    bundle.list().iter().all(|entry| entry.size == 0 || !telling(&entry.path) || sure(&entry.path))
}

/// Whether the file may be more than a part of an export.
fn telling(path: &str) -> bool {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    ending.is_none_or(|ending| !MEDIA.contains(&ending.as_str()))
}
