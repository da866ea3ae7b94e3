//! Damaged files, incomplete downloads and nested archives: each fails, waits or is read by itself without effect on
//! its neighbours.

use std::{
    fs,
    io::{Cursor, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::ingest::receipt::{Counts, ImportRecord, ImportStatus};
use satchel_source::Limits;
use satchel_tests::{
    test_core::{TestCore, demo_folder},
    test_daemon::chatgpt_export,
};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

/// Number of conversations in one generated export.
const CONVERSATIONS: usize = 40;

struct ImportFixture {
    folder: tempfile::TempDir,
    core: TestCore,
}

impl ImportFixture {
    fn new() -> Result<Self> {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let core = TestCore::with_limits(&folder.path().join("data"), limits)?;
        fs::create_dir(folder.path().join("in"))?;
        Ok(Self { folder, core })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("in").join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        Ok(fs::write(self.path(name), bytes)?)
    }

    fn import(&self, name: &str) -> Result<Vec<ImportRecord>> {
        let imports = self.core.import(&self.path(name))?;
        for import in &imports {
            let all = [import.conversations, import.messages, import.memories];
            ensure!(all.iter().all(Counts::balanced), "{import:?}");
        }
        Ok(imports)
    }

    /// Returns the number of conversations that the store shows.
    fn conversation_count(&self) -> Result<usize> {
        Ok(self.core.state()?.conversations.len())
    }
}

fn zip_with_method(entries: &[(&str, &[u8])], method: CompressionMethod) -> Result<Vec<u8>> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        writer.start_file(*name, SimpleFileOptions::default().compression_method(method))?;
        writer.write_all(bytes)?;
    }
    Ok(writer.finish()?.into_inner())
}

fn zip(entries: &[(&str, &[u8])]) -> Result<Vec<u8>> {
    zip_with_method(entries, CompressionMethod::Deflated)
}

/// Returns a ChatGPT export with `MANY` conversations of its own.
fn export() -> Result<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    chatgpt_export(folder.path(), CONVERSATIONS)?;
    Ok(fs::read(folder.path().join("conversations.json"))?)
}

fn sample(provider: &str) -> Result<Vec<u8>> {
    Ok(fs::read(demo_folder().join(provider).join("conversations.json"))?)
}

/// Damages the compressed bytes of the first entry, starting at the fraction `part` of its length.
fn corrupt(bytes: &mut [u8], part: f64) -> Result<()> {
    let length = u32::from_le_bytes(bytes[18..22].try_into()?);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a small file")]
    let at = 30 + usize::from(bytes[26]) + (f64::from(length) * part) as usize;
    bytes[at..at + 40].iter_mut().for_each(|byte| *byte = !*byte);
    Ok(())
}

fn central_directory(bytes: &[u8]) -> Result<usize> {
    bytes.windows(4).position(|window| window == b"PK\x01\x02").context("a directory")
}

fn import_of<'a>(imports: &'a [ImportRecord], source: &str) -> Result<&'a ImportRecord> {
    let found = imports.iter().find(|import| import.source == source);
    found.with_context(|| format!("{source} has no receipt: {imports:?}"))
}

/// Returns whether the export was imported. The sample of one provider contains a conversation that cannot be read.
fn imported(import: &ImportRecord) -> bool {
    matches!(import.status, ImportStatus::Completed | ImportStatus::CompletedWithSkips)
}

fn reason(import: &ImportRecord) -> &str {
    import.reason.as_deref().unwrap_or_default()
}

/// Checks that the message is one sentence that names the file and contains no text from a library's error chain.
fn assert_damage_message(message: &str, name: &str) -> Result<()> {
    ensure!(message.starts_with(&format!("{name} is damaged (")), "{message}");
    ensure!(message.ends_with("): download it again"), "{message}");
    for word in ["invalid Zip", "EOCD", "deflate", "Io(", "os error", "file not readable", "\": "] {
        ensure!(!message.contains(word), "{word:?} comes from a library: {message}");
    }
    Ok(())
}

