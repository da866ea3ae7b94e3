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
    vault::Unlock,
};
use satchel_store::{Health, OpenOptions, Store};
use satchel_tests::archive::{Archive, State, only};
use tempfile::TempDir;

use crate::{
    gate::alone,
    scenes::{Ground, Scene},
};

/// Set in the child: the scene, its folder, the place at which it dies, and the number of the arrival there. With no
/// place it survives.
const SCENE: &str = "SATCHEL_TEST_POINTS_SCENE";
const FOLDER: &str = "SATCHEL_TEST_POINTS_FOLDER";
const PLACE: &str = "SATCHEL_TEST_POINTS_PLACE";
const TIME: &str = "SATCHEL_TEST_POINTS_TIME";
/// Number of child processes that run at the same time.
const AT_ONCE: usize = 3;

/// Not a separate test: it runs in the child process of the test below.
#[test]
fn child_that_dies_at_a_place() -> Result<()> {
    let Ok(name) = std::env::var(SCENE) else { return Ok(()) };
    let folder = PathBuf::from(std::env::var_os(FOLDER).context("a folder")?);
    let (place, time) = (std::env::var(PLACE)?, std::env::var(TIME)?.parse::<u64>()?);
    let scene = Scene::ALL.into_iter().find(|scene| scene.name() == name).context("a scene")?;
    let counts = Mutex::new(BTreeMap::<&str, u64>::new());
    let log = folder.join("places");
    ensure!(satchel_failpoints::listen(move |reached| {
        let Ok(mut counts) = counts.lock() else { return };
        let count = counts.entry(reached).or_default();
        *count += 1;
        if reached == place && *count == time {
            let this = rustix::process::getpid();
            rustix::process::kill_process(this, rustix::process::Signal::KILL).unwrap_or_default();
        }
        if place.is_empty() {
            let lines: Vec<String> = counts.iter().map(|(place, times)| format!("{times} {place}")).collect();
            drop(fs::write(&log, lines.join("\n")));
        }
    }));
    scene.play(&folder)
}

/// Runs the child; returns true if it was killed.
fn child(scene: Scene, folder: &Path, place: &str, time: u64) -> Result<bool> {
    let arguments = ["--exact", "kill::child_that_dies_at_a_place", "--test-threads", "1"];
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).env(SCENE, scene.name()).env(FOLDER, folder);
    command.env(PLACE, place).env(TIME, time.to_string());
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.code().is_some_and(|code| code != 0) {
        bail!("the child failed: {}", String::from_utf8_lossy(&output.stdout));
    }
    Ok(!output.status.success())
}

/// The states before a scene begins and after it has ended.
struct Expected {
    before: State,
    after: State,
}

/// Returns all places that a scene reaches, and how often.
fn places(ground: &Ground, scene: Scene) -> Result<Vec<(String, u64)>> {
    let folder = quick()?;
    ground.lay(scene, folder.path())?;
    ensure!(!child(scene, folder.path(), "", 0)?, "it died of itself");
    let log = fs::read_to_string(folder.path().join("places"))?;
    let parse = |line: &str| -> Result<(String, u64)> {
        let (times, place) = line.split_once(' ').context("a line")?;
        Ok((place.to_owned(), times.parse()?))
    };
    let places: Vec<(String, u64)> = log.lines().map(parse).collect::<Result<_>>()?;
    let named: BTreeMap<&str, u64> = places.iter().map(|(place, times)| (place.as_str(), *times)).collect();
    for place in scene.places() {
        ensure!(named.contains_key(place), "{scene:?} does not come to {place:?}: {named:?}");
    }
    Ok(places)
}

