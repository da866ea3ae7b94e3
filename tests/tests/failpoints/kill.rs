//! A process that is killed at any failpoint loses nothing that was confirmed, and its unfinished work is completed
//! later.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
};

use anyhow::{Context as _, Result, bail, ensure};
use satchel_bundle::verify;
use satchel_core::{
    backup::restore,
    export::ExportRecord,
    ingest::receipt::{ImportRecord, ImportStatus},
    vault::UnlockOptions,
};
use satchel_store::{Health, OpenOptions, Store};
use satchel_tests::test_core::{ExportedState, TestCore, only_import};
use tempfile::TempDir;

use crate::{
    gate::exclusive,
    workload::{KilledWorkload, WorkloadFixture},
};

/// Set in the child: the workload, its folder, the failpoint at which it dies, and the number of the arrival there.
/// Without a failpoint it survives.
const WORKLOAD: &str = "SATCHEL_TEST_POINTS_SCENE";
const FOLDER: &str = "SATCHEL_TEST_POINTS_FOLDER";
const FAILPOINT: &str = "SATCHEL_TEST_POINTS_PLACE";
const ARRIVAL: &str = "SATCHEL_TEST_POINTS_TIME";
/// Number of child processes that run at the same time.
const PARALLEL_CHILDREN: usize = 3;

/// Not a separate test: it runs in the child process of the test below.
#[test]
fn child_killed_at_failpoint() -> Result<()> {
    let Ok(name) = std::env::var(WORKLOAD) else { return Ok(()) };
    let folder = PathBuf::from(std::env::var_os(FOLDER).context("a folder")?);
    let (failpoint, arrival) = (std::env::var(FAILPOINT)?, std::env::var(ARRIVAL)?.parse::<u64>()?);
    let workload =
        KilledWorkload::ALL.into_iter().find(|workload| workload.name() == name).context("a scene")?;
    let counts = Mutex::new(BTreeMap::<&str, u64>::new());
    let log = folder.join("failpoints");
    ensure!(satchel_failpoints::listen(move |reached| {
        let Ok(mut counts) = counts.lock() else { return };
        let count = counts.entry(reached).or_default();
        *count += 1;
        if reached == failpoint && *count == arrival {
            let this = rustix::process::getpid();
            rustix::process::kill_process(this, rustix::process::Signal::KILL).unwrap_or_default();
        }
        if failpoint.is_empty() {
            let lines: Vec<String> =
                counts.iter().map(|(failpoint, times)| format!("{times} {failpoint}")).collect();
            drop(fs::write(&log, lines.join("\n")));
        }
    }));
    workload.run(&folder)
}

/// Runs the child; returns true if it was killed.
fn run_child(workload: KilledWorkload, folder: &Path, failpoint: &str, arrival: u64) -> Result<bool> {
    let arguments = ["--exact", "kill::child_killed_at_failpoint", "--test-threads", "1"];
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).env(WORKLOAD, workload.name()).env(FOLDER, folder);
    command.env(FAILPOINT, failpoint).env(ARRIVAL, arrival.to_string());
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.code().is_some_and(|code| code != 0) {
        bail!("the child failed: {}", String::from_utf8_lossy(&output.stdout));
    }
    Ok(!output.status.success())
}

/// The states before a workload starts and after it has ended.
struct ExpectedStates {
    before: ExportedState,
    after: ExportedState,
}

/// Returns all failpoints that a workload reaches, and how often.
fn reached_failpoints(fixture: &WorkloadFixture, workload: KilledWorkload) -> Result<Vec<(String, u64)>> {
    let folder = memory_tempdir()?;
    fixture.copy_to(workload, folder.path())?;
    ensure!(!run_child(workload, folder.path(), "", 0)?, "the child died by itself");
    let log = fs::read_to_string(folder.path().join("failpoints"))?;
    let parse = |line: &str| -> Result<(String, u64)> {
        let (times, failpoint) = line.split_once(' ').context("a line")?;
        Ok((failpoint.to_owned(), times.parse()?))
    };
    let failpoints: Vec<(String, u64)> = log.lines().map(parse).collect::<Result<_>>()?;
    let named: BTreeMap<&str, u64> =
        failpoints.iter().map(|(failpoint, times)| (failpoint.as_str(), *times)).collect();
    for failpoint in workload.failpoints() {
        ensure!(named.contains_key(failpoint), "{workload:?} does not reach {failpoint:?}: {named:?}");
    }
    Ok(failpoints)
}

