//! The guarantees of an import: receipts add up, nothing is stored twice and nothing is lost, whatever the order.

#![expect(clippy::print_stderr, reason = "a skipped test prints the reason")]

use satchel_registry::Plugins;
use std::{fs, io::Write as _, path::Path};

use anyhow::{Context as _, Result, ensure};
use satchel_core::ingest::{
    ImportRequest, Phase,
    receipt::{ImportRecord, ImportStatus},
};
use satchel_tests::test_core::{TestCore, code_cache, demo_folder, only_import, shared_samples};
use serde_json::Value;

/// The names of platforms are known without compiling an importer; see `Plugins::platforms`.
#[test]
fn every_built_in_importer_is_named_after_its_platform() -> Result<()> {
    let plugins = Plugins::built_in(Some(code_cache()));
    let all = plugins.load_all()?;
    ensure!(!all.is_empty());
    for plugin in all {
        let platform = &plugin.info().platform;
        ensure!(plugins.platforms().iter().any(|known| known == platform), "{platform:?}");
    }
    ensure!(!plugins.platforms().iter().any(|known| known == "chatgpt " || known == "openai"));
    Ok(())
}

fn assert_balanced(import: &ImportRecord) -> Result<()> {
    for (kind, counts) in [
        ("conversations", import.conversations),
        ("messages", import.messages),
        ("memories", import.memories),
    ] {
        ensure!(counts.balanced(), "{kind} of {} do not balance: {counts:?}", import.source);
    }
    Ok(())
}

/// Counts the conversations and messages of a ChatGPT file without using our code.
fn count_chatgpt(file: &Path) -> Result<(u64, u64)> {
    let all: Value = serde_json::from_slice(&fs::read(file)?)?;
    let all = all.as_array().context("an array")?;
    let nodes = all.iter().filter_map(|one| one["mapping"].as_object()).flat_map(|mapping| mapping.values());
    let messages = nodes.filter(|node| !node["message"].is_null()).count();
    Ok((all.len() as u64, messages as u64))
}

/// Counts the conversations and messages of a Claude file; each thought counts as a message.
fn count_claude(file: &Path) -> Result<(u64, u64)> {
    let all: Value = serde_json::from_slice(&fs::read(file)?)?;
    let all = all.as_array().context("an array")?;
    let mut messages = 0;
    for message in all.iter().filter_map(|one| one["chat_messages"].as_array()).flatten() {
        let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        messages += 1 + blocks.iter().filter(|block| block["type"] == "thinking").count() as u64;
    }
    Ok((all.len() as u64, messages))
}

/// Writes a file that looks like an export and is then extended so far that hashing it takes a while; it uses no disk
/// space.
fn write_huge_file(folder: &Path) -> Result<std::path::PathBuf> {
    let path = folder.join("conversations.json");
    fs::copy(demo_folder().join("chatgpt-export/conversations.json"), &path)?;
    fs::OpenOptions::new().write(true).open(&path)?.set_len(64 << 30)?;
    Ok(path)
}

#[tokio::test(flavor = "multi_thread")]
async fn hashing_a_long_file_reports_progress_and_can_be_cancelled() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    let path = write_huge_file(dir.path())?;
    core.record_source_size(fs::metadata(&path)?.len())?;
    let request =
        ImportRequest { path, provider: None, plugin: None, again: false, dry_run: false, apply: None };
    let job = core.imports.start(request)?;
    let mut view = core.imports.subscribe(job).context("a job")?;
    view.wait_for(|view| view.phase == Phase::Hashing).await?;
    let mut shown = Vec::new();
    // Each step is published without a request from the subscriber.
    while shown.len() < 3 {
        view.changed().await?;
        let now = view.borrow_and_update().clone();
        ensure!(now.phase == Phase::Hashing, "{:?} after {shown:?}", now.phase);
        shown.push(now.done);
    }
    ensure!(shown.is_sorted() && shown.iter().all(|done| (1..64 << 30).contains(done)), "{shown:?}");
    ensure!(core.imports.cancel(&job.to_string()), "the job runs");
    let ended = view.wait_for(|view| view.phase == Phase::Ended).await?.clone();
    ensure!(ended.imports.iter().all(|import| import.status == ImportStatus::Cancelled), "{ended:?}");
    ensure!(ended.imports.len() == 1 && ended.done < ended.total, "{ended:?}");
    Ok(())
}

#[test]
fn receipts_balance_and_agree_with_an_independent_count() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    let (chatgpt, claude) = (dir.path().join("chatgpt"), dir.path().join("claude"));
    satchel_tests::generate::chatgpt(&chatgpt, 2_000_000, 7)?;
    satchel_tests::generate::claude(&claude, 2_000_000, 7)?;
    for (folder, counted) in [
        (&chatgpt, count_chatgpt(&chatgpt.join("conversations.json"))?),
        (&claude, count_claude(&claude.join("conversations.json"))?),
        (
            &demo_folder().join("chatgpt-export"),
            count_chatgpt(&demo_folder().join("chatgpt-export/conversations.json"))?,
        ),
        (
            &demo_folder().join("claude-export"),
            count_claude(&demo_folder().join("claude-export/conversations.json"))?,
        ),
    ] {
        let import = only_import(core.import(folder)?)?;
        assert_balanced(&import)?;
        let found = (import.conversations.found, import.messages.found);
        assert_eq!(found, counted, "{folder:?}: {:?}", import.skipped);
    }
    Ok(())
}

