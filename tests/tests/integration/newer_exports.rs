//! A newer export costs only as much as its new parts: pieces that an earlier import read are not read again, and the
//! outcome is the same as if they were.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use anyhow::{Context as _, Result, ensure};
use satchel_core::ingest::{
    receipt::{Counts, ImportRecord, ImportStatus},
    undo::{UndoDirection, UndoRequest},
};
use satchel_pam::record::Skip;
use satchel_source::CancelToken;
use satchel_tests::{
    generate::{chatgpt_later, claude},
    samples::samples,
    test_core::{TestCore, only_import},
};
use serde_json::{Value, json};

const BYTES: u64 = 2_000_000;

fn record_counts(record: &ImportRecord) -> [Counts; 3] {
    [record.conversations, record.messages, record.memories]
}

/// Imports both exports into two data directories, one of which recalls known pieces while the other reads everything,
/// and compares the outcomes.
fn import_with_and_without_reuse(older: &Path, newer: &Path) -> Result<ImportRecord> {
    let dir = tempfile::tempdir()?;
    let (recalling, reading) =
        (TestCore::open(&dir.path().join("recalling"))?, TestCore::open(&dir.path().join("reading"))?);
    recalling.import(older)?;
    reading.import(older)?;
    let recalled = only_import(recalling.import(newer)?)?;
    let read = only_import(reading.import_again(newer)?)?;
    ensure!(record_counts(&recalled) == record_counts(&read), "{recalled:#?} instead of {read:#?}");
    ensure!(
        (recalled.status, recalled.attachments, &recalled.skipped, &recalled.warnings)
            == (read.status, read.attachments, &read.skipped, &read.warnings),
        "{recalled:#?} instead of {read:#?}"
    );
    ensure!(recalling.store.state_digest() == reading.store.state_digest(), "the states differ");
    Ok(recalled)
}

#[test]
fn a_newer_chatgpt_export_ends_as_if_all_of_it_were_read() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (older, newer) = (dir.path().join("older"), dir.path().join("newer"));
    chatgpt_later(&older, BYTES, 7, 0)?;
    let made = chatgpt_later(&newer, BYTES, 7, 3)?;
    let record = import_with_and_without_reuse(&older, &newer)?;
    ensure!(record.conversations.found == made.conversations && record.conversations.new == 0);
    ensure!(
        record.conversations.updated > 0 && record.conversations.unchanged > record.conversations.updated
    );
    ensure!(record.messages.found == made.messages && record.memories.found > 0, "{record:#?}");
    Ok(())
}

#[test]
fn a_newer_claude_export_ends_as_if_all_of_it_were_read() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (older, newer) = (dir.path().join("older"), dir.path().join("newer"));
    claude(&older, BYTES, 7)?;
    claude(&newer, BYTES, 7)?;
    let path = newer.join("conversations.json");
    let mut all: Value = serde_json::from_slice(&fs::read(&path)?)?;
    let list = all.as_array_mut().context("a list")?;
    list[3]["name"] = json!("Another name");
    list.remove(5);
    fs::write(&path, serde_json::to_vec(&all)?)?;
    let record = import_with_and_without_reuse(&older, &newer)?;
    ensure!(record.conversations.found > 10, "{record:#?}");
    Ok(())
}

/// A piece that one import read and another recalled belongs to both: it remains if either is undone and disappears
/// with the second.
#[test]
fn a_reused_piece_is_contributed_by_both_imports() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (older, newer) = (dir.path().join("older"), dir.path().join("newer"));
    chatgpt_later(&older, BYTES, 11, 0)?;
    chatgpt_later(&newer, BYTES, 11, 4)?;
    let alone = |export: &Path| -> Result<_> {
        let dir = tempfile::tempdir()?;
        let core = TestCore::open(dir.path())?;
        core.import(export)?;
        core.state()
    };
    let (only_older, only_newer) = (alone(&older)?, alone(&newer)?);
    let core = TestCore::open(&dir.path().join("data"))?;
    let first = only_import(core.import(&older)?)?;
    let second = only_import(core.import(&newer)?)?;
    ensure!(second.conversations.unchanged > 0, "{second:#?}");
    undo_or_redo(&core, &first.id, UndoDirection::Undo)?;
    ensure!(core.state()? == only_newer, "the state is not that of the newer export alone");
    undo_or_redo(&core, &second.id, UndoDirection::Undo)?;
    ensure!(core.state()?.conversations.is_empty(), "conversations remain");
    let third = only_import(core.import(&older)?)?;
    ensure!(third.conversations.new == first.conversations.new, "the export was not read again: {third:#?}");
    ensure!(core.state()? == only_older, "the state is not that of the older export alone");
    undo_or_redo(&core, &second.id, UndoDirection::Redo)?;
    undo_or_redo(&core, &third.id, UndoDirection::Undo)?;
    ensure!(core.state()? == only_newer, "the state is not that of the newer export alone after the redo");
    Ok(())
}

