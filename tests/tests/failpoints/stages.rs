//! Cancellation in each stage: a job that is blocked in the middle of one does at most one more step after its release.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::ingest::{
    ImportRequest, JobView, Phase,
    receipt::{ImportRecord, ImportStatus},
};
use satchel_tests::{archive::Archive, exports::age, generate};
use tokio::sync::watch;

use crate::{
    gate::Gate,
    settling::{begin, ended, memories},
};

/// Number of bytes hashed between two checks for cancellation.
const CHUNK: u64 = 256 << 10;
/// Number of conversations in one batch, which is committed as a whole.
const BATCH: u64 = 256;

/// Blocks the thread with the `nth` arrival at `place`, counted from 0.
fn nth(place: &'static str, nth: usize) -> Gate {
    let came = Arc::new(AtomicUsize::new(0));
    Gate::when(place, 1, Box::new(move || came.fetch_add(1, Ordering::SeqCst) == nth))
}

/// Imports `export` and cancels the job when the gate blocks it; returns the job's state at that time, its last state,
/// and the receipt.
fn cancelled(archive: &Archive, export: &Path, gate: Gate) -> Result<(JobView, JobView, ImportRecord)> {
    let (job, mut view) = begin(archive, export)?;
    gate.somebody()?;
    let before = view.borrow().clone();
    ensure!(archive.imports.cancel(&job), "no such job runs");
    gate.open();
    let import = ended(&mut view)?;
    ensure!(import.status == ImportStatus::Cancelled, "{import:?}");
    ensure!(import.conversations.balanced() && import.messages.balanced(), "{import:?}");
    let after = view.borrow().clone();
    Ok((before, after, import))
}

/// Writes an export whose file is extended to `bytes` bytes with zeros that use no disk space.
fn endless(folder: &Path, bytes: u64) -> Result<PathBuf> {
    let export = folder.join("endless");
    generate::chatgpt(&export, 100_000, 3)?;
    File::options().write(true).open(export.join("conversations.json"))?.set_len(bytes)?;
    age(&export)?;
    Ok(export)
}

#[test]
fn a_file_of_gigabytes_is_hashed_no_further_than_the_next_chunk() -> Result<()> {
    const BYTES: u64 = 5 << 30;
    let folder = tempfile::tempdir()?;
    let export = endless(folder.path(), BYTES)?;
    let all = fs::read_dir(&export)?.map(|file| Ok(file?.metadata()?.len())).sum::<Result<u64>>()?;
    for (name, path, bytes) in [("file", export.join("conversations.json"), BYTES), ("folder", export, all)] {
        let archive = Archive::open(&folder.path().join(name))?;
        archive.note_size(bytes)?;
        // After hundreds of megabytes.
        let (before, after, _) = cancelled(&archive, &path, nth("bytes hashed", 1_200))?;
        ensure!(before.phase == Phase::Hashing && before.total >= BYTES, "{name}: {before:?}");
        ensure!(before.done >= 300 << 20, "{name}: {} bytes", before.done);
        ensure!(after.done - before.done <= CHUNK, "{name}: {} bytes more", after.done - before.done);
        archive.close()?;
    }
    Ok(())
}

#[test]
fn of_what_is_read_at_most_one_record_more_is_taken() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let export = folder.path().join("export");
    generate::chatgpt(&export, 8_000_000, 4)?;
    let archive = Archive::open(&folder.path().join("data"))?;
    let (before, _, import) = cancelled(&archive, &export, nth("record taken", 40))?;
    let found = |import: &ImportRecord| import.conversations.found;
    let then = before.imports.last().map(found).context("an import")?;
    ensure!(then > 0 && found(&import) - then <= 1, "{then}, then {}", found(&import));
    // Every counted conversation is stored.
    ensure!(archive.store.stats()?.conversations == found(&import));
    archive.close()
}

#[test]
fn after_a_commit_that_was_on_its_way_comes_no_other_but_the_receipt() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let export = folder.path().join("export");
    let written = generate::chatgpt(&export, 20_000_000, 5)?;
    ensure!(written.conversations > 2 * BATCH + 1, "{} conversations are one batch", written.conversations);
    let archive = Archive::open(&folder.path().join("data"))?;
    let (_, _, import) = cancelled(&archive, &export, nth("commit encoded", 0))?;
    ensure!(import.conversations.found <= BATCH + 1, "{import:?}");
    ensure!(archive.store.revision().get() <= 2, "{}", archive.store.revision().get());
    archive.close()
}

#[test]
fn a_source_that_is_looked_at_is_looked_at_no_further() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let export = folder.path().join("export");
    generate::chatgpt(&export, 20_000, 6)?;
    for which in 0..4 {
        let archive = Archive::open(&folder.path().join(which.to_string()))?;
        let (before, after, import) = cancelled(&archive, &export, nth("source asked", which))?;
        ensure!(before.phase == Phase::Looking && after.done == 0, "{before:?}, {after:?}");
        ensure!(import.conversations.found == 0 && import.provider.is_none(), "{import:?}");
        archive.close()?;
    }
    Ok(())
}

#[test]
fn a_dry_run_is_cancelled_while_it_plans() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let export = memories(folder.path())?;
    let archive = Archive::open(&folder.path().join("data"))?;
    let gate = Gate::at("settling begun", 1);
    let request = ImportRequest { path: export, provider: None, again: false, dry_run: true, apply: None };
    let job = archive.imports.start(request)?;
    let mut view: watch::Receiver<JobView> = archive.imports.subscribe(job).context("the job")?;
    gate.somebody()?;
    ensure!(archive.imports.cancel(&job.to_string()), "no such job runs");
    gate.open();
    let import = ended(&mut view)?;
    ensure!(import.status == ImportStatus::Cancelled && import.memories.found == 0, "{import:?}");
    archive.close()
}

/// An archive whose import is cancelled while its directory is read is not reported as damaged.
#[test]
fn an_archive_that_is_cancelled_while_it_is_opened_is_neither_damaged_nor_unknown() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let export = folder.path().join("export");
    generate::chatgpt(&export, 20_000, 7)?;
    let path = folder.path().join("export.zip");
    let mut zip = zip::ZipWriter::new(File::create(&path)?);
    for number in 0..500 {
        zip.start_file(format!("part-{number}.txt"), zip::write::SimpleFileOptions::default())?;
    }
    zip.start_file("conversations.json", zip::write::SimpleFileOptions::default())?;
    std::io::copy(&mut &fs::read(export.join("conversations.json"))?[..], &mut zip)?;
    zip.finish()?;
    let archive = Archive::open(&folder.path().join("data"))?;
    // The opening, and the third read of the archive's directory.
    let (before, _, import) = cancelled(&archive, &path, nth("source asked", 4))?;
    ensure!(before.phase == Phase::Looking && import.warnings.is_empty(), "{import:?}");
    ensure!(import.reason.is_none(), "{import:?}");
    archive.close()
}
