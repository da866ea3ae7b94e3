//! A source that does not answer, like a file on a dead network share: others continue, it is reported, and a cancel
//! ends the job.

use std::{
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::ingest::{
    JobView, Phase, StalledJob,
    receipt::{ImportRecord, ImportStatus, LISTED_SKIPS},
};
use satchel_tests::{
    generate,
    test_core::{TestCore, only_import},
};
use serde_json::json;
use tokio::sync::watch;

use crate::{
    cancel_while_deriving::{start_import, wait_until_ended},
    gate::Gate,
};

/// Upper limit for any short operation, even on a machine that does other work.
const WAIT_TIMEOUT: Duration = Duration::from_mins(2);

fn write_export(folder: &Path, name: &str, bytes: u64, seed: u64) -> Result<std::path::PathBuf> {
    let path = folder.join(name);
    generate::chatgpt(&path, bytes, seed)?;
    Ok(path)
}

fn wait_until(mut wanted: impl FnMut() -> bool) -> Result<()> {
    let end = Instant::now() + WAIT_TIMEOUT;
    while !wanted() {
        ensure!(Instant::now() < end, "timed out");
        std::thread::park_timeout(Duration::from_millis(10));
    }
    Ok(())
}

#[test]
fn two_unresponsive_sources_do_not_block_others_and_can_be_cancelled() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let exports = [1, 2, 3].map(|seed| write_export(folder.path(), &format!("export-{seed}"), 20_000, seed));
    let [one, two, other] = exports;
    let (one, two, other) = (one?, two?, other?);
    let core = TestCore::open(&folder.path().join("data"))?;
    core.imports.set_patience(Duration::from_millis(100));
    let gate = Gate::at("source called", 2);
    let (first, mut blocked) = start_import(&core, &one)?;
    let (second, mut answers) = start_import(&core, &two)?;
    gate.wait_for_thread()?;
    gate.wait_for_thread()?;
    // Both hanging jobs lost their slots to other jobs.
    let through = only_import(core.import(&other)?)?;
    ensure!(through.status == ImportStatus::Completed, "{through:?}");
    let silent: Vec<StalledJob> = core.imports.stalled();
    let mut stalled_jobs: Vec<String> = silent.iter().map(|silent| silent.job.to_string()).collect();
    stalled_jobs.sort();
    let mut both = vec![first.clone(), second];
    both.sort();
    ensure!(stalled_jobs == both && silent.iter().any(|silent| silent.path == one), "{silent:?}");
    ensure!(core.imports.cancel(&first), "no such job runs");
    // The gate is still closed: the job ends although the source does not answer. Another test proves that each part of
    // this takes less than a second (`a_cancel_takes_effect_within_a_second`).
    let import = wait_until_ended(&mut blocked)?;
    let reason = import.reason.clone().unwrap_or_default();
    ensure!(import.status == ImportStatus::Cancelled && reason.contains("did not answer"), "{import:?}");
    ensure!(core.imports.stalled().len() == 1, "the cancelled job is still reported as stalled");
    gate.open();
    ensure!(
        wait_until_ended(&mut answers)?.status == ImportStatus::Completed,
        "the import did not continue when its source answered"
    );
    // The abandoned thread adds no further record.
    let of_one = |import: &&ImportRecord| import.path == one.display().to_string();
    let listed = core.imports.list(None, 10)?.items;
    let statuses: Vec<_> = listed.iter().filter(of_one).map(|import| import.status).collect();
    ensure!(statuses == [ImportStatus::Cancelled], "{statuses:?}");
    ensure!(only_import(core.import(&one)?)?.status == ImportStatus::Completed);
    drop(gate);
    core.close()
}

