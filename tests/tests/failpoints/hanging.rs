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
    JobView, Phase, Silent,
    receipt::{ImportRecord, ImportStatus, LISTED_SKIPS},
};
use satchel_tests::{
    archive::{Archive, only},
    generate,
};
use serde_json::json;
use tokio::sync::watch;

use crate::{
    gate::Gate,
    settling::{begin, ended},
};

/// Upper limit for any short operation, even on a machine that does other work.
const PATIENCE: Duration = Duration::from_mins(2);

fn talks(folder: &Path, name: &str, bytes: u64, seed: u64) -> Result<std::path::PathBuf> {
    let path = folder.join(name);
    generate::chatgpt(&path, bytes, seed)?;
    Ok(path)
}

fn until(mut wanted: impl FnMut() -> bool) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    while !wanted() {
        ensure!(Instant::now() < end, "it never came");
        std::thread::park_timeout(Duration::from_millis(10));
    }
    Ok(())
}

#[test]
fn two_sources_that_do_not_answer_hold_no_other_and_are_cancelled() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let exports = [1, 2, 3].map(|seed| talks(folder.path(), &format!("export-{seed}"), 20_000, seed));
    let [one, two, other] = exports;
    let (one, two, other) = (one?, two?, other?);
    let archive = Archive::open(&folder.path().join("data"))?;
    archive.imports.set_patience(Duration::from_millis(100));
    let gate = Gate::at("source asked", 2);
    let (first, mut hangs) = begin(&archive, &one)?;
    let (second, mut answers) = begin(&archive, &two)?;
    gate.somebody()?;
    gate.somebody()?;
    // Both hanging jobs lost their slots to other jobs.
    let through = only(archive.import(&other)?)?;
    ensure!(through.status == ImportStatus::Completed, "{through:?}");
    let silent: Vec<Silent> = archive.imports.silent();
    let mut told: Vec<String> = silent.iter().map(|silent| silent.job.to_string()).collect();
    told.sort();
    let mut both = vec![first.clone(), second];
    both.sort();
    ensure!(told == both && silent.iter().any(|silent| silent.path == one), "{silent:?}");
    ensure!(archive.imports.cancel(&first), "no such job runs");
    // The gate is still closed: the job ends although the source does not answer. Another test proves that each part of
    // this takes less than a second (`a_cancel_takes_effect_within_a_second`).
    let import = ended(&mut hangs)?;
    let reason = import.reason.clone().unwrap_or_default();
    ensure!(import.status == ImportStatus::Cancelled && reason.contains("did not answer"), "{import:?}");
    ensure!(archive.imports.silent().len() == 1, "what was let go is still told");
    gate.open();
    ensure!(ended(&mut answers)?.status == ImportStatus::Completed, "what answers again does not go on");
    // The abandoned thread adds no further record.
    let of_one = |import: &&ImportRecord| import.path == one.display().to_string();
    let listed = archive.imports.list(None, 10)?.items;
    let said: Vec<_> = listed.iter().filter(of_one).map(|import| import.status).collect();
    ensure!(said == [ImportStatus::Cancelled], "{said:?}");
    ensure!(only(archive.import(&one)?)?.status == ImportStatus::Completed);
    drop(gate);
    archive.close()
}

#[test]
fn a_source_that_stops_in_the_middle_does_not_hold_the_turn() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let large = talks(folder.path(), "large", 24_000_000, 4)?;
    let small = talks(folder.path(), "small", 20_000, 5)?;
    let archive = Archive::open(&folder.path().join("data"))?;
    let job: Arc<Mutex<Option<watch::Receiver<JobView>>>> = Arc::default();
    let seen = Arc::clone(&job);
    // In the middle: some conversations were found and are not committed yet.
    let gate = Gate::when(
        "source asked",
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
    let (_, mut hangs) = begin(&archive, &large)?;
    *job.lock().unwrap_or_else(PoisonError::into_inner) = Some(hangs.clone());
    gate.somebody()?;
    let (_, mut goes) = begin(&archive, &small)?;
    ensure!(ended(&mut goes)?.status == ImportStatus::Completed);
    ensure!(hangs.borrow().phase == Phase::Reading, "it was not held");
    // The conversations found before the silence are stored and readable.
    until(|| archive.store.stats().is_ok_and(|stats| stats.conversations > 0))?;
    gate.open();
    ensure!(ended(&mut hangs)?.status == ImportStatus::Completed);
    drop(gate);
    archive.close()
}

#[test]
fn a_stop_does_not_wait_for_a_source_that_does_not_answer() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let export = talks(folder.path(), "export", 20_000, 6)?;
    let archive = Archive::open(&folder.path().join("data"))?;
    let gate = Gate::at("source asked", 1);
    let (_, mut hangs) = begin(&archive, &export)?;
    gate.somebody()?;
    ensure!(archive.imports.stop(PATIENCE), "it was waited for in vain");
    ensure!(ended(&mut hangs)?.status == ImportStatus::Cancelled);
    drop(gate);
    archive.close()
}