#[test]
fn a_damaged_archive_fails_alone_with_a_one_sentence_reason() -> Result<()> {
    let intact = zip(&[("conversations.json", &export()?)])?;
    let stored = zip_with_method(&[("conversations.json", &export()?)], CompressionMethod::Stored)?;
    let kinds = ["stream", "late stream", "checksum", "directory", "cut", "late cut"];
    for kind in kinds {
        let fixture = ImportFixture::new()?;
        fixture.write("claude.zip", &zip(&[("conversations.json", &sample("claude-export")?)])?)?;
        fixture.write("good.zip", &zip(&[("conversations.json", &sample("chatgpt-export")?)])?)?;
        let mut bytes = if kind == "checksum" { stored.clone() } else { intact.clone() };
        match kind {
            "stream" => corrupt(&mut bytes, 0.01)?,
            // The beginning that importers use for detection is intact.
            "late stream" => corrupt(&mut bytes, 0.9)?,
            "checksum" => {
                let at =
                    bytes.windows(14).position(|window| window == b"Conversation 7").context("a title")?;
                bytes[at] = b'K';
            }
            "directory" => {
                let at = central_directory(&bytes)?;
                bytes[at..at + 20].fill(0xAA);
            }
            "cut" => bytes.truncate(bytes.len() / 2),
            _ => bytes.truncate(bytes.len() - 1),
        }
        fixture.write("bad.zip", &bytes)?;
        let age = fs::FileTimes::new().set_modified(std::time::SystemTime::UNIX_EPOCH);
        fs::File::options().write(true).open(fixture.path("bad.zip"))?.set_times(age)?;
        let imports = fixture.import("")?;
        let failed: Vec<_> = imports.iter().filter(|one| one.status == ImportStatus::Failed).collect();
        ensure!(failed.len() == 1, "{kind}: {imports:?}");
        assert_damage_message(reason(failed[0]), "bad.zip").context(kind)?;
        let good = imports.iter().filter(|one| imported(one)).count();
        ensure!(good == 2 || (good == 1 && kind != "stream"), "{kind}: {imports:?}");
        let both = ImportFixture::new()?;
        both.write("claude.zip", &zip(&[("conversations.json", &sample("claude-export")?)])?)?;
        both.write("good.zip", &zip(&[("conversations.json", &sample("chatgpt-export")?)])?)?;
        both.import("")?;
        ensure!(
            fixture.conversation_count()? >= both.conversation_count()?,
            "{kind}: exports beside it are missing: {imports:?}"
        );
        // The same file alone gives the same message.
        let alone = ImportFixture::new()?;
        alone.write("bad.zip", &bytes)?;
        let imports = alone.import("bad.zip")?;
        ensure!(imports.len() == 1 && imports[0].status == ImportStatus::Failed, "{kind}: {imports:?}");
        assert_damage_message(reason(&imports[0]), "bad.zip").context(kind)?;
    }
    Ok(())
}

#[test]
fn encrypted_entries_and_unknown_compression_methods_are_reported_and_other_entries_imported() -> Result<()> {
    let fixture = ImportFixture::new()?;
    fixture.write("good.zip", &zip(&[("conversations.json", &sample("chatgpt-export")?)])?)?;
    let mut locked = zip(&[("conversations.json", &export()?)])?;
    let at = central_directory(&locked)?;
    (locked[6], locked[at + 8]) = (locked[6] | 1, locked[at + 8] | 1);
    fixture.write("locked.zip", &locked)?;
    let mut unsupported = zip(&[("conversations.json", &export()?)])?;
    // Compression method 12, which some packers use.
    (unsupported[8], unsupported[at + 10]) = (12, 12);
    fixture.write("strange.zip", &unsupported)?;
    let imports = fixture.import("")?;
    ensure!(imports.len() == 1 && imported(&imports[0]), "{imports:?}");
    let warning_for = |name: &str| {
        imports[0]
            .warnings
            .iter()
            .find(|warning| warning.locator == name)
            .map(|warning| warning.message.clone())
    };
    let locked =
        warning_for("locked.zip/conversations.json").context("the encrypted entry is not reported")?;
    ensure!(locked.contains("encrypted") && locked.contains("password"), "{locked}");
    let unsupported = warning_for("strange.zip/conversations.json")
        .context("the entry with an unknown method is not reported")?;
    ensure!(unsupported.contains("method"), "{unsupported}");
    Ok(())
}

