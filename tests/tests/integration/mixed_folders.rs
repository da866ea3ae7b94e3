//! A folder as users have it: exports of several providers, two of the same one, and photos and bills between them.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::ingest::{
    ImportRequest,
    receipt::{ImportRecord, ImportStatus},
};
use satchel_host::{Host, HostOptions, Plugin};
use satchel_plugins::{BUILT_IN, BuiltIn};
use satchel_source::{Limits, Source};
use satchel_tests::{
    samples::{backdate, copy, pack, sample, samples},
    test_core::{TestCore, code_cache, only_import},
};
use serde_json::Value;

/// The form and location of an export in the folder.
enum Packing {
    /// In an archive with this name, as it was downloaded.
    Packed(&'static str),
    /// Unpacked in a folder with this name.
    Unpacked(&'static str),
    /// Directly among all other files.
    Loose,
}

use Packing::{Loose, Packed, Unpacked};

/// Exports of all providers. Other files inside a sample count as other files here too.
const EXPORTS: [(&str, &str, Packing); 32] = [
    ("chatgpt", "shards-with-manifest", Packed("chatgpt-2026-05-01.zip")),
    ("chatgpt", "slim-nodes", Unpacked("new chatgpt export")),
    ("claude", "batched-archives", Packed("data-2026-08-01-batch-0000.zip")),
    ("claude", "branching", Unpacked("claude/last year")),
    ("claude-code", "subagents-and-full-outputs", Unpacked("agents")),
    ("claude-code", "tools-and-branches", Packed("claude-code.zip")),
    ("codex", "session-with-tools-and-reasoning", Unpacked("sessions")),
    ("copilot", "oldest-first", Loose),
    ("deepseek", "whole-export", Loose),
    ("deepseek", "single-conversation", Unpacked("saved chats")),
    ("dti", "one-of-several-pages", Unpacked("histories")),
    ("gemini", "takeout-in-parts", Loose),
    ("gemini", "workspace-conversations", Unpacked("work")),
    ("gemini-cli", "session-with-tools-and-thoughts", Unpacked("tmp")),
    ("goose", "an-export", Packed("goose.zip")),
    ("goose", "a-session-with-tools-and-thoughts", Unpacked("goose")),
    ("grok", "projects-and-tasks", Packed("a0000000-0000-4000-8000-00000000000a.zip")),
    ("jan", "reasoning-and-tools", Unpacked("jan")),
    ("jan", "versions-of-messages", Packed("jan.zip")),
    ("librechat", "content-parts-of-agents", Loose),
    ("lm-studio", "a-chat-with-thoughts-and-tools", Unpacked("lmstudio")),
    ("lm-studio", "edited-prompts-and-other-answers", Packed("lm-studio.zip")),
    ("memu", "rows-in-one-dump", Unpacked("memu")),
    ("mistral", "tools-and-references", Packed("chat-export-1772530000.zip")),
    ("mistral", "files-and-canvases", Unpacked("le chat")),
    ("open-webui", "branches-and-the-current-answer", Loose),
    ("opencode", "an-export", Packed("opencode.zip")),
    ("opencode", "subagents-and-archived-sessions", Unpacked("storage")),
    ("perplexity", "turns", Unpacked("perplexity")),
    ("snapchat", "chats-with-people", Packed("mydata~1771000000000.zip")),
    ("vscode-copilot", "a-log-of-an-agent", Unpacked("code")),
    ("vscode-copilot", "calls-paired-by-their-order", Packed("code.zip")),
];

/// Files that are not exports from an assistant, by name.
const OTHER_FILES: [(&str, &[u8]); 9] = [
    ("beach.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0"),
    ("photos/sea.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01"),
    ("bill.pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj"),
    ("recipes.json", br#"[{"dish": "soup", "steps": ["boil"]}, {"dish": "bread", "steps": []}]"#),
    ("claude/settings.json", br#"{"theme": "dark", "conversations": 3}"#),
    ("accounts.csv", b"Name,Amount,Date\nRent,900,2026-01-01\n"),
    ("letter.txt", b"Dear Ana, the hives are well.\n"),
    ("song.mp3", b"ID3\x04\0\0\0\0\0\0"),
    ("empty.json", b""),
];

fn place_export(export: &(&str, &str, Packing), folder: &Path) -> Result<()> {
    let input = sample(export.0, export.1);
    match export.2 {
        Packed(name) => pack(&input, &folder.join(name)),
        Unpacked(name) => copy(&input, &folder.join(name)),
        Loose => copy(&input, folder),
    }
}

fn create_downloads_folder(folder: &Path) -> Result<PathBuf> {
    for export in &EXPORTS {
        fs::create_dir_all(folder)?;
        place_export(export, folder)?;
    }
    for (name, bytes) in OTHER_FILES {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().context("a folder")?)?;
        fs::write(path, bytes)?;
    }
    fs::write(folder.join("broken.zip"), b"PK\x03\x04 and then nothing")?;
    backdate(folder)?;
    Ok(folder.to_owned())
}

/// Counts the exports by provider and format.
fn count_by_format(imports: &[ImportRecord]) -> BTreeMap<(String, String), usize> {
    let mut kinds = BTreeMap::new();
    for import in imports {
        let kind = (import.provider.clone().unwrap_or_default(), import.importer.clone().unwrap_or_default());
        *kinds.entry(kind).or_default() += 1;
    }
    kinds
}

#[test]
fn a_mixed_folder_imports_like_its_exports_one_by_one() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let whole = TestCore::open(&dir.path().join("whole"))?;
    let imports = whole.import(&create_downloads_folder(&dir.path().join("Downloads"))?)?;
    let (failed, read): (Vec<_>, Vec<_>) =
        imports.into_iter().partition(|import| import.status == ImportStatus::Failed);
    ensure!(failed.len() == 1 && failed[0].source.contains("broken.zip"), "{failed:#?}");

    // Each one imported alone gives the same number of exports per format; all of them together give the same
    // conversations and memories.
    let apart = TestCore::open(&dir.path().join("apart"))?;
    let mut alone = Vec::new();
    for (at, export) in EXPORTS.iter().enumerate() {
        let folder = dir.path().join(format!("alone-{at}"));
        fs::create_dir_all(&folder)?;
        place_export(export, &folder)?;
        let imports = apart.import(&folder)?;
        ensure!(!imports.is_empty(), "{}: {} gave no import", export.0, export.1);
        alone.extend(imports);
    }
    assert_eq!(count_by_format(&read), count_by_format(&alone));
    for import in read.iter().chain(&alone) {
        let stored = matches!(import.status, ImportStatus::Completed | ImportStatus::CompletedWithSkips);
        ensure!(stored, "{import:#?}");
        for counts in [import.conversations, import.messages, import.memories] {
            ensure!(counts.balanced(), "{import:#?}");
        }
    }
    let providers: BTreeSet<&str> = read.iter().filter_map(|import| import.provider.as_deref()).collect();
    assert_eq!(providers.len(), BUILT_IN.len(), "{providers:?}");
    let (whole, apart) = (whole.state()?, apart.state()?);
    assert_eq!(whole.memories, apart.memories);
    let names = |state: &BTreeMap<String, Value>| state.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&whole.conversations), names(&apart.conversations));
    for (name, conversation) in &whole.conversations {
        assert_eq!(conversation, &apart.conversations[name], "{name}");
    }
    Ok(())
}

