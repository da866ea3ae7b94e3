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
    archive::{Archive, demo},
    daemon::chatgpt_export,
};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

/// Number of conversations in one generated export.
const MANY: usize = 40;

struct Bench {
    folder: tempfile::TempDir,
    archive: Archive,
}

impl Bench {
    fn new() -> Result<Self> {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let archive = Archive::with_limits(&folder.path().join("data"), limits)?;
        fs::create_dir(folder.path().join("in"))?;
        Ok(Self { folder, archive })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join("in").join(name)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        Ok(fs::write(self.at(name), bytes)?)
    }

    fn import(&self, name: &str) -> Result<Vec<ImportRecord>> {
        let imports = self.archive.import(&self.at(name))?;
        for import in &imports {
            let all = [import.conversations, import.messages, import.memories];
            ensure!(all.iter().all(Counts::balanced), "{import:?}");
        }
        Ok(imports)
    }

    /// Returns the number of conversations that the store shows.
    fn shown(&self) -> Result<usize> {
        Ok(self.archive.state()?.conversations.len())
    }
}

fn packed(entries: &[(&str, &[u8])], method: CompressionMethod) -> Result<Vec<u8>> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        writer.start_file(*name, SimpleFileOptions::default().compression_method(method))?;
        writer.write_all(bytes)?;
    }
    Ok(writer.finish()?.into_inner())
}

fn zip(entries: &[(&str, &[u8])]) -> Result<Vec<u8>> {
    packed(entries, CompressionMethod::Deflated)
}

/// Returns a ChatGPT export with `MANY` conversations of its own.
fn export() -> Result<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    chatgpt_export(folder.path(), MANY)?;
    Ok(fs::read(folder.path().join("conversations.json"))?)
}

fn sample(provider: &str) -> Result<Vec<u8>> {
    Ok(fs::read(demo().join(provider).join("conversations.json"))?)
}

/// Damages the compressed bytes of the first entry, starting at the fraction `part` of its length.
fn corrupt(bytes: &mut [u8], part: f64) -> Result<()> {
    let length = u32::from_le_bytes(bytes[18..22].try_into()?);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a small file")]
    let at = 30 + usize::from(bytes[26]) + (f64::from(length) * part) as usize;
    bytes[at..at + 40].iter_mut().for_each(|byte| *byte = !*byte);
    Ok(())
}

fn central(bytes: &[u8]) -> Result<usize> {
    bytes.windows(4).position(|window| window == b"PK\x01\x02").context("a directory")
}

fn named<'a>(imports: &'a [ImportRecord], source: &str) -> Result<&'a ImportRecord> {
    let found = imports.iter().find(|import| import.source == source);
    found.with_context(|| format!("{source} has no receipt: {imports:?}"))
}

/// Returns whether the export was imported. The sample of one provider contains a conversation that cannot be read.
fn came(import: &ImportRecord) -> bool {
    matches!(import.status, ImportStatus::Completed | ImportStatus::CompletedWithSkips)
}

fn reason(import: &ImportRecord) -> &str {
    import.reason.as_deref().unwrap_or_default()
}

/// Checks that the message is one sentence that names the file and contains no text from a library's error chain.
fn is_one_sentence(told: &str, name: &str) -> Result<()> {
    ensure!(told.starts_with(&format!("{name} is damaged (")), "{told}");
    ensure!(told.ends_with("): download it again"), "{told}");
    for word in ["invalid Zip", "EOCD", "deflate", "Io(", "os error", "file not readable", "\": "] {
        ensure!(!told.contains(word), "{word:?} is a library's word: {told}");
    }
    Ok(())
}