/// An export in four archives, as providers split large ones: everything intact is imported, and the damaged part is
/// named.
#[test]
fn intact_archives_of_a_split_export_are_imported() -> Result<()> {
    for part in [0.01, 0.9] {
        let fixture = ImportFixture::new()?;
        let mut batches = Vec::new();
        for number in 0..4_usize {
            let all: Vec<serde_json::Value> = serde_json::from_slice(&export()?)?;
            let part = &all[number * 10..(number + 1) * 10];
            batches.push(zip(&[("conversations.json", serde_json::to_vec(part)?.as_slice())])?);
        }
        corrupt(&mut batches[2], part)?;
        let outer: Vec<(String, &[u8])> = batches
            .iter()
            .enumerate()
            .map(|(number, bytes)| (format!("Conversations__{number}.zip"), bytes.as_slice()))
            .collect();
        let outer: Vec<(&str, &[u8])> = outer.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect();
        fixture.write("export.zip", &zip_with_method(&outer, CompressionMethod::Stored)?)?;
        let imports = fixture.import("export.zip")?;
        let failed: Vec<_> = imports.iter().filter(|one| one.status == ImportStatus::Failed).collect();
        ensure!(failed.len() == 1, "{imports:?}");
        assert_damage_message(reason(failed[0]), "Conversations__2.zip")?;
        ensure!(
            fixture.conversation_count()? >= 30,
            "{} of 30 are there: {imports:?}",
            fixture.conversation_count()?
        );
    }
    Ok(())
}

#[test]
fn a_damaged_inner_archive_fails_alone() -> Result<()> {
    let fixture = ImportFixture::new()?;
    let good = zip(&[("conversations.json", &sample("chatgpt-export")?)])?;
    let bad = zip(&[("conversations.json", &export()?)])?;
    let mut outer = zip_with_method(&[("bad.zip", &bad), ("good.zip", &good)], CompressionMethod::Stored)?;
    corrupt(&mut outer, 0.5)?;
    fixture.write("both.zip", &outer)?;
    let imports = fixture.import("both.zip")?;
    ensure!(imports.len() == 2, "{imports:?}");
    let failed = import_of(&imports, "bad.zip")?;
    ensure!(failed.status == ImportStatus::Failed, "{failed:?}");
    assert_damage_message(reason(failed), "bad.zip")?;
    ensure!(imports.iter().any(imported), "{imports:?}");
    Ok(())
}

#[test]
fn a_zip_of_zips_imports_like_its_files() -> Result<()> {
    let chatgpt = zip(&[("conversations.json", &sample("chatgpt-export")?)])?;
    let claude = zip(&[("data/conversations.json", &sample("claude-export")?)])?;
    let apart = ImportFixture::new()?;
    apart.write("chatgpt.zip", &chatgpt)?;
    apart.write("claude.zip", &claude)?;
    apart.import("")?;
    let deeper = zip(&[("claude.zip", &claude), ("photos.zip", &zip(&[("a.jpg", b"\xff\xd8\xff\xe0")])?)])?;
    let nested =
        zip(&[("portal/chatgpt.zip", &chatgpt), ("deeper.ZIP", &deeper), ("read me.txt", b"Hello")])?;
    let fixture = ImportFixture::new()?;
    fixture.write("nested.zip", &nested)?;
    let imports = fixture.import("nested.zip")?;
    ensure!(imports.len() == 2, "{imports:?}");
    ensure!(imports.iter().all(imported), "{imports:?}");
    assert_eq!(fixture.core.state()?, apart.core.state()?);
    // Unknown files are named; an archive of unknown files is named as the one file that people see.
    let warnings = format!("{:?}", imports[0].warnings);
    ensure!(warnings.contains("deeper.ZIP/photos.zip") && !warnings.contains("a.jpg"), "{warnings}");
    ensure!(warnings.contains("read me.txt"), "{warnings}");
    Ok(())
}

