//! More than forty names that file systems allow and programs often mishandle: as watched files, as entries of archives, as names
//! of exports.

use std::{collections::BTreeSet, ffi::OsString, fs, os::unix::ffi::OsStringExt};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify;
use satchel_core::ingest::receipt::ImportStatus;
use satchel_tests::archive::{Archive, only};

use crate::play::{Play, export};

/// Returns the names without their extension.
fn names() -> Vec<Vec<u8>> {
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
    let play = Play::start().await?;
    let names = names();
    ensure!(names.len() >= 40, "{} names", names.len());
    for (number, name) in names.iter().enumerate() {
        fs::write(play.downloads.join(file(name, ".json")), export(number))?;
    }
    let count = names.len() as u64;
    play.imported(count).await?;
    play.looks_again().await;
    play.completed(names.len()).await?;
    ensure!(play.conversations().await? == count, "{} conversations", play.conversations().await?);
    // Files whose extension no importer reads are ignored, whatever they contain.
    for name in ["a.json ", "a.json.", "json", "a.jsön"] {
        fs::write(play.at(name), export(900))?;
    }
    // A failed file is reported by its name, without characters that control a terminal.
    fs::write(play.at("bad\u{1b}[31m\n\u{202e}.zip"), "PK\x03\x04 and no more")?;
    let source = play.until(|source| source.waiting_total + source.failed_total == 1).await?;
    let told = source.waiting.iter().chain(&source.failed).next().context("a notice")?;
    ensure!(told.name.starts_with("bad"), "{told:?}");
    ensure!(
        !told.name.chars().any(|c| c.is_control() || c == '\u{202e}'),
        "{:?} steers a terminal",
        told.name
    );
    ensure!(play.conversations().await? == count);
    play.daemon.stop().await?;
    Ok(())
}

#[test]
fn members_of_archives_of_every_name_are_imported_or_listed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = Archive::open(&folder.path().join("data"))?;
    for (number, name) in names().iter().enumerate() {
        let path = folder.path().join(format!("{number}.zip"));
        let text = String::from_utf8(name.clone());
        fs::write(&path, zip_of(&file(name, "/conversations.json").into_vec(), &export(number)))?;
        let imports = archive.import(&path)?;
        ensure!(!imports.is_empty(), "{text:?}: nothing is said of it");
        let import = only(imports)?;
        let told = import.reason.clone().unwrap_or_default();
        let listed = !told.is_empty() || !import.warnings.is_empty() || !import.skipped.is_empty();
        match import.status {
            ImportStatus::Completed => ensure!(import.conversations.new == 1, "{text:?}: {import:?}"),
            _ => ensure!(listed, "{text:?}: it is left out in silence: {import:?}"),
        }
        // Every name that is valid on all systems is imported.
        let portable = text.as_ref().is_ok_and(|text| !text.contains(['\\', ':', '\0']));
        ensure!(!portable || import.status == ImportStatus::Completed, "{text:?}: {told}");
    }
    archive.close()
}

#[test]
fn exports_of_every_name_are_written_whole() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = Archive::open(&folder.path().join("data"))?;
    let talk = folder.path().join("conversations.json");
    fs::write(&talk, export(1))?;
    archive.import(&talk)?;
    let out = folder.path().join("out");
    fs::create_dir(&out)?;
    let mut written = BTreeSet::new();
    for (number, name) in names().iter().enumerate() {
        let name = if number % 2 == 0 { file(name, ".zip") } else { file(name, "") };
        let path = out.join(&name);
        let record = archive.export(&path).with_context(|| format!("{name:?}"))?;
        ensure!(record.bytes > 0, "{name:?}");
        let report = verify::path(&path, &verify::Options { strict: true, ..verify::Options::default() })?;
        ensure!(report.valid, "{name:?}: {:?}", report.issues);
        written.insert(name);
    }
    let there: BTreeSet<OsString> =
        fs::read_dir(&out)?.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<_, _>>()?;
    ensure!(there == written, "something else is there: {:?}", there.difference(&written));
    archive.close()
}

/// Returns a ZIP with one stored file, whatever the bytes of its name are.
#[expect(clippy::cast_possible_truncation, reason = "a name and a file of a few hundred bytes")]
fn zip_of(name: &[u8], bytes: &[u8]) -> Vec<u8> {
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
