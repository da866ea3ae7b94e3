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
    archive::{Archive, State, only},
    exports::{Sample, age, copy, pack, sample, samples},
    generate::Dice,
};
use serde_json::{Value, json};

/// Number of shuffled orders of single files, in addition to the order of their names and its reverse.
const SHUFFLES: u64 = 1;

/// Files that have no meaning alone, by importer, with parts of their path, parts that their path must not contain, and
/// the reason. Without such a file, the others lose what it says about them. Each is imported alone too, and beside
/// each of the others. The importers' READMEs list the same files.
const COMPANIONS: [(&str, &[&str], &[&str], &str); 9] = [
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
    ("deepseek", &["user.json"], &[], "the account, which conversations do not name"),
    ("gemini", &[".png", ".jpg", ".wav", "tea list-77.txt"], &[], "bytes of attachments"),
    ("grok", &["prod-mc-asset-server/"], &[], "bytes of attachments, without name or type"),
    ("mistral", &["-files/"], &[], "bytes of attachments"),
];

/// Exports with files of memories that contain no time, by importer and name: only the files beside them say when the
/// memories were seen.
const UNDATED: [(&str, &str); 4] = [
    ("claude", "batched-archives"),
    ("claude", "flat-linear"),
    ("claude", "memories-in-prompts"),
    ("gemini", "memory-gems"),
];
/// The fields of a memory that depend on when it was seen.
const SEEN: [&str; 6] =
    ["evidence", "temporal", "confidence", "last_seen", "provenance", "created_at_source"];

/// Exports that are compared only when packed as a whole, and why.
const WHOLE: [(&str, &str, &str); 6] = [
    ("gemini", "activity-in-both-forms", "page and list of the same rows name their attachments differently"),
    ("gemini", "takeout-in-parts", "the bytes of an attachment lie in the other archive"),
    ("memu", "rows-as-lines", ROWS),
    ("memu", "two-exports-of-different-months", ROWS),
    ("memu", "what-was-sent-and-its-answer", ROWS),
    ("memu", "what-was-sent-and-the-conversation-in-full", ROWS),
];
const ROWS: &str = "rows of one database that lean on rows in its other files";

fn companion(sample: &Sample, piece: &Path) -> bool {
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
fn pieces(folder: &Path) -> Result<Vec<PathBuf>> {
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
fn store_of(sources: &[PathBuf]) -> Result<State> {
    let dir = tempfile::tempdir()?;
    let archive = Archive::open(&dir.path().join("data"))?;
    for source in sources {
        archive.import(source)?;
    }
    archive.state()
}

/// Creates a folder for each piece, with the piece and its companions at their places.
fn apart(sample: &Sample, pieces: &[PathBuf], to: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for (number, piece) in pieces.iter().enumerate() {
        let folder = to.join(number.to_string());
        let alone = companion(sample, piece);
        let with = pieces.iter().filter(|other| !alone && companion(sample, other));
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
    let mut dice = Dice::new(seed);
    let mut rest = folders.to_vec();
    let mut order = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let at = usize::try_from(dice.below(rest.len() as u64)).unwrap_or(0);
        order.push(rest.swap_remove(at));
    }
    order
}

/// Returns what a store shows, without the fields that depend on when memories were seen if their file does not say so.
fn shown(state: &State, sample: &Sample) -> Value {
    let mut memories = json!(state.memories);
    if UNDATED.contains(&(sample.provider, sample.behaviour.as_str())) {
        SEEN.iter().for_each(|field| remove(&mut memories, field));
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
fn check(sample: &Sample, pieces: &[PathBuf]) -> Result<Option<String>> {
    let dir = tempfile::tempdir()?;
    let (folder, zip) = (dir.path().join("export"), dir.path().join("export.zip"));
    copy(&sample.input, &folder)?;
    pack(&sample.input, &zip)?;
    age(&folder)?;
    let (whole, zipped) = (store_of(&[folder])?, store_of(&[zip])?);
    if let Some(found) = first_difference(&shown(&whole, sample), &shown(&zipped, sample)) {
        return Ok(Some(format!("as one archive: {found}")));
    }
    if WHOLE.iter().any(|(provider, name, _)| *provider == sample.provider && *name == sample.behaviour) {
        return Ok(None);
    }
    let forward = apart(sample, pieces, &dir.path().join("apart"))?;
    age(&dir.path().join("apart"))?;
    let mut orders = vec![forward.clone(), forward.iter().rev().cloned().collect()];
    orders.extend((0..SHUFFLES).map(|seed| shuffled(&forward, seed)));
    let whole = shown(&whole, sample);
    for order in orders {
        let came = shown(&store_of(&order)?, sample);
        if let Some(found) = first_difference(&whole, &came) {
            return Ok(Some(format!("one by one: {found}")));
        }
    }
    Ok(None)
}

/// Checks all exports of a provider that have several files; fails if there are fewer than `least`.
fn same_in_every_package(provider: &str, least: usize) -> Result<()> {
    let (mut faults, mut checked) = (Vec::new(), 0);
    for sample in samples()?.iter().filter(|sample| sample.provider == provider) {
        let pieces = pieces(&sample.input)?;
        if pieces.len() < 2 {
            continue;
        }
        checked += 1;
        if let Some(fault) = check(sample, &pieces)? {
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
    same_in_every_package("chatgpt", 25)
}

#[test]
fn claude_is_the_same_in_every_package() -> Result<()> {
    same_in_every_package("claude", 12)
}

#[test]
fn copilot_is_the_same_in_every_package() -> Result<()> {
    same_in_every_package("copilot", 3)
}

#[test]
fn deepseek_is_the_same_in_every_package() -> Result<()> {
    same_in_every_package("deepseek", 2)
}

#[test]
fn gemini_is_the_same_in_every_package() -> Result<()> {
    same_in_every_package("gemini", 10)
}

#[test]
fn grok_is_the_same_in_every_package() -> Result<()> {
    same_in_every_package("grok", 6)
}

#[test]
fn memu_is_the_same_in_every_package() -> Result<()> {
    same_in_every_package("memu", 8)
}

#[test]
fn mistral_is_the_same_in_every_package() -> Result<()> {
    same_in_every_package("mistral", 2)
}

#[test]
fn perplexity_is_the_same_in_every_package() -> Result<()> {
    same_in_every_package("perplexity", 2)
}

#[test]
fn an_account_is_kept_with_its_import_and_is_no_record() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let archive = Archive::open(&dir.path().join("data"))?;
    let before = archive.store.revision();
    let source = sample("claude", "part-light-metadata");
    let import = only(archive.import(&source)?)?;
    assert_eq!(import.status, ImportStatus::Completed, "{import:#?}");
    for counts in [import.conversations, import.messages, import.memories] {
        assert_eq!(counts.found, 0, "{import:#?}");
    }
    ensure!(import.accounts.iter().any(|account| account.name.is_some()), "{import:#?}");
    let text = serde_json::to_string(&import.accounts)?;
    ensure!(!text.contains('@'), "mail addresses stay out: {text}");
    assert_eq!((import.revisions, archive.store.revision()), (None, before));
    let state = archive.state()?;
    ensure!(state.conversations.is_empty() && state.memories.is_empty(), "{state:#?}");
    let kept = archive.imports.get(&import.id)?.context("the ledger has it")?;
    assert_eq!(kept.accounts, import.accounts);
    let again = only(archive.import(&source)?)?;
    assert_eq!((again.status, &again.accounts), (ImportStatus::Unchanged, &import.accounts));
    Ok(())
}