#[test]
fn nested_archives_share_one_limit_of_bytes_files_and_depth() -> Result<()> {
    let padding = vec![b' '; 3 << 20];
    let small = sample("chatgpt-export")?;
    let inner = zip_with_method(
        &[("room.bin", &padding), ("conversations.json", &small)],
        CompressionMethod::Stored,
    )?;
    let names: Vec<String> = (0..8).map(|number| format!("{number}.zip")).collect();
    let outer: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), inner.as_slice())).collect();
    let bytes = ImportFixture::with(Limits { total_bytes: 10 << 20, ..Limits::default() })?;
    bytes.write("many.zip", &zip(&outer)?)?;
    let imports = bytes.import("many.zip")?;
    let refused: Vec<_> = imports.iter().filter(|one| reason(one).contains("unpack to more than")).collect();
    ensure!(refused.len() == 5, "three of 3 MiB fit into 10 MiB: {imports:?}");
    ensure!(imports.iter().any(imported), "{imports:?}");

    let files = ImportFixture::with(Limits { entries: 11, ..Limits::default() })?;
    files.write("many.zip", &zip(&outer)?)?;
    let imports = files.import("many.zip")?;
    ensure!(imports.iter().any(|one| reason(one).contains("more than 11 files")), "{imports:?}");

    let depth = ImportFixture::with(Limits { nesting: 3, ..Limits::default() })?;
    let mut layer = zip(&[("conversations.json", &small)])?;
    for _ in 0..3 {
        layer = zip(&[("in.zip", &layer)])?;
    }
    depth.write("deep.zip", &layer)?;
    let imports = depth.import("deep.zip")?;
    ensure!(imports.len() == 1 && imports[0].status == ImportStatus::Unrecognized, "{imports:?}");
    ensure!(reason(&imports[0]).contains("in.zip/in.zip/in.zip"), "{imports:?}");
    Ok(())
}

#[test]
fn a_backup_is_reported_with_the_restore_command_and_files_beside_it_are_imported() -> Result<()> {
    let fixture = ImportFixture::new()?;
    let backup = zip(&[("journal/00000001.seg", b"SATCHELJ"), ("satchel-backup.json", b"{\"format\":1}")])?;
    fixture.write("mine.zip", &backup)?;
    fixture.write("good.zip", &zip(&[("conversations.json", &sample("chatgpt-export")?)])?)?;
    let imports = fixture.import("")?;
    let import = import_of(&imports, "mine.zip")?;
    ensure!(import.status == ImportStatus::Unrecognized, "{import:?}");
    ensure!(
        reason(import).contains("backup of Satchel") && reason(import).contains("mine.zip\"` puts"),
        "{import:?}"
    );
    ensure!(imports.iter().any(imported), "{imports:?}");
    let alone = fixture.import("mine.zip")?;
    ensure!(alone.len() == 1 && reason(&alone[0]).contains("satchel restore"), "{alone:?}");
    Ok(())
}

#[test]
fn unfinished_downloads_wait_and_are_not_failures() -> Result<()> {
    let fixture = ImportFixture::new()?;
    let intact = zip(&[("conversations.json", &sample("chatgpt-export")?)])?;
    fixture.write("good.zip", &intact)?;
    for name in ["a.zip.crdownload", "Unconfirmed 17.crdownload", "b.zip.part", "c.json.Download", "b.zip"] {
        fixture.write(name, &intact[..intact.len() / 2])?;
    }
    fs::create_dir(fixture.path("d.zip.download"))?;
    fixture.write("d.zip.download/d.zip", &intact[..9])?;
    // This file belongs to an export; it is not a download.
    fs::create_dir(fixture.path("more"))?;
    fixture.write("more/notes.part", b"Part one")?;
    // These come last: only a file that was written a moment ago is considered to be growing.
    fixture.write("growing.zip", &intact[..intact.len() / 2])?;
    fixture.write("growing.json", b"[{\"mapping\": {")?;
    let imports = fixture.import("")?;
    let mut waits: Vec<&str> = imports
        .iter()
        .filter(|one| one.status == ImportStatus::Waiting)
        .map(|one| one.source.as_str())
        .collect();
    waits.sort_unstable();
    let expected = [
        "Unconfirmed 17.crdownload",
        "a.zip.crdownload",
        "b.zip",
        "b.zip.part",
        "c.json.Download",
        "d.zip.download",
        "growing.json",
        "growing.zip",
    ];
    assert_eq!(waits, expected, "{imports:?}");
    let others: Vec<_> = imports.iter().filter(|one| one.status != ImportStatus::Waiting).collect();
    ensure!(others.len() == 1 && imported(others[0]), "{imports:?}");
    // Waiting files are not in the history and are imported once they are complete.
    let listed = fixture.core.imports.list(None, 100)?.items;
    assert_eq!(listed.len(), 1, "{listed:?}");
    finish_download(
        &fixture.path("b.zip.part"),
        &fixture.path("b.zip"),
        &zip(&[("conversations.json", &export()?)])?,
    )?;
    let imports = fixture.import("")?;
    ensure!(imports.iter().any(|one| one.conversations.new == CONVERSATIONS as u64), "{imports:?}");
    Ok(())
}

fn finish_download(part: &Path, target: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(target, bytes)?;
    Ok(fs::remove_file(part)?)
}