#[test]
fn one_damaged_archive_fails_alone_and_is_one_sentence() -> Result<()> {
    let whole = zip(&[("conversations.json", &export()?)])?;
    let stored = packed(&[("conversations.json", &export()?)], CompressionMethod::Stored)?;
    let kinds = ["stream", "late stream", "checksum", "directory", "cut", "late cut"];
    for kind in kinds {
        let bench = Bench::new()?;
        bench.put("claude.zip", &zip(&[("conversations.json", &sample("claude-export")?)])?)?;
        bench.put("good.zip", &zip(&[("conversations.json", &sample("chatgpt-export")?)])?)?;
        let mut bytes = if kind == "checksum" { stored.clone() } else { whole.clone() };
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
                let at = central(&bytes)?;
                bytes[at..at + 20].fill(0xAA);
            }
            "cut" => bytes.truncate(bytes.len() / 2),
            _ => bytes.truncate(bytes.len() - 1),
        }
        bench.put("bad.zip", &bytes)?;
        let age = fs::FileTimes::new().set_modified(std::time::SystemTime::UNIX_EPOCH);
        fs::File::options().write(true).open(bench.at("bad.zip"))?.set_times(age)?;
        let imports = bench.import("")?;
        let failed: Vec<_> = imports.iter().filter(|one| one.status == ImportStatus::Failed).collect();
        ensure!(failed.len() == 1, "{kind}: {imports:?}");
        is_one_sentence(reason(failed[0]), "bad.zip").context(kind)?;
        let good = imports.iter().filter(|one| came(one)).count();
        ensure!(good == 2 || (good == 1 && kind != "stream"), "{kind}: {imports:?}");
        let both = Bench::new()?;
        both.put("claude.zip", &zip(&[("conversations.json", &sample("claude-export")?)])?)?;
        both.put("good.zip", &zip(&[("conversations.json", &sample("chatgpt-export")?)])?)?;
        both.import("")?;
        ensure!(bench.shown()? >= both.shown()?, "{kind}: what stood beside it is missing: {imports:?}");
        // The same file alone gives the same message.
        let alone = Bench::new()?;
        alone.put("bad.zip", &bytes)?;
        let imports = alone.import("bad.zip")?;
        ensure!(imports.len() == 1 && imports[0].status == ImportStatus::Failed, "{kind}: {imports:?}");
        is_one_sentence(reason(&imports[0]), "bad.zip").context(kind)?;
    }
    Ok(())
}

#[test]
fn entries_that_cannot_be_read_by_their_method_or_lock_are_named_and_others_are_imported() -> Result<()> {
    let bench = Bench::new()?;
    bench.put("good.zip", &zip(&[("conversations.json", &sample("chatgpt-export")?)])?)?;
    let mut locked = zip(&[("conversations.json", &export()?)])?;
    let at = central(&locked)?;
    (locked[6], locked[at + 8]) = (locked[6] | 1, locked[at + 8] | 1);
    bench.put("locked.zip", &locked)?;
    let mut strange = zip(&[("conversations.json", &export()?)])?;
    // Compression method 12, which some packers use.
    (strange[8], strange[at + 10]) = (12, 12);
    bench.put("strange.zip", &strange)?;
    let imports = bench.import("")?;
    ensure!(imports.len() == 1 && came(&imports[0]), "{imports:?}");
    let told = |name: &str| {
        imports[0]
            .warnings
            .iter()
            .find(|warning| warning.locator == name)
            .map(|warning| warning.message.clone())
    };
    let locked = told("locked.zip/conversations.json").context("the locked one is not named")?;
    ensure!(locked.contains("encrypted") && locked.contains("password"), "{locked}");
    let strange = told("strange.zip/conversations.json").context("the strange one is not named")?;
    ensure!(strange.contains("method"), "{strange}");
    Ok(())
}

