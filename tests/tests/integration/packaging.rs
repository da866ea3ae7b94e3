//! The files of one export give the same store however they are packed: in one folder, in one archive, or one by one in
//! any order.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};
use satchel_core::ingest::receipt::ImportStatus;
use satchel_importer::testkit::first_difference;
use satchel_tests::{
    generate::Rng,
    samples::{SampleExport, backdate, copy, pack, sample, samples},
    test_core::{ExportedState, TestCore, only_import},
};
use serde_json::{Value, json};

/// Number of shuffled orders of single files, in addition to the order of their names and its reverse.
const SHUFFLES: u64 = 1;

/// Files that have no meaning alone, by importer, with parts of their path, parts that their path must not contain, and
/// the reason. Without such a file, the others lose what it says about them. Each is imported alone too, and beside
/// each of the others. The importers' READMEs list the same files.
const COMPANIONS: [(&str, &[&str], &[&str], &str); 10] = [
    (
        "chatgpt",
        &[".dat", ".webp", ".png", ".jpg", ".pdf", ".txt", "asset_file_names.json", "library_files.json"],
        &[],
        "bytes and names of attachments",
    ),
    (
        "chatgpt",
        &[
            "user.json",
            "user_settings.json",
            "feedback.json",
            "comparisons.json",
            "shared_conversations.json",
        ],
        &[],
        "the account, and remarks on messages: conversations do not name them",
    ),
    (
        "chatgpt",
        &["chat.html", "memories.json", "textdocs/"],
        &[],
        "the names of attachments, a list that any program may write, and what was on a canvas",
    ),
    ("claude", &["user.json"], &[], "ChatGPT's account, beside conversations that do not name it"),
    ("claude", &["artifacts/"], &["artifact.json"], "pages and comments, which do not say of what"),
    (
        "claude-code",
        &[".meta.json", "/tool-results/", "CLAUDE.md", "/memory/"],
        &[],
        "what belongs to a session: titles of subagents, full outputs, and notes about its folder",
    ),
    ("deepseek", &["user.json"], &[], "the account, which conversations do not name"),
    ("gemini", &[".png", ".jpg", ".wav", "tea list-77.txt"], &[], "bytes of attachments"),
    ("grok", &["prod-mc-asset-server/"], &[], "bytes of attachments, without name or type"),
    ("mistral", &["-files/"], &[], "bytes of attachments"),
];

/// Exports with files of memories that contain no time, by importer and name: only the files beside them say when the
/// memories were seen.
const WITHOUT_TIMES: [(&str, &str); 4] = [
    ("claude", "batched-archives"),
    ("claude", "flat-linear"),
    ("claude", "memories-in-prompts"),
    ("gemini", "memory-gems"),
];
/// The fields of a memory that depend on when it was seen.
const TIME_DEPENDENT_FIELDS: [&str; 6] =
    ["evidence", "temporal", "confidence", "last_seen", "provenance", "created_at_source"];

/// Exports that are compared only when packed as a whole, and why.
const ONLY_AS_A_WHOLE: [(&str, &str, &str); 8] = [
    ("claude-code", "memory-files", "memory files have no time: it is that of the sessions beside them"),
    ("gemini", "activity-in-both-forms", "page and list of the same rows name their attachments differently"),
    ("gemini", "takeout-in-parts", "the bytes of an attachment lie in the other archive"),
    ("memu", "database-of-version-1", "the newest rows are in the log beside the database"),
    ("memu", "rows-as-lines", DEPENDENT_ROWS),
    ("memu", "two-exports-of-different-months", DEPENDENT_ROWS),
    ("memu", "what-was-sent-and-its-answer", DEPENDENT_ROWS),
    ("memu", "what-was-sent-and-the-conversation-in-full", DEPENDENT_ROWS),
];
const DEPENDENT_ROWS: &str = "rows of one database that lean on rows in its other files";

fn is_companion(sample: &SampleExport, piece: &Path) -> bool {
    let path = piece.to_string_lossy();
    let any = |parts: &[&str]| parts.iter().any(|part| path.contains(part));
    // If the page is the only file, it is the export.
    let only = path == "chat.html" && sample.behaviour == "chat-html-alone";
    !only
        && COMPANIONS
            .iter()
            .any(|(provider, is, not, _)| *provider == sample.provider && any(is) && !any(not))
}

/// Returns the parts below a folder that are downloaded separately: each archive, and each other file.
fn downloadable_parts(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            if path.is_dir() && path.extension().is_none_or(|ending| ending != "zip") {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder)?.to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Imports each of `sources` into a new data directory and returns its state.
fn state_after_imports(sources: &[PathBuf]) -> Result<ExportedState> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    for source in sources {
        core.import(source)?;
    }
    core.state()
}

/// Creates a folder for each piece, with the piece and its companions at their places.
fn write_parts(sample: &SampleExport, pieces: &[PathBuf], to: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for (number, piece) in pieces.iter().enumerate() {
        let folder = to.join(number.to_string());
        let alone = is_companion(sample, piece);
        let with = pieces.iter().filter(|other| !alone && is_companion(sample, other));
        for file in with.chain([piece]) {
            let (from, place) = (sample.input.join(file), folder.join(file));
            fs::create_dir_all(place.parent().context("a folder")?)?;
            if from.is_dir() { pack(&from, &place)? } else { fs::copy(&from, &place).map(drop)? }
        }
        folders.push(folder);
    }
    Ok(folders)
}

fn shuffled(folders: &[PathBuf], seed: u64) -> Vec<PathBuf> {
    let mut rng = Rng::new(seed);
    let mut rest = folders.to_vec();
    let mut order = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let at = usize::try_from(rng.below(rest.len() as u64)).unwrap_or(0);
        order.push(rest.swap_remove(at));
    }
    order
}