#[test]
fn a_process_killed_at_any_named_place_is_completed_and_loses_nothing() -> Result<()> {
    let _alone = alone();
    let folder = quick()?;
    let ground = Ground::make(folder.path())?;
    let state = |name: &str| Archive::open(&folder.path().join(name).join("data"))?.state();
    let expected = Expected { before: state("before")?, after: state("after")? };
    ensure!(expected.before != expected.after, "the import brought nothing");
    let mut cases = Vec::new();
    for scene in Scene::ALL {
        for (place, times) in places(&ground, scene)? {
            // The store's own tests try each step of a commit; a longer run tries them here too.
            let own = scene.places().contains(&place.as_str());
            if own || rounds() > 1 {
                let more = (1..rounds()).map(|round| 1 + round * 7 % times);
                let mut chosen: Vec<u64> = [1, times].into_iter().chain(more).collect();
                chosen.sort_unstable();
                chosen.dedup();
                cases.extend(chosen.into_iter().map(|time| (scene, place.clone(), time)));
            }
        }
    }
    ensure!(cases.len() >= 25, "only {} cases", cases.len());
    let (next, failed) = (Mutex::new(cases.into_iter()), Mutex::new(Vec::new()));
    let take = || next.lock().ok().and_then(|mut cases| cases.next());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((scene, place, time)) = take() {
                    let tried = kill_at(&ground, scene, (&place, time), &expected);
                    if let (Err(error), Ok(mut failed)) = (tried, failed.lock()) {
                        failed.push(format!("{scene:?} killed at {place:?}, time {time}: {error:?}"));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner()?;
    ensure!(failed.is_empty(), "{}", failed.join("\n\n"));
    Ok(())
}

fn kill_at(ground: &Ground, scene: Scene, (place, time): (&str, u64), expected: &Expected) -> Result<()> {
    let folder = quick()?;
    let folder = folder.path();
    ground.lay(scene, folder)?;
    ensure!(child(scene, folder, place, time)?, "it lives");
    let archive = Archive::open(&folder.join("data"))?;
    ensure!(archive.store.health() == Health::Good, "{:?}", archive.store.health());
    let report = archive.store.check(true, &mut |_| {})?;
    ensure!(report.clean(), "{report:?}");
    match scene {
        Scene::Import => import_is_completed(&archive, folder, expected)?,
        Scene::Undo => undo_is_completed(&archive, ground, expected, place)?,
        Scene::Export => exports_are_whole(&archive, folder, expected)?,
        Scene::Backup => backup_is_whole(&archive, folder)?,
    }
    let digest = archive.store.state_digest();
    archive.close()?;
    if time > 1 && rounds() == 1 {
        return Ok(());
    }
    let options = OpenOptions { rebuild: true, ..OpenOptions::default() };
    let rebuilt = Store::open(&folder.join("data"), options, &mut |_| {})?;
    ensure!(rebuilt.state_digest() == digest, "a rebuild makes another state");
    Ok(rebuilt.close()?)
}

/// Checks that the next full export contains everything confirmed before, that a repeated import completes the rest,
/// and that a third one changes nothing.
fn import_is_completed(archive: &Archive, folder: &Path, expected: &Expected) -> Result<()> {
    let left = archive.state()?;
    for (name, conversation) in &expected.before.conversations {
        ensure!(left.conversations.get(name) == Some(conversation), "{name} is not in the next full export");
    }
    for memory in &expected.before.memories {
        ensure!(left.memories.contains(memory), "{} is not in the next full export", memory["id"]);
    }
    let listed = archive.imports.list(None, 10)?.items;
    ensure!(listed.iter().all(ImportRecord::ended), "an import runs for ever: {listed:?}");
    let import = only(archive.import(&folder.join("memories"))?)?;
    let done = [ImportStatus::Completed, ImportStatus::CompletedWithSkips, ImportStatus::Unchanged];
    ensure!(done.contains(&import.status), "{:?} {:?}", import.status, import.reason);
    ensure!(archive.state()? == expected.after, "it is not completed");
    let digest = archive.store.state_digest();
    let again = only(archive.import(&folder.join("memories"))?)?;
    ensure!(again.status == ImportStatus::Unchanged, "{again:?}");
    ensure!(archive.store.state_digest() == digest, "an import twice is not once");
    Ok(())
}

/// Checks that the start has completed the undo: the state shown is the one before or the one after, and the history
/// says which one and who completed it.
fn undo_is_completed(archive: &Archive, ground: &Ground, expected: &Expected, place: &str) -> Result<()> {
    let import = archive.imports.get(&ground.undone)?.context("the import")?;
    let reason = import.reason.clone().unwrap_or_default();
    let undone = import.status == ImportStatus::Undone;
    ensure!(!reason.contains("has not ended"), "it is not completed: {reason}");
    let shown = if undone { &expected.before } else { &expected.after };
    ensure!(archive.state()? == *shown, "the state is another than the history says: {reason}");
    let between = ["undo noted", "undo of conversations stored", "undo of memories stored", "undo done"];
    if undone && between.contains(&place) {
        ensure!(reason.contains("by the next start"), "the history does not say who completed it: {reason}");
    }
    Ok(())
}

/// Checks that every file with its final name is complete, that all others are hidden, and that the next export
/// contains everything.
fn exports_are_whole(archive: &Archive, folder: &Path, expected: &Expected) -> Result<()> {
    let strict = verify::Options { strict: true, ..verify::Options::default() };
    for entry in fs::read_dir(folder.join("out"))? {
        let path = entry?.path();
        let name = path.file_name().context("a name")?.to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let report = verify::path(&path, &strict)?;
        ensure!(report.valid, "{name}: {:?}", report.issues);
    }
    ensure!(archive.state()? == expected.after, "something is not in the next full export");
    // Every export that the ledger lists exists.
    let known: Vec<ExportRecord> = archive.exports.list(None, 10)?.items;
    for record in known.iter().filter(|record| record.path.contains("/out/")) {
        ensure!(Path::new(&record.path).exists(), "{} is listed and not there", record.path);
    }
    Ok(())
}

fn backup_is_whole(archive: &Archive, folder: &Path) -> Result<()> {
    let backup = folder.join("out/backup");
    if !backup.exists() {
        let again = satchel_core::backup::create::create;
        again(&archive.store, &folder.join("data"), &backup, 1, &mut |_| true)?;
    }
    restore::restore(&backup, &folder.join("restored"), false, &Unlock::default(), &mut |_| true)?;
    let restored = Store::open(&folder.join("restored"), OpenOptions::default(), &mut |_| {})?;
    ensure!(restored.state_digest() == archive.store.state_digest(), "the backup holds something else");
    Ok(restored.close()?)
}

/// Creates a folder in memory if possible; the data written by a killed process survives there too.
pub(crate) fn quick() -> Result<TempDir> {
    Ok(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?)
}

/// Returns `SATCHEL_FAULT_ROUNDS`, which sets how many more times each place is tried.
fn rounds() -> u64 {
    std::env::var("SATCHEL_FAULT_ROUNDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}