#[test]
fn a_source_that_stalls_in_the_middle_does_not_hold_the_write_lock() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let large = write_export(folder.path(), "large", 24_000_000, 4)?;
    let small = write_export(folder.path(), "small", 20_000, 5)?;
    let core = TestCore::open(&folder.path().join("data"))?;
    let job: Arc<Mutex<Option<watch::Receiver<JobView>>>> = Arc::default();
    let seen = Arc::clone(&job);
    // In the middle: some conversations were found and are not committed yet.
    let gate = Gate::when(
        "source called",
        1,
        Box::new(move || {
            let job = seen.lock().unwrap_or_else(PoisonError::into_inner);
            job.as_ref().is_some_and(|view| {
                let view = view.borrow();
                view.phase == Phase::Reading
                    && view.imports.last().is_some_and(|import| import.conversations.found > 0)
            })
        }),
    );
    let (_, mut blocked) = start_import(&core, &large)?;
    *job.lock().unwrap_or_else(PoisonError::into_inner) = Some(blocked.clone());
    gate.wait_for_thread()?;
    let (_, mut other_view) = start_import(&core, &small)?;
    ensure!(wait_until_ended(&mut other_view)?.status == ImportStatus::Completed);
    ensure!(blocked.borrow().phase == Phase::Reading, "the import was not blocked");
    // The conversations found before the silence are stored and readable.
    wait_until(|| core.store.stats().is_ok_and(|stats| stats.conversations > 0))?;
    gate.open();
    ensure!(wait_until_ended(&mut blocked)?.status == ImportStatus::Completed);
    drop(gate);
    core.close()
}

#[test]
fn shutdown_does_not_wait_for_an_unresponsive_source() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let export = write_export(folder.path(), "export", 20_000, 6)?;
    let core = TestCore::open(&folder.path().join("data"))?;
    let gate = Gate::at("source called", 1);
    let (_, mut blocked) = start_import(&core, &export)?;
    gate.wait_for_thread()?;
    ensure!(core.imports.stop(WAIT_TIMEOUT), "the shutdown timed out");
    ensure!(wait_until_ended(&mut blocked)?.status == ImportStatus::Cancelled);
    drop(gate);
    core.close()
}

/// Writes conversation documents, each with a file of its own.
fn write_documents(folder: &Path, many: usize) -> Result<std::path::PathBuf> {
    let bundle = folder.join("documents");
    std::fs::create_dir_all(bundle.join("media"))?;
    for number in 0..many {
        let file = format!("media/{number}.png");
        std::fs::write(bundle.join(&file), format!("picture {number}"))?;
        let document = json!({
            "schema": "portable-ai-memory-conversation", "schema_version": "1.0", "id": format!("talk-{number}"),
            "provider": {"name": "elsewhere"}, "temporal": {"created_at": "2026-01-02T03:04:05Z"},
            "messages": [{
                "id": format!("m{number}"), "role": "user", "content": {"type": "text", "text": "Look"},
                "created_at": "2026-01-02T03:04:05Z",
                "attachments": [{"type": "image", "name": "one.png", "ref": file}],
            }],
        });
        std::fs::write(bundle.join(format!("talk-{number}.json")), serde_json::to_vec(&document)?)?;
    }
    Ok(bundle)
}

/// Blocks the request for the second attachment, while a conversation waits to be committed.
fn gate_at_second_attachment() -> Gate {
    let requests = AtomicUsize::new(0);
    Gate::when("attachment requested", 1, Box::new(move || requests.fetch_add(1, Ordering::SeqCst) == 1))
}

#[test]
fn the_write_lock_is_not_held_while_an_attachment_is_read() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let bundle = write_documents(folder.path(), 3)?;
    let small = write_export(folder.path(), "small", 20_000, 5)?;
    let core = TestCore::open(&folder.path().join("data"))?;
    let gate = gate_at_second_attachment();
    let (_, mut blocked) = start_import(&core, &bundle)?;
    gate.wait_for_thread()?;
    let (_, mut other_view) = start_import(&core, &small)?;
    ensure!(wait_until_ended(&mut other_view)?.status == ImportStatus::Completed);
    ensure!(blocked.borrow().phase == Phase::Reading, "the import was not blocked");
    gate.open();
    let import = wait_until_ended(&mut blocked)?;
    ensure!(import.status == ImportStatus::Completed && import.attachments == 3, "{import:?}");
    drop(gate);
    core.close()
}