/// An export in four archives, as providers split large ones: everything intact is imported, and the damaged part is
/// named.
#[test]
fn of_an_export_in_several_archives_what_is_whole_is_imported() -> Result<()> {
    for part in [0.01, 0.9] {
        let bench = Bench::new()?;
        let mut batches = Vec::new();
        for number in 0..4_usize {
            let all: Vec<serde_json::Value> = serde_json::from_slice(&export()?)?;
            let own = &all[number * 10..(number + 1) * 10];
            batches.push(zip(&[("conversations.json", serde_json::to_vec(own)?.as_slice())])?);
        }
        corrupt(&mut batches[2], part)?;
        let outer: Vec<(String, &[u8])> = batches
            .iter()
            .enumerate()
            .map(|(number, bytes)| (format!("Conversations__{number}.zip"), bytes.as_slice()))
            .collect();
        let outer: Vec<(&str, &[u8])> = outer.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect();
        bench.put("export.zip", &packed(&outer, CompressionMethod::Stored)?)?;
        let imports = bench.import("export.zip")?;
        let failed: Vec<_> = imports.iter().filter(|one| one.status == ImportStatus::Failed).collect();
        ensure!(failed.len() == 1, "{imports:?}");
        is_one_sentence(reason(failed[0]), "Conversations__2.zip")?;
        ensure!(bench.shown()? >= 30, "{} of 30 are there: {imports:?}", bench.shown()?);
    }
    Ok(())
}

#[test]
fn an_inner_archive_that_does_not_unpack_fails_alone() -> Result<()> {
    let bench = Bench::new()?;
    let good = zip(&[("conversations.json", &sample("chatgpt-export")?)])?;
    let bad = zip(&[("conversations.json", &export()?)])?;
    let mut outer = packed(&[("bad.zip", &bad), ("good.zip", &good)], CompressionMethod::Stored)?;
    corrupt(&mut outer, 0.5)?;
    bench.put("both.zip", &outer)?;
    let imports = bench.import("both.zip")?;
    ensure!(imports.len() == 2, "{imports:?}");
    let failed = named(&imports, "bad.zip")?;
    ensure!(failed.status == ImportStatus::Failed, "{failed:?}");
    is_one_sentence(reason(failed), "bad.zip")?;
    ensure!(imports.iter().any(came), "{imports:?}");
    Ok(())
}

#[test]
fn a_zip_of_zips_gives_what_its_files_give() -> Result<()> {
    let chatgpt = zip(&[("conversations.json", &sample("chatgpt-export")?)])?;
    let claude = zip(&[("data/conversations.json", &sample("claude-export")?)])?;
    let apart = Bench::new()?;
    apart.put("chatgpt.zip", &chatgpt)?;
    apart.put("claude.zip", &claude)?;
    apart.import("")?;
    let deeper = zip(&[("claude.zip", &claude), ("photos.zip", &zip(&[("a.jpg", b"\xff\xd8\xff\xe0")])?)])?;
    let nested =
        zip(&[("portal/chatgpt.zip", &chatgpt), ("deeper.ZIP", &deeper), ("read me.txt", b"Hello")])?;
    let bench = Bench::new()?;
    bench.put("nested.zip", &nested)?;
    let imports = bench.import("nested.zip")?;
    ensure!(imports.len() == 2, "{imports:?}");
    ensure!(imports.iter().all(came), "{imports:?}");
    assert_eq!(bench.archive.state()?, apart.archive.state()?);
    // Unknown files are named; an archive of unknown files is named as the one file that people see.
    let told = format!("{:?}", imports[0].warnings);
    ensure!(told.contains("deeper.ZIP/photos.zip") && !told.contains("a.jpg"), "{told}");
    ensure!(told.contains("read me.txt"), "{told}");
    Ok(())
}