/// Returns what a store shows, without the fields that depend on when memories were seen if their file does not say so.
fn comparable(state: &ExportedState, sample: &SampleExport) -> Value {
    let mut memories = json!(state.memories);
    if WITHOUT_TIMES.contains(&(sample.provider, sample.behaviour.as_str())) {
        TIME_DEPENDENT_FIELDS.iter().for_each(|field| remove(&mut memories, field));
    }
    json!([state.conversations, memories, state.relations])
}

fn remove(value: &mut Value, field: &str) {
    match value {
        Value::Object(members) => {
            members.remove(field);
            members.values_mut().for_each(|member| remove(member, field));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| remove(item, field)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Compares one export with the same export in other packages; returns the first difference, if there is one.
fn first_packaging_difference(sample: &SampleExport, pieces: &[PathBuf]) -> Result<Option<String>> {
    let dir = tempfile::tempdir()?;
    let (folder, zip) = (dir.path().join("export"), dir.path().join("export.zip"));
    copy(&sample.input, &folder)?;
    pack(&sample.input, &zip)?;
    backdate(&folder)?;
    let (unpacked, zipped) = (state_after_imports(&[folder])?, state_after_imports(&[zip])?);
    if let Some(found) = first_difference(&comparable(&unpacked, sample), &comparable(&zipped, sample)) {
        return Ok(Some(format!("as one archive: {found}")));
    }
    if ONLY_AS_A_WHOLE
        .iter()
        .any(|(provider, name, _)| *provider == sample.provider && *name == sample.behaviour)
    {
        return Ok(None);
    }
    let forward = write_parts(sample, pieces, &dir.path().join("apart"))?;
    backdate(&dir.path().join("apart"))?;
    let mut orders = vec![forward.clone(), forward.iter().rev().cloned().collect()];
    orders.extend((0..SHUFFLES).map(|seed| shuffled(&forward, seed)));
    let unpacked = comparable(&unpacked, sample);
    for order in orders {
        let separate = comparable(&state_after_imports(&order)?, sample);
        if let Some(found) = first_difference(&unpacked, &separate) {
            return Ok(Some(format!("one by one: {found}")));
        }
    }
    Ok(None)
}

/// Checks all exports of a provider that have several files; fails if there are fewer than `least`.
fn assert_same_in_every_packaging(provider: &str, least: usize) -> Result<()> {
    let (mut faults, mut checked) = (Vec::new(), 0);
    for sample in samples()?.iter().filter(|sample| sample.provider == provider) {
        let pieces = downloadable_parts(&sample.input)?;
        if pieces.len() < 2 {
            continue;
        }
        checked += 1;
        if let Some(fault) = first_packaging_difference(sample, &pieces)? {
            faults.push(format!("{}: {fault}", sample.behaviour));
        }
    }
    ensure!(checked >= least, "only {checked} exports of several files were found");
    if !faults.is_empty() {
        bail!("{} differ:\n{}", faults.len(), faults.join("\n"));
    }
    Ok(())
}

#[test]
fn chatgpt_is_the_same_in_every_package() -> Result<()> {
    assert_same_in_every_packaging("chatgpt", 25)
}

#[test]
fn claude_is_the_same_in_every_package() -> Result<()> {
    assert_same_in_every_packaging("claude", 12)
}

#[test]
fn claude_code_is_the_same_in_every_package() -> Result<()> {
    assert_same_in_every_packaging("claude-code", 4)
}

#[test]
fn codex_is_the_same_in_every_package() -> Result<()> {
    assert_same_in_every_packaging("codex", 1)
}

#[test]
fn copilot_is_the_same_in_every_package() -> Result<()> {
    assert_same_in_every_packaging("copilot", 3)
}

#[test]
fn deepseek_is_the_same_in_every_package() -> Result<()> {
    assert_same_in_every_packaging("deepseek", 2)
}

#[test]
fn gemini_is_the_same_in_every_package() -> Result<()> {
    assert_same_in_every_packaging("gemini", 10)
}

#[test]
fn grok_is_the_same_in_every_package() -> Result<()> {
    assert_same_in_every_packaging("grok", 6)
}

#[test]
fn memu_is_the_same_in_every_package() -> Result<()> {
    assert_same_in_every_packaging("memu", 8)
}

#[test]
fn mistral_is_the_same_in_every_package() -> Result<()> {
    assert_same_in_every_packaging("mistral", 2)
}

#[test]
fn perplexity_is_the_same_in_every_package() -> Result<()> {
    assert_same_in_every_packaging("perplexity", 2)
}

#[test]
fn an_account_is_stored_with_its_import_and_not_as_a_record() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    let before = core.store.revision();
    let source = sample("claude", "part-light-metadata");
    let import = only_import(core.import(&source)?)?;
    assert_eq!(import.status, ImportStatus::Completed, "{import:#?}");
    for counts in [import.conversations, import.messages, import.memories] {
        assert_eq!(counts.found, 0, "{import:#?}");
    }
    ensure!(import.accounts.iter().any(|account| account.name.is_some()), "{import:#?}");
    let text = serde_json::to_string(&import.accounts)?;
    ensure!(!text.contains('@'), "an e-mail address was stored: {text}");
    assert_eq!((import.revisions, core.store.revision()), (None, before));
    let state = core.state()?;
    ensure!(state.conversations.is_empty() && state.memories.is_empty(), "{state:#?}");
    let stored = core.imports.get(&import.id)?.context("the import is in the ledger")?;
    assert_eq!(stored.accounts, import.accounts);
    let again = only_import(core.import(&source)?)?;
    assert_eq!((again.status, &again.accounts), (ImportStatus::Unchanged, &import.accounts));
    Ok(())
}