#[test]
fn an_import_cancelled_at_an_attachment_loses_nothing() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let bundle = write_documents(folder.path(), 3)?;
    let core = TestCore::open(&folder.path().join("data"))?;
    let gate = gate_at_second_attachment();
    let (job, mut view) = start_import(&core, &bundle)?;
    gate.wait_for_thread()?;
    ensure!(core.imports.cancel(&job), "no such job runs");
    gate.open();
    let import = wait_until_ended(&mut view)?;
    ensure!(import.status == ImportStatus::Cancelled, "{import:?}");
    ensure!(import.skipped.is_empty(), "{import:?}");
    ensure!(!import.warnings.iter().any(|warning| warning.message.contains("attachment")), "{import:?}");
    let import = only_import(core.import(&bundle)?)?;
    ensure!(import.status == ImportStatus::Completed && import.attachments == 3, "{import:?}");
    drop(gate);
    core.close()
}

/// Writes an export with `broken` invalid conversations followed by some megabytes of valid ones.
fn write_broken_and_valid(folder: &Path, broken: usize) -> Result<std::path::PathBuf> {
    let (first, export) =
        (write_export(folder, "first", 2, 8)?, write_export(folder, "broken", 24_000_000, 9)?);
    let list = |export: &Path| -> Result<String> {
        let text = std::fs::read_to_string(export.join("conversations.json"))?;
        Ok(text.trim().trim_start_matches('[').trim_end_matches(']').to_owned())
    };
    let text = format!("[{},{}{}]", list(&first)?, "7,".repeat(broken), list(&export)?);
    std::fs::write(export.join("conversations.json"), text)?;
    Ok(export)
}

#[test]
fn the_receipt_of_an_abandoned_job_lists_all_records_skipped_so_far() -> Result<()> {
    const BROKEN: usize = LISTED_SKIPS + 250;
    let folder = tempfile::tempdir()?;
    let export = write_broken_and_valid(folder.path(), BROKEN)?;
    let core = TestCore::open(&folder.path().join("data"))?;
    let job: Arc<Mutex<Option<watch::Receiver<JobView>>>> = Arc::default();
    let seen = Arc::clone(&job);
    let gate = Gate::when(
        "source called",
        1,
        Box::new(move || {
            let job = seen.lock().unwrap_or_else(PoisonError::into_inner);
            job.as_ref().is_some_and(|view| {
                view.borrow()
                    .imports
                    .last()
                    .is_some_and(|import| import.conversations.skipped == BROKEN as u64)
            })
        }),
    );
    let (id, mut blocked) = start_import(&core, &export)?;
    *job.lock().unwrap_or_else(PoisonError::into_inner) = Some(blocked.clone());
    gate.wait_for_thread()?;
    // The records found before the silence are stored, including the last of the issues.
    let stored = || {
        let listed = core.imports.list(None, 1).ok().and_then(|page| page.items.first().cloned());
        listed.is_some_and(|import| {
            core.imports
                .issues(&current_import(&blocked, &import), 0, 2 * BROKEN)
                .is_ok_and(|all| all.len() == BROKEN)
        })
    };
    wait_until(stored)?;
    ensure!(core.imports.cancel(&id), "no such job runs");
    let import = wait_until_ended(&mut blocked)?;
    ensure!(import.status == ImportStatus::Cancelled, "{:?}", import.status);
    ensure!(import.conversations.balanced() && import.messages.balanced());
    ensure!(import.conversations.skipped == BROKEN as u64 && import.skipped.len() == LISTED_SKIPS);
    let stored = core.imports.list(None, 10)?.items;
    let stored =
        stored.iter().find(|stored| stored.id == import.id).context("the import is not in the history")?;
    ensure!(core.imports.issues(stored, 0, 2 * BROKEN)?.len() == BROKEN, "some issues are not listed");
    gate.open();
    drop(gate);
    core.close()
}

/// Returns the current state of the import in its job.
fn current_import(view: &watch::Receiver<JobView>, import: &ImportRecord) -> ImportRecord {
    let running = view.borrow().imports.iter().find(|one| one.id == import.id).cloned();
    running.unwrap_or_else(|| import.clone())
}