#[test]
fn generated_exports_of_every_provider_are_imported_completely() -> Result<()> {
    for (provider, generate) in satchel_tests::generate::GENERATORS {
        let dir = tempfile::tempdir()?;
        let export = dir.path().join("export");
        let counts = generate(&export, 400_000, 5)?;
        let import = only_import(TestCore::open(&dir.path().join("data"))?.import(&export)?)?;
        assert_balanced(&import)?;
        let found = (import.provider.as_deref(), import.status);
        assert_eq!(found, (Some(provider), ImportStatus::Completed), "{import:?}");
        // Snapchat does not say who wrote what, and the receipt says so.
        let complete = import.warnings.is_empty() != (provider == "snapchat");
        ensure!(complete, "{provider}: {:?}", import.warnings);
        let new = (import.conversations.new, import.messages.new);
        if !["chatgpt", "claude"].contains(&provider) {
            // In the exports of those two, thoughts and roots are counted differently;
            // `receipts_balance_and_agree_with_an_independent_count` covers them.
            assert_eq!(new, (counts.conversations, counts.messages), "{provider}");
        }
    }
    Ok(())
}

#[test]
fn importing_twice_changes_nothing() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    for sample in ["chatgpt-export", "claude-export"] {
        let path = demo_folder().join(sample);
        let first = only_import(core.import(&path)?)?;
        assert!(first.conversations.new > 0 && first.memories.new > 0, "{first:?}");
        let revision = core.store.revision();
        let second = only_import(core.import(&path)?)?;
        assert_eq!(second.status, ImportStatus::Unchanged);
        let third = only_import(core.import_again(&path)?)?;
        assert_balanced(&third)?;
        let changed =
            [third.conversations, third.messages, third.memories].map(|counts| counts.new + counts.updated);
        assert_eq!((changed, core.store.revision()), ([0; 3], revision), "{third:?}");
    }
    Ok(())
}

#[test]
fn the_same_content_in_another_container_is_recognised() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    let folder = demo_folder().join("chatgpt-export");
    core.import(&folder)?;
    let revision = core.store.revision();
    let zip = dir.path().join("again.zip");
    zip_folder(&folder, &zip)?;
    let import = only_import(core.import(&zip)?)?;
    assert_balanced(&import)?;
    assert_eq!(import.conversations.unchanged + import.conversations.skipped, import.conversations.found);
    assert_eq!(core.store.revision(), revision);
    Ok(())
}

fn zip_folder(folder: &Path, zip: &Path) -> Result<()> {
    let mut writer = zip::ZipWriter::new(fs::File::create(zip)?);
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        writer.start_file(
            path.file_name().context("a name")?.to_string_lossy(),
            zip::write::SimpleFileOptions::default(),
        )?;
        writer.write_all(&fs::read(&path)?)?;
    }
    writer.finish()?;
    Ok(())
}

#[test]
fn full_and_slim_exports_of_one_conversation_merge_in_either_order() -> Result<()> {
    let Some(samples) = shared_samples() else {
        eprintln!("skipped: the shared sample exports are not available");
        return Ok(());
    };
    let full = samples.join("authored/chatgpt/full-all-content-types");
    let slim = samples.join("authored/chatgpt/slim-same-conversation");
    let dir = tempfile::tempdir()?;
    let one = TestCore::open(&dir.path().join("one"))?;
    one.import(&full)?;
    let alone = one.state()?;
    one.import(&slim)?;
    let two = TestCore::open(&dir.path().join("two"))?;
    two.import(&slim)?;
    two.import(&full)?;
    let (one, two) = (one.state()?, two.state()?);
    assert_eq!(one.memories, two.memories);
    assert_eq!(one.conversations, two.conversations);
    for (name, conversation) in &alone.conversations {
        let texts = |value: &Value| value["messages"].as_array().map_or(0, Vec::len);
        assert!(texts(&one.conversations[name]) >= texts(conversation), "{name} lost messages");
    }
    Ok(())
}

#[test]
fn two_data_directories_are_equal_in_any_order_of_imports() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let generated = dir.path().join("generated");
    satchel_tests::generate::chatgpt(&generated, 500_000, 3)?;
    let mut exports =
        vec![demo_folder().join("chatgpt-export"), demo_folder().join("claude-export"), generated];
    let mut states = Vec::new();
    for round in 0..3 {
        let core = TestCore::open(&dir.path().join(format!("data-{round}")))?;
        for export in &exports {
            core.import(export)?;
        }
        let bundle = dir.path().join(format!("bundle-{round}"));
        core.export(&bundle)?;
        let text = fs::read_to_string(bundle.join("memory-store.json"))?;
        let start = text.find("\"memories\"").context("memories")?;
        let end = text.find("\"conversations_index\"").context("index")?;
        states.push((text[start..end].to_owned(), core.state()?));
        exports.rotate_left(1);
    }
    assert!(states[0].1.memories.len() > 3);
    assert_eq!(states[0].0, states[1].0);
    assert_eq!(states[0].1, states[1].1);
    assert_eq!(states[0].1, states[2].1);
    Ok(())
}

