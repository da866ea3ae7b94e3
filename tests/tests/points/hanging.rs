//! A source that does not answer, as a file of a dead share: others go on, people are told, and a cancel ends the job.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use satchel_daemon::ingest::{
    JobView, Phase, Silent,
    receipt::{ImportRecord, ImportStatus},
};
use satchel_tests::{
    archive::{Archive, only},
    generate,
};
use tokio::sync::watch;

use crate::{
    gate::Gate,
    settling::{begin, ended},
};

/// Longest time that a machine that does other things too may take for a moment.
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
    // Both places are taken, and given to others.
    let through = only(archive.import(&other)?)?;
    ensure!(through.status == ImportStatus::Completed, "{through:?}");
    let silent: Vec<Silent> = archive.imports.silent();
    let mut told: Vec<String> = silent.iter().map(|silent| silent.job.to_string()).collect();
    told.sort();
    let mut both = vec![first.clone(), second];
    both.sort();
    ensure!(told == both && silent.iter().any(|silent| silent.path == one), "{silent:?}");
    let asked = Instant::now();
    ensure!(archive.imports.cancel(&first), "no such job runs");
    let import = ended(&mut hangs)?;
    let reason = import.reason.clone().unwrap_or_default();
    ensure!(import.status == ImportStatus::Cancelled && reason.contains("did not answer"), "{import:?}");
    // A second, and what a busy machine adds.
    ensure!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    ensure!(archive.imports.silent().len() == 1, "what was let go is still told");
    gate.open();
    ensure!(ended(&mut answers)?.status == ImportStatus::Completed, "what answers again does not go on");
    drop(gate);
    // The thread that was left behind has nothing more to say.
    let of_one = |import: &&ImportRecord| import.path == one.display().to_string();
    let listed = archive.imports.list(None, 10)?.items;
    let said: Vec<_> = listed.iter().filter(of_one).map(|import| import.status).collect();
    ensure!(said == [ImportStatus::Cancelled], "{said:?}");
    ensure!(only(archive.import(&one)?)?.status == ImportStatus::Completed);
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
    // In the middle: some conversations came, and are not committed yet.
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
    // What came before the silence is stored, and readable.
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
