//! Hostile and broken sources: each is refused or skipped with a reason, affects nothing else, and writes no file by
//! its entry names.

#![expect(clippy::print_stderr, reason = "a skipped test prints the reason")]

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::ingest::receipt::{ImportRecord, ImportStatus};
use satchel_source::Limits;
use satchel_tests::{
    test_core::{TestCore, demo_folder, only_import},
    test_daemon::chatgpt_export,
    unprivileged,
};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

struct ImportFixture {
    folder: tempfile::TempDir,
    core: TestCore,
}

impl ImportFixture {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let core = TestCore::open(&folder.path().join("data"))?;
        Ok(Self { folder, core })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn import(&self, name: &str) -> Result<ImportRecord> {
        only_import(self.core.import(&self.path(name))?)
    }
}

fn zip(path: &Path, entries: &[(&str, &[u8])]) -> Result<()> {
    let mut writer = ZipWriter::new(fs::File::create(path)?);
    for (name, bytes) in entries {
        writer.start_file(
            *name,
            SimpleFileOptions::default().compression_method(CompressionMethod::Deflated),
        )?;
        writer.write_all(bytes)?;
    }
    writer.finish()?;
    Ok(())
}

fn sample() -> Result<Vec<u8>> {
    Ok(fs::read(demo_folder().join("chatgpt-export/conversations.json"))?)
}

fn assert_ended(import: &ImportRecord, status: ImportStatus, words: &[&str]) -> Result<()> {
    let reason = import.reason.clone().unwrap_or_default();
    ensure!(import.status == status, "{:?}: {reason}", import.status);
    ensure!(words.iter().all(|word| reason.contains(word)), "{words:?} are not all in {reason:?}");
    Ok(())
}

#[test]
fn names_from_an_archive_never_become_paths() -> Result<()> {
    let fixture = ImportFixture::new()?;
    let json = sample()?;
    zip(
        &fixture.path("slip.zip"),
        &[
            ("../escape.json", &json),
            ("/abs.json", &json),
            ("C:\\evil.json", &json),
            ("a/conversations.json", &json),
        ],
    )?;
    let import = fixture.import("slip.zip")?;
    ensure!(import.conversations.new > 0, "the valid entry was not imported: {import:?}");
    let reported: Vec<_> = import.warnings.iter().map(|warning| warning.locator.as_str()).collect();
    for name in ["../escape.json", "/abs.json", "C:\\evil.json"] {
        ensure!(reported.contains(&name), "{name:?} is not in {reported:?}");
    }
    let mut inside =
        fs::read_dir(fixture.folder.path())?.filter_map(Result::ok).map(|entry| entry.file_name());
    ensure!(inside.all(|name| name == "data" || name == "slip.zip"), "a file was written beside the archive");
    Ok(())
}

#[test]
fn a_truncated_archive_fails_with_its_reason() -> Result<()> {
    let fixture = ImportFixture::new()?;
    zip(&fixture.path("whole.zip"), &[("conversations.json", &sample()?)])?;
    let intact = fs::read(fixture.path("whole.zip"))?;
    for part in [intact.len() - 1, intact.len() / 2, 30] {
        fs::write(fixture.path("cut.zip"), &intact[..part])?;
        assert_ended(&fixture.import("cut.zip")?, ImportStatus::Failed, &["cut.zip", "damaged"])?;
    }
    assert_eq!(fixture.core.store.revision().get(), 0);
    Ok(())
}

#[test]
fn a_changed_byte_in_an_archive_is_detected_by_its_checksum() -> Result<()> {
    let fixture = ImportFixture::new()?;
    let path = fixture.path("flipped.zip");
    let mut writer = ZipWriter::new(fs::File::create(&path)?);
    writer.start_file(
        "conversations.json",
        SimpleFileOptions::default().compression_method(CompressionMethod::Stored),
    )?;
    writer.write_all(&sample()?)?;
    writer.finish()?;
    let mut bytes = fs::read(&path)?;
    let at = bytes.windows(12).position(|window| window == b"Twelve hives").context("the title")?;
    bytes[at] = b't';
    fs::write(&path, bytes)?;
    let import = fixture.import("flipped.zip")?;
    ensure!(import.status == ImportStatus::Failed, "{import:?}");
    ensure!(
        import.reason.as_deref().is_some_and(|reason| reason.contains("checksum")),
        "{:?}",
        import.reason
    );
    Ok(())
}