#[test]
fn work_killed_at_any_failpoint_is_completed_and_loses_nothing() -> Result<()> {
    let _alone = exclusive();
    let folder = memory_tempdir()?;
    let fixture = WorkloadFixture::create(folder.path())?;
    let state = |name: &str| TestCore::open(&folder.path().join(name).join("data"))?.state();
    let expected = ExpectedStates { before: state("before")?, after: state("after")? };
    ensure!(expected.before != expected.after, "the import changed nothing");
    let mut cases = Vec::new();
    for workload in KilledWorkload::ALL {
        for (failpoint, times) in reached_failpoints(&fixture, workload)? {
            // The store's own tests try each step of a commit; a longer run tries them here too.
            let own = workload.failpoints().contains(&failpoint.as_str());
            if own || rounds() > 1 {
                let more = (1..rounds()).map(|round| 1 + round * 7 % times);
                let mut chosen: Vec<u64> = [1, times].into_iter().chain(more).collect();
                chosen.sort_unstable();
                chosen.dedup();
                cases.extend(chosen.into_iter().map(|arrival| (workload, failpoint.clone(), arrival)));
            }
        }
    }
    ensure!(cases.len() >= 25, "only {} cases", cases.len());
    let (next, failed) = (Mutex::new(cases.into_iter()), Mutex::new(Vec::new()));
    let take = || next.lock().ok().and_then(|mut cases| cases.next());
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL_CHILDREN {
            scope.spawn(|| {
                while let Some((workload, failpoint, arrival)) = take() {
                    let tried = kill_and_check(&fixture, workload, (&failpoint, arrival), &expected);
                    if let (Err(error), Ok(mut failed)) = (tried, failed.lock()) {
                        failed
                            .push(format!("{workload:?} killed at {failpoint:?}, time {arrival}: {error:?}"));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner()?;
    ensure!(failed.is_empty(), "{}", failed.join("\n\n"));
    Ok(())
}

fn kill_and_check(
    fixture: &WorkloadFixture,
    workload: KilledWorkload,
    (failpoint, arrival): (&str, u64),
    expected: &ExpectedStates,
) -> Result<()> {
    let folder = memory_tempdir()?;
    let folder = folder.path();
    fixture.copy_to(workload, folder)?;
    ensure!(run_child(workload, folder, failpoint, arrival)?, "the child was not killed");
    let core = TestCore::open(&folder.join("data"))?;
    ensure!(core.store.health() == Health::Good, "{:?}", core.store.health());
    let report = core.store.check(true, &mut |_| {})?;
    ensure!(report.clean(), "{report:?}");
    match workload {
        KilledWorkload::Import => assert_import_completed(&core, folder, expected)?,
        KilledWorkload::Undo => assert_undo_completed(&core, fixture, expected, failpoint)?,
        KilledWorkload::Export => assert_exports_complete(&core, folder, expected)?,
        KilledWorkload::Backup => assert_backup_complete(&core, folder)?,
    }
    let digest = core.store.state_digest();
    core.close()?;
    if arrival > 1 && rounds() == 1 {
        return Ok(());
    }
    let options = OpenOptions { rebuild: true, ..OpenOptions::default() };
    let rebuilt = Store::open(&folder.join("data"), options, &mut |_| {})?;
    ensure!(rebuilt.state_digest() == digest, "the rebuilt state differs");
    Ok(rebuilt.close()?)
}

/// Checks that the next full export contains everything confirmed before, that a repeated import completes the rest,
/// and that a third one changes nothing.
fn assert_import_completed(core: &TestCore, folder: &Path, expected: &ExpectedStates) -> Result<()> {
    let left = core.state()?;
    for (name, conversation) in &expected.before.conversations {
        ensure!(left.conversations.get(name) == Some(conversation), "{name} is not in the next full export");
    }
    for memory in &expected.before.memories {
        ensure!(left.memories.contains(memory), "{} is not in the next full export", memory["id"]);
    }
    let listed = core.imports.list(None, 10)?.items;
    ensure!(listed.iter().all(ImportRecord::ended), "an import is listed as running: {listed:?}");
    let import = only_import(core.import(&folder.join("memories"))?)?;
    let done = [ImportStatus::Completed, ImportStatus::CompletedWithSkips, ImportStatus::Unchanged];
    ensure!(done.contains(&import.status), "{:?} {:?}", import.status, import.reason);
    ensure!(core.state()? == expected.after, "the import was not completed");
    let digest = core.store.state_digest();
    let again = only_import(core.import(&folder.join("memories"))?)?;
    ensure!(again.status == ImportStatus::Unchanged, "{again:?}");
    ensure!(core.store.state_digest() == digest, "a repeated import changed the store");
    Ok(())
}

/// Checks that the start has completed the undo: the state shown is the one before or the one after, and the history
/// says which one and who completed it.
fn assert_undo_completed(
    core: &TestCore,
    fixture: &WorkloadFixture,
    expected: &ExpectedStates,
    failpoint: &str,
) -> Result<()> {
    let import = core.imports.get(&fixture.undone_import)?.context("the import")?;
    let reason = import.reason.clone().unwrap_or_default();
    let undone = import.status == ImportStatus::Undone;
    ensure!(!reason.contains("has not ended"), "the undo was not completed: {reason}");
    let shown = if undone { &expected.before } else { &expected.after };
    ensure!(core.state()? == *shown, "the state does not match the history: {reason}");
    let between = ["undo recorded", "undo of conversations stored", "undo of memories stored", "undo done"];
    if undone && between.contains(&failpoint) {
        ensure!(reason.contains("by the next start"), "the history does not say who completed it: {reason}");
    }
    Ok(())
}

/// Checks that every file with its final name is complete, that all others are hidden, and that the next export
/// contains everything.
fn assert_exports_complete(core: &TestCore, folder: &Path, expected: &ExpectedStates) -> Result<()> {
    let strict = verify::VerifyOptions { strict: true, ..verify::VerifyOptions::default() };
    for entry in fs::read_dir(folder.join("out"))? {
        let path = entry?.path();
        let name = path.file_name().context("a name")?.to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let report = verify::path(&path, &strict)?;
        ensure!(report.valid, "{name}: {:?}", report.issues);
    }
    ensure!(core.state()? == expected.after, "a record is not in the next full export");
    // Every export that the ledger lists exists.
    let known: Vec<ExportRecord> = core.exports.list(None, 10)?.items;
    for record in known.iter().filter(|record| record.path.contains("/out/")) {
        ensure!(Path::new(&record.path).exists(), "{} is listed but does not exist", record.path);
    }
    Ok(())
}

fn assert_backup_complete(core: &TestCore, folder: &Path) -> Result<()> {
    let backup = folder.join("out/backup");
    if !backup.exists() {
        let again = satchel_core::backup::create::create;
        again(&core.store, &folder.join("data"), &backup, 1, &mut |_| true)?;
    }
    restore::restore(&backup, &folder.join("restored"), false, &UnlockOptions::default(), &mut |_| true)?;
    let restored = Store::open(&folder.join("restored"), OpenOptions::default(), &mut |_| {})?;
    ensure!(restored.state_digest() == core.store.state_digest(), "the backup differs from the store");
    Ok(restored.close()?)
}

/// Creates a folder in memory if possible; the data written by a killed process survives there too.
pub(crate) fn memory_tempdir() -> Result<TempDir> {
    Ok(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?)
}

/// Returns `SATCHEL_FAULT_ROUNDS`, which sets how many more times each failpoint is tried.
fn rounds() -> u64 {
    std::env::var("SATCHEL_FAULT_ROUNDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}
