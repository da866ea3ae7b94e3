//! Selects the importers to ask first: those whose signatures occur in the first bytes of the files. Compiling an
//! importer takes longer than reading most exports, and in a new data directory none is compiled yet.
//!
//! **Invariant:** a signature affects only the order in which importers are asked. An importer is skipped only if every
//! file that could be an export is already claimed with the highest confidence that any importer reports
//! (`the_order_in_which_importers_are_asked_does_not_matter` in `tests/`).

use std::{collections::BTreeSet, io::Read as _, sync::Arc};

use satchel_registry::Importer;
use satchel_source::{Bundle, FileSet as _};

use super::Claim;

/// The confidence of an importer that found records of its own format; no importer reports more.
const CERTAIN: u8 = 95;
/// Bytes that are searched at the start of a file.
const HEAD: u64 = 64 << 10;
/// Maximum number of files whose start is read.
const FILES: usize = 32;
/// File extensions, in lower case, that no importer takes for an export by themselves.
const MEDIA: [&str; 15] = [
    "png", "jpg", "jpeg", "webp", "gif", "heic", "svg", "wav", "mp3", "m4a", "mp4", "mov", "webm", "pdf",
    "dat",
];
/// The start of a database of SQLite. Near it are the statements that created its tables.
const DATABASE: &str = "SQLite format 3";
/// For each importer, sets of strings; most of its exports have all strings of one set near their start. A missing
/// signature costs time, nothing else.
const SIGNATURES: [(&str, &[&[&str]]); 21] = [
    // DeepSeek has "mapping" too.
    ("chatgpt", &[&["\"mapping\"", "\"create_time\""]]),
    ("claude", &[&["\"chat_messages\""]]),
    (
        "claude-code",
        &[&["\"parentUuid\""], &["\"sessionId\"", "\"message\"", "\"isSidechain\""], &["\"leafUuid\""]],
    ),
    ("codex", &[&["\"session_meta\""], &["\"response_item\""], &["\"record_type\""], &["\"input_text\""]]),
    ("copilot", &[&["Conversation,Time,Author,Message"], &["ChatName"], &["ClientApp"]]),
    ("deepseek", &[&["\"inserted_at\""]]),
    ("dti", &[&["\"details\"", "\"createdBy\""], &["\"sentAt\"", "\"sender\""]]),
    ("gemini", &[&["\"titleUrl\""], &["\"safeHtmlItem\""], &["\"userInteractions\""], &["outer-cell"]]),
    ("gemini-cli", &[&["\"projectHash\""], &["\"$rewindTo\""], &["## Gemini Added Memories"]]),
    ("goose", &[&["\"working_dir\""], &["\"created\"", "\"toolRequest\""], &[DATABASE, "content_json"]]),
    ("grok", &[&["\"responses\""]]),
    (
        "jan",
        &[&["\"thread.message\""], &["\"exported_at\"", "\"messages\""], &["\"object\"", "\"assistants\""]],
    ),
    ("librechat", &[&["\"isCreatedByUser\""], &["\"conversationId\"", "\"exportAt\""]]),
    ("lm-studio", &[&["\"versions\"", "\"singleStep\""], &["\"usePerChatPredictionConfig\""]]),
    (
        "memu",
        &[
            &["\"agent_id\"", "\"user_id\""],
            &["\"recall_files\""],
            &["\"memory_categories\""],
            &[DATABASE, "memory_items"],
        ],
    ),
    ("mistral", &[&["\"chatId\""]]),
    (
        "open-webui",
        &[
            &["\"childrenIds\""],
            &["\"currentId\""],
            &["\"chat\"", "\"history\""],
            &[DATABASE, "share_id"],
            &[DATABASE, "chatidtag"],
        ],
    ),
    (
        "opencode",
        &[
            &["\"sessionID\""],
            &["\"projectID\"", "\"directory\""],
            &[DATABASE, "session_id", "project_id", "time_updated"],
        ],
    ),
    ("perplexity", &[&["\"query\"", "\"answer\""], &["\"query_str\""]]),
    ("snapchat", &[&["\"My AI Content\""], &["\"My AI Memory\""]]),
    (
        "vscode-copilot",
        &[
            &["\"requests\"", "\"responderUsername\""],
            &["\"requests\"", "\"variableData\""],
            &[DATABASE, "ItemTable"],
        ],
    ),
];

/// The importers to ask about a source.
pub(super) struct Candidates {
    /// Those that the first bytes of the files speak for.
    pub(super) likely: Vec<Arc<Importer>>,
    /// Built-in importers that may recognise the files all the same.
    pub(super) others: Vec<Arc<Importer>>,
}

/// Sorts out which importers to ask. An installed importer whose manifest fits no file is not asked at all.
pub(super) fn candidates(bundle: &Bundle, importers: &[Arc<Importer>]) -> Candidates {
    let mut likely = BTreeSet::new();
    let exports = bundle.list().iter().filter(|entry| may_be_export(&entry.path));
    for (at, entry) in exports.enumerate() {
        let name = entry.path.rsplit('/').next().unwrap_or(&entry.path);
        let fitting: Vec<usize> = (0..importers.len())
            .filter(|at| !likely.contains(at) && importers[*at].fits_name(name))
            .collect();
        let by_text =
            |at: &usize| importers[*at].installed().is_none() || !importers[*at].required_texts().is_empty();
        likely.extend(fitting.iter().filter(|at| !by_text(at)));
        if at >= FILES || !fitting.iter().any(by_text) {
            continue;
        }
        let mut head = Vec::new();
        let Ok(file) = bundle.open(&entry.path, 0) else { continue };
        if file.take(HEAD).read_to_end(&mut head).is_err() {
            continue;
        }
        likely.extend(fitting.into_iter().filter(|at| by_text(at) && is_likely(&importers[*at], &head)));
    }
    let others = |at: &usize| !likely.contains(at) && importers[*at].installed().is_none();
    let pick = |at: usize| Arc::clone(&importers[at]);
    Candidates {
        others: (0..importers.len()).filter(others).map(pick).collect(),
        likely: likely.iter().copied().map(pick).collect(),
    }
}

/// Returns whether the start of a file speaks for an importer.
fn is_likely(importer: &Importer, head: &[u8]) -> bool {
    let has = |text: &str| memchr::memmem::find(head, text.as_bytes()).is_some();
    if importer.installed().is_some() {
        return importer.required_texts().iter().any(|text| has(text));
    }
    let sets =
        SIGNATURES.iter().filter(|(name, _)| *name == importer.name()).flat_map(|(_, sets)| sets.iter());
    // The rows of a database may have JSON of any kind.
    let database = head.starts_with(DATABASE.as_bytes());
    sets.into_iter().any(|set| set.contains(&DATABASE) == database && set.iter().all(|text| has(text)))
}

/// Returns whether no other importer could claim any of the files. A claim of an installed importer does not count: it
/// must not keep a built-in one from being asked.
pub(super) fn all_claimed(bundle: &Bundle, claims: &[Claim]) -> bool {
    let sure = |path: &str| {
        let mut by = claims
            .iter()
            .filter(|claim| claim.confidence >= CERTAIN && claim.found.reader.installed().is_none());
        by.any(|claim| claim.found.files.iter().any(|file| file == path))
    };
    bundle.list().iter().all(|entry| entry.size == 0 || !may_be_export(&entry.path) || sure(&entry.path))
}

/// Returns whether the file may be an export by itself, not only a part of one.
fn may_be_export(path: &str) -> bool {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    ending.is_none_or(|ending| !MEDIA.contains(&ending.as_str()))
}