/// The size that an archive names must be true, because readers that hold a whole file ask for it first.
#[test]
fn an_entry_longer_than_its_declared_size_is_refused() -> Result<()> {
    let fixture = ImportFixture::new()?;
    let path = fixture.path("longer.zip");
    let mut message = serde_json::json!({
        "schema": "portable-ai-memory-conversation", "schema_version": "1.0", "id": "long", "provider": {"name": "x"},
        "temporal": {"created_at": "2026-01-01T00:00:00Z"}, "messages": []
    });
    message["title"] = "x".repeat(4 << 20).into();
    let json = message.to_string();
    zip(&path, &[("talk.json", json.as_bytes())])?;
    let mut bytes = fs::read(&path)?;
    let length = u32::try_from(json.len())?.to_le_bytes();
    let ends: Vec<usize> = (0..bytes.len() - 4).filter(|at| bytes[*at..*at + 4] == length).collect();
    ensure!(!ends.is_empty(), "the entry's size is not in the archive");
    for at in ends {
        bytes[at..at + 4].copy_from_slice(&100_u32.to_le_bytes());
    }
    fs::write(&path, bytes)?;
    let import = fixture.import("longer.zip")?;
    ensure!(import.conversations.new == 0, "{import:?}");
    let receipt = format!("{import:?}");
    ensure!(receipt.contains("holds more than the 100 bytes that the archive says"), "{receipt}");
    Ok(())
}

#[test]
fn duplicate_entry_names_are_refused() -> Result<()> {
    let fixture = ImportFixture::new()?;
    let json = sample()?;
    zip(&fixture.path("twins.zip"), &[("conversations.json", &json), ("Conversations.json", &json)])?;
    assert_ended(&fixture.import("twins.zip")?, ImportStatus::Failed, &["twins.zip", "refused"])?;
    // The library that writes archives refuses duplicate names, so the second entry is renamed in the bytes.
    zip(&fixture.path("same.zip"), &[("conversations.json", &json), ("conversationz.json", &json)])?;
    let mut bytes = fs::read(fixture.path("same.zip"))?;
    while let Some(at) = bytes.windows(18).position(|window| window == b"conversationz.json") {
        bytes[at + 12] = b's';
    }
    fs::write(fixture.path("same.zip"), bytes)?;
    assert_ended(&fixture.import("same.zip")?, ImportStatus::Failed, &["same.zip", "refused"])
}

#[test]
fn an_archive_bomb_is_stopped_by_the_bytes_unpacked() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let limits = Limits { total_bytes: 40 << 20, ..Limits::default() };
    let core = TestCore::with_limits(&folder.path().join("data"), limits)?;
    let mut json = b"[".to_vec();
    json.extend(
        sample()?
            .trim_ascii()
            .strip_prefix(b"[")
            .and_then(|rest| rest.strip_suffix(b"]"))
            .context("an array")?,
    );
    json.resize(json.len() + (60 << 20), b' ');
    json.push(b']');
    let path = folder.path().join("bomb.zip");
    zip(&path, &[("conversations.json", &json)])?;
    ensure!(fs::metadata(&path)?.len() < 1 << 20, "the archive is not small");
    let import = only_import(core.import(&path)?)?;
    ensure!(import.status == ImportStatus::Failed, "{import:?}");
    let reason = import.reason.unwrap_or_default();
    ensure!(reason.contains("times its size") || reason.contains("more than"), "{reason}");
    Ok(())
}

#[test]
fn an_encrypted_entry_is_listed_with_the_remedy() -> Result<()> {
    let fixture = ImportFixture::new()?;
    zip(&fixture.path("locked.zip"), &[("conversations.json", &sample()?)])?;
    let mut bytes = fs::read(fixture.path("locked.zip"))?;
    // Sets the encryption bit in the local header and in the central directory.
    let directory = bytes.windows(4).position(|window| window == b"PK\x01\x02").context("the directory")?;
    bytes[6] |= 1;
    bytes[directory + 8] |= 1;
    fs::write(fixture.path("locked.zip"), bytes)?;
    assert_ended(&fixture.import("locked.zip")?, ImportStatus::Unrecognized, &["encrypted", "password"])
}

#[test]
fn symbolic_links_are_not_followed() -> Result<()> {
    let fixture = ImportFixture::new()?;
    let secret = fixture.path("secret");
    fs::create_dir(&secret)?;
    fs::write(secret.join("conversations.json"), sample()?)?;
    let export = fixture.path("export");
    fs::create_dir(&export)?;
    std::os::unix::fs::symlink(secret.join("conversations.json"), export.join("conversations.json"))?;
    std::os::unix::fs::symlink(&secret, export.join("folder"))?;
    assert_ended(&fixture.import("export")?, ImportStatus::Unrecognized, &["symbolic links"])?;
    assert_eq!(fixture.core.store.revision().get(), 0);
    Ok(())
}

