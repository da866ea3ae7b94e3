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
use satchel_tests::{generate, samples::backdate, test_core::TestCore};
use tokio::sync::watch;

use crate::{
    cancel_while_deriving::{start_import, wait_until_ended, write_memu_export},
    gate::Gate,
};

/// Number of bytes hashed between two checks for cancellation.
const CHUNK_BYTES: u64 = 256 << 10;
/// Number of conversations in one batch, which is committed as a whole.
const BATCH_CONVERSATIONS: u64 = 256;

/// Blocks the thread with the `nth` arrival at `failpoint`, counted from 0.
fn gate_at_nth(failpoint: &'static str, nth: usize) -> Gate {
    let arrivals = Arc::new(AtomicUsize::new(0));
    Gate::when(failpoint, 1, Box::new(move || arrivals.fetch_add(1, Ordering::SeqCst) == nth))
}

/// Imports `export` and cancels the job when the gate blocks it; returns the job's state at that time, its last state,
/// and the receipt.
fn import_and_cancel(core: &TestCore, export: &Path, gate: Gate) -> Result<(JobView, JobView, ImportRecord)> {
    let (job, mut view) = start_import(core, export)?;
    gate.wait_for_thread()?;
    let before = view.borrow().clone();
    ensure!(core.imports.cancel(&job), "no such job runs");
    gate.open();
    let import = wait_until_ended(&mut view)?;
    ensure!(import.status == ImportStatus::Cancelled, "{import:?}");
    ensure!(import.conversations.balanced() && import.messages.balanced(), "{import:?}");
    let after = view.borrow().clone();
    Ok((before, after, import))
}

/// Writes an export whose file is extended to `bytes` bytes with zeros that use no disk space.
fn write_huge_export(folder: &Path, bytes: u64) -> Result<PathBuf> {
    let export = folder.join("endless");
    generate::chatgpt(&export, 100_000, 3)?;
    File::options().write(true).open(export.join("conversations.json"))?.set_len(bytes)?;
    backdate(&export)?;
    Ok(export)
}

#[test]
fn hashing_stops_at_the_next_chunk() -> Result<()> {
    const BYTES: u64 = 5 << 30;
    let folder = tempfile::tempdir()?;
    let export = write_huge_export(folder.path(), BYTES)?;
    let all = fs::read_dir(&export)?.map(|file| Ok(file?.metadata()?.len())).sum::<Result<u64>>()?;
    for (name, path, bytes) in [("file", export.join("conversations.json"), BYTES), ("folder", export, all)] {
        let core = TestCore::open(&folder.path().join(name))?;
        core.record_source_size(bytes)?;
        // After hundreds of megabytes.
        let (before, after, _) = import_and_cancel(&core, &path, gate_at_nth("bytes hashed", 1_200))?;
        ensure!(before.phase == Phase::Hashing && before.total >= BYTES, "{name}: {before:?}");
        ensure!(before.done >= 300 << 20, "{name}: {} bytes", before.done);
        ensure!(after.done - before.done <= CHUNK_BYTES, "{name}: {} bytes more", after.done - before.done);
        core.close()?;
    }
    Ok(())
}

#[test]
fn reading_stops_after_at_most_one_more_record() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let export = folder.path().join("export");
    generate::chatgpt(&export, 8_000_000, 4)?;
    let core = TestCore::open(&folder.path().join("data"))?;
    let (before, _, import) = import_and_cancel(&core, &export, gate_at_nth("record received", 40))?;
    let found = |import: &ImportRecord| import.conversations.found;
    let then = before.imports.last().map(found).context("an import")?;
    ensure!(then > 0 && found(&import) - then <= 1, "{then}, then {}", found(&import));
    // Every counted conversation is stored.
    ensure!(core.store.stats()?.conversations == found(&import));
    core.close()
}

#[test]
fn only_the_receipt_is_committed_after_a_commit_in_progress() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let export = folder.path().join("export");
    let written = generate::chatgpt(&export, 20_000_000, 5)?;
    ensure!(
        written.conversations > 2 * BATCH_CONVERSATIONS + 1,
        "{} conversations are one batch",
        written.conversations
    );
    let core = TestCore::open(&folder.path().join("data"))?;
    let (_, _, import) = import_and_cancel(&core, &export, gate_at_nth("commit encoded", 0))?;
    ensure!(import.conversations.found <= BATCH_CONVERSATIONS + 1, "{import:?}");
    ensure!(core.store.revision().get() <= 2, "{}", core.store.revision().get());
    core.close()
}

#[test]
fn detection_stops_at_the_next_read() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let export = folder.path().join("export");
    generate::chatgpt(&export, 20_000, 6)?;
    for which in 0..4 {
        let core = TestCore::open(&folder.path().join(which.to_string()))?;
        let (before, after, import) = import_and_cancel(&core, &export, gate_at_nth("source called", which))?;
        ensure!(before.phase == Phase::Looking && after.done == 0, "{before:?}, {after:?}");
        ensure!(import.conversations.found == 0 && import.provider.is_none(), "{import:?}");
        core.close()?;
    }
    Ok(())
}

#[test]
fn a_dry_run_is_cancelled_while_it_plans() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let export = write_memu_export(folder.path())?;
    let core = TestCore::open(&folder.path().join("data"))?;
    let gate = Gate::at("derivation started", 1);
    let request = ImportRequest {
        path: export,
        provider: None,
        plugin: None,
        again: false,
        dry_run: true,
        apply: None,
    };
    let job = core.imports.start(request)?;
    let mut view: watch::Receiver<JobView> = core.imports.subscribe(job).context("the job")?;
    gate.wait_for_thread()?;
    ensure!(core.imports.cancel(&job.to_string()), "no such job runs");
    gate.open();
    let import = wait_until_ended(&mut view)?;
    ensure!(import.status == ImportStatus::Cancelled && import.memories.found == 0, "{import:?}");
    core.close()
}

/// An archive whose import is cancelled while its directory is read is not reported as damaged.
#[test]
fn an_import_cancelled_while_its_archive_is_opened_does_not_report_damage() -> Result<()> {
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
    let core = TestCore::open(&folder.path().join("data"))?;
    // The opening, and the third read of the archive's directory.
    let (before, _, import) = import_and_cancel(&core, &path, gate_at_nth("source called", 4))?;
    ensure!(before.phase == Phase::Looking && import.warnings.is_empty(), "{import:?}");
    ensure!(import.reason.is_none(), "{import:?}");
    core.close()
}