/// The same records in other files are recognised by their bytes, wherever they are; their warnings are repeated.
#[test]
fn every_sample_gives_the_same_when_its_pieces_are_reused() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (recalling, reading) =
        (TestCore::open(&dir.path().join("recalling"))?, TestCore::open(&dir.path().join("reading"))?);
    for (number, sample) in samples()?.into_iter().enumerate() {
        let copy = dir.path().join(number.to_string());
        satchel_tests::samples::copy(&sample.input, &copy)?;
        fs::write(copy.join("another-file.txt"), number.to_string())?;
        for input in [&sample.input, &copy] {
            let recalled = recalling.run(request(input, false))?;
            let read = reading.run(request(input, true))?;
            let whole = recalled.iter().all(|record| record.status != ImportStatus::Unchanged);
            let same = comparable(&recalled) == comparable(&read);
            ensure!(same || !whole, "{sample:?}: {recalled:#?} instead of {read:#?}");
        }
        ensure!(
            recalling.store.state_digest() == reading.store.state_digest(),
            "{sample:?}: the states differ"
        );
    }
    Ok(())
}

fn comparable(records: &[ImportRecord]) -> Vec<([Counts; 3], ImportStatus, Vec<Skip>)> {
    records.iter().map(|record| (record_counts(record), record.status, record.skipped.clone())).collect()
}

/// Undoes or redoes an import.
fn undo_or_redo(core: &TestCore, id: &str, turn: UndoDirection) -> Result<()> {
    let request = UndoRequest { id, direction: turn, dry_run: false, expected: None };
    core.imports.undo_or_redo(request, &CancelToken::new())?.context("there is no such import")?;
    Ok(())
}

fn request(path: &Path, again: bool) -> satchel_core::ingest::ImportRequest {
    satchel_core::ingest::ImportRequest {
        path: path.to_owned(),
        provider: None,
        plugin: None,
        again,
        dry_run: false,
        apply: None,
    }
}

/// Returns the disk space of all files below `folder`; sled's files have a larger size than the space that they use.
fn disk_usage(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        sum += if metadata.is_dir() { disk_usage(&entry.path())? } else { metadata.blocks() * 512 };
    }
    Ok(sum)
}

/// Compares the disk space with that of the first import: for the journal, and for the whole data directory.
#[test]
fn ten_monthly_versions_of_an_export_use_less_than_twice_the_space_of_the_first() -> Result<()> {
    const MONTHS: u64 = 10;
    /// The step in which sled's files grow, whatever they contain. For a large export this is less than a hundredth;
    /// for this one it is more than the journal.
    const PIECE: u64 = 8 << 20;
    let folder = tempfile::tempdir()?;
    let (export, data) = (folder.path().join("export"), folder.path().join("data"));
    let mut first = [0; 2];
    for month in 0..MONTHS {
        chatgpt_later(&export, 6_000_000, 8, month)?;
        let core = TestCore::open(&data)?;
        let import = only_import(core.import(&export)?)?;
        // Each version is a different file with something new in it; otherwise the test would show nothing.
        ensure!(
            month == 0 || import.conversations.updated > 0 && import.conversations.unchanged > 0,
            "{import:?}"
        );
        core.close()?;
        let now = [disk_usage(&data.join("journal"))?, disk_usage(&data)?];
        if month == 0 {
            first = now;
        }
        let [journal, data] = now;
        ensure!(
            journal <= 2 * first[0],
            "month {month}: a journal of {journal} bytes, at first {}",
            first[0]
        );
        ensure!(data <= 2 * first[1] + PIECE, "month {month}: {data} bytes, at first {}", first[1]);
    }
    Ok(())
}