/// Writes conversation documents, each with a file of its own.
fn documents(folder: &Path, many: usize) -> Result<std::path::PathBuf> {
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
fn second_attachment() -> Gate {
    let asked = AtomicUsize::new(0);
    Gate::when("attachment asked", 1, Box::new(move || asked.fetch_add(1, Ordering::SeqCst) == 1))
}

#[test]
fn an_attachment_of_a_document_is_not_read_while_others_wait_to_write() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let bundle = documents(folder.path(), 3)?;
    let small = talks(folder.path(), "small", 20_000, 5)?;
    let archive = Archive::open(&folder.path().join("data"))?;
    let gate = second_attachment();
    let (_, mut hangs) = begin(&archive, &bundle)?;
    gate.somebody()?;
    let (_, mut goes) = begin(&archive, &small)?;
    ensure!(ended(&mut goes)?.status == ImportStatus::Completed);
    ensure!(hangs.borrow().phase == Phase::Reading, "it was not held");
    gate.open();
    let import = ended(&mut hangs)?;
    ensure!(import.status == ImportStatus::Completed && import.attachments == 3, "{import:?}");
    drop(gate);
    archive.close()
}

#[test]
fn a_document_that_is_cancelled_at_an_attachment_loses_nothing() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let bundle = documents(folder.path(), 3)?;
    let archive = Archive::open(&folder.path().join("data"))?;
    let gate = second_attachment();
    let (job, mut view) = begin(&archive, &bundle)?;
    gate.somebody()?;
    ensure!(archive.imports.cancel(&job), "no such job runs");
    gate.open();
    let import = ended(&mut view)?;
    ensure!(import.status == ImportStatus::Cancelled, "{import:?}");
    ensure!(import.skipped.is_empty(), "{import:?}");
    ensure!(!import.warnings.iter().any(|warning| warning.message.contains("attachment")), "{import:?}");
    let import = only(archive.import(&bundle)?)?;
    ensure!(import.status == ImportStatus::Completed && import.attachments == 3, "{import:?}");
    drop(gate);
    archive.close()
}

/// Writes an export with `broken` invalid conversations followed by some megabytes of valid ones.
fn broken_and_whole(folder: &Path, broken: usize) -> Result<std::path::PathBuf> {
    let (first, export) = (talks(folder, "first", 2, 8)?, talks(folder, "broken", 24_000_000, 9)?);
    let list = |export: &Path| -> Result<String> {
        let text = std::fs::read_to_string(export.join("conversations.json"))?;
        Ok(text.trim().trim_start_matches('[').trim_end_matches(']').to_owned())
    };
    let text = format!("[{},{}{}]", list(&first)?, "7,".repeat(broken), list(&export)?);
    std::fs::write(export.join("conversations.json"), text)?;
    Ok(export)
}

#[test]
fn the_receipt_of_a_job_that_was_let_go_lists_all_that_was_left_out_until_then() -> Result<()> {
    const BROKEN: usize = LISTED_SKIPS + 250;
    let folder = tempfile::tempdir()?;
    let export = broken_and_whole(folder.path(), BROKEN)?;
    let archive = Archive::open(&folder.path().join("data"))?;
    let job: Arc<Mutex<Option<watch::Receiver<JobView>>>> = Arc::default();
    let seen = Arc::clone(&job);
    let gate = Gate::when(
        "source asked",
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
    let (id, mut hangs) = begin(&archive, &export)?;
    *job.lock().unwrap_or_else(PoisonError::into_inner) = Some(hangs.clone());
    gate.somebody()?;
    // The records found before the silence are stored, including the last of the issues.
    let stored = || {
        let listed = archive.imports.list(None, 1).ok().and_then(|page| page.items.first().cloned());
        listed.is_some_and(|import| {
            archive
                .imports
                .issues(&import_seen(&hangs, &import), 0, 2 * BROKEN)
                .is_ok_and(|all| all.len() == BROKEN)
        })
    };
    until(stored)?;
    ensure!(archive.imports.cancel(&id), "no such job runs");
    let import = ended(&mut hangs)?;
    ensure!(import.status == ImportStatus::Cancelled, "{:?}", import.status);
    ensure!(import.conversations.balanced() && import.messages.balanced());
    ensure!(import.conversations.skipped == BROKEN as u64 && import.skipped.len() == LISTED_SKIPS);
    let kept = archive.imports.list(None, 10)?.items;
    let kept = kept.iter().find(|kept| kept.id == import.id).context("it is not in the history")?;
    ensure!(archive.imports.issues(kept, 0, 2 * BROKEN)?.len() == BROKEN, "some are told nowhere");
    gate.open();
    drop(gate);
    archive.close()
}

/// Returns the current state of the import in its job.
fn import_seen(view: &watch::Receiver<JobView>, import: &ImportRecord) -> ImportRecord {
    let running = view.borrow().imports.iter().find(|one| one.id == import.id).cloned();
    running.unwrap_or_else(|| import.clone())
}