#[test]
fn unrecognised_files_are_listed_with_their_type() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    let imports = core.import(&create_downloads_folder(&dir.path().join("Downloads"))?)?;
    let messages: Vec<String> =
        imports.iter().flat_map(|import| &import.warnings).map(|warning| warning.message.clone()).collect();
    let seen = [
        ("beach.jpg", "image/jpeg"),
        ("photos/sea.png", "image/png"),
        ("bill.pdf", "application/pdf"),
        ("recipes.json", "JSON with the keys \"dish\", \"steps\""),
        ("claude/settings.json", "JSON with the keys \"theme\", \"conversations\""),
        ("accounts.csv", "table with the columns \"Name\", \"Amount\", \"Date\""),
        ("letter.txt", "text"),
        ("song.mp3", "audio/mpeg"),
        ("empty.json", "empty"),
    ];
    assert_eq!(seen.len(), OTHER_FILES.len());
    for (name, what) in seen {
        let name = format!("{name:?}");
        let line = messages.iter().find(|line| line.contains(&name));
        let line = line.with_context(|| format!("{name} is not named: {messages:#?}"))?;
        ensure!(line.contains(what), "{name} should be described as {what}: {line}");
    }
    Ok(())
}

#[test]
fn a_folder_without_exports_lists_its_files() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let folder = dir.path().join("Photos");
    fs::create_dir_all(&folder)?;
    for (name, bytes) in [OTHER_FILES[0], OTHER_FILES[3]] {
        fs::write(folder.join(name), bytes)?;
    }
    let core = TestCore::open(&dir.path().join("data"))?;
    let import = only_import(core.import(&folder)?)?;
    assert_eq!(import.status, ImportStatus::Unrecognized);
    let reason = import.reason.context("a reason")?;
    for word in ["\"beach.jpg\" (image/jpeg)", "\"recipes.json\" (JSON with the keys \"dish\", \"steps\")"] {
        ensure!(reason.contains(word), "{reason}");
    }
    Ok(())
}