#[test]
fn every_sample_of_both_providers_imports_or_reports_why() -> Result<()> {
    let Some(samples) = shared_samples() else {
        eprintln!("skipped: the shared sample exports are not available");
        return Ok(());
    };
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    let mut paths = Vec::new();
    for folder in ["chatgpt", "claude", "authored/chatgpt", "authored/claude"] {
        for entry in fs::read_dir(samples.join(folder))? {
            paths.push(entry?.path());
        }
    }
    paths.sort();
    let mut stored = 0;
    for path in paths {
        let imports = core.import(&path)?;
        ensure!(!imports.is_empty(), "{path:?} gave no receipt");
        for import in imports {
            assert_balanced(&import)?;
            match import.status {
                ImportStatus::Completed => stored += 1,
                ImportStatus::CompletedWithSkips => {
                    stored += 1;
                    ensure!(
                        !import.skipped.is_empty() || import.reason.is_some(),
                        "{path:?} does not say what it skipped"
                    );
                }
                ImportStatus::Unchanged | ImportStatus::Unrecognized => {
                    ensure!(import.reason.is_some(), "{path:?} does not say why");
                }
                other => anyhow::bail!("{path:?} ended as {other:?}: {:?}", import.reason),
            }
        }
    }
    assert!(stored >= 20, "only {stored} samples were stored");
    let report = satchel_bundle::verify::path(
        &{
            let bundle = dir.path().join("bundle");
            core.export(&bundle)?;
            bundle
        },
        &satchel_bundle::verify::VerifyOptions::default(),
    )?;
    assert!(report.valid, "{:?}", report.issues);
    Ok(())
}

#[test]
fn complete_records_of_a_truncated_file_are_imported_and_the_end_is_reported() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    let whole = fs::read(demo_folder().join("chatgpt-export/conversations.json"))?;
    let cut = dir.path().join("conversations.json");
    fs::write(&cut, &whole[..whole.len() - 700])?;
    let import = only_import(core.import(&cut)?)?;
    assert_balanced(&import)?;
    assert_eq!(import.status, ImportStatus::CompletedWithSkips);
    assert!(import.conversations.new >= 1, "{import:?}");
    assert!(
        import.skipped.iter().any(|skip| skip.locator.contains("conversations.json")),
        "{:?}",
        import.skipped
    );
    Ok(())
}

#[test]
fn a_dry_run_reports_the_effect_of_an_import_and_stores_nothing() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    let path = demo_folder().join("claude-export");
    let request =
        ImportRequest { path, provider: None, plugin: None, again: false, dry_run: true, apply: None };
    let dry = only_import(core.run(request)?)?;
    assert_eq!(core.store.revision().get(), 0);
    let real = only_import(core.import(&demo_folder().join("claude-export"))?)?;
    let counts = |import: &ImportRecord| (import.conversations, import.messages, import.memories);
    assert_eq!(counts(&dry), counts(&real));
    Ok(())
}

#[test]
fn attachments_are_stored_by_their_hash() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    let import = only_import(core.import(&demo_folder().join("chatgpt-export"))?)?;
    assert_eq!(import.attachments, 1);
    let photo = fs::read(demo_folder().join("chatgpt-export/file_hivephoto01-frame 7.png"))?;
    let digest = satchel_pam::hash::Sha256Digest::of(&photo);
    let state = core.state()?;
    let text = serde_json::to_string(&state.conversations.values().collect::<Vec<_>>())?;
    assert!(text.contains(&format!("attachments/{}", digest.to_hex())));
    let mut stored = Vec::new();
    std::io::Read::read_to_end(
        &mut core.store.blob_open(digest.as_bytes())?.context("the blob")?,
        &mut stored,
    )?;
    assert_eq!(stored, photo);
    Ok(())
}

#[test]
fn concurrent_imports_count_their_own_memories() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    let start = |sample: &str| {
        core.imports.start(ImportRequest {
            path: demo_folder().join(sample),
            provider: None,
            plugin: None,
            again: false,
            dry_run: false,
            apply: None,
        })
    };
    let jobs = [start("chatgpt-export")?, start("claude-export")?];
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut new = Vec::new();
    for job in jobs {
        let mut view = core.imports.subscribe(job).context("the job")?;
        let view = runtime.block_on(view.wait_for(|view| view.phase == Phase::Ended))?.clone();
        let import = only_import(view.imports)?;
        assert_balanced(&import)?;
        new.push(import.memories.new);
    }
    assert_eq!(new, [3, 5]);
    Ok(())
}