#[test]
fn unknown_missing_and_empty_sources_are_reported() -> Result<()> {
    let fixture = ImportFixture::new()?;
    fs::write(fixture.path("holiday.json"), r#"{"photos": []}"#)?;
    assert_ended(&fixture.import("holiday.json")?, ImportStatus::Unrecognized, &["holiday.json"])?;
    fs::create_dir(fixture.path("empty"))?;
    assert_ended(&fixture.import("empty")?, ImportStatus::Unrecognized, &["no file"])?;
    let missing = fixture.import("nothing-here")?;
    assert_ended(&missing, ImportStatus::Failed, &["nothing-here", "does not exist"])
}

#[test]
fn several_exports_in_one_folder_are_imported_separately() -> Result<()> {
    let fixture = ImportFixture::new()?;
    let downloads = fixture.path("downloads");
    fs::create_dir(&downloads)?;
    zip(&downloads.join("chatgpt.zip"), &[("conversations.json", &sample()?)])?;
    let claude = downloads.join("claude");
    fs::create_dir(&claude)?;
    for name in ["conversations.json", "users.json", "memories.json"] {
        fs::copy(demo_folder().join("claude-export").join(name), claude.join(name))?;
    }
    fs::write(downloads.join("holiday.jpg"), [0xff, 0xd8, 0xff])?;
    fs::write(downloads.join("broken.zip"), b"PK\x03\x04 and nothing more")?;
    // A file that was written a moment ago may still be incomplete.
    let long_ago = fs::FileTimes::new().set_modified(std::time::SystemTime::UNIX_EPOCH);
    fs::File::options().write(true).open(downloads.join("broken.zip"))?.set_times(long_ago)?;
    let imports = fixture.core.import(&downloads)?;
    let mut ended: Vec<_> =
        imports.iter().map(|import| (import.provider.as_deref().unwrap_or("-"), import.status)).collect();
    ended.sort_by_key(|(provider, _)| (*provider).to_owned());
    assert_eq!(
        ended,
        [
            ("-", ImportStatus::Failed),
            ("chatgpt", ImportStatus::CompletedWithSkips),
            ("claude", ImportStatus::Completed)
        ],
        "{imports:#?}"
    );
    let warned = imports
        .iter()
        .flat_map(|import| &import.warnings)
        .any(|warning| warning.message.contains("holiday.jpg"));
    ensure!(warned, "the photo is not mentioned");
    Ok(())
}

#[test]
fn parts_imported_one_by_one_give_the_same_as_all_at_once() -> Result<()> {
    let Some(samples) = satchel_tests::test_core::shared_samples() else {
        eprintln!("skipped: the shared sample exports are not available");
        return Ok(());
    };
    let batched = samples.join("authored/claude/batched-2026-09");
    let folder = tempfile::tempdir()?;
    let whole = TestCore::open(&folder.path().join("whole"))?;
    whole.import(&batched)?;
    let parts = TestCore::open(&folder.path().join("parts"))?;
    let mut names: Vec<_> = fs::read_dir(&batched)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    names.sort_by(|one, other| other.cmp(one));
    for name in names.iter().filter(|name| name.is_dir()) {
        parts.import(name)?;
    }
    let (parts, whole) = (parts.state()?, whole.state()?);
    assert!(whole.conversations.keys().eq(parts.conversations.keys()));
    for (name, conversation) in &whole.conversations {
        assert_eq!(parts.conversations[name]["messages"], conversation["messages"], "{name}");
    }
    let ids = |memories: &[serde_json::Value]| {
        memories.iter().map(|memory| memory["id"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&parts.memories), ids(&whole.memories));
    Ok(())
}

#[test]
fn an_unreadable_folder_is_reported_and_the_rest_is_imported() -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if unprivileged::is_root() {
        return unprivileged::run_test_as_nobody(
            "hostile_sources::an_unreadable_folder_is_reported_and_the_rest_is_imported",
        );
    }
    let fixture = ImportFixture::new()?;
    let closed = fixture.path("export").join("closed");
    chatgpt_export(&fixture.path("export"), 2)?;
    fs::create_dir_all(&closed)?;
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000))?;
    let import = fixture.import("export")?;
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700))?;
    assert!(import.conversations.new > 0, "{:?}", import.reason);
    let named = import.warnings.iter().any(|warning| warning.message.contains("cannot be read"));
    assert!(named, "{import:?}");
    Ok(())
}

#[test]
fn a_file_with_a_path_longer_than_path_max_is_read() -> Result<()> {
    use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
    let fixture = ImportFixture::new()?;
    let export = fixture.path("export");
    fs::create_dir(&export)?;
    let (name, flags) = ("d".repeat(250), OFlags::DIRECTORY | OFlags::RDONLY);
    let mut folder = open(&export, flags, Mode::empty())?;
    for _ in 0..20 {
        mkdirat(&folder, &name, Mode::RWXU)?;
        folder = openat(&folder, &name, flags, Mode::empty())?;
    }
    let file = openat(&folder, "conversations.json", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR)?;
    std::io::Write::write_all(&mut fs::File::from(file), &sample()?)?;
    let import = fixture.import("export")?;
    assert!(import.conversations.new > 0 && import.warnings.is_empty(), "{import:?}");
    Ok(())
}
