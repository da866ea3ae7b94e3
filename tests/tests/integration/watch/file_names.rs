//! More than forty names that file systems allow and programs often mishandle: as watched files, as entries of archives, as names
//! of exports.

use std::{collections::BTreeSet, ffi::OsString, fs, os::unix::ffi::OsStringExt};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify;
use satchel_core::ingest::receipt::ImportStatus;
use satchel_tests::test_core::{TestCore, only_import};

use crate::watch::fixture::{WatchFixture, chatgpt_file};

/// Returns the names without their extension.
fn file_name() -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = [
        "plain",
        "two words",
        " leading",
        "trailing ",
        "trailing.",
        "trailing...",
        "a.b.c",
        "-rf",
        "--help",
        "~",
        "~root",
        "$HOME",
        "`id`",
        "$(id)",
        "a;b",
        "a|b",
        "a&b",
        "a*b?",
        "[a]",
        "{a,b}",
        "'single'",
        "\"double\"",
        "back\\slash",
        "new\nline",
        "tab\there",
        "return\rhere",
        "escape\u{1b}[31mred",
        "bell\u{7}",
        "CON",
        "nul",
        "COM1",
        "a:b",
        "<a>",
        "e\u{301}",
        "\u{e9}",
        "\u{202e}gpj",
        "\u{1f600}\u{1f468}\u{200d}\u{1f469}",
        "\u{feff}mark",
        "\u{5e9}\u{5dc}\u{5d5}\u{5dd}",
        "#1 100%",
    ]
    .map(|name| name.as_bytes().to_vec())
    .into();
    names.push(b"not\xff\xfetext".to_vec());
    names.push(vec![b'x'; 250]);
    // 250 bytes again, in two-byte letters: a cut at an odd length would end in the middle of one.
    names.push("\u{e9}".repeat(125).into_bytes());
    names
}

fn file(name: &[u8], ending: &str) -> OsString {
    OsString::from_vec([name, ending.as_bytes()].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn watched_files_of_every_name_are_imported_and_shown_escaped() -> Result<()> {
    let fixture = WatchFixture::start().await?;
    let names = file_name();
    ensure!(names.len() >= 40, "{} names", names.len());
    for (number, name) in names.iter().enumerate() {
        fs::write(fixture.downloads.join(file(name, ".json")), chatgpt_file(number))?;
    }
    let count = names.len() as u64;
    fixture.wait_for_imported(count).await?;
    fixture.wait_for_rescans().await;
    fixture.assert_completed(names.len()).await?;
    ensure!(
        fixture.conversation_count().await? == count,
        "{} conversations",
        fixture.conversation_count().await?
    );
    // Files whose extension no importer reads are ignored, whatever they contain.
    for name in ["a.json ", "a.json.", "json", "a.jsön"] {
        fs::write(fixture.path(name), chatgpt_file(900))?;
    }
    // A failed file is reported by its name, without characters that control a terminal.
    fs::write(fixture.path("bad\u{1b}[31m\n\u{202e}.zip"), "PK\x03\x04 and no more")?;
    let source = fixture.wait_until(|source| source.waiting_total + source.failed_total == 1).await?;
    let notice = source.waiting.iter().chain(&source.failed).next().context("a notice")?;
    ensure!(notice.name.starts_with("bad"), "{notice:?}");
    ensure!(
        !notice.name.chars().any(|c| c.is_control() || c == '\u{202e}'),
        "{:?} contains control characters",
        notice.name
    );
    ensure!(fixture.conversation_count().await? == count);
    fixture.daemon.stop().await?;
    Ok(())
}

#[test]
fn archive_entries_of_every_name_are_imported_or_reported() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(&folder.path().join("data"))?;
    for (number, name) in file_name().iter().enumerate() {
        let path = folder.path().join(format!("{number}.zip"));
        let text = String::from_utf8(name.clone());
        fs::write(
            &path,
            zip_with_name(&file(name, "/conversations.json").into_vec(), &chatgpt_file(number)),
        )?;
        let imports = core.import(&path)?;
        ensure!(!imports.is_empty(), "{text:?}: there is no receipt");
        let import = only_import(imports)?;
        let reason = import.reason.clone().unwrap_or_default();
        let listed = !reason.is_empty() || !import.warnings.is_empty() || !import.skipped.is_empty();
        match import.status {
            ImportStatus::Completed => ensure!(import.conversations.new == 1, "{text:?}: {import:?}"),
            _ => ensure!(listed, "{text:?}: the entry was skipped silently: {import:?}"),
        }
        // Every name that is valid on all systems is imported.
        let portable = text.as_ref().is_ok_and(|text| !text.contains(['\\', ':', '\0']));
        ensure!(!portable || import.status == ImportStatus::Completed, "{text:?}: {reason}");
    }
    core.close()
}

#[test]
fn exports_of_every_name_are_complete() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(&folder.path().join("data"))?;
    let talk = folder.path().join("conversations.json");
    fs::write(&talk, chatgpt_file(1))?;
    core.import(&talk)?;
    let out = folder.path().join("out");
    fs::create_dir(&out)?;
    let mut written = BTreeSet::new();
    for (number, name) in file_name().iter().enumerate() {
        let name = if number % 2 == 0 { file(name, ".zip") } else { file(name, "") };
        let path = out.join(&name);
        let record = core.export(&path).with_context(|| format!("{name:?}"))?;
        ensure!(record.bytes > 0, "{name:?}");
        let report =
            verify::path(&path, &verify::VerifyOptions { strict: true, ..verify::VerifyOptions::default() })?;
        ensure!(report.valid, "{name:?}: {:?}", report.issues);
        written.insert(name);
    }
    let there: BTreeSet<OsString> =
        fs::read_dir(&out)?.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<_, _>>()?;
    ensure!(there == written, "there are other files: {:?}", there.difference(&written));
    core.close()
}

/// Returns a ZIP with one stored file, whatever the bytes of its name are.
#[expect(clippy::cast_possible_truncation, reason = "a name and a file of a few hundred bytes")]
fn zip_with_name(name: &[u8], bytes: &[u8]) -> Vec<u8> {
    let crc = crc32(bytes);
    let (length, size) = (name.len() as u16, bytes.len() as u32);
    let flags: u16 = if std::str::from_utf8(name).is_ok() { 1 << 11 } else { 0 };
    let mut zip = Vec::new();
    let common = |zip: &mut Vec<u8>| {
        zip.extend(20_u16.to_le_bytes());
        zip.extend(flags.to_le_bytes());
        // Stored, dated 1980-01-01.
        zip.extend([0, 0, 0, 0, 33, 0]);
        zip.extend(crc.to_le_bytes());
        zip.extend(size.to_le_bytes());
        zip.extend(size.to_le_bytes());
        zip.extend(length.to_le_bytes());
        zip.extend([0, 0]);
    };
    zip.extend(b"PK\x03\x04");
    common(&mut zip);
    zip.extend(name);
    zip.extend(bytes);
    let directory = zip.len() as u32;
    zip.extend(b"PK\x01\x02");
    zip.extend(20_u16.to_le_bytes());
    common(&mut zip);
    // No comment, disk 0, no attributes, offset 0.
    zip.extend([0; 14]);
    zip.extend(name);
    let end = zip.len() as u32;
    zip.extend(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    zip.extend((end - directory).to_le_bytes());
    zip.extend(directory.to_le_bytes());
    zip.extend([0, 0]);
    zip
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    };
    !bytes.iter().fold(u32::MAX, step)
}