#[test]
fn archives_in_archives_share_one_budget_of_bytes_files_and_depth() -> Result<()> {
    let room = vec![b' '; 3 << 20];
    let small = sample("chatgpt-export")?;
    let inner = packed(&[("room.bin", &room), ("conversations.json", &small)], CompressionMethod::Stored)?;
    let names: Vec<String> = (0..8).map(|number| format!("{number}.zip")).collect();
    let outer: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), inner.as_slice())).collect();
    let bytes = Bench::with(Limits { total_bytes: 10 << 20, ..Limits::default() })?;
    bytes.put("many.zip", &zip(&outer)?)?;
    let imports = bytes.import("many.zip")?;
    let refused: Vec<_> = imports.iter().filter(|one| reason(one).contains("unpack to more than")).collect();
    ensure!(refused.len() == 5, "three of 3 MiB fit into 10 MiB: {imports:?}");
    ensure!(imports.iter().any(came), "{imports:?}");

    let files = Bench::with(Limits { entries: 11, ..Limits::default() })?;
    files.put("many.zip", &zip(&outer)?)?;
    let imports = files.import("many.zip")?;
    ensure!(imports.iter().any(|one| reason(one).contains("more than 11 files")), "{imports:?}");

    let depth = Bench::with(Limits { nesting: 3, ..Limits::default() })?;
    let mut layer = zip(&[("conversations.json", &small)])?;
    for _ in 0..3 {
        layer = zip(&[("in.zip", &layer)])?;
    }
    depth.put("deep.zip", &layer)?;
    let imports = depth.import("deep.zip")?;
    ensure!(imports.len() == 1 && imports[0].status == ImportStatus::Unrecognized, "{imports:?}");
    ensure!(reason(&imports[0]).contains("in.zip/in.zip/in.zip"), "{imports:?}");
    Ok(())
}

#[test]
fn a_backup_points_to_restore_and_what_lies_beside_it_is_imported() -> Result<()> {
    let bench = Bench::new()?;
    let backup = zip(&[("journal/00000001.seg", b"SATCHELJ"), ("satchel-backup.json", b"{\"format\":1}")])?;
    bench.put("mine.zip", &backup)?;
    bench.put("good.zip", &zip(&[("conversations.json", &sample("chatgpt-export")?)])?)?;
    let imports = bench.import("")?;
    let told = named(&imports, "mine.zip")?;
    ensure!(told.status == ImportStatus::Unrecognized, "{told:?}");
    ensure!(
        reason(told).contains("backup of Satchel") && reason(told).contains("mine.zip\"` puts"),
        "{told:?}"
    );
    ensure!(imports.iter().any(came), "{imports:?}");
    let alone = bench.import("mine.zip")?;
    ensure!(alone.len() == 1 && reason(&alone[0]).contains("satchel restore"), "{alone:?}");
    Ok(())
}

#[test]
fn downloads_on_their_way_wait_and_nothing_failed() -> Result<()> {
    let bench = Bench::new()?;
    let whole = zip(&[("conversations.json", &sample("chatgpt-export")?)])?;
    bench.put("good.zip", &whole)?;
    for name in ["a.zip.crdownload", "Unconfirmed 17.crdownload", "b.zip.part", "c.json.Download", "b.zip"] {
        bench.put(name, &whole[..whole.len() / 2])?;
    }
    fs::create_dir(bench.at("d.zip.download"))?;
    bench.put("d.zip.download/d.zip", &whole[..9])?;
    // This file belongs to an export; it is not a download.
    fs::create_dir(bench.at("more"))?;
    bench.put("more/notes.part", b"Part one")?;
    // These come last: only a file that was written a moment ago is considered to be growing.
    bench.put("growing.zip", &whole[..whole.len() / 2])?;
    bench.put("growing.json", b"[{\"mapping\": {")?;
    let imports = bench.import("")?;
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
    ensure!(others.len() == 1 && came(others[0]), "{imports:?}");
    // Waiting files are not in the history and are imported once they are complete.
    let listed = bench.archive.imports.list(None, 100)?.items;
    assert_eq!(listed.len(), 1, "{listed:?}");
    arrive(&bench.at("b.zip.part"), &bench.at("b.zip"), &zip(&[("conversations.json", &export()?)])?)?;
    let imports = bench.import("")?;
    ensure!(imports.iter().any(|one| one.conversations.new == MANY as u64), "{imports:?}");
    Ok(())
}

fn arrive(part: &Path, whole: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(whole, bytes)?;
    Ok(fs::remove_file(part)?)
}