/// Returns which importer gets which format if every importer is asked about all files: the one with the higher
/// confidence, then the first by name.
fn claims_of_all_importers(plugins: &[Plugin], folder: &Path) -> Result<Vec<(String, String, u64)>> {
    let bundle = Source::at(folder)?.open(&Limits::default())?;
    let mut claims = Vec::new();
    for plugin in plugins {
        let name = format!("{}/{}", plugin.info().name, plugin.info().version);
        claims
            .extend(plugin.detect(Arc::new(bundle.clone()))?.into_iter().map(|claim| (name.clone(), claim)));
    }
    claims.sort_by_cached_key(|(name, claim)| (Reverse(claim.confidence), name.clone()));
    let mut claimed = BTreeSet::new();
    let mut all = Vec::new();
    for (name, mut claim) in claims {
        claim.files.retain(|file| claimed.insert(file.clone()));
        if !claim.files.is_empty() {
            all.push((name, claim.format, bundle.subset(&claim.files).bytes()));
        }
    }
    all.sort();
    Ok(all)
}

/// Each sample, and two samples of different providers side by side.
#[test]
fn the_order_in_which_importers_are_asked_does_not_matter() -> Result<()> {
    let host = Host::new(HostOptions { cache: Some(code_cache()), ..HostOptions::default() })?;
    let load = |built_in: &BuiltIn| host.load(built_in.wasm);
    let plugins: Vec<Plugin> = BUILT_IN.iter().map(load).collect::<Result<_, _>>()?;
    let (samples, dir) = (samples()?, tempfile::tempdir()?);
    let core = TestCore::open(&dir.path().join("data"))?;
    let half = samples.len() / 2;
    for (at, sample) in samples.iter().enumerate() {
        let other = &samples[(at + half) % samples.len()];
        let (alone, together) = (dir.path().join(format!("{at}")), dir.path().join(format!("{at}-mixed")));
        copy(&sample.input, &alone)?;
        copy(&sample.input, &together)?;
        copy(&other.input, &together.join("other"))?;
        backdate(&alone)?;
        backdate(&together)?;
        for folder in [alone, together] {
            let path = folder.clone();
            let request = ImportRequest {
                path,
                provider: None,
                plugin: None,
                again: false,
                dry_run: true,
                apply: None,
            };
            let imports = core.run(request)?;
            let ours = imports
                .into_iter()
                .filter(|import| import.provider.as_deref().is_some_and(|one| one != "pam"));
            let mut read: Vec<(String, String, u64)> = ours
                .map(|import| {
                    let (plugin, format) =
                        (import.plugin.unwrap_or_default(), import.importer.unwrap_or_default());
                    (plugin, format, import.bytes)
                })
                .collect();
            read.sort();
            ensure!(
                read == claims_of_all_importers(&plugins, &folder)?,
                "{sample:?} and {other:?}: {read:?}"
            );
        }
    }
    core.close()
}
